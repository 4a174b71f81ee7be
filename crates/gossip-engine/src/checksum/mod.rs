//! Offline verification: what a value's own structure says about it.
//!
//! Pure functions over the secret. A value that fails is not thrown away by default, only trusted
//! less: a token that was mangled on its way into a file may still name the account it came from.

mod crc32;
mod key_id;
mod macaroon;
mod published;
mod structure;

use serde::Deserialize;

pub(crate) use crc32::base62_of_crc32;
pub(crate) use key_id::{bech32_checksum, is_public_nkey, nkey_seed};
pub(crate) use published::is_google as is_published_google_key;

/// How a value is verified.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Checksum {
    /// GitHub and npm: the last six characters are the CRC-32 of the thirty before, in base 62.
    Crc32Base62,
    /// PyPI: base64 of a macaroon whose location is the index.
    PypiMacaroon,
    /// AWS: a base32 key id that holds a possible account number.
    AwsKeyId,
    /// Three base64url parts, of which the first two are JSON objects and the first names `alg`.
    Jwt,
    /// PEM: the body is base64 of a DER sequence, or an OpenSSH or PGP key.
    PrivateKey,
    /// Bech32: age's secret keys.
    Bech32,
    /// Base64 of a JSON object somewhere after the prefix.
    Base64Json,
    /// NATS: base32 of a prefix, a seed and its CRC-16.
    NkeySeed,
    /// Google: none of the keys that it publishes itself.
    GoogleApiKey,
}

/// What verification says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The structure is right; chance does not produce it.
    Valid,
    /// It neither speaks for nor against the value.
    Unknown,
    /// The checksum is wrong.
    Invalid,
    /// This cannot be such a value at all.
    Impossible,
}

impl Checksum {
    pub(crate) fn verify(self, secret: &[u8]) -> Verdict {
        match self {
            Self::Crc32Base62 => crc32::verify_base62(secret),
            Self::PypiMacaroon => macaroon::verify_pypi(secret),
            Self::AwsKeyId => key_id::verify_aws(secret),
            Self::Jwt => structure::verify_jwt(secret),
            Self::PrivateKey => structure::verify_private_key(secret),
            Self::Bech32 => key_id::verify_bech32(secret),
            Self::Base64Json => structure::verify_base64_json(secret),
            Self::NkeySeed => key_id::verify_nkey_seed(secret),
            Self::GoogleApiKey => published::verify_google(secret),
        }
    }
}
