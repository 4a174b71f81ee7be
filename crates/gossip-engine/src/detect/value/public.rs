//! Values that look random and are public: keys, addresses and signatures. Their first bytes and their
//! length tell; where these are not enough, the name must not speak of a secret.

use super::encoded::from_hex;
use crate::decode::base64;
use crate::ignore_case;

/// Whether the value is public, and can be nothing else.
pub(super) fn is_public(value: &[u8]) -> bool {
    is_ssh_public_key(value)
        || is_checked_address(value)
        || is_written_as_public(value)
        || is_publishable(value)
        || is_card(value)
        || is_der(value)
}

/// What Stripe, Mapbox, Midtrans and those who do as they do give to pages, and RevenueCat to applications of each store.
fn is_publishable(value: &[u8]) -> bool {
    const OF_STORE: std::ops::RangeInclusive<usize> = 30..=34;
    let of_store = value.strip_prefix(b"appl_").or(value.strip_prefix(b"goog_"));
    value.starts_with(b"pk_live_")
        || value.starts_with(b"pk_test_")
        || value.starts_with(b"pk.eyJ")
        || value.starts_with(b"Mid-client-")
        || value.starts_with(b"SB-Mid-client-")
        || of_store.is_some_and(|key| {
            OF_STORE.contains(&value.len()) && key.iter().all(u8::is_ascii_alphanumeric)
        })
}

/// Whether the value looks like something public; a secret may look so, too.
pub(in crate::detect) fn may_be_public(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"0x");
    is_address(value) || is_point(digits.unwrap_or(value))
}

/// An account or a contract of Ethereum: 20 bytes. Keys of chains have 32.
pub(in crate::detect) fn is_address(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"0x").unwrap_or(b"");
    digits.len() == 40 && digits.iter().all(u8::is_ascii_hexdigit)
}

/// An address whose letters are of both cases: they are its checksum, and nothing else has them.
fn is_checked_address(value: &[u8]) -> bool {
    is_address(value)
        && value[2..].iter().any(u8::is_ascii_uppercase)
        && value[2..].iter().any(u8::is_ascii_lowercase)
}

/// A point of a curve of 32 bytes, whole or compressed, or a signature with the byte that says which
/// point it is of. No key has 33 bytes or 65.
fn is_point(digits: &[u8]) -> bool {
    let begins = |starts: &[&[u8]]| starts.iter().any(|start| digits.starts_with(start));
    let ends = |ends: &[&str]| ignore_case::ends_with_any(digits, ends);
    let may_be = match digits.len() {
        66 => begins(&[b"02", b"03"]),
        130 => begins(&[b"04"]) || ends(&["1b", "1c", "00", "01"]),
        _ => false,
    };
    may_be && digits.iter().all(u8::is_ascii_hexdigit)
}

/// What says of itself that it is a public key: its first letters and its length.
fn is_written_as_public(value: &[u8]) -> bool {
    /// How public keys of RSA and of curves begin in base64, whatever is left of them.
    const STARTS: [&[u8]; 4] = [
        b"MIGfMA0GCSqGSIb3DQEBAQUAA4GN",
        b"MIIBIjANBgkqhkiG9w0BAQEFAAOC",
        b"MIICIjANBgkqhkiG9w0BAQEFAAOC",
        b"MFkwEwYHKoZIzj0CAQYIKoZIzj0D",
    ];
    const KINDS: [(&[u8], usize); 5] =
        [(b"age1", 62), (b"xpub", 111), (b"ypub", 111), (b"zpub", 111), (b"tpub", 111)];
    let is_key = STARTS.iter().any(|start| value.starts_with(start));
    is_key
        || KINDS.iter().any(|(start, len)| {
            value.len() == *len
                && value.starts_with(start)
                && value[start.len()..].iter().all(u8::is_ascii_alphanumeric)
        })
}

/// A card, as a browser gets it from Stripe and hands it on once: a version, the time, the account and a
/// number, in letters of both cases.
fn is_card(value: &[u8]) -> bool {
    const LEN: usize = 28;
    value.len() == LEN
        && value.starts_with(b"tok_1")
        && value[4..].iter().all(u8::is_ascii_alphanumeric)
        && value[4..].iter().any(u8::is_ascii_uppercase)
        && value[4..].iter().any(u8::is_ascii_lowercase)
}

/// A public key of SSH, or the kind that stands before one.
fn is_ssh_public_key(value: &[u8]) -> bool {
    const STARTS: [&[u8]; 7] = [
        b"AAAAB3NzaC1yc2E",
        b"AAAAC3NzaC1lZDI1NTE5",
        b"AAAAE2VjZHNhLXNoYTIt",
        b"ssh-rsa",
        b"ssh-dss",
        b"ssh-ed25519",
        b"ssh-ed448",
    ];
    STARTS.iter().any(|start| value.starts_with(start))
}

/// A public key or a certificate in DER, by hexadecimal digits or base64. Private ones begin with the
/// number of a version, which is one byte.
fn is_der(value: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const INTEGER: u8 = 0x02;
    const LEN_MIN: usize = 40;
    if value.len() < LEN_MIN || !matches!(value[0], b'M' | b'3') {
        return false;
    }
    let mut bytes = [0; 12];
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let (len, whole) = match is_hex {
        true => (from_hex(value, &mut bytes), value.len() / 2),
        false => {
            let digits = value.iter().take_while(|byte| **byte != b'=').count();
            (base64::decode_into(value, &mut bytes), digits * 3 / 4)
        }
    };
    let bytes = &bytes[..len];
    let Some((SEQUENCE, inside, said)) = head(bytes) else { return false };
    match head(&bytes[inside..]) {
        Some((SEQUENCE, _, part)) => inside + said == whole && part < said,
        Some((INTEGER, _, part)) => inside + said == whole && (2..said).contains(&part),
        _ => false,
    }
}

/// The tag of what begins here, how long its head is, and how long it says that the rest is.
fn head(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    match *bytes {
        [tag, len @ ..=0x7F, ..] => Some((tag, 2, usize::from(len))),
        [tag, 0x81, len, ..] => Some((tag, 3, usize::from(len))),
        [tag, 0x82, high, low, ..] => Some((tag, 4, usize::from(u16::from_be_bytes([high, low])))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many digits as are asked for that mean nothing.
    fn random(len: usize) -> String {
        "3b9d07c41fe86a52908d4f7be1c6a03d".chars().cycle().take(len).collect()
    }

    #[test]
    fn public_keys_and_addresses_are_told_by_their_form() {
        for value in [
            format!("0x{}", random(40)),
            format!("02{}", random(64)),
            format!("0x03{}", random(64)),
            format!("04{}", random(128)),
            format!("{}1C", random(128).to_uppercase()),
        ] {
            assert!(may_be_public(value.as_bytes()), "{value}");
            assert!(!is_public(value.as_bytes()), "{value}");
        }
        for value in [
            format!("0x{}", random(40).replacen('b', "B", 1)),
            format!("age1{}", random(58)),
            format!("xpub{}", random(107)),
            format!("tok_1{}", random(23).replacen('b', "B", 1)),
        ] {
            assert!(is_public(value.as_bytes()), "{value}");
        }
        for value in [
            format!("0x{}", random(64)),
            random(40),
            random(64),
            random(66),
            format!("05{}", random(128)),
            format!("age1{}", random(40)),
            format!("xprv{}", random(107)),
            format!("tok_{}", random(24)),
            format!("tok_1{}", random(23)),
        ] {
            assert!(!is_public(value.as_bytes()), "{value}");
            assert!(!may_be_public(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn public_keys_in_der_begin_with_an_algorithm_or_a_long_number() {
        // The algorithm of Ed25519 and its key; a modulus of 64 bytes and its exponent.
        let ed25519 = format!("302a300506032b6570032100{}", random(64));
        let rsa = format!("3048024100{}0203010001", random(128));
        // A version first: private.
        let private = format!("302e020100300506032b657004220420{}", random(64));
        for (value, is) in [(&ed25519, true), (&rsa, true), (&private, false)] {
            assert_eq!(is_public(value.as_bytes()), is, "{value}");
        }
        // One byte is missing: by chance only.
        assert!(!is_public(&ed25519.as_bytes()[..ed25519.len() - 2]));
        assert!(is_public(b"MCowBQYDK2VwAyEAO50HxB/oalKQjU974cagPTudB8Qf6GpSkI1Pe+HGoD0="));
    }
}
