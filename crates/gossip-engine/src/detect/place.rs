//! A name that speaks of a credential, where it stands, and the value that is given to it.

use std::ops::Range;

use super::file_kind::FileKind;
use super::name;
use super::services;
use super::syntax::{self, Assignment};
use super::unescaped::Unescaped;
use super::users;
use crate::ignore_case;

pub(super) struct Place<'t> {
    pub(super) text: &'t [u8],
    pub(super) kind: FileKind,
    /// The credential word that announced it.
    pub(super) word: Range<usize>,
    pub(super) name: Range<usize>,
    /// Where the name begins if it is written as several words: `API key: …`.
    pub(super) phrase: usize,
    /// Where its line begins, or how far back it is looked at.
    pub(super) line: usize,
    pub(super) found: Assignment,
    /// The value, if its characters are not written as they are.
    unescaped: Option<Unescaped>,
}

impl<'t> Place<'t> {
    /// What stands around the credential word at `word`, if something is given a value there.
    pub(super) fn read(text: &'t [u8], kind: FileKind, word: Range<usize>) -> Option<Self> {
        // What stands before `pw` is no part of its name, unless it joins words.
        let is_short = name::is_pw(&text[word.clone()]) || name::is_ww(&text[word.clone()]);
        let is_apart = is_short && text[word.start] != b'_';
        let word = word.start + usize::from(is_apart)..word.end;
        let (name, found) = match syntax::joined(text, word.clone()) {
            Some(joined) => joined,
            None => {
                let name = syntax::name_around(text, word.clone())?;
                if kind == FileKind::Unknown
                    && let Some(found) = syntax::told_before(text, &name)
                {
                    return Some(Self::of(text, kind, word, name, found));
                }
                if !syntax::may_assign(*text.get(name.end)?) {
                    return None;
                }
                let (anchor, tail) = (&text[word.clone()], &text[word.end..name.end]);
                let is_password = !name::is_of_secret(anchor);
                // The last credential word of a name is the one that counts.
                let is_other = || {
                    (!is_password && name::ends_otherwise(anchor, tail))
                        || name::has_credential_word(tail)
                };
                if !tail.is_empty() && is_other() {
                    return None;
                }
                let kind = kind_before_value(text, &name, kind);
                let found = given(text, &name, kind, is_password)?;
                (name, found)
            }
        };
        Some(Self::of(text, kind, word, name, found))
    }

    /// The place of a name and what it is given.
    fn of(
        text: &'t [u8],
        kind: FileKind,
        word: Range<usize>,
        name: Range<usize>,
        found: Assignment,
    ) -> Self {
        let floor = name.start.saturating_sub(services::MAX_BEFORE);
        let line =
            memchr::memrchr(b'\n', &text[floor..name.start]).map_or(floor, |at| floor + at + 1);
        let phrase = syntax::phrase(text, &name, line);
        let kind = kind_at(text, name.start, kind);
        let unescaped = Unescaped::of(&text[found.value.clone()]);
        Self { text, kind, word, name, phrase, line, found, unescaped }
    }

    /// The same with another value, or one that is written otherwise.
    pub(super) fn with(self, found: Assignment) -> Self {
        let unescaped = match found.value == self.found.value {
            true => self.unescaped,
            false => Unescaped::of(&self.text[found.value.clone()]),
        };
        Self { found, unescaped, ..self }
    }

    /// The name, without words that stand apart from it.
    pub(super) fn name(&self) -> &'t [u8] {
        &self.text[self.name.clone()]
    }

    /// Whether a personal access token is spoken of, which names of patterns look like.
    pub(super) fn is_personal(&self) -> bool {
        &self.text[self.word.clone()] == name::PERSONAL.as_bytes()
    }

    /// The name with all its words.
    pub(super) fn whole_name(&self) -> &'t [u8] {
        &self.text[self.phrase..self.name.end]
    }

    /// What stands before the name on its line.
    pub(super) fn before(&self) -> &'t [u8] {
        &self.text[self.line..self.phrase]
    }

    /// What stands between the name and the value.
    pub(super) fn between(&self) -> &'t [u8] {
        let end = self.found.value.start;
        &self.text[self.name.end.min(end)..end]
    }

    /// The value, as the characters that it stands for.
    pub(super) fn value(&self) -> &[u8] {
        match &self.unescaped {
            Some(unescaped) => unescaped.bytes(),
            None => &self.text[self.found.value.clone()],
        }
    }

    /// What follows the value, as far as `reach` bytes.
    pub(super) fn behind(&self, reach: usize) -> &'t [u8] {
        let end = self.found.value.end;
        &self.text[end..self.text.len().min(end + reach)]
    }
}

/// What is written down in a comment of code, or shown on a page, is written as in any text.
fn kind_at(text: &[u8], start: usize, kind: FileKind) -> FileKind {
    let is_apart = kind == FileKind::Code
        && (text[..start].ends_with(b">")
            || syntax::is_in_comment(text, start)
            || is_behind_login(&text[start.saturating_sub(MAX_LOGIN)..start]));
    if is_apart { FileKind::Unknown } else { kind }
}

/// How the value behind a name is read: what is assigned in a comment is code that was taken out.
fn kind_before_value(text: &[u8], name: &Range<usize>, kind: FileKind) -> FileKind {
    let is_told = match &text[name.end..] {
        // Code passes values to functions, and makes passes over them.
        [b' ', ..] => !text[name.clone()].eq_ignore_ascii_case(b"pass"),
        [b':', b' ', ..] => true,
        _ => text[..name.start].ends_with(b">"),
    };
    if is_told { kind_at(text, name.start, kind) } else { kind }
}

/// How much before a name may say that a user stands there.
const MAX_LOGIN: usize = 64;

/// `"Login: app / `: a string in which somebody noted down a user, and a password behind.
fn is_behind_login(before: &[u8]) -> bool {
    let Some(rest) = before.strip_suffix(b" / ").or(before.strip_suffix(b" | ")) else {
        return false;
    };
    let user = rest.iter().rev().take_while(|byte| byte.is_ascii_graphic()).count();
    let label = rest[..rest.len() - user].strip_suffix(b": ").unwrap_or(b"");
    let word = label.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    user > 0 && ignore_case::is_any(&label[label.len() - word..], users::LABELS)
}

/// Whether what stands before a name on its line begins a comment.
pub(super) fn is_comment(before: &[u8]) -> bool {
    const SIGNS: [&[u8]; 6] = [b"//", b"/*", b"* ", b"# ", b"-- ", b"<!--"];
    let before = before.trim_ascii_start();
    let is_sign = |at: usize| {
        at > 0 && matches!(&before[at - 1..], [b' ', b'#', b' ', ..] | [b' ', b'/', b'/', b' ', ..])
    };
    SIGNS.iter().any(|sign| before.starts_with(sign))
        || memchr::memchr2_iter(b'/', b'#', before).any(is_sign)
}

/// The value that a sentence or an assignment gives to a name.
fn given(
    text: &[u8],
    name: &Range<usize>,
    kind: FileKind,
    is_password: bool,
) -> Option<Assignment> {
    if let Some(told) = syntax::told(text, name, kind, is_password) {
        return Some(told);
    }
    if syntax::is_prose(text, name, kind) {
        return None;
    }
    syntax::assignment(text, name, kind)
}
