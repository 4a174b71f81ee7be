//! Why something is not scanned: a code in tokens, words in the ledger and in reports.

use std::fmt;

use gossip_archive::NotRead;
use gossip_contracts::connector::{ConnectorError, ContentKind, SkipReason};
use gossip_coordination_sqlite::rusqlite;
use gossip_coordination_sqlite::rusqlite::types::{
    FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef,
};

/// Why something is not scanned. Codes and words are stored: neither ever changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Reason {
    Link = 1,
    Special = 2,
    Ignored = 3,
    OtherFileSystem = 4,
    AllowedPath = 5,
    Archive = 6,
    Image = 7,
    Media = 8,
    Executable = 9,
    Database = 10,
    Font = 11,
    NulBytes = 12,
    OtherContent = 13,
    Encrypted = 14,
    UnknownCompression = 15,
    Excluded = 32,
    TooLarge = 33,
    Submodule = 40,
    NotFetched = 41,
    LfsPointer = 42,
    NestedHistory = 43,
    Shallow = 44,
    KeyTooLong = 64,
    PermissionDenied = 65,
    Vanished = 66,
    KeptFailing = 67,
    Unreadable = 68,
    DamagedArchive = 69,
    ArchiveLimits = 70,
    ManyPaths = 71,
}

/// From this code on, it should have been scanned.
const FIRST_FAILURE: u8 = 64;

/// Every reason and its words, in the order of codes.
const REASONS: &[(Reason, &str)] = &[
    (Reason::Link, "link"),
    (Reason::Special, "not a file"),
    (Reason::Ignored, "ignored"),
    (Reason::OtherFileSystem, "on another file system"),
    (Reason::AllowedPath, "allowed path"),
    (Reason::Archive, "binary: archive"),
    (Reason::Image, "binary: image"),
    (Reason::Media, "binary: media"),
    (Reason::Executable, "binary: executable"),
    (Reason::Database, "binary: database"),
    (Reason::Font, "binary: font"),
    (Reason::NulBytes, "binary: NUL bytes"),
    (Reason::OtherContent, "binary"),
    (Reason::Encrypted, "encrypted"),
    (Reason::UnknownCompression, "unknown compression"),
    (Reason::Excluded, "excluded"),
    (Reason::TooLarge, "too large"),
    (Reason::Submodule, "submodule"),
    (Reason::NotFetched, "not fetched"),
    (Reason::LfsPointer, "Git LFS pointer"),
    (Reason::NestedHistory, "history of a nested repository"),
    (Reason::Shallow, "shallow clone"),
    (Reason::KeyTooLong, "path too long"),
    (Reason::PermissionDenied, "permission denied"),
    (Reason::Vanished, "vanished"),
    (Reason::KeptFailing, "kept failing"),
    (Reason::Unreadable, "unreadable"),
    (Reason::DamagedArchive, "damaged archive"),
    (Reason::ArchiveLimits, "archive beyond limits"),
    (Reason::ManyPaths, "too many paths"),
];

impl Reason {
    /// Why an item is not scanned that a source lists and does not offer.
    pub(crate) const fn of_listing(reason: SkipReason) -> Self {
        match reason {
            SkipReason::Link => Self::Link,
            SkipReason::Special => Self::Special,
            SkipReason::Ignored => Self::Ignored,
            SkipReason::OtherFileSystem => Self::OtherFileSystem,
            SkipReason::Excluded => Self::Excluded,
            SkipReason::TooLarge => Self::TooLarge,
            SkipReason::Submodule => Self::Submodule,
            SkipReason::NotFetched => Self::NotFetched,
            SkipReason::NestedHistory => Self::NestedHistory,
            SkipReason::Shallow => Self::Shallow,
            SkipReason::KeyTooLong => Self::KeyTooLong,
            SkipReason::PermissionDenied => Self::PermissionDenied,
            SkipReason::ManyPaths => Self::ManyPaths,
            _ => Self::Unreadable,
        }
    }

    /// Why content of this kind is not scanned; `None` if it is.
    pub(crate) const fn of_content(kind: ContentKind) -> Option<Self> {
        match kind {
            ContentKind::Text => None,
            ContentKind::Archive => Some(Self::Archive),
            ContentKind::Image => Some(Self::Image),
            ContentKind::Media => Some(Self::Media),
            ContentKind::Executable => Some(Self::Executable),
            ContentKind::Database => Some(Self::Database),
            ContentKind::Font => Some(Self::Font),
            ContentKind::NulBytes => Some(Self::NulBytes),
            ContentKind::LfsPointer => Some(Self::LfsPointer),
            _ => Some(Self::OtherContent),
        }
    }

    /// Why something in an archive is not scanned.
    pub(crate) const fn of_archive(why: NotRead) -> Self {
        match why {
            NotRead::Link => Self::Link,
            NotRead::Special => Self::Special,
            NotRead::Encrypted => Self::Encrypted,
            NotRead::Unsupported => Self::UnknownCompression,
            NotRead::TooMuch => Self::ArchiveLimits,
            _ => Self::DamagedArchive,
        }
    }

    /// Why an item could not be read.
    pub(crate) const fn of_error(error: &ConnectorError) -> Self {
        match error {
            ConnectorError::NotFound { .. } => Self::Vanished,
            ConnectorError::PermissionDenied { .. } => Self::PermissionDenied,
            ConnectorError::Retryable { .. } => Self::KeptFailing,
            _ => Self::Unreadable,
        }
    }

    /// Whether it should have been scanned: it is tried again next time, and the run says that
    /// something is missing.
    pub(crate) const fn is_failure(self) -> bool {
        self.code() >= FIRST_FAILURE
    }

    /// Whether it keeps back what may hold secrets and what nobody chose to leave out: such items are
    /// named one by one.
    pub(crate) const fn is_miss(self) -> bool {
        let is_out_of_reach = matches!(
            self,
            Self::Encrypted
                | Self::UnknownCompression
                | Self::Submodule
                | Self::NotFetched
                | Self::LfsPointer
                | Self::NestedHistory
                | Self::Shallow
        );
        self.is_failure() || is_out_of_reach
    }

    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        REASONS.iter().map(|(reason, _)| *reason).find(|reason| reason.code() == code)
    }

    pub(crate) fn from_words(words: &str) -> Option<Self> {
        REASONS.iter().find(|(_, known)| *known == words).map(|(reason, _)| *reason)
    }

    pub(crate) fn words(self) -> &'static str {
        let found = REASONS.iter().find(|(reason, _)| *reason == self);
        found.expect("every reason has words").1
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl ToSql for Reason {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.words().into())
    }
}

impl FromSql for Reason {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Self::from_words(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_ascend_and_lead_back_and_so_do_words() {
        assert!(REASONS.is_sorted_by(|a, b| a.0.code() < b.0.code()));
        for (reason, words) in REASONS {
            assert_eq!(Reason::from_code(reason.code()), Some(*reason));
            assert_eq!((reason.words(), reason.to_string()), (*words, (*words).to_owned()));
            assert_eq!(Reason::column_result(ValueRef::Text(words.as_bytes())), Ok(*reason));
        }
        assert_eq!(Reason::from_code(0), None);
        assert!(Reason::column_result(ValueRef::Text(b"because")).is_err());
    }

    #[test]
    fn the_words_of_binary_content_name_its_kind() {
        use ContentKind::{Archive, Database, Executable, Font, Image, Media, NulBytes};
        assert_eq!(Reason::of_content(ContentKind::Text), None);
        for kind in [Archive, Image, Media, Executable, Database, Font, NulBytes] {
            let reason = Reason::of_content(kind).expect("it is not scanned");
            assert_eq!(reason.to_string(), format!("binary: {kind}"));
            assert!(!reason.is_failure());
        }
    }
}
