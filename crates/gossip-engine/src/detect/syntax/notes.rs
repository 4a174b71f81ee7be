//! What people write down and tell each other: `password for the vpn: …`, `the token is …`.
//!
//! Between a name and its value stand words. They must lead to the value, and the value look like a
//! password: names of hosts and versions have digits, too.

use std::ops::Range;

use super::cursor::Cursor;
use super::values::{bare, quoted};
use super::{Assignment, MAX_SIDE, Syntax};
use crate::detect::NEAR_BEFORE;
use crate::detect::chosen;
use crate::detect::file_kind::FileKind;
use crate::detect::place::is_comment;
use crate::detect::value;
use crate::ignore_case;

/// How much of a line before a name is looked at.
const MAX_LINE: usize = 64;
/// Words between a name and what is noted down for it.
const MAX_WORDS: usize = 5;
/// How much behind a name is looked at.
const MAX_NOTE: usize = 96;
/// Before the value that stands before its name there is a word and one that leads to it.
const _: () = assert!(MAX_SIDE + MAX_LINE + 12 <= NEAR_BEFORE);

/// What a sentence or a note says that a name's value is.
pub(in crate::detect) fn told(
    text: &[u8],
    name: &Range<usize>,
    kind: FileKind,
    is_password: bool,
) -> Option<Assignment> {
    // Before anything else, as most names are not in sentences.
    if text.get(name.end) != Some(&b' ') {
        return None;
    }
    about(text, name, kind).or_else(|| if is_password { noted(text, name, kind) } else { None })
}

/// Whether the name stands in a comment of code, whose line is seen from its start.
pub(in crate::detect) fn is_in_comment(text: &[u8], start: usize) -> bool {
    let line = line_before(text, start);
    line.len() < MAX_LINE && is_comment(line)
}

/// What stands before `end` on its line.
pub(in crate::detect) fn line_before(text: &[u8], end: usize) -> &[u8] {
    let before = &text[end.saturating_sub(MAX_LINE)..end];
    memchr::memrchr(b'\n', before).map_or(before, |at| &before[at + 1..])
}

/// `password for the vpn: value`, `a senha do wifi é value`.
fn about(text: &[u8], name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    const OF: [&str; 16] = [
        " for ", " of ", " to ", " on ", " del ", " de ", " da ", " do ", " du ", " des ", " dla ",
        " für ", " vom ", " von ", " van ", " voor ",
    ];
    const MAX_ABOUT: usize = 48;
    let rest = &text[name.end..text.len().min(name.end + MAX_ABOUT)];
    let may_be = matches!(rest, [b' ', b'f' | b'o' | b't' | b'd' | b'v', ..]);
    let is_told = rest.starts_with(b" is: ");
    let is_about = is_told || (may_be && OF.iter().any(|of| rest.starts_with(of.as_bytes())));
    if !is_about {
        return None;
    }
    // In any of eight languages.
    const IS: [&str; 9] =
        [" is now ", " is ", " ist ", " lautet ", " es ", " est ", " é ", " è ", " jest "];
    let in_words =
        |byte: &&u8| byte.is_ascii_alphanumeric() || b" -_'.@".contains(byte) || !byte.is_ascii();
    let len = rest.iter().take_while(in_words).count();
    let is =
        |is: &&str| memchr::memmem::find(&rest[1..len], is.as_bytes()).map(|at| 1 + at + is.len());
    let is_arrow = rest[..len].ends_with(b" -") && rest[len..].starts_with(b"> ");
    let end = match is_arrow || rest[len..].starts_with(b": ") || rest[len..].starts_with(b"= ") {
        true => len + 1,
        false => IS.iter().find_map(is)?,
    };
    let mut cursor = Cursor { text, at: name.end + end };
    cursor.skip_blanks();
    match cursor.peek() {
        Some(b'"' | b'\'' | b'`') => quoted(cursor, Syntax::Said),
        _ if cursor.eat(b"**") => {
            let mut found = bare(cursor, Syntax::Said, kind)?;
            let value = text[found.value.clone()].strip_suffix(b"**")?;
            found.value.end = found.value.start + value.len();
            Some(found)
        }
        _ => bare(cursor, Syntax::Said, kind),
    }
}

/// `password router 2 = Value1!`, `the password was reset to "Value1!" today`: a few words, and a value that looks
/// like a password, the more the less the words say that it is one.
fn noted(text: &[u8], name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    // What is assigned is read as such.
    if text.get(name.end + 1) == Some(&b'=') {
        return None;
    }
    let note = &text[name.end..text.len().min(name.end + MAX_NOTE)];
    let has_user = || names_user(text, name.start);
    let mut start = 1;
    for _ in 0..MAX_WORDS {
        let word = Noted::read(&note[start..]);
        // Most have none, and what is cut off is not read.
        if word.has_digit
            && start + word.len < MAX_NOTE
            && let Some(value) = word.password(note, start, kind, has_user)
        {
            let value = name.end + value.start..name.end + value.end;
            return Some(Assignment { value, syntax: Syntax::Said });
        }
        if !word.is_plain || note.get(start + word.len) != Some(&b' ') {
            return None;
        }
        start += word.len + 1;
    }
    None
}

/// `log in with Value1 as the password`: the value before the name.
pub(in crate::detect) fn told_before(text: &[u8], name: &Range<usize>) -> Option<Assignment> {
    const AS: [&[u8]; 5] = [b" as ", b" as the ", b" as your ", b" as a ", b" as the new "];
    const WITH: [&[u8]; 6] = [b"with ", b"use ", b"using ", b"enter ", b"set ", b"take "];
    // What follows would be given to the name, or says what else the value is: `as the password format`.
    let ends = text.get(name.end).is_none_or(|byte| b"\n\r.,)!".contains(byte));
    // Most names stand behind none of these.
    if !ends || !matches!(text[..name.start], [.., b's' | b'e' | b'r' | b'a' | b'w', b' ']) {
        return None;
    }
    let words = AS.iter().find(|words| text[..name.start].ends_with(words))?;
    let end = name.start - words.len();
    let line = line_before(text, end);
    let in_value = |byte: &&u8| byte.is_ascii_graphic();
    let len = line.iter().rev().take_while(in_value).count();
    let (before, word) = line.split_at(line.len() - len);
    let inside = Noted::read(word).inside(word);
    let value = &word[inside.clone()];
    let is_value = value.iter().any(u8::is_ascii_digit) && (is_chosen(value) || is_random(value));
    let start = end - len;
    (WITH.iter().any(|with| before.ends_with(with)) && is_value).then(|| Assignment {
        value: start + inside.start..start + inside.end,
        syntax: Syntax::Said,
    })
}

/// A word of a note.
struct Noted {
    len: usize,
    has_digit: bool,
    /// A note has this before what it notes down: a word, or `=`, `->` and the like.
    is_plain: bool,
}

/// What stands right before a password that somebody writes down, or tells others.
const SAYING: [&str; 11] = [
    " - ",
    " \u{2013} ",
    " -> ",
    " is ",
    " was ",
    " to ",
    " be ",
    " ist ",
    " now ",
    " still ",
    "(still ",
];

/// What a byte is in a note: logs have many words behind the word for a password.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        let byte = at as u8;
        let is_letter = byte.is_ascii_alphabetic() || !byte.is_ascii();
        let is_plain = is_letter
            || byte.is_ascii_digit()
            || matches!(byte, b'-' | b'_' | b'\'' | b'@' | b'.' | b'/' | b'(' | b')');
        // A tag ends what stands in an element.
        let is_in_word = (byte.is_ascii_graphic() && byte != b'<') || is_letter;
        classes[at] |= if is_in_word { IN_WORD } else { 0 };
        classes[at] |= if is_plain { PLAIN } else { 0 };
        classes[at] |= if byte.is_ascii_digit() { DIGIT } else { 0 };
        at += 1;
    }
    classes
};
const IN_WORD: u8 = 1;
const PLAIN: u8 = 2;
const DIGIT: u8 = 4;

impl Noted {
    fn read(rest: &[u8]) -> Self {
        let (mut len, mut any, mut all, mut all_before) = (0, 0, PLAIN, PLAIN);
        for byte in rest {
            let class = CLASSES[usize::from(*byte)];
            if class & IN_WORD == 0 {
                break;
            }
            len += 1;
            any |= class;
            all_before = all;
            all &= class;
        }
        let word = &rest[..len];
        // A colon or a comma may stand at its end.
        let is_closed = matches!(word.last(), Some(b':' | b',')) && all_before != 0;
        let is_sign = matches!(word, b"=" | b"->" | b"=>");
        let is_plain = (len > 0 && (all != 0 || is_closed)) || is_sign;
        Self { len, has_digit: any & DIGIT != 0, is_plain }
    }

    /// Where in the note a password is, if the word at `start` is one. Behind a colon, right behind the name or
    /// behind a word that tells it a number is enough; with a user less.
    fn password(
        &self,
        note: &[u8],
        start: usize,
        kind: FileKind,
        has_user: impl FnOnce() -> bool,
    ) -> Option<Range<usize>> {
        let inside = self.inside(&note[start..]);
        let inside = start + inside.start..start + inside.end;
        let value = &note[inside.clone()];
        let before = &note[..start];
        let behind = &note[start + self.len..];
        let is_assigned = before.ends_with(b": ") || before.ends_with(b" = ");
        let is_said = kind == FileKind::Unknown
            && SAYING.iter().any(|word| before.ends_with(word.as_bytes()));
        let is_next = start == 1 && (kind == FileKind::Unknown || behind.starts_with(b"</"));
        // What ends the line is no name of something that the sentence goes on about.
        let is_last = matches!(behind, [] | [b'\n' | b'\r' | b'<', ..]);
        let must_be_mixed = is_said || (is_next && !is_last);
        let is_told = is_assigned || is_next || is_said;
        // `wrong password to Host42` says less.
        let is_given = is_assigned || is_next;
        let is_password = value::is_by_the_rules(value)
            || (is_told && is_noted(value, must_be_mixed))
            || (kind == FileKind::Unknown
                && is_told
                && !says_otherwise(&note[..start])
                && (is_random(value) || (is_given && is_chosen(value) && has_user())));
        // `&#39;`: a sign of the text around it.
        let has_entity = memchr::memmem::find(value, b"&#").is_some();
        (is_password && value[0].is_ascii_alphanumeric() && !has_entity).then_some(inside)
    }

    /// Without what opens it, and what closes it or ends a sentence.
    fn inside(&self, rest: &[u8]) -> Range<usize> {
        let word = &rest[..self.len];
        let start = usize::from(matches!(word.first(), Some(b'"' | b'\'' | b'`' | b'(')));
        let is_end = |byte: &u8| b"\"'`),.;:".contains(byte);
        let end = word.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
        start..end.max(start)
    }
}

/// Whether a word with a number was chosen as a password; small letters only may be a name.
fn is_noted(word: &[u8], must_be_mixed: bool) -> bool {
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    let is_mixed = || word.iter().any(u8::is_ascii_uppercase);
    digits >= 2
        && word.iter().any(u8::is_ascii_lowercase)
        && (!must_be_mixed || is_mixed())
        && chosen::is_sure(word)
}

/// Whether a word of a note makes something else of the password: `password hash: …`.
fn says_otherwise(words: &[u8]) -> bool {
    #[rustfmt::skip]
    const OTHERS: &[&str] = &[
        "checksum", "commit", "digest", "encrypted", "file", "fingerprint", "format", "hash", "hashed", "id", "length", "md5",
        "nonce", "policy", "public", "salt", "sha1", "sha256", "sha512", "version",
    ];
    let mut words = words.split(|byte| !byte.is_ascii_alphanumeric());
    words.any(|word| ignore_case::is_any(word, OTHERS))
}

/// Whether nothing but a program makes such a value: no name and no number of a model has as much. A name with a
/// value of its own, and a call, are none.
fn is_random(value: &[u8]) -> bool {
    const RANDOM_BITS: f32 = 16.0;
    const MIN_LEN: usize = 10;
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let is_pair =
        memchr::memchr(b'=', value).is_some_and(|at| at > 0 && value[..at].iter().all(in_name));
    value.len() >= MIN_LEN
        && value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && !is_pair
        && !value.iter().any(|byte| b"(\"'".contains(byte))
        && value::weigh(value, RANDOM_BITS).is_some()
}

/// Whether a word with a number is a password where a user is given, too.
fn is_chosen(word: &[u8]) -> bool {
    chosen::is_word_and_number(word)
        && chosen::weigh(word).is_some()
        && value::weigh(word, f32::MIN).is_some()
}

/// Whether the line says before `end` who logs in: `user admin, pw …`, in a dozen languages.
fn names_user(text: &[u8], end: usize) -> bool {
    #[rustfmt::skip]
    const WORDS: &[&str] = &[
        "user", "login", "account", "admin", "root", "usuario", "usuário", "usuari", "utente", "utilisateur", "identifiant",
        "benutzer", "konto", "gebruiker", "inlog", "użytkownik", "kullanıcı", "логин", "用户", "ユーザ", "账号", "アカウント",
    ];
    ignore_case::contains_any(line_before(text, end), WORDS)
}

#[cfg(test)]
mod tests {
    use crate::detect::FileKind::{self, Code, Text, Unknown};
    use crate::detect::tests::found;

    #[track_caller]
    fn check(kind: FileKind, text: &str, value: Option<&str>) {
        assert_eq!(found(kind, text), value, "{text}");
    }

    #[test]
    fn passwords_are_told_in_sentences() {
        for text in [
            "le mot de passe du wifi est Zwetschge2024\n",
            "la password del wifi è Zwetschge2024\n",
            "the pw is Zwetschge2024\n",
            "the password of the demo user is now `Zwetschge2024`\n",
            "change the root pw on nas (still Zwetschge2024)\n",
            "same user, but with Zwetschge2024 as the password\n",
        ] {
            check(Unknown, text, Some("Zwetschge2024"));
        }
        // Documentation shows examples, and code passes things to functions.
        check(Text, "the password of the demo user is now `Zwetschge2024`\n", None);
        check(Code, "// a valid handle to pass to `IsZwetschge64Process`.\n", None);
        for text in [
            "same user, but with zwetschge as the password\n",
            "we use Zwetschge2024 as the password format\n",
            "// x\nwrong password from Zwetschge124 again\n",
            "the user password is ZWETSCHGE1-hashed\n",
            "wrong password JSESSIONID=A8F5F167F44F4964E6C998DEc\n",
        ] {
            check(Unknown, text, None);
        }
        check(Unknown, "the pw changed from Tiger4 to Zwetschge2024!\n", Some("Zwetschge2024!"));
        check(Unknown, "wifi pass to guest network - Zwetschge2024!\n", Some("Zwetschge2024!"));
        let cut = format!("x = foo({} * bbb, password: Zwetschge2024 ", "a".repeat(56));
        check(Code, &cut, None);
    }

    #[test]
    fn less_is_asked_of_a_password_where_its_user_is_given() {
        check(Unknown, "user eva, pw Zwetschge7\n", Some("Zwetschge7"));
        check(Unknown, "логин eva, пароль Zwetschge7\n", Some("Zwetschge7"));
        check(Unknown, "I forgot the pw Zwetschge7\n", None);
    }

    #[test]
    fn random_values_are_noted_down() {
        check(Unknown, "the wifi password q8Zr2LmT0v.=oLp*Cta2\n", Some("q8Zr2LmT0v.=oLp*Cta2"));
        check(Unknown, "the password hash was q8Zr2LmT0v.=oLp*Cta2\n", None);
    }

    #[test]
    fn comments_are_text() {
        let line = "test account: debra.costa@acme.io password: Zwetschge2024\n";
        check(Code, &format!("    * {line}"), Some("Zwetschge2024"));
        check(Code, &format!("    {line}"), None);
    }
}
