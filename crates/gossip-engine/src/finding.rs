//! What a scan reports, and how much of a secret may be seen.
//!
//! - F1: no `Debug` or `Display` of this crate shows a byte of a secret beyond the public prefix of
//!   its format.

use std::fmt;

use crate::context::Context;
use crate::decode::Encoding;
use crate::position::Position;
use crate::rules::{Confidence, Rule, Severity};

/// Bytes of the scanned object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u64,
    /// How many.
    pub len: u64,
}

impl Span {
    /// Offset of the byte after the last.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.start + self.len
    }
}

/// Why something is reported: what spoke for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It has the format that the rule describes.
    Format,
    /// Its checksum or inner structure is right.
    Checksum,
    /// It stands beside the name of a password and does not look like a word.
    NamedPassword,
    /// It stands beside the name of a secret, a token or a key, and looks random.
    NamedSecret,
    /// It is the password of a URL.
    Url,
    /// It is the credential of an HTTP header.
    Header,
    /// The file's name says so.
    Path,
    /// The file is a key or a store of keys.
    Container,
    /// Somebody noted it down, and it looks like a password.
    Noted,
}

impl Reason {
    /// For reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Checksum => "checksum",
            Self::NamedPassword => "named password",
            Self::NamedSecret => "named secret",
            Self::Url => "password in a URL",
            Self::Header => "HTTP credential",
            Self::Path => "file name",
            Self::Container => "key file",
            Self::Noted => "noted down",
        }
    }

    /// Why that speaks for a secret, in a few words.
    #[must_use]
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Format => "has the format of one",
            Self::Checksum => "has the format of one, and its checksum or structure is right",
            Self::NamedPassword => "stands beside the name of a password and is no plain word",
            Self::NamedSecret => "stands beside the name of a secret and looks random",
            Self::Url => "is the password of a URL",
            Self::Header => "is the credential of an HTTP header",
            Self::Path => "the file's name says so",
            Self::Container => "the file is a key or a store of keys",
            Self::Noted => "looks like a password, where somebody noted it down",
        }
    }

    /// The reason that [`as_str`](Self::as_str) names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Format,
            Self::Checksum,
            Self::NamedPassword,
            Self::NamedSecret,
            Self::Url,
            Self::Header,
            Self::Path,
            Self::Container,
            Self::Noted,
        ];
        all.into_iter().find(|reason| reason.as_str() == name)
    }
}

/// What of a scanned tree allows a finding in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silenced {
    /// Only a configuration that came with it.
    ByLocalConfig,
    /// A comment in its line, `gossip:allow` or `gitleaks:allow`.
    ByComment,
}

/// A secret at a place. Borrows from the scan; what is to be kept must be copied out.
#[derive(Clone, Copy)]
pub struct Finding<'s> {
    pub(crate) rule: &'s Rule,
    pub(crate) rule_index: usize,
    pub(crate) matched: Span,
    pub(crate) secret_span: Span,
    pub(crate) confidence: Confidence,
    pub(crate) reason: Reason,
    pub(crate) encoding: Encoding,
    pub(crate) position: Position,
    pub(crate) end: Position,
    pub(crate) silenced: Option<Silenced>,
    pub(crate) context: Context<'s>,
    pub(crate) secret: Secret<'s>,
}

impl<'s> Finding<'s> {
    /// The rule that was judged the most specific.
    #[must_use]
    pub fn rule(&self) -> &'s Rule {
        self.rule
    }

    /// The rule's place in its set.
    #[must_use]
    pub fn rule_index(&self) -> usize {
        self.rule_index
    }

    /// All that the rule matched, in the original bytes.
    #[must_use]
    pub fn matched(&self) -> Span {
        self.matched
    }

    /// Where the secret is in the original bytes: what encodes it, if it is encoded.
    #[must_use]
    pub fn span(&self) -> Span {
        self.secret_span
    }

    /// How bad.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.rule.severity()
    }

    /// How sure, checksum included.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What spoke for it.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.reason
    }

    /// How it was written; the outermost encoding, if there are several.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The line and column where the secret starts.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The line and column just behind the secret.
    #[must_use]
    pub fn end(&self) -> Position {
        self.end
    }

    /// Whether something that came with the scanned tree allows it, and what. Such findings come
    /// if [`Options::report_silenced`](crate::Options) asks for them.
    #[must_use]
    pub fn silenced(&self) -> Option<Silenced> {
        self.silenced
    }

    /// What stands beside the secret in its line, with everything masked that is one.
    #[must_use]
    pub fn context(&self) -> Context<'s> {
        self.context
    }

    /// The secret, decoded.
    #[must_use]
    pub fn secret(&self) -> Secret<'s> {
        self.secret
    }
}

impl fmt::Debug for Finding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finding")
            .field("rule", &self.rule.id())
            .field("matched", &self.matched)
            .field("span", &self.secret_span)
            .field("position", &self.position)
            .field("confidence", &self.confidence)
            .field("reason", &self.reason)
            .field("encoding", &self.encoding)
            .field("secret", &self.secret)
            .finish()
    }
}

/// The bytes of a secret, which do not show themselves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret<'s> {
    bytes: &'s [u8],
    public_len: usize,
}

impl<'s> Secret<'s> {
    pub(crate) fn new(bytes: &'s [u8], public_len: usize) -> Self {
        Self { bytes, public_len: public_len.min(bytes.len()) }
    }

    /// The bytes. For hashing; never for storing, sending or logging.
    #[must_use]
    pub fn expose(self) -> &'s [u8] {
        self.bytes
    }

    /// What may be shown: the part that every value of this kind shares, and the length.
    #[must_use]
    pub fn redact(self) -> Redacted<'s> {
        Redacted(self)
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.redact())
    }
}

/// A secret as it may be shown: `ghp_… (40 bytes)`.
#[derive(Clone, Copy)]
pub struct Redacted<'s>(Secret<'s>);

impl fmt::Display for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Longer prefixes say no more.
        const SHOWN: usize = 12;
        let secret = self.0;
        let public = &secret.bytes[..secret.public_len.min(SHOWN)];
        for &byte in public.iter().take_while(|byte| byte.is_ascii_graphic()) {
            write!(f, "{}", char::from(byte))?;
        }
        write!(f, "… ({} bytes)", secret.bytes.len())
    }
}

impl fmt::Debug for Redacted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_prefix_and_the_length_are_shown() {
        let secret = Secret::new(b"ghp_topsecretvalue", 4);
        assert_eq!(secret.redact().to_string(), "ghp_… (18 bytes)");
        assert_eq!(format!("{secret:?}"), "Secret(ghp_… (18 bytes))");
        assert_eq!(Secret::new(b"hunter2", 0).redact().to_string(), "… (7 bytes)");
        assert_eq!(Secret::new(b"ab", 9).redact().to_string(), "ab… (2 bytes)");
    }
}
