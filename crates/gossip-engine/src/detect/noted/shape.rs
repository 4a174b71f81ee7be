//! How a word of a note looks: as a password, or as one of the many other things that have digits and signs.

use super::super::Plain;
use super::super::chosen;
use super::super::keyboard;
use super::super::value;
use super::super::vocabulary;
use super::words::NUMBERED;
use crate::ignore_case;

pub(super) const LEN_MIN: usize = 5;
const LEN_MAX: usize = 48;

/// What a value weighs at least that is hardly a word, a random one, and one of letters only.
const NO_WORD_BITS: f32 = 10.0;
const HARDLY_WORD_BITS: f32 = 5.0;
const RANDOM_BITS: f32 = 14.0;
const RANDOM_LETTERS_BITS: f32 = 24.0;

/// How much a word looks like a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Looks {
    /// As names and exclamations do, too.
    Word,
    /// Made of words, as names are, too.
    Made,
    /// As no name is.
    Sure,
    Random,
}

impl Looks {
    pub(super) fn of(value: &[u8]) -> Option<Self> {
        if !(LEN_MIN..=LEN_MAX).contains(&value.len()) || is_other(value) {
            return None;
        }
        // A percent sign begins no escape here, as addresses were told before, and is a sign as others are.
        let mut plain = [0; LEN_MAX];
        let plain = &mut plain[..value.len()];
        plain.copy_from_slice(value);
        plain.iter_mut().filter(|byte| **byte == b'%').for_each(|byte| *byte = b'$');
        Self::of_plain(plain)
    }

    fn of_plain(value: &[u8]) -> Option<Self> {
        let has = |of: fn(&u8) -> bool| value.iter().any(of);
        let weight = |least: f32| value::weigh(value, least).is_some();
        if !weight(f32::MIN) {
            return keyboard::is_walk(value).then_some(Self::Made);
        }
        let has_digit = has(u8::is_ascii_digit);
        let is_mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
        let signs = value.iter().filter(|byte| is_sign(**byte)).count();
        let random_bits = if has_digit || signs > 1 { RANDOM_BITS } else { RANDOM_LETTERS_BITS };
        let is_by_the_rules = value::is_by_the_rules(value) && !is_of_year(value);
        if is_by_the_rules || (is_mixed && weight(random_bits)) {
            return Some(Self::Random);
        }
        if let Some(word) = exclaimed(value) {
            let is_hump =
                |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
            let is_camel = word.windows(2).any(is_hump);
            let is_name = word[0].is_ascii_uppercase();
            return if is_camel { Some(Self::Made) } else { is_name.then_some(Self::Word) };
        }
        let is_unlike_words = has_digit && weight(NO_WORD_BITS);
        if is_called(value) || is_camel_name(value) {
            return is_unlike_words.then_some(Self::Word);
        }
        if is_model(value) {
            return Some(Self::Word);
        }
        if chosen::is_sure(value)
            || (is_phrase(value) && has_digit)
            || (is_mixed && is_unlike_words)
        {
            Some(Self::Sure)
        } else if (has_digit && weight(HARDLY_WORD_BITS))
            || is_phrase(value)
            || keyboard::is_walk(value)
        {
            Some(Self::Made)
        } else {
            let is_any =
                chosen::weigh(value).is_some() || are_two_words(value) || is_of_all_kinds(value);
            is_any.then_some(Self::Word)
        }
    }
}

/// `Test_83!`: letters of both cases, digits and signs, whatever the letters say.
fn is_of_all_kinds(value: &[u8]) -> bool {
    const DIGITS_MIN: usize = 2;
    let has = |of: fn(&u8) -> bool| value.iter().any(of);
    has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && value.iter().any(|byte| is_sign(*byte))
        && value.iter().filter(|byte| byte.is_ascii_digit()).count() >= DIGITS_MIN
}

/// What people and programs put between letters and digits.
pub(super) const fn is_sign(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'@'
            | b'#'
            | b'$'
            | b'%'
            | b'^'
            | b'&'
            | b'*'
            | b'?'
            | b'~'
            | b'+'
            | b'='
            | b'_'
            | b'-'
    )
}

/// `Zwetschge_Hamburg`: two words that programs do not know, one of them a name.
fn are_two_words(value: &[u8]) -> bool {
    const WORD_MIN: usize = 4;
    let mut words = value.split(|byte| *byte == b'_');
    let is_word = |word: &[u8]| {
        word.len() >= WORD_MIN
            && word.iter().all(u8::is_ascii_alphabetic)
            && !vocabulary::is_known(word)
    };
    words.clone().count() == 2 && words.all(is_word) && value.iter().any(u8::is_ascii_uppercase)
}

/// A word with a year and signs behind it: what happens in it is called so, too.
fn is_of_year(value: &[u8]) -> bool {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let rest = &value[letters..];
    letters > 0 && matches!(rest, [b'1', b'9', _, _, ..] | [b'2', b'0', _, _, ..])
}

/// The word that somebody calls out or asks for: `Thanks!`
fn exclaimed(value: &[u8]) -> Option<&[u8]> {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, signs) = value.split_at(letters);
    (letters > 0 && !signs.is_empty() && signs.iter().all(|byte| b"!?.".contains(byte)))
        .then_some(word)
}

/// Words of four letters or more with the same sign between them, and perhaps a number at their end. Hosts have
/// shorter ones: `db-prod-07`.
fn is_phrase(value: &[u8]) -> bool {
    const WORD_MIN: usize = 4;
    let Some(joint) = value.iter().find(|byte| matches!(byte, b'-' | b'_' | b'.')) else {
        return false;
    };
    let mut words = value.split(|byte| byte == joint).peekable();
    let mut count = 0;
    while let Some(word) = words.next() {
        let is_number =
            words.peek().is_none() && !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let is_word = word.len() >= WORD_MIN
            && word.iter().all(u8::is_ascii_alphabetic)
            && !vocabulary::is_known(word);
        if !is_word && !is_number {
            return false;
        }
        count += 1;
    }
    // `visit_whole_subtree`, `legacy-peer-links`: what programs call something.
    let has_digit = value.iter().any(u8::is_ascii_digit);
    let words_min = if has_digit { 3 } else { 4 };
    count >= words_min && (has_digit || *joint != b'_')
}

/// Small letters with dashes or underscores between them, as hosts, branches and options are called.
fn is_called(value: &[u8]) -> bool {
    let in_name = |byte: &u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    };
    value.iter().any(|byte| matches!(byte, b'-' | b'_'))
        && value.iter().all(in_name)
        && !is_phrase(value)
}

/// Whether the word is something else that has digits and signs, whatever stands around it.
fn is_other(value: &[u8]) -> bool {
    is_number(value)
        || is_quantity(value)
        || is_numbered(value)
        || is_code(value)
        || is_place(value)
        || is_written_by_programs(value)
}

/// Digits, and what is counted, dated or measured with them: `2026-07-23`, `10:30`, `192.168.0.1:80`, `3f4e5d6c`.
fn is_number(value: &[u8]) -> bool {
    let in_number = |byte: &u8| byte.is_ascii_hexdigit() || b".:-_/,+x%".contains(byte);
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let is_version =
        |three: &[u8]| three[0].is_ascii_digit() && three[1] == b'.' && three[2].is_ascii_digit();
    value.iter().all(in_number)
        || letters == 0
        || value.windows(3).any(is_version)
        || ends_in_id(value)
}

/// `Room204`, `sprint-42`.
fn is_numbered(value: &[u8]) -> bool {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let rest = &value[letters..];
    let in_number = |byte: &u8| byte.is_ascii_digit() || b"-_.#".contains(byte);
    // `riscv64`: what machines are called.
    let is_of_bits =
        matches!(rest, b"32" | b"64") && value[..letters].iter().all(u8::is_ascii_lowercase);
    let is_counted = rest.iter().all(in_number) && ignore_case::is_any(&value[..letters], NUMBERED);
    is_counted || is_of_bits
}

/// `getUser3`, `PickCostBasedL0Files`: a name of a program.
fn is_camel_name(value: &[u8]) -> bool {
    const DIGITS_MAX: usize = 2;
    const CAPITALS_MIN: usize = 4;
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let capitals = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_variable =
        value[0].is_ascii_lowercase() && letters + digits == value.len() && capitals > 0;
    value.iter().all(u8::is_ascii_alphanumeric)
        && digits <= DIGITS_MAX
        && (is_variable || capitals >= CAPITALS_MIN)
        && value::is_wordlike(&value[..letters])
}

/// `Utf8PathBuf`, `RTX4090Ti`, `p4merge`: a name with one number in it.
fn is_model(value: &[u8]) -> bool {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let ends_number = |pair: &&[u8]| pair[0].is_ascii_digit() && !pair[1].is_ascii_digit();
    value.iter().all(in_name) && value.windows(2).filter(ends_number).count() == 1
}

/// `64MB_max`, `10ms`, `flush~10KB`, `2*size`: how much of something.
fn is_quantity(value: &[u8]) -> bool {
    const UNITS: &[&str] = &[
        "b", "fps", "g", "gb", "gib", "hz", "kb", "kbps", "kib", "km", "m", "mb", "mbit", "mbps",
        "mhz", "mib", "min", "ms", "px", "tb", "tib", "x",
    ];
    let begins = |part: &[u8]| {
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let letters = part[digits..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        digits > 0 && ignore_case::is_any(&part[digits..digits + letters], UNITS)
    };
    let factor = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_product = factor > 0 && value.get(factor) == Some(&b'*');
    is_product || value.split(|byte| matches!(byte, b'~' | b'*' | b'=')).any(begins)
}

/// `price_3b9d07c41fe8`: what it is of, and a number.
fn ends_in_id(value: &[u8]) -> bool {
    const LEN_MIN: usize = 8;
    let Some(joint) = value.iter().rposition(|byte| matches!(byte, b'-' | b'_')) else {
        return false;
    };
    let (name, id) = (&value[..joint], &value[joint + 1..]);
    id.len() >= LEN_MIN
        && id.iter().all(u8::is_ascii_hexdigit)
        && name.iter().all(u8::is_ascii_lowercase)
}

/// Capitals and digits: the number of a ticket, a model, a license.
fn is_code(value: &[u8]) -> bool {
    let in_code = |byte: &u8| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_./:#+=".contains(byte)
    };
    value.iter().all(in_code) && value.iter().any(u8::is_ascii_digit)
}

/// A path, an address, a host, a file.
fn is_place(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let in_host =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_@:".contains(byte);
    let is_host = value.contains(&b'.') && value.iter().all(in_host) && !value.ends_with(b".");
    let at = value.iter().position(|byte| *byte == b'@');
    let is_mail = at.is_some_and(|at| {
        at > 0 && value[at + 1..].contains(&b'.') && value[at + 1..].iter().all(in_host)
    });
    has(b"://")
        || value.contains(&b'/')
        || value.contains(&b'\\')
        || is_host
        || is_mail
        || value::has_extension(value)
}

/// The last line of an attachment.
fn is_text_in_base64(value: &[u8]) -> bool {
    const LEN_MIN: usize = 16;
    let is_text =
        |plain: Plain| plain.bytes().iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r'));
    value.len() >= LEN_MIN && Plain::of(value).is_some_and(is_text)
}

/// A call, an option, a variable, an assignment, a mention, a channel.
fn is_written_by_programs(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let assigned = memchr::memchr(b'=', value);
    let in_variable = |byte: &u8| byte.is_ascii_alphabetic() || b"_-.?&".contains(byte);
    let is_assignment = assigned
        .is_some_and(|at| at > 0 && at + 1 < value.len() && value[..at].iter().all(in_variable));
    let is_option = value.starts_with(b"--")
        || (value[0] == b'-' && value.get(1).is_some_and(u8::is_ascii_alphabetic));
    let is_mention = matches!(value[0], b'@' | b'#') && value[1..].iter().all(in_name);
    let is_call = value.iter().any(|byte| b"(){}[]".contains(byte));
    is_assignment
        || is_option
        || is_mention
        || is_call
        || is_text_in_base64(value)
        || has(b"::")
        || has(b"=?")
        || value.starts_with(b"?utf")
        || has(b"&#")
        || has(b"${")
}
