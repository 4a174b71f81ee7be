//! Detectors: what finds secrets that no single expression describes, by what stands around them.
//!
//! A rule names one of them instead of an expression. The first stage of a scan looks for a
//! detector's words as for any literal; where one stands, the detector reads around it by hand.
//!
//! - J1: a detector's answer depends on nothing further than [`REACH_BEFORE`] bytes before its word
//!   and [`REACH_AFTER`] bytes behind it, and on what the path says of the file. Where it has no word, this is
//!   what it found.
//! - J2: it takes time that is bounded by its reach.

mod authorization;
mod calls;
mod chosen;
mod columns;
mod file_kind;
mod folders;
mod instead;
mod keyboard;
mod login;
mod name;
mod named;
mod noted;
mod own;
mod place;
mod plain_word;
mod service;
mod services;
mod siblings;
mod signing;
mod surroundings;
mod syntax;
mod test_vector;
mod unescaped;
mod unlisted;
mod url;
mod users;
mod value;
mod vocabulary;
mod words;

use std::ops::Range;

use serde::Deserialize;

pub(crate) use file_kind::FileKind;
pub(crate) use folders::Folders;
pub(crate) use name::has_credential_word;

use crate::finding::Reason;
use crate::ignore_case;
use crate::limits::{CONTEXT_AFTER, CONTEXT_BEFORE, NEARBY};
use crate::literals::{Anchor, Next, Reach};
use crate::rules::Confidence;

/// How far before its word a detector looks; none but the one that reads tables goes further back than
/// [`NEAR_BEFORE`].
pub(crate) const REACH_BEFORE: usize = columns::REACH_BEFORE;
const NEAR_BEFORE: usize = 128;
/// How far behind it; none but the one that reads tables goes further than [`NEAR_AFTER`].
pub(crate) const REACH_AFTER: usize = columns::REACH_AFTER;
const NEAR_AFTER: usize = 2048;

const _: () = assert!(syntax::REACH_BEFORE + services::MAX_BEFORE <= NEAR_BEFORE);
const _: () = assert!(syntax::REACH_BEFORE <= NEAR_BEFORE);
const _: () = assert!(syntax::REACH_AFTER <= NEAR_AFTER);
// What follows a key is looked at behind short ones only.
const _: () = assert!(
    syntax::REACH_AFTER - syntax::MAX_VALUE + test_vector::MAX_KEY + test_vector::REACH
        <= NEAR_AFTER
);
const _: () = assert!(syntax::REACH_AFTER + surroundings::REACH <= NEAR_AFTER);
const _: () = assert!(url::REACH_BEFORE <= NEAR_BEFORE && url::REACH_AFTER <= NEAR_AFTER);
const _: () = assert!(syntax::REACH_AFTER + siblings::REACH <= NEAR_AFTER);
const _: () = assert!(calls::REACH <= NEAR_AFTER);
const _: () = assert!(NEAR_BEFORE <= REACH_BEFORE && NEAR_AFTER <= REACH_AFTER);
const _: () = assert!(login::REACH_BEFORE <= NEAR_BEFORE && login::REACH_AFTER <= NEAR_AFTER);
const _: () = assert!(noted::REACH_BEFORE <= REACH_BEFORE && noted::REACH_AFTER <= NEAR_AFTER);
const _: () = assert!(authorization::REACH_AFTER <= NEAR_AFTER);
const _: () = assert!(service::REACH_BEFORE <= NEAR_BEFORE && service::REACH_AFTER <= NEAR_AFTER);
const _: () = assert!(REACH_BEFORE + NEARBY <= CONTEXT_BEFORE);
const _: () = assert!(REACH_AFTER + NEARBY <= CONTEXT_AFTER);

/// What a rule asks for at most that finds passwords by their place.
const PLACE_BITS: f32 = 2.0;

/// What the path says of a file.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    /// How values are written in it.
    pub(crate) kind: FileKind,
    /// Whether it holds what people write down, or say to each other.
    pub(crate) is_note: bool,
}

impl Told {
    /// Nothing.
    pub(crate) const UNKNOWN: Self = Self { kind: FileKind::Unknown, is_note: false };

    pub(crate) fn by(path: Option<&[u8]>, folders: &mut Folders) -> Self {
        let Some(path) = path else { return Self::UNKNOWN };
        Self { kind: FileKind::of(path, folders), is_note: noted::is_note(path, folders) }
    }
}

/// Whether a value is likelier by chance than as words, names or numbers, by so many bits; or, where a
/// password stands, one that somebody made of words.
pub(crate) fn is_surprising(value: &[u8], least_bits: f32) -> bool {
    // Where words count, those do not that say what stands there.
    if least_bits < 0.0 && chosen::is_naming(value) && chosen::weigh(value).is_none() {
        return false;
    }
    let made = least_bits <= PLACE_BITS
        && (chosen::weigh(value).is_some()
            || chosen::weigh_called_out(value).is_some()
            || chosen::is_pass_phrase(value)
            || chosen::is_capitalised(value)
            || keyboard::is_long_walk(value));
    value::weigh_typed(value, if made || least_bits < 0.0 { f32::MIN } else { least_bits })
        .is_some()
}

/// The bytes of a value in base64, which are judged in its place.
pub(crate) struct Plain {
    bytes: [u8; value::MAX_TEXT],
    len: usize,
}

impl Plain {
    /// None if the value is no base64 as a whole, or longer than a password is.
    pub(crate) fn of(value: &[u8]) -> Option<Self> {
        let mut bytes = [0; value::MAX_TEXT];
        let len = value::from_base64(value, &mut bytes);
        (len > 0).then_some(Self { bytes, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Options of programs that are no words of the vocabulary.
#[rustfmt::skip]
const OPTIONS: &[&str] = &[
    "parallel", "pipe", "popular", "preserve", "pretty", "process", "profile", "progress", "protocol",
];

/// Whether a value that follows the letter of an option at once only ends a word that programs know:
/// `rotocol` of `-protocol`. An option `-p` is written so with its value, too.
pub(crate) fn is_tail_of_option(text: &[u8], value: &Range<usize>) -> bool {
    let [.., b'-', letter] = &text[..value.start] else { return false };
    let option = &text[value.start - 1..value.end];
    let len = option.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let option = &option[..len];
    letter.is_ascii_alphabetic()
        && (vocabulary::is_known(option) || ignore_case::is_any(option, OPTIONS))
}

/// What a value stands for that has escapes of XML, JSON or URLs.
pub(crate) fn unescaped(value: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr3(b'&', b'\\', b'%', value)?;
    if let Some(plain) = unescaped::Unescaped::of(value) {
        return Some(plain.bytes().to_vec());
    }
    memchr::memchr(b'%', value)?;
    let mut bytes = vec![0; value.len()];
    Some(url::unescaped(value, &mut bytes).to_vec())
}

/// Whether a value is an example that everybody has, or opens nothing without another key.
pub(crate) fn is_harmless(value: &[u8]) -> bool {
    value::is_shown(value) || value::is_encrypted(value)
}

/// Whether what stands before a value, the name of a service and more, says that others may have it: the id
/// of something, `acme_client_id = `, a key for pages, or a checksum. A key's own number goes with the key.
pub(crate) fn may_be_shared(before: &[u8]) -> bool {
    #[rustfmt::skip]
    const NUMBERED: &[&str] = &[
        "account", "app", "application", "auth", "client", "company", "customer", "event", "invoice", "message",
        "order", "org", "organization", "payment", "project", "request", "session", "space", "team", "tenant",
        "token", "transaction", "user", "workspace",
    ];
    #[rustfmt::skip]
    const FOR_PAGES: &[&str] = &[
        "publickey", "public_key", "public-key", "publishablekey", "publishable_key", "sitekey", "site_key",
        "site-key", "recaptcha_site", "recaptchasite", "'site", "\"site", "pk_live", "pk_test",
    ];
    #[rustfmt::skip]
    const CHECKSUMS: &[&str] = &[
        "checksum", "digest", "md5", "sha1", "sha256", "sha384", "sha512", "sha-256", "sha-512", "commit", "revision",
    ];
    let end = before.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |at| at + 1);
    let (name, id) = before[..end].split_at(end.saturating_sub(2));
    let name = name.strip_suffix(b"_").or(name.strip_suffix(b"-")).unwrap_or(name);
    (id.eq_ignore_ascii_case(b"id") && ignore_case::ends_with_any(name, NUMBERED))
        || ignore_case::ends_with_any(&before[..end], FOR_PAGES)
        || ignore_case::ends_with_any(&before[..end], CHECKSUMS)
}

/// Whether a value is a name or a word rather than anything else.
pub(crate) fn is_wordlike(value: &[u8]) -> bool {
    value::is_wordlike(value)
}

/// How a rule finds what no expression describes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Detector {
    /// A value beside a name that speaks of a password.
    NamedPassword,
    /// A value beside a name that speaks of a secret, a token or a key.
    NamedSecret,
    /// A password in a URL of any scheme.
    UrlPassword,
    /// `Basic …`, `Bearer …`, `Token …`.
    Authorization,
    /// A key beside the name of the service that gave it out.
    ServiceKey,
    /// Passwords and keys in a column of a table.
    PasswordColumn,
    /// A user and a password that somebody noted down.
    NotedLogin,
    /// A password in a note, with nothing beside it that says so. It has no word, and reads its files from their
    /// start.
    NotedPassword,
}

/// What a detector found.
pub(crate) struct Detected {
    pub(crate) whole: Range<usize>,
    pub(crate) secret: Range<usize>,
    pub(crate) confidence: Confidence,
    pub(crate) reason: Reason,
}

#[cfg(test)]
mod tests;

impl Detector {
    /// The words that announce it.
    pub(crate) fn anchors(self) -> Vec<Anchor> {
        let words: Vec<&str> = match self {
            Self::NamedPassword => {
                name::PASSWORD_ANCHORS.into_iter().chain(calls::openings()).collect()
            }
            Self::NamedSecret => [&name::SECRET_ANCHORS[..], &name::MARKED_ANCHORS].concat(),
            Self::UrlPassword => vec!["://"],
            Self::Authorization => authorization::ANCHORS.to_vec(),
            Self::ServiceKey => service::anchors().collect(),
            Self::PasswordColumn => [&columns::ANCHORS[..], &columns::ALIGNED].concat(),
            Self::NotedLogin => login::ANCHORS.to_vec(),
            Self::NotedPassword => Vec::new(),
        };
        // There are many services, and the same may follow the names of all.
        let behind_service = Next::only(service::may_follow);
        let next = |word: &str| match self {
            Self::ServiceKey => behind_service,
            _ => Next::only(|next| self.may_follow(word.as_bytes(), next)),
        };
        let anchor = |word: &&str| Anchor {
            bytes: word.as_bytes().to_vec(),
            ignore_case: !word.bytes().any(|byte| byte.is_ascii_uppercase()),
            next: next(word),
            reach: Reach { min: 0, max: 0 },
            before: Vec::new(),
        };
        words.iter().map(anchor).collect()
    }

    /// Whether the byte behind a word leaves room for what this looks for. The first stage looks for
    /// short words with such a byte only, so everything else must be refused alike.
    fn may_follow(self, word: &[u8], next: u8) -> bool {
        match self {
            Self::NamedPassword if calls::is_opening(word) => calls::may_follow(next),
            Self::NamedPassword | Self::NamedSecret => name::may_follow(word, next),
            // A user's name begins so, or there is none.
            Self::UrlPassword => next.is_ascii_alphanumeric() || matches!(next, b':' | b'_'),
            Self::Authorization => authorization::may_follow(word, next),
            Self::ServiceKey => service::may_follow(next),
            Self::PasswordColumn => columns::may_follow(word, next),
            Self::NotedLogin => login::may_follow(word, next),
            Self::NotedPassword => false,
        }
    }

    /// Whether it has no word, and reads notes as a whole.
    pub(crate) fn reads_notes(self) -> bool {
        self == Self::NotedPassword
    }

    /// Calls back with what begins in `owned`, if it reads notes.
    pub(crate) fn read(self, text: &[u8], owned: Range<usize>, on_found: &mut dyn FnMut(Detected)) {
        if self.reads_notes() {
            noted::detect(text, owned, on_found);
        }
    }

    /// Calls back with what stands around `word`, one of its anchors with what follows it, and is a secret.
    pub(crate) fn detect(
        self,
        text: &[u8],
        kind: FileKind,
        word: Range<usize>,
        on_found: &mut dyn FnMut(Detected),
    ) {
        debug_assert!(self.may_follow(&text[word.clone()], text[word.end]));
        let found = match self {
            Self::NamedPassword | Self::NamedSecret => named::detect(text, kind, word),
            Self::UrlPassword => url::detect(text, word),
            Self::Authorization => authorization::detect(text, word),
            Self::ServiceKey => service::detect(text, word),
            Self::NotedLogin => login::detect(text, kind, word),
            Self::PasswordColumn => return columns::detect(text, kind, word, on_found),
            Self::NotedPassword => None,
        };
        if let Some(found) = found {
            on_found(found);
        }
    }
}
