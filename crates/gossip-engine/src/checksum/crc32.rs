//! CRC-32 (IEEE), and its base 62 form at the end of GitHub's and npm's tokens.

use super::Verdict;

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut at = 0;
    while at < 256 {
        let mut value = at as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[at] = value;
        at += 1;
    }
    table
};

pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ (crc >> 8))
}

/// Six digits, most significant first.
pub(crate) fn base62_of_crc32(bytes: &[u8]) -> [u8; 6] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = crc32(bytes);
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[(rest % 62) as usize];
        rest /= 62;
    }
    digits
}

pub(super) fn verify_base62(secret: &[u8]) -> Verdict {
    let Some(tail) = secret.len().checked_sub(36).map(|start| &secret[start..]) else {
        return Verdict::Unknown;
    };
    let (body, digits) = tail.split_at(30);
    if base62_of_crc32(body) == digits { Verdict::Valid } else { Verdict::Invalid }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_right_checksum_is_valid_and_any_other_is_not() {
        let body = b"0123456789abcdefghijABCDEFGHIJ";
        let mut token = [b"ghp_".as_slice(), body, &base62_of_crc32(body)].concat();
        assert_eq!(verify_base62(&token), Verdict::Valid);
        token[10] ^= 1;
        assert_eq!(verify_base62(&token), Verdict::Invalid);
        assert_eq!(verify_base62(b"ghp_short"), Verdict::Unknown);
    }
}
