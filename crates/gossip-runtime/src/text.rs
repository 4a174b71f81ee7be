//! What is worth scanning: text, told by the head of an item.

/// Bytes of an item that are looked at.
const HEAD: usize = 8 << 10;

/// Why an item that starts with `head` is taken for something other than text. UTF-16 is text: its
/// NULs are every other byte.
pub(crate) fn binary_reason(head: &[u8]) -> Option<&'static str> {
    let head = &head[..head.len().min(HEAD)];
    if !head.contains(&0) || is_utf16(head) {
        return None;
    }
    Some("NUL bytes")
}

fn is_utf16(head: &[u8]) -> bool {
    if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let mut nuls = [0_usize; 2];
    for (index, _) in head.iter().enumerate().filter(|&(_, &byte)| byte == 0) {
        nuls[index % 2] += 1;
    }
    // Mostly Latin, so that one of the two bytes of a character is NUL nearly always and the other
    // never.
    let [even, odd] = nuls;
    even.min(odd) == 0 && even.max(odd) * 4 >= head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_any_encoding_is_scanned_and_the_rest_is_not() {
        let utf16 = |swap: bool| -> Vec<u8> {
            "name = value\n"
                .encode_utf16()
                .flat_map(|unit| if swap { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect()
        };
        let texts: [&[u8]; 5] = [b"", b"plain", b"\xe9t\xe9", &utf16(false), &utf16(true)];
        for text in texts {
            assert_eq!(binary_reason(text), None, "{text:?}");
        }
        for binary in [&b"\x7fELF\x02\x01\x01\0\0\0\0"[..], b"text and then \0", &[0; 9000]] {
            assert_eq!(binary_reason(binary), Some("NUL bytes"), "{binary:?}");
        }
    }

    #[test]
    fn a_nul_behind_the_head_does_not_hide_the_text_before_it() {
        let mut bytes = vec![b'a'; HEAD];
        bytes.push(0);
        assert_eq!(binary_reason(&bytes), None);
    }
}
