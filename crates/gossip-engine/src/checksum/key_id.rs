//! Identifiers whose characters carry structure: AWS key ids and Bech32.

use super::Verdict;

/// Key ids made since 2019 hold the account number: 40 bits after the first of the decoded bytes.
/// Older ones hold something else, so an impossible number only says nothing.
pub(super) fn verify_aws(secret: &[u8]) -> Verdict {
    let Some(body) = secret.get(4..20) else { return Verdict::Impossible };
    let mut bits: u64 = 0;
    for &byte in &body[..10] {
        let Some(value) = base32(byte) else { return Verdict::Impossible };
        bits = bits << 5 | u64::from(value);
    }
    if body[10..].iter().any(|&byte| base32(byte).is_none()) {
        return Verdict::Impossible;
    }
    // 50 bits are read; the number is the 40 after the highest.
    let account = bits >> 9 & 0xFF_FFFF_FFFF;
    if account < 1_000_000_000_000 { Verdict::Valid } else { Verdict::Unknown }
}

fn base32(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

/// The length of a seed's bytes: two of prefix, 32 of key, two of checksum.
const SEED_LEN: usize = 36;

/// That of a public key's: one of prefix.
const PUBLIC_LEN: usize = SEED_LEN - 1;
const SEED_PREFIX: u8 = 18 << 3;

/// The seed's own prefix, the prefix of the key that it makes, and CRC-16 (XMODEM) over all before.
pub(super) fn verify_nkey_seed(secret: &[u8]) -> Verdict {
    match nkey_bytes::<SEED_LEN>(secret) {
        Some(bytes) if bytes[0] & 0xF8 == SEED_PREFIX => Verdict::Valid,
        _ => Verdict::Impossible,
    }
}

/// Whether this is the public key of a NATS user, account or server, which is no secret.
pub(crate) fn is_public_nkey(text: &[u8]) -> bool {
    nkey_bytes::<PUBLIC_LEN>(text).is_some_and(|bytes| bytes[0] & 0xF8 != SEED_PREFIX)
}

/// What base32 with a right checksum at its end says.
fn nkey_bytes<const LEN: usize>(text: &[u8]) -> Option<[u8; LEN]> {
    let mut bytes = [0u8; LEN];
    let (mut bits, mut held, mut len) = (0u32, 0, 0);
    if text.len() != (LEN * 8).div_ceil(5) {
        return None;
    }
    for &byte in text {
        bits = bits << 5 | u32::from(base32(byte)?);
        held += 5;
        if held >= 8 && len < LEN {
            held -= 8;
            bytes[len] = (bits >> held) as u8;
            len += 1;
        }
    }
    let (body, check) = bytes.split_at(LEN - 2);
    (len == LEN && crc16(body).to_le_bytes() == check).then_some(bytes)
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 }
        })
    })
}

/// The seed of a key whose kind is the second letter of `prefix`, for templates.
pub(crate) fn nkey_seed(prefix: &str, key: &[u8; 32]) -> String {
    let kind = prefix.as_bytes().get(1).copied().and_then(base32).unwrap_or(20) << 3;
    let mut bytes = vec![18 << 3 | kind >> 5, (kind & 31) << 3];
    bytes.extend(key);
    bytes.extend(crc16(&bytes).to_le_bytes());
    base32_text(&bytes)
}

fn base32_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    let (mut bits, mut held) = (0u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        held += 8;
        while held >= 5 {
            held -= 5;
            let value = (bits >> held & 31) as u8;
            text.push(char::from(if value < 26 { b'A' + value } else { b'2' + value - 26 }));
        }
    }
    if held > 0 {
        let value = (bits << (5 - held) & 31) as u8;
        text.push(char::from(if value < 26 { b'A' + value } else { b'2' + value - 26 }));
    }
    text
}

const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// BIP 173's checksum over the human-readable part and the data.
pub(super) fn verify_bech32(secret: &[u8]) -> Verdict {
    let Some(split) = memchr::memrchr(b'1', secret) else { return Verdict::Impossible };
    let mut check = Polymod::new(&secret[..split]);
    for &byte in &secret[split + 1..] {
        let Some(value) = bech32_value(byte) else { return Verdict::Impossible };
        check.step(value);
    }
    if check.0 == 1 { Verdict::Valid } else { Verdict::Invalid }
}

/// The six characters that complete `prefix1data`, for templates.
pub(crate) fn bech32_checksum(prefix: &[u8], data: &[u8]) -> [u8; 6] {
    let mut check = Polymod::new(prefix);
    data.iter().for_each(|&byte| check.step(bech32_value(byte).unwrap_or(0)));
    (0..6).for_each(|_| check.step(0));
    let rest = check.0 ^ 1;
    std::array::from_fn(|at| BECH32[(rest >> (5 * (5 - at)) & 31) as usize])
}

fn bech32_value(byte: u8) -> Option<u8> {
    BECH32.iter().position(|c| *c == byte.to_ascii_lowercase()).map(|at| at as u8)
}

/// Bech32's remainder of what was fed so far.
struct Polymod(u32);

impl Polymod {
    fn new(prefix: &[u8]) -> Self {
        let mut check = Self(1);
        prefix.iter().for_each(|byte| check.step(byte.to_ascii_lowercase() >> 5));
        check.step(0);
        prefix.iter().for_each(|byte| check.step(byte.to_ascii_lowercase() & 31));
        check
    }

    fn step(&mut self, value: u8) {
        const GENERATORS: [u32; 5] =
            [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
        let top = self.0 >> 25;
        self.0 = (self.0 & 0x1FF_FFFF) << 5 ^ u32::from(value);
        for (bit, generator) in GENERATORS.iter().enumerate() {
            if top >> bit & 1 == 1 {
                self.0 ^= generator;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bech32_accepts_the_published_vectors_only() {
        assert_eq!(verify_bech32(b"A12UEL5L"), Verdict::Valid);
        assert_eq!(verify_bech32(b"a12uel5l"), Verdict::Valid);
        assert_eq!(verify_bech32(b"a12uel5q"), Verdict::Invalid);
        assert_eq!(verify_bech32(b"a1b!"), Verdict::Impossible);
    }

    #[test]
    fn a_written_checksum_is_accepted() {
        let check = bech32_checksum(b"AGE-SECRET-KEY-", BECH32);
        let text = [b"AGE-SECRET-KEY-1".as_slice(), BECH32, &check].concat();
        assert_eq!(verify_bech32(&text), Verdict::Valid);
    }

    #[test]
    fn a_nats_seed_carries_a_checksum() {
        assert_eq!(crc16(b"123456789"), 0x31C3, "the published check value");
        let mut seed = nkey_seed("SU", &[7; 32]).into_bytes();
        assert_eq!((seed.len(), &seed[..2]), (58, b"SU".as_slice()));
        assert_eq!(verify_nkey_seed(&seed), Verdict::Valid);
        seed[20] = if seed[20] == b'A' { b'B' } else { b'A' };
        assert_eq!(verify_nkey_seed(&seed), Verdict::Impossible);
        assert_eq!(verify_nkey_seed(b"SU"), Verdict::Impossible);
    }

    #[test]
    fn a_nats_public_key_is_told_from_a_seed() {
        let mut bytes = vec![20 << 3];
        bytes.extend([7; 32]);
        bytes.extend(crc16(&bytes).to_le_bytes());
        let public = base32_text(&bytes);
        assert_eq!((public.len(), &public[..1]), (56, "U"));
        assert!(is_public_nkey(public.as_bytes()));
        assert!(!is_public_nkey(nkey_seed("SU", &[7; 32]).as_bytes()));
        assert!(!is_public_nkey(public.replace('U', "A").as_bytes()));
    }

    #[test]
    fn an_aws_key_id_holds_base32() {
        let id = |body: &str| [b"AKIA", body.as_bytes()].concat();
        assert_eq!(verify_aws(&id("A23456789BCDEFGH")), Verdict::Impossible);
        assert_eq!(verify_aws(&id("QAAAAAAAAAAAAAAA")), Verdict::Valid);
        assert_eq!(verify_aws(b"AKIA"), Verdict::Impossible);
    }
}
