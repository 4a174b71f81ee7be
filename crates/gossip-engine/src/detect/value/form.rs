//! Forms that a value has as a whole: numbers, hexadecimal digits, what programs and rules for
//! passwords make.

use crate::ignore_case;

/// Digits with or without the suffix of a type, `1296188491u32`; hexadecimal ones of a register's
/// width.
pub(super) fn is_number(value: &[u8]) -> bool {
    const SUFFIXES: [&str; 16] = [
        "", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "usize", "l", "u", "ul", "ull",
        "ll", "n",
    ];
    let hex = value.strip_prefix(b"0x").or_else(|| value.strip_prefix(b"0X"));
    if let Some(hex) = hex {
        return hex.len() <= 16 && hex.iter().all(u8::is_ascii_hexdigit);
    }
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && ignore_case::is_any(&value[digits..], &SUFFIXES)
}

/// Hexadecimal digits of one case, enough of them to be no word.
pub(super) fn is_hex(value: &[u8]) -> bool {
    value.len() >= 16
        && value.iter().all(u8::is_ascii_hexdigit)
        && value.iter().any(u8::is_ascii_digit)
        && !(value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase))
}

/// What a hexadecimal digit stands for.
pub(super) fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// `000102030405…`, `00112233…`, `ffeeddcc…`: digits of bytes that count.
pub(super) fn counts_up(hex: &[u8]) -> bool {
    let byte = |pair: &[u8; 2]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    are_counted(hex.as_chunks().0.iter().map_while(byte))
}

/// Whether half of the bytes are as far from the one before as that one is, or follow it.
pub(in crate::detect) fn are_counted(bytes: impl Iterator<Item = u8>) -> bool {
    /// So many do not by chance, whatever follows them.
    const SURE: usize = 16;
    let (mut count, mut steady) = (0, 0);
    let mut last: Option<u8> = None;
    let mut step = None;
    for byte in bytes {
        if let Some(last) = last {
            let here = byte.wrapping_sub(last);
            steady += usize::from(here == 1 || step == Some(here));
            step = Some(here);
        }
        last = Some(byte);
        count += 1;
    }
    steady * 2 >= count || steady >= SURE
}

/// `aaaabbbbcccc…`, `AABBCCDDAABBCCDDAABBCCDD`: somebody held a key, or pasted one string again and again.
pub(super) fn is_repeated(value: &[u8]) -> bool {
    const LEN_MIN: usize = 12;
    const MAX_PERIOD: usize = 8;
    const TIMES: usize = 3;
    let runs = 1 + value.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let repeats = |period: usize| {
        value.len() >= period * TIMES && value.iter().zip(&value[period..]).all(|(a, b)| a == b)
    };
    value.len() >= LEN_MIN && (runs * TIMES <= value.len() || (1..=MAX_PERIOD).any(repeats))
}

/// `9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26`.
pub(in crate::detect) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| {
            if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}

/// As a UUID, but with groups of other lengths.
pub(super) fn is_grouped_hex(value: &[u8]) -> bool {
    let is_group = |group: &[u8]| group.len() >= 4 && group.iter().all(u8::is_ascii_hexdigit);
    let digits = || value.iter().filter(|byte| byte.is_ascii_digit()).count();
    (28..=72).contains(&value.len())
        && value.contains(&b'-')
        && value.split(|byte| *byte == b'-').all(is_group)
        && digits() * 4 >= value.len()
}

/// `PROVIDER_KEY_3BD1C4BF-…`: a name that was made unique.
pub(in crate::detect) fn ends_in_uuid(value: &[u8]) -> bool {
    let start = value.len().saturating_sub(36);
    start > 0 && is_uuid(&value[start..])
}

/// Whether a program made the value of letters, digits and many signs, as those of frameworks do:
/// what its signs mean elsewhere says nothing.
pub(super) fn is_generated(value: &[u8]) -> bool {
    const SIGNS: &[u8] = b"!@#$%^&*(-_=+)";
    const MIN_SIGNS: usize = 5;
    let distinct = SIGNS.iter().filter(|sign| value.contains(sign)).count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    (40..=128).contains(&value.len())
        && distinct >= MIN_SIGNS
        && digits >= 3
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || SIGNS.contains(byte))
}

/// Letters of both cases, digits and a sign: what rules for passwords ask people for. `VMware1!`
pub(in crate::detect) fn is_by_the_rules(value: &[u8]) -> bool {
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    let is_sign = |byte: &u8| b"!@#$^&*?".contains(byte);
    (8..=24).contains(&value.len())
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && has(is_sign)
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
}

/// Numbers that everybody has: lengths of keys, and ports.
const NUMBERS: &[&str] = &[
    "128", "192", "256", "384", "512", "1024", "2048", "3000", "3306", "4096", "5432", "6379",
    "8000", "8080", "8443", "27017",
];

/// Whether it has digits that are no year, do not count up and are nobody's own.
pub(in crate::detect) fn has_own_number(value: &[u8]) -> bool {
    const MIN_DIGITS: usize = 3;
    let numbers = value.split(|byte| !byte.is_ascii_digit());
    let is_year = |number: &[u8]| matches!(number, [b'1', b'9', _, _] | [b'2', b'0', _, _]);
    let counts =
        |number: &[u8]| number.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair[1] == pair[0]);
    numbers
        .filter(|number| number.len() >= MIN_DIGITS)
        .any(|number| !is_year(number) && !counts(number) && !ignore_case::is_any(number, NUMBERS))
}

/// How long a password is that `text` begins with as Google makes them for programs, in a line of its own:
/// `abcd efgh ijkl mnop`.
pub(in crate::detect) fn app_password_len(text: &[u8]) -> Option<usize> {
    const LEN: usize = 19;
    let value = text.get(..LEN)?;
    let ends = text.get(LEN).is_none_or(|next| matches!(next, b'\n' | b'\r'));
    (ends && is_app_password(value)).then_some(LEN)
}

/// Whether the value is four groups of four small letters, which are no words.
pub(in crate::detect) fn is_app_password(value: &[u8]) -> bool {
    const RANDOM_BITS: f32 = 16.0;
    let mut letters = [0; 16];
    let groups = || value.split(|byte| *byte == b' ');
    let is_one = value.len() == 19
        && groups().all(|group| group.len() == 4 && group.iter().all(u8::is_ascii_lowercase));
    is_one && {
        groups().enumerate().for_each(|(at, group)| letters[4 * at..][..4].copy_from_slice(group));
        super::weigh(&letters, RANDOM_BITS).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_count_and_strings_that_repeat_are_told() {
        for hex in [
            "000102030405060708090a0b0c0d0e0f",
            "00112233445566778899aabbccddeeff",
            "ffeeddccbbaa99887766554433221100",
            "01030507090b0d0f00020406080a0c0d",
        ] {
            assert!(counts_up(hex.as_bytes()), "{hex}");
        }
        assert!(!counts_up(b"3b9d07c41fe86a52908d4f7be1c6a03d"));
        let half: String = (0x70..0x90).map(|byte| format!("{byte:02x}")).collect();
        assert!(counts_up(
            format!("{half}{}", "3b9d07c41fe86a52908d4f7be1c6a03d".repeat(2)).as_bytes()
        ));
        for value in ["aaaabbbbccccddddeeee", "QQWWEERRQQWWEERRQQWWEERR", "k3v9k3v9k3v9"] {
            assert!(is_repeated(value.as_bytes()), "{value}");
        }
        for value in ["q8Zr2LmT0vXbN5wK", "k3v9k3v9", "aabbccddeeffgg"] {
            assert!(!is_repeated(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn passwords_by_the_rules_have_all_kinds_of_characters() {
        assert!(is_by_the_rules(b"VMware1!") && is_by_the_rules(b"Winter2024#"));
        for value in ["vmware1!", "VMware11", "VMware!!", "Vm1!", "Fix (#12)!a", "$Name->getA1()"] {
            assert!(!is_by_the_rules(value.as_bytes()), "{value}");
        }
    }
}
