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

/// `000102030405…`: bytes that follow each other.
pub(super) fn counts_up(hex: &[u8]) -> bool {
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let pairs: usize = hex.len() / 2;
    let rising = (1..pairs).filter(|at| {
        let (before, here) = (byte(&hex[at * 2 - 2..at * 2]), byte(&hex[at * 2..at * 2 + 2]));
        before.zip(here).is_some_and(|(before, here)| before.wrapping_add(1) == here)
    });
    rising.count() * 2 > pairs
}

/// `9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26`.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| {
            if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
}

/// As a UUID, but with groups of other lengths.
pub(super) fn is_grouped_hex(value: &[u8]) -> bool {
    let mut groups = value.split(|byte| *byte == b'-');
    let is_group = |group: &[u8]| group.len() >= 4 && group.iter().all(u8::is_ascii_hexdigit);
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    (28..=72).contains(&value.len())
        && value.contains(&b'-')
        && groups.all(is_group)
        && digits * 4 >= value.len()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_by_the_rules_have_all_kinds_of_characters() {
        assert!(is_by_the_rules(b"VMware1!") && is_by_the_rules(b"Winter2024#"));
        for value in ["vmware1!", "VMware11", "VMware!!", "Vm1!", "Fix (#12)!a", "$Name->getA1()"] {
            assert!(!is_by_the_rules(value.as_bytes()), "{value}");
        }
    }
}
