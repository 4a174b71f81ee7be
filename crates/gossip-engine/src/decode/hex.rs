//! Text written as hexadecimal digits, two a byte. Its runs are found with those of base64, whose
//! alphabet includes theirs.

/// Shorter runs are hashes, or hold nothing that has a shape.
pub(crate) const MIN_LEN: usize = 48;

/// How many bytes of the run's start are no digits: `0x`.
pub(crate) fn prefix_len(run: &[u8]) -> usize {
    if run.starts_with(b"0x") || run.starts_with(b"0X") { 2 } else { 0 }
}

/// Whether these are digits throughout, of one case, two for each byte.
pub(crate) fn is_run(digits: &[u8]) -> bool {
    digits.len() >= MIN_LEN
        && digits.len().is_multiple_of(2)
        && digits.iter().all(u8::is_ascii_hexdigit)
}

/// Decodes digits. False if they are no text: most are hashes and keys.
pub(crate) fn decode_text(digits: &[u8], out: &mut Vec<u8>) -> bool {
    out.clear();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    for pair in digits.chunks_exact(2) {
        let byte = digit(pair[0]) << 4 | digit(pair[1]);
        if !matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0) {
            return false;
        }
        out.push(byte);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded_and_hashes_are_not() {
        let text = "password = \"a value\"\r\n, and more";
        let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert!(is_run(digits.as_bytes()));
        let mut out = Vec::new();
        assert!(decode_text(digits.as_bytes(), &mut out));
        assert_eq!(out, text.as_bytes());
        let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert!(is_run(hash.as_bytes()));
        assert!(!decode_text(hash.as_bytes(), &mut out));
    }
}
