//! Values that are names of something in code, and no secrets.

use super::form::is_uuid;
use super::weight;
use crate::ignore_case;

/// What names of words weigh at most: some are short for something.
const NAME_BITS: f32 = 20.0;
const UUID_LEN: usize = 36;

/// Whether the value is a name in camel case: no two capitals in a row, and three letters to a word.
pub(in crate::detect) fn is_camel_case(value: &[u8]) -> bool {
    let capitals = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let apart = !value.windows(2).any(|pair| pair.iter().all(u8::is_ascii_uppercase));
    capitals > 1
        && apart
        && value.iter().all(u8::is_ascii_alphabetic)
        && capitals * 3 <= value.len()
}

/// `http.sslCAInfo`, `xml-pe.xml`: words with dots between them; random letters are none.
pub(in crate::detect) fn is_dotted(value: &[u8]) -> bool {
    let in_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-';
    let is_word = |word: &[u8]| !word.is_empty() && word.iter().all(in_word);
    value.contains(&b'.')
        && value.split(|byte| *byte == b'.').all(is_word)
        && weight(value).bits < NAME_BITS
}

/// `Net.IGMPV3MaxNum`, `cpuid.cmpxchg16b`: the same with a few digits, as options are called.
pub(in crate::detect) fn is_option(value: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        word.first().is_some_and(u8::is_ascii_alphabetic)
            && word.iter().all(u8::is_ascii_alphanumeric)
            && word.iter().filter(|byte| byte.is_ascii_digit()).count() <= 2
    };
    value.contains(&b'.')
        && value.split(|byte| *byte == b'.').all(is_word)
        && weight(value).bits < NAME_BITS
}

/// `query_graph_rrd`: three words or more in small letters.
pub(in crate::detect) fn is_snake_case(value: &[u8]) -> bool {
    let mut words = value.split(|byte| *byte == b'_');
    words.clone().count() >= 3
        && words.all(|word| !word.is_empty() && word.iter().all(u8::is_ascii_lowercase))
        && weight(value).bits < NAME_BITS
}

/// `Shape.3b9d07…`, `qm:9b2f6c1e-…`: a word, and the hash or the number of what it is of.
pub(in crate::detect) fn is_named_hash(value: &[u8]) -> bool {
    let joint = value.iter().rposition(|byte| matches!(byte, b'.' | b':'));
    joint.is_some_and(|joint| {
        let (word, hash) = (&value[..joint], &value[joint + 1..]);
        let is_hash = hash.len() == 40 && hash.iter().all(u8::is_ascii_hexdigit);
        let in_words = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-');
        let is_number = value.windows(UUID_LEN).any(is_uuid);
        (is_hash && !word.is_empty() && word.iter().all(in_words)) || is_number
    })
}

/// `JMX_SERVICE_URL`, `pydantic-mypy`, `-dbgtrace`: letters of one case with the same sign between them, as names
/// and options of programs are written, whatever the letters. What is longer may be a key in groups.
pub(in crate::detect) fn is_joined_name(value: &[u8]) -> bool {
    const LEN_MAX: usize = 24;
    let name = value.strip_prefix(b"--").or(value.strip_prefix(b"-")).unwrap_or(value);
    let is_small = name.first().is_some_and(u8::is_ascii_lowercase);
    let joint = name.iter().find(|byte| matches!(byte, b'-' | b'_'));
    let in_word = |byte: &u8| match is_small {
        true => byte.is_ascii_lowercase(),
        false => byte.is_ascii_uppercase(),
    };
    let digits = name.iter().filter(|byte| byte.is_ascii_digit()).count();
    let signs = name.iter().filter(|byte| Some(*byte) == joint).count();
    // Constants are called by numbers, too: `PKIX_ECDSA_P256_SHA_256`.
    let may_be_numbered =
        !is_small && joint == Some(&b'_') && signs >= 2 && digits * 3 <= name.len();
    let is_byte = |byte: &u8| {
        in_word(byte) || Some(byte) == joint || (may_be_numbered && byte.is_ascii_digit())
    };
    name.len() <= LEN_MAX
        && (signs > 0 || name.len() < value.len())
        && name.first().is_some_and(u8::is_ascii_alphabetic)
        && name.iter().all(is_byte)
}

/// `host/vim/init/kmx`: where something is in a tree, in small letters.
pub(in crate::detect) fn is_place(value: &[u8]) -> bool {
    let in_place = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'/' | b'-' | b'_');
    value.iter().filter(|byte| **byte == b'/').count() >= 2 && value.iter().all(in_place)
}

/// The name of a constant: `HTTP_NOT_FOUND`, `RSA_OAEP_SHA_256`.
pub(super) fn is_constant_name(value: &[u8]) -> bool {
    const SIZES: &[&str] =
        &["1", "2", "3", "128", "192", "224", "256", "384", "512", "1024", "2048", "3072", "4096"];
    let inner = value.strip_prefix(b"_").and_then(|inner| inner.strip_suffix(b"_"));
    let mut words = inner.unwrap_or(value).split(|byte| *byte == b'_');
    let is_word = |word: &[u8]| word.len() >= 2 && word.iter().all(u8::is_ascii_uppercase);
    // `HTTP_X_FORWARDED_FOR`: of many words some may be letters.
    let may_be_letters = words.clone().count() >= 4;
    let is_letter = |word: &[u8]| may_be_letters && matches!(word, [b'A'..=b'Z']);
    value.contains(&b'_')
        && words.next().is_some_and(is_word)
        && words.all(|word| is_word(word) || is_letter(word) || ignore_case::is_any(word, SIZES))
}

/// `orders-dlq-key`. Random letters may end so, too, so what stands before the end must be words.
pub(super) fn ends_in_what_it_names(value: &[u8]) -> bool {
    const ENDS: [&str; 5] = ["key", "keys", "token", "pass", "pwd"];
    let tail = value.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (head, tail) = value.split_at(value.len() - tail);
    let in_name = |byte: &u8| byte.is_ascii_lowercase() || b"-_.".contains(byte);
    matches!(head.last(), Some(b'-' | b'_'))
        && ignore_case::is_any(tail, &ENDS)
        && head.iter().all(in_name)
        && weight(head).bits < NAME_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_camel_case_are_told_from_random_letters() {
        assert!(is_camel_case(b"IsIfxTpmWeakKey") && is_camel_case(b"KeyValueMetadata"));
        assert!(!is_camel_case(b"GESRVTMCJBHPHYXZ") && !is_camel_case(b"kdxnyjwb"));
        assert!(!is_camel_case(b"wzmXIVdasQW"));
    }

    #[test]
    fn names_with_a_hash_and_places_in_a_tree_are_told() {
        for value in [
            "Shape.3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c4",
            "Union.Bool-Shape.3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c4",
            "qm:9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26:5ad6d3581db05e2a66fa80b",
        ] {
            assert!(is_named_hash(value.as_bytes()), "{value}");
        }
        assert!(!is_named_hash(b"3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c4"));
        assert!(!is_named_hash(b"q8Zr2LmT.0vXbN5wK"));
        assert!(is_option(b"Net.IGMPV3MaxNum") && !is_option(b"q8Zr2LmT.0vXbN5wK"));
        assert!(is_place(b"host/vim/init/kmx") && !is_place(b"aB3/xY9/qq") && !is_place(b"a/b"));
    }
}
