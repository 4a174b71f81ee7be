//! What the name, the syntax and the kind of file say that a value is instead of a secret: something told to
//! people, the name of something, or what a test is about.
//!
//! Each has a test here that fails without it, with a neighbour that is found.

use std::ops::Range;

use super::file_kind::FileKind;
use super::name::{Kind, Named};
use super::place::Place;
use super::syntax::{self, Syntax};
use super::value;
use crate::ignore_case;

/// Words of other languages say less.
const RANDOM_BITS: f32 = 24.0;

pub(super) fn is_something_else(place: &Place<'_>, named: Named) -> bool {
    is_told(place) || is_name(place, named) || is_of_test(place) || is_shared(place)
}

/// What is random enough is no name and no text, wherever it stands.
fn may_be_word(place: &Place<'_>) -> bool {
    value::weigh(place.value(), RANDOM_BITS).is_none()
}

/// Whether the value is told to people.
fn is_told(place: &Place<'_>) -> bool {
    let value = place.value();
    // A sentence quotes words, too.
    let is_quoted = place.found.syntax == Syntax::Said
        && !value.iter().any(u8::is_ascii_digit)
        && !syntax::is_no_word(value);
    let is_translated = || {
        let is_text = place.kind == FileKind::Catalogue && is_text(place.name(), value);
        is_text && may_be_word(place)
    };
    is_quoted || is_default_text(place.name(), value) || is_translated()
}

/// Words as they are written, unless a constant is set to them.
fn is_text(name: &[u8], value: &[u8]) -> bool {
    let is_word = |word: &[u8]| {
        let word = word.strip_suffix(b".").or(word.strip_suffix(b":")).unwrap_or(word);
        let word = word.strip_suffix(b"!").or(word.strip_suffix(b"?")).unwrap_or(word);
        let in_word = |byte: &u8| byte.is_ascii_lowercase() || b"'-,/".contains(byte);
        word.iter().skip(1).all(in_word) || word.iter().all(u8::is_ascii_uppercase)
    };
    let mut words = value.split(|byte| *byte == b' ');
    words.all(is_word) && !value.iter().any(u8::is_ascii_digit) && !syntax::is_constant(name)
}

/// `txtPassword.Text = "textBox1"`: what a designer of forms writes into a new one.
fn is_default_text(name: &[u8], value: &[u8]) -> bool {
    ignore_case::ends_with_any(name, &[".text"]) && ignore_case::contains(value, "textbox")
}

/// Whether the value is the name of something.
fn is_name(place: &Place<'_>, named: Named) -> bool {
    is_enumerated(place)
        || (is_read_by_name(place) && may_be_word(place))
        || (named.kind == Kind::Key && is_id_of_key(place, named))
        || is_pattern(place)
        || is_name_in_object(place)
        || (named.kind == Kind::Key && is_file_or_press(place))
        || is_account(place)
        || (named.kind != Kind::Password && is_in_type(place.text, &place.word, place.value()))
}

/// Whether the word is part of a type with two modules, in quotes, beside digits: those of
/// `"AWS::KMS::ReplicaKey": "…"` are its hash. Hiera's names are small.
pub(super) fn is_in_type(text: &[u8], word: &Range<usize>, value: &[u8]) -> bool {
    const MAX_LEN: usize = 64;
    let in_type = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b':';
    let before = text[..word.start].iter().rev().take(MAX_LEN).take_while(in_type).count();
    let behind = text[word.end..].iter().take(MAX_LEN).take_while(in_type).count();
    let (start, end) = (word.start - before, word.end + behind);
    let is_quoted = text[..start].ends_with(b"\"") && text[end..].starts_with(b"\"");
    is_quoted
        && value.iter().all(u8::is_ascii_hexdigit)
        && text[start].is_ascii_uppercase()
        && text[start..end].windows(2).filter(|pair| pair == b"::").count() >= 2
}

/// `gpg_key: RPM-GPG-KEY-acme7`, `DetachKeys: "ctrl-p,ctrl-q"`: the file of a key that everybody has, and keys
/// that somebody presses.
fn is_file_or_press(place: &Place<'_>) -> bool {
    const WITH: &[&str] = &["ctrl-", "ctrl+", "alt-", "alt+", "shift-", "shift+"];
    const MAX_PRESS: usize = 12;
    const DIGITS_OF_REPOSITORY: usize = 64;
    let value = place.value();
    let is_press =
        |press: &[u8]| press.len() <= MAX_PRESS && ignore_case::starts_with_any(press, WITH);
    // `Repository Key: …` of Docker, which is the number of one.
    let is_of_repository = ignore_case::ends_with_any(place.before(), &["repository "])
        && place.name() == b"Key"
        && value.len() == DIGITS_OF_REPOSITORY
        && value.iter().all(u8::is_ascii_hexdigit);
    ignore_case::starts_with_any(value, &["rpm-gpg-key"])
        || value.split(|byte| *byte == b',').all(is_press)
        || is_of_repository
}

/// `AUTH_5f35…`: how Swift calls somebody's account.
fn is_account(place: &Place<'_>) -> bool {
    place.found.syntax == Syntax::Joined
        && &place.text[place.name.start..place.found.value.start] == b"AUTH_"
}

/// Whether the name stands among the ways to log on to a network: `["open", "psk", "8021x-radius"]`.
fn is_enumerated(place: &Place<'_>) -> bool {
    let word = &place.text[place.word.clone()];
    let is_in_list =
        matches!(place.found.syntax, Syntax::Listed | Syntax::Among | Syntax::Compared);
    is_in_list && word.eq_ignore_ascii_case(b"psk")
}

/// `getCredentials("acme")`: what is read is called so.
fn is_read_by_name(place: &Place<'_>) -> bool {
    const READS: [&str; 6] = ["get", "fetch", "find", "load", "lookup", "read"];
    let name = place.name();
    let method = &name[memchr::memrchr(b'.', name).map_or(0, |dot| dot + 1)..];
    let begins = |read: &&str| {
        let next = method.get(read.len());
        method.get(..read.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(read.as_bytes()))
            && next.is_some_and(|byte| *byte == b'_' || byte.is_ascii_uppercase())
    };
    place.found.syntax == Syntax::Argument && READS.iter().any(begins)
}

/// `sign_key: E709712C`, `<releaseManagerKey>86fd…</`: the number of a key of GnuPG, or its fingerprint.
fn is_id_of_key(place: &Place<'_>, named: Named) -> bool {
    let (name, value) = (place.whole_name(), place.value());
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let of_gnupg = || {
        ignore_case::contains_any(name, &["gpg", "pgp"])
            || ignore_case::is_any(name, &["sign_key", "signingkey"])
            || (place.found.syntax == Syntax::Element && !named.is_explicit)
    };
    is_hex && (value.len() == 8 || (matches!(value.len(), 16 | 40) && of_gnupg()))
}

/// `DATE_PAT = "yyyyMMdd"`: what is no token of a person is a pattern.
fn is_pattern(place: &Place<'_>) -> bool {
    const MIN_LEN: usize = 20;
    let value = place.value();
    let in_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_token = value.len() >= MIN_LEN
        && value.iter().all(in_token)
        && value.iter().filter(|byte| byte.is_ascii_digit()).count() >= 2;
    place.is_personal() && !is_token
}

/// `{"password": {"http": …}}`, `"password", "http": …`: a name of an object, and no value.
fn is_name_in_object(place: &Place<'_>) -> bool {
    const MAX_BLANKS: usize = 16;
    let (text, value) = (place.text, &place.found.value);
    let is_closed = matches!(text.get(value.end..value.end + 2), Some(b"\":" | b"':"));
    let quote = value.start.saturating_sub(1);
    let before = text[quote.saturating_sub(MAX_BLANKS)..quote].trim_ascii_end();
    is_closed && matches!(before.last(), Some(b'{' | b','))
}

/// Whether the value is what a test came to, or should.
fn is_of_test(place: &Place<'_>) -> bool {
    is_result_of_test(place) || is_expected(place.name(), place.value())
}

/// `PASS: gdb.base/break2.exp`: what a test came to.
fn is_result_of_test(place: &Place<'_>) -> bool {
    place.name.start == place.line && place.name() == b"PASS" && place.text[place.name.end] == b':'
}

/// `expected_shared_secret = hex!("…")`: what a test compares the digits with that a cipher gave it.
fn is_expected(name: &[u8], value: &[u8]) -> bool {
    const MIN_DIGITS: usize = 32;
    ignore_case::starts_with_any(name, &["expected"])
        && value.len() >= MIN_DIGITS
        && value.iter().all(u8::is_ascii_hexdigit)
}

/// Whether the address before a parameter is that of what everybody may see: `….svg?token=` shows a badge, and
/// its token opens no more than that.
fn is_shared(place: &Place<'_>) -> bool {
    if place.found.syntax != Syntax::Parameter {
        return false;
    }
    let address = place.before();
    let has = |part: &[u8]| memchr::memmem::find(address, part).is_some();
    // A document's number, and a file that its owner gives to everybody.
    let is_document = has(b"docs.google.com/") || address.ends_with(b"alt=media&");
    is_document || has(b".svg?") || has(b".png?") || has(b"badge") || has(b"shields.io/")
}

#[cfg(test)]
mod tests {
    use crate::detect::FileKind;
    use crate::detect::tests::found;

    /// Digits that mean nothing.
    const KEY: &str = "3b9d07c41fe86a52908d4f7be1c6a03d";

    #[track_caller]
    fn check(kind: FileKind, none: &str, one: &str) {
        assert_eq!(found(kind, none), None, "{none}");
        assert!(found(kind, one).is_some(), "{one}");
    }

    #[test]
    fn what_is_told_to_people_is_none() {
        use FileKind::{Catalogue, Code, Unknown};
        check(Unknown, "the password is kdxnyjwb", "the password is kdxn4jwb");
        let form = |value| format!("this.txtPassword.Text = \"{value}\";");
        check(Code, &form("textBox17x"), &form("kdxnyjwb17"));
        let label = |value| format!("\"password\": \"{value}\"");
        check(Catalogue, &label("Heslo"), &label("kdxn4jwb!Q"));
    }

    #[test]
    fn names_are_none() {
        use FileKind::Code;
        let ways = |word| format!("[\"open\", \"{word}\", \"8021x-radius\"]");
        check(Code, &ways("psk"), &format!("psk = \"{KEY}\""));
        let read = |value: &str| format!("x = getSecret(\"{value}\")");
        check(Code, &read("acme-prod7"), &read(&KEY.repeat(2)));
        let signs = |name| format!("{name}: \"{}\"", KEY.get(..16).unwrap());
        check(Code, &signs("sign_key"), &signs("secret_key"));
        let element = |len| format!("<acme.releaseKey>{}</acme.releaseKey>", &KEY[..len]);
        check(FileKind::Config, &element(16), &element(32));
        check(Code, "gpg_key: \"RPM-GPG-KEY-Acme7\"", &format!("gpg_key: \"{}\"", &KEY[..20]));
        check(Code, "\"DetachKeys\": \"ctrl-p,ctrl-q\"", "\"apiKey\": \"kdxn-p,ctrl-q7!zw\"");
        let long = KEY.repeat(2);
        let docker = |of| format!("    {of} Key:\t{long}\n");
        check(FileKind::Text, &docker("Repository"), &docker("API"));
        let typed = |name| format!("\"{name}\": \"{}\"", &KEY[..16]);
        check(Code, &typed("Acme::Kms::ReplicaKey"), &typed("acme::kms::api_key"));
        let joined = |name| format!("Zorbify {name}_{KEY}\n");
        check(FileKind::Text, &joined("AUTH"), &joined("TOKEN"));
        let personal = |value: &str| format!("X_PAT = \"{value}\"");
        check(Code, &personal("yyyyMMdd'T'HH24"), &personal(KEY));
        let object = |behind| format!("{{\"password\": {{\"kdxnyjwb7\"{behind}");
        check(Code, &object(": 1}}"), "{\"password\": \"kdxnyjwb7\"}");
    }

    #[test]
    fn what_tests_are_about_is_none() {
        use FileKind::{Code, Config};
        let line = |name| format!("{name}: gdb.base/break2.exp\n");
        check(Config, &line("PASS"), "pass: gdb7!kdxNyjwb\n");
        let hex = |name| format!("let {name}_secret = hex!(\"{KEY}\");");
        check(Code, &hex("expected_shared"), &hex("shared"));
    }

    #[test]
    fn what_everybody_may_see_is_none() {
        let link = |file| format!("https://ci.acme.io/{file}?token={KEY}");
        check(FileKind::Config, &link("build.svg"), &link("build"));
        check(FileKind::Config, &link("build/badge"), &link("build/log"));
        let media = |option| format!("https://store.acme.io/o/a.pdf?alt={option}&token={KEY}");
        check(FileKind::Config, &media("media"), &media("json"));
        let sheet = |host| format!("https://{host}/spreadsheets/d/1?token={KEY}");
        check(FileKind::Config, &sheet("docs.google.com"), &sheet("docs.acme.io"));
    }
}
