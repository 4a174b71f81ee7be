//! Values that are no secrets because everybody has them.

use crate::{checksum, ignore_case};

/// The beginnings of keys that their authors published to be used by everybody: the storage and the
/// database emulator's of Azure, and those of RFC 7748, 8032, 8410 and 8439. Too short to be keys.
#[rustfmt::skip]
const PUBLISHED: &[&str] = &[
    "eby8vdm02xnocqflquw", "c2y6ydjf5/r+ob0n8a7", "77076d0a7318a57d", "5dab087e624a8a4b",
    "9d61b19deffd5a60", "4ccd089b28ff96da", "c5aa8df43f9f837b", "d4ee72dbf913584a",
    "85d6be7857556d33",
    // The first accounts of the chains that Hardhat, Anvil and Ganache start for tests.
    "ac0974bec39a17e3", "59c6995e998f97a5", "5de4111afa1a4b94", "7c852118294e51e6", "4f3edf983ac636a6",
];

/// Of those, the emulators' come first.
const EMULATORS: usize = 2;

/// The beginnings of what the RFCs of OAuth (5849, 6749, 6750), of Basic credentials (7617) and the
/// manuals of one-time passwords, Stripe, MongoDB, Kubernetes (also in base64) and Azure's vault show, and half
/// the world copies; the password of scrypt's (7914); and the constant of WebSocket (6455).
#[rustfmt::skip]
const SHOWN: &[&str] = &[
    "2yotnfzfejr1zc", "tgzv3jokf0xg5q", "splxlobezqqyby", "czzcagrsa3f0mz", "7fjfp0zbr1ktdr", "gx1fbat3bv",
    "mf_9.b5f-4.1jq", "9djdj82h48djs9", "kkk9d7dh3k39sj", "j49sn47ddh2s33", "dh893hdasih9d3", "kd94hf93k423kf",
    "nnch734d00sl2j", "hh5s93j4hdidpo", "pfkkdhi9sl3r4s", "dpf43f3p2l4k3l", "qwxhzgrpbjpvcg", "jbswy3dpehpk3p",
    "258eafa5-e914-47da", "sk_test_4ec39hqlyj", "d1fficultp", "1f2d1e2e67df",
    "mwyyzdflmmu2n2", "hvfkk965buuv",
    // RFC 8410's key of Ed25519.
    "mc4caqawbqydk2vwbcieintuctv5e1hk",
    // RFC 4226's and 6238's secret of one-time passwords, and the manuals' one as sites show theirs.
    "gezdgnbvgy3tqojq", "3132333435363738393031", "gezd gnbv gy3t qojq", "jbsw y3dp ehpk",
    // With which Grafana comes, and what OpenWeather's manual shows.
    "sw2ycwtib9zpoohopsmm", "b6907d289e10d714", "439d4b804bc81879",
];

/// Whether the value is no secret because everybody has it.
pub(super) fn is_published(value: &[u8]) -> bool {
    let is_long = value.len() >= 32;
    is_shown(value)
        || (is_long
            && (ignore_case::contains_any(value, PUBLISHED)
                || checksum::is_public_nkey(value)
                || checksum::is_published_google_key(value)))
}

/// Whether the value is an example of an RFC, or the key of an emulator that everybody has, by its
/// beginning. What only contains one may be more: a private key contains its public one.
pub(in crate::detect) fn is_shown(value: &[u8]) -> bool {
    const LEN_MIN: usize = 10;
    value.eq_ignore_ascii_case(b"pleaseletmein")
        || value.len() >= LEN_MIN
            && (ignore_case::starts_with_any(value, SHOWN)
                || ignore_case::starts_with_any(value, &PUBLISHED[..EMULATORS]))
}
