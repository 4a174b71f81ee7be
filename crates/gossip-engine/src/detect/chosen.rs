//! Passwords that people make of words: `Sommer2024!`, `P0stgr3s`, `dragon-fire-9`.
//!
//! The model of words takes them for words, which they are. What tells them from names and versions is
//! how they are put together, and that they stand beside the name of a password: this is asked of
//! nothing else.

mod words;

use super::keyboard;
use super::name::{self, has_credential_word, is_no_key};
use super::value;
use super::vocabulary;
use crate::ignore_case;
use words::{NAMING, NAMING_ELSEWHERE, NUMBERED, OF_SETTINGS, OF_TYPES, SHORT, TELLING};

const LEN_MIN: usize = 6;
const LEN_MAX: usize = 32;
/// Signs that people put into passwords, and hardly into names.
const SIGNS: &[u8] = b"!@#$^&*?+~";

/// What a value weighs that was made of words, in bits.
const MIXED_BITS: f32 = 6.0;
/// With what joins the words of a name between them.
const JOINED_BITS: f32 = 4.0;

/// What people say of themselves, of which nothing else is made: `IloveOysters`.
const AVOWALS: &[&str] = &["ilove", "ihate", "ineed", "imiss"];

fn is_telling(value: &[u8]) -> bool {
    ignore_case::starts_with_any(value, TELLING)
}

/// Whether a value was made of words in a way that nothing but a password is.
pub(super) fn is_sure(value: &[u8]) -> bool {
    weigh(value).is_some_and(|bits| bits >= MIXED_BITS)
}

/// The bits of a value that people made of words, or none if it was not.
pub(super) fn weigh(value: &[u8]) -> Option<f32> {
    if !(LEN_MIN..=LEN_MAX).contains(&value.len()) {
        return None;
    }
    // `@Zwetschge1926`, but no parameter `@Textbox2`.
    let digits = |rest: &[u8]| rest.iter().filter(|byte| byte.is_ascii_digit()).count();
    let value = match value {
        [b'@' | b'!' | b'#', rest @ ..] if has_capital_and_small(rest) && digits(rest) >= 3 => rest,
        _ => value,
    };
    let first = *value.first()?;
    let is_tail =
        |byte: &u8| byte.is_ascii_alphanumeric() || SIGNS.contains(byte) || b"_-.".contains(byte);
    if ignore_case::starts_with_any(value, AVOWALS) && value.iter().all(is_tail) {
        return Some(MIXED_BITS);
    }
    // A percent sign is one at the end; elsewhere it begins an escape or a variable. So is what joins words
    // elsewhere, behind a number.
    let (value, is_closed_off) = match value {
        [value @ .., b'%'] => (value, true),
        [value @ .., b'.' | b'-'] if value.last().is_some_and(u8::is_ascii_digit) => (value, true),
        _ => (value, false),
    };
    let is_sign = |byte: &u8| SIGNS.contains(byte);
    let is_joint = |byte: &u8| matches!(byte, b'-' | b'_' | b'.');
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || is_sign(byte) || is_joint(byte);
    if !first.is_ascii_alphanumeric() || !value.iter().all(is_plain) {
        return None;
    }
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let signs = value.iter().filter(|byte| is_sign(byte)).count();
    let joints = value.len() - letters - digits - signs;
    let signs = signs + usize::from(is_closed_off);
    let underscores = value.iter().filter(|byte| **byte == b'_').count();
    if letters < 3 || signs > 3 || joints > 3 || underscores > 2 {
        return None;
    }
    if digits + signs == 0 {
        return is_closed(value).then_some(JOINED_BITS);
    }
    // People choose the word for a password in their own language, with a number.
    if is_in_other_language(value) {
        // Few digits, and those in order, are an example's.
        let is_typed =
            value.ends_with(b"12") || value.ends_with(b"123") || value.ends_with(b"1234");
        return (signs > 0 || (digits >= 2 && !is_typed)).then_some(JOINED_BITS);
    }
    // A name with a number: `master_key_123`.
    let is_name = joints > 0 && value.split(is_joint).any(speaks);
    if is_numbered(value) || is_telling(value) || is_name {
        return None;
    }
    // A number and its unit, or a version: `300ms`, `0x1f`, `128chars`, `2.6.0.Final`.
    let unit = &value[value.iter().take_while(|byte| byte.is_ascii_digit()).count()..];
    let is_quantity = first.is_ascii_digit()
        && signs == 0
        && (letters <= 3 || joints > 1 || vocabulary::is_known(unit));
    // A call, an option or a list is written with the same signs: `a*b`, `user@host`, `a+b`.
    let is_expression = signs > 0 && digits == 0 && !has_capital_and_small(value);
    if is_quantity || is_expression || is_mail_address(value) {
        return None;
    }
    let is_mixed = signs > 0 || digits >= 2 || has_digit_within(value);
    match joints {
        0 if is_mixed => Some(MIXED_BITS),
        0 if has_capital_and_small(value) => Some(MIXED_BITS),
        _ if signs > 0 || (digits >= 2 && has_capital_and_small(value)) => Some(MIXED_BITS),
        _ => Some(JOINED_BITS),
    }
}

/// Whether the value is a word with a number and signs behind it: `Zwetschge7`, `zwetschge-26!`. Types and
/// algorithms are called `nvarchar2` and `SHA1-hashed`.
pub(super) fn is_word_and_number(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let goes_on = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic();
    value.first().is_some_and(u8::is_ascii_alphabetic)
        && value.last().is_some_and(|byte| !byte.is_ascii_alphabetic())
        && !value.windows(2).any(goes_on)
        && (digits >= 2 || (digits == 1 && value.iter().any(u8::is_ascii_uppercase)))
}

/// Whether the value is a word, of programs or not, with three digits or four that nobody takes: `root4321`.
pub(super) fn is_numbered_by_people(value: &[u8]) -> bool {
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, number) = value.split_at(letters);
    letters >= 2
        && (3..=4).contains(&number.len())
        && number.iter().all(u8::is_ascii_digit)
        && value::has_own_number(number)
        && !ignore_case::is_any(
            word,
            &["host", "line", "page", "port", "room", "step", "test", "user"],
        )
        && !ignore_case::is_any(word, NUMBERED)
        && !is_telling(word)
        && !has_naming(word)
}

fn speaks(word: &[u8]) -> bool {
    has_credential_word(word) && !is_no_key(word)
}

/// Whether words in camel case have a sign behind them, as names hardly have: `WeLoveOysters.`,
/// `oystersPlease--`.
fn is_closed(value: &[u8]) -> bool {
    const MIN_LETTERS: usize = 8;
    let letters = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (words, signs) = value.split_at(letters);
    letters >= MIN_LETTERS
        && matches!(signs, b"." | b".." | b"-" | b"--")
        && words[1..].iter().any(u8::is_ascii_uppercase)
        && words.iter().any(u8::is_ascii_lowercase)
        && !is_telling(value)
        && !name::words(words).any(speaks)
}

/// `Passwort26`, `Haslo-8316`: the word for a password, but not the English one, which examples have.
fn is_in_other_language(value: &[u8]) -> bool {
    const WORDS: &[&str] =
        &["passwort", "contrasena", "parol", "parola", "hemligt", "kodeord", "tajne"];
    let stem = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let stem = &value[..stem];
    stem.len() < value.len()
        && stem.first().is_some_and(u8::is_ascii_uppercase)
        && (ignore_case::is_any(stem, WORDS) || ignore_case::is_any(stem, NAMING_ELSEWHERE))
}

/// Whether the value is one word in small letters, or several with dashes between them, and none that a
/// program has a meaning for: what people choose where nothing asks for more.
pub(super) fn is_word(value: &[u8]) -> bool {
    const LEN_MIN: usize = 8;
    value.len() >= LEN_MIN && is_words(value, |byte| *byte == b'-')
}

/// The same where somebody logs in: the word may be shorter, and underscores join as dashes do.
pub(super) fn is_word_of_login(value: &[u8]) -> bool {
    is_words(value, |byte| matches!(byte, b'-' | b'_'))
}

/// Whether the value is three words, none of which a program has a meaning for, or four or more of which it
/// knows one at most, with the same sign between them: `otter_ladder_quiver`, `my-otter-climbs-far`. Names of
/// something have more words that a program knows.
pub(super) fn is_pass_phrase(value: &[u8]) -> bool {
    const PHRASE_LEN_MAX: usize = 48;
    const MANY: usize = 4;
    /// What the names of modules and hosts begin with.
    const DOMAINS: &[&str] =
        &["com", "de", "dev", "edu", "eu", "io", "java", "javax", "net", "org", "www"];
    let Some(&joint) = value.iter().find(|byte| matches!(byte, b'-' | b'_' | b'.')) else {
        return false;
    };
    let words = || value.split(|byte| *byte == joint);
    let count = words().count();
    let known = words().filter(|word| is_of_program(word)).count();
    // Settings have dots between their words.
    let (min_len, most_known) = match joint {
        _ if count < MANY => (4, 0),
        b'.' => (2, 0),
        _ => (2, 1),
    };
    let is_chosen = |word: &[u8]| {
        (min_len..=10).contains(&word.len()) && word.iter().all(u8::is_ascii_lowercase)
    };
    value.len() <= PHRASE_LEN_MAX
        && (count >= MANY || (count == MANY - 1 && joint != b'.'))
        && words().all(is_chosen)
        && known <= most_known
        && !words().next().is_some_and(|word| ignore_case::is_any(word, DOMAINS))
        && !is_telling(value)
        && !has_naming(value)
}

fn is_of_program(word: &[u8]) -> bool {
    vocabulary::is_known(word)
        || ignore_case::is_any(word, OF_TYPES)
        || ignore_case::is_any(word, OF_SETTINGS)
}

/// Whether the value begins where fingers go on a keyboard, and has a number: `asdf1234`. It is as often typed
/// for an example.
pub(super) fn is_walk(value: &[u8]) -> bool {
    const WALKS: &[&str] = &["asdf", "qwe", "yxcv", "zxcv", "1qaz", "1q2w", "zaq1"];
    let begins = (LEN_MIN..=LEN_MAX / 2).contains(&value.len())
        && value.iter().all(u8::is_ascii_alphanumeric)
        && value.iter().any(u8::is_ascii_digit)
        && ignore_case::starts_with_any(value, WALKS);
    begins || keyboard::is_walk(value)
}

/// Whether the value is one word of four or five small letters that neither programs nor their manuals write:
/// `felix`. Labels and settings are as short, so it needs somebody whose password it is.
pub(super) fn is_short_word(value: &[u8]) -> bool {
    matches!(value.len(), 4 | 5)
        && value.iter().all(u8::is_ascii_lowercase)
        && !vocabulary::is_known(value)
        && !ignore_case::is_any(value, SHORT)
        && !has_naming(value)
}

/// `R!nde`, `L0tt3`: a short word with signs or digits for letters, and a capital.
pub(super) fn is_short_mixed(value: &[u8]) -> bool {
    let is_sign = |byte: &u8| b"!@$".contains(byte) || byte.is_ascii_digit();
    value.len() == 5
        && value.iter().all(|byte| byte.is_ascii_alphabetic() || is_sign(byte))
        && (1..=2).contains(&value.iter().filter(|byte| is_sign(byte)).count())
        && !is_sign(&value[0])
        && !is_sign(&value[4])
        && has_capital_and_small(value)
        && !has_naming(value)
}

/// Whether the value is two or three words with capitals, none of which a program has a meaning for, or more of
/// which it knows half at most: `KatzeLimoncello`, `Katze-Limoncello`. Types and fields are written so, too.
pub(super) fn is_capitalised(value: &[u8]) -> bool {
    const FEW: usize = 3;
    const MOST: usize = 6;
    let count = name::words(value).count();
    let known = name::words(value).filter(|word| is_of_program(word)).count();
    let are_words = match value.iter().all(u8::is_ascii_alphabetic) {
        true if count <= FEW => known == 0 && are_capitalised(value, 4),
        true => count <= MOST && known <= count / 2 && are_capitalised(value, 2),
        // A sign between two names.
        false => {
            count == 2 && known == 0 && is_joined_once(value, b"-_.+&") && are_capitalised(value, 3)
        }
    };
    value.len() <= LEN_MAX && count >= 2 && are_words && !is_telling(value) && !has_naming(value)
}

/// Whether each word has a capital and small letters, and so many of them.
fn are_capitalised(value: &[u8], len_min: usize) -> bool {
    name::words(value).all(|word| {
        word.len() >= len_min
            && word[0].is_ascii_uppercase()
            && word[1..].iter().all(u8::is_ascii_lowercase)
    })
}

/// Whether letters have one of these signs between them, and no other.
fn is_joined_once(value: &[u8], signs: &[u8]) -> bool {
    let mut others = value.iter().filter(|byte| !byte.is_ascii_alphabetic());
    others.next().is_some_and(|sign| signs.contains(sign)) && others.next().is_none()
}

/// Whether the value is a small word and what it is of, or a year: `mysql@harbour`, `redis_2019`. So are hosts,
/// users and fields called.
pub(super) fn is_word_of_place(value: &[u8]) -> bool {
    const WORD_MIN: usize = 2;
    let Some(at) = value.iter().position(|byte| !byte.is_ascii_lowercase()) else { return false };
    let (word, rest) = value.split_at(at);
    let [sign, rest @ ..] = rest else { return false };
    let is_place = b"@#!".contains(sign)
        && rest.len() > WORD_MIN
        && rest != word
        && rest.iter().all(u8::is_ascii_lowercase)
        && !is_of_program(rest);
    let is_year =
        b"@#-_.".contains(sign) && matches!(rest, [b'1', b'9', _, _] | [b'2', b'0', _, _]);
    word.len() >= WORD_MIN
        && (LEN_MIN..=LEN_MAX).contains(&value.len())
        && (is_place || (is_year && rest.iter().all(u8::is_ascii_digit)))
        && !is_telling(value)
        && !has_naming(value)
        && !ignore_case::contains_any(value, &["host", "port", "field", "utf", "iso", "rfc"])
}

fn is_words(value: &[u8], is_joint: fn(&u8) -> bool) -> bool {
    const UNKNOWN_MIN: usize = 5;
    const MANY: usize = 3;
    let mut words = value.split(is_joint);
    let unknown_min = UNKNOWN_MIN - usize::from(words.clone().count() >= MANY);
    let is_unknown = |word: &[u8]| word.len() >= unknown_min && !vocabulary::is_known(word);
    (LEN_MIN..=LEN_MAX).contains(&value.len())
        && words.clone().all(|word| !word.is_empty() && word.iter().all(u8::is_ascii_lowercase))
        && words.any(is_unknown)
        && !is_telling(value)
        && !value.ends_with(b"pw")
        && !has_naming(value)
}

fn has_naming(value: &[u8]) -> bool {
    ignore_case::contains_any(value, NAMING) || ignore_case::contains_any(value, NAMING_ELSEWHERE)
}

/// Whether a value only says what it is, or is a word that programs know.
pub(super) fn is_naming(value: &[u8]) -> bool {
    let in_words = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    let is_known = value.iter().all(in_words) && !is_word_of_login(value) && !is_short_word(value);
    is_known || has_naming(value)
}

/// The bits of a word with a sign at its end, as sentences have, too: `quetzalcoatl!`, `r@ven?`.
pub(super) fn weigh_called_out(value: &[u8]) -> Option<f32> {
    ((LEN_MIN..=LEN_MAX).contains(&value.len()) && is_called_out(value) && !is_telling(value))
        .then_some(JOINED_BITS)
}

fn is_called_out(value: &[u8]) -> bool {
    const MIN_WORD: usize = 5;
    let Some((b'!' | b'?' | b'@' | b'#' | b'*', word)) = value.split_last() else { return false };
    let signs = word.iter().filter(|byte| !byte.is_ascii_lowercase());
    word.len() >= MIN_WORD
        && signs.clone().count() <= 1
        && signs.clone().all(|sign| matches!(sign, b'!' | b'@' | b'$'))
        && !vocabulary::is_known(word)
        && !has_naming(word)
}

fn has_capital_and_small(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase)
}

/// A digit for a letter: `P0stgr3s`.
fn has_digit_within(value: &[u8]) -> bool {
    value.windows(3).any(|three| {
        three[0].is_ascii_alphabetic()
            && three[1].is_ascii_digit()
            && three[2].is_ascii_alphabetic()
    })
}

/// `name@host.tld`, `@scope/…`.
fn is_mail_address(value: &[u8]) -> bool {
    let at = value.iter().position(|byte| *byte == b'@');
    at.is_some_and(|at| value[at..].contains(&b'.'))
}

/// A word of the vocabulary or of [`NUMBERED`] with a number behind it: `sha256`, `field12`.
fn is_numbered(value: &[u8]) -> bool {
    let stem = value.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let stem = &value[..stem];
    let rest = &value[stem.len()..];
    let is_number =
        rest.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.'));
    // `Cookie1986`: nothing but people have a year.
    let is_name = stem.first().is_some_and(u8::is_ascii_uppercase)
        && stem.iter().skip(1).all(u8::is_ascii_lowercase);
    let is_of_year = is_name && matches!(rest, [b'1', b'9', _, _] | [b'2', b'0', _, _]);
    is_number && !is_of_year && (vocabulary::is_known(stem) || ignore_case::is_any(stem, NUMBERED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_digits_and_signs_are_passwords() {
        for value in [
            "Sommer2024!",
            "Winter2023",
            "P0stgr3s",
            "tr0ub4dor&3",
            "gandalf99",
            "BigBang$Theory",
            "dragon-fire-9",
            "monkey-banana-7",
            "Kraken_Rum12",
            "hal9000x",
            "Willkommen1",
            "7Zwerge!",
            "st@ging-db-1",
            "Breeze1990%",
            "IloveOysters",
            "h@rb0r%",
            "Cookie1986",
            "DeployPass321-",
            "notify-oslo99",
        ] {
            assert!(weigh(value.as_bytes()).is_some(), "{value}");
        }
    }

    #[test]
    fn what_people_choose_has_a_sign_or_the_word_of_their_language() {
        for value in [
            "WeLoveOysters.",
            "oystersPlease--",
            "Haslo-8316",
            "Passwort26",
            "Kennwort.91",
            "Salasana_3!",
        ] {
            assert_eq!(weigh(value.as_bytes()), Some(JOINED_BITS), "{value}");
        }
        for value in [
            "MemberVariable_",
            "oysters.",
            "Passwort1",
            "Haslo123",
            "Password26",
            "getPassword-",
            "128chars",
        ] {
            assert_eq!(weigh(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn phrases_have_no_word_of_a_program_and_walks_a_number() {
        for value in [
            "otter_ladder_quiver",
            "otter-ladder-quiver",
            "otterlings-ladderman-quivering-otterlings",
        ] {
            assert!(is_pass_phrase(value.as_bytes()), "{value}");
        }
        for value in ["my-otter-climbs-far", "open_otter_ladder_quiver", "otter.climbs.far.away"] {
            assert!(is_pass_phrase(value.as_bytes()), "{value}");
        }
        for value in [
            "otter_ladder",
            "reset_password_otter",
            "otter.ladder.quiver",
            "otter_user_quiver",
            "com.otter.ladder.quiver",
            "open_file_otter_ladder",
            "otter.ladder.jdbc.pw",
            "to_be_filled_in",
            "ask-the-otters-team",
        ] {
            assert!(!is_pass_phrase(value.as_bytes()), "{value}");
        }
        assert!(is_walk(b"asdf1234") && is_walk(b"1q2w3e4r") && is_walk(b"lkjhgfqwer7"));
        assert!(!is_walk(b"asdfghjk") && !is_walk(b"abc12345"));
    }

    #[test]
    fn short_words_and_words_with_capitals_are_none_of_a_program() {
        assert!(is_short_word(b"mimi") && is_short_word(b"otter"));
        for value in ["true", "none", "local", "vault", "otters", "otte7", "Otto", "clave"] {
            assert!(!is_short_word(value.as_bytes()), "{value}");
        }
        assert!(is_short_mixed(b"R!nde") && is_short_mixed(b"L0tte"));
        assert!(
            !is_short_mixed(b"Rinde") && !is_short_mixed(b"Rind3") && !is_short_mixed(b"r!nde")
        );
        for value in ["OtterLadder", "OtterLadderQuiver", "Otter-Ladder", "OttersOpenMyLadder"] {
            assert!(is_capitalised(value.as_bytes()), "{value}");
        }
        for value in ["mysql@harbour", "redis!harbour", "sql-2019"] {
            assert!(is_word_of_place(value.as_bytes()), "{value}");
        }
        for value in [
            "user@harbour",
            "admin@admin",
            "eye@open",
            "mysql@local.net",
            "sha-256",
            "otter_123",
            "redis-6379",
        ] {
            assert!(!is_word_of_place(value.as_bytes()), "{value}");
        }
        for value in [
            "UserDetails",
            "OtterPassword",
            "otterLadder",
            "Otterladder",
            "OtterLDAP",
            "ForgottenOtter",
            "Otter-Password",
            "Otter-Ladder_Quiver",
            "WindowPanelOtterGrid",
            "PutYourOwnHere",
            "Foo-Bar",
        ] {
            assert!(!is_capitalised(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_word_may_end_as_a_sentence_does() {
        for value in ["quetzalcoatl!", "r@ven?"] {
            assert!(weigh(value.as_bytes()).is_none(), "{value}");
            assert!(weigh_called_out(value.as_bytes()).is_some(), "{value}");
        }
        for value in ["required!", "wachtwoord?", "two words!", "abc!", "Really!"] {
            assert!(weigh_called_out(value.as_bytes()).is_none(), "{value}");
        }
    }

    #[test]
    fn a_word_is_one_unless_programs_know_it() {
        for value in ["zwetschge", "letmein-prod", "moon-over-oslo", "correcthorsebatterystaple"] {
            assert!(is_word(value.as_bytes()), "{value}");
        }
        for value in [
            "disabled",
            "required",
            "Passwort",
            "somepass",
            "keystorepass",
            "short",
            "two--dashes",
            "a_name_of_it",
            "useraccount",
            "autogenerated",
            "rounduppw",
            "off-by-one",
        ] {
            assert!(!is_word(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn what_says_what_it_is_is_told() {
        for value in ["wachtwoord", "pasahitza", "disabled", "Password1", "user@host", "short"] {
            assert!(is_naming(value.as_bytes()), "{value}");
        }
        for value in ["zwetschge", "kdxnyjwb", "Sommer2024!", "q8Zr2LmT"] {
            assert!(!is_naming(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn names_numbers_and_expressions_are_none() {
        for value in [
            "sha256",
            "utf16",
            "aes256",
            "field12",
            "string1",
            "http2",
            "password",
            "letmein",
            "MyController",
            "get_user_name",
            "from_utf16_to_utf8",
            "300ms",
            "1.2.3-rc1",
            "2.6.0.Final",
            "pass%5B%7F",
            "me@host.org",
            "a*bcdef",
            "x+yzzy",
            "user@host",
            "(abc123)",
            "web-01",
            "required!",
            "password?",
            "100%",
            "a%20b%20c",
            "x9",
            "cookie1986",
            "notset99",
        ] {
            assert_eq!(weigh(value.as_bytes()), None, "{value}");
        }
    }
}
