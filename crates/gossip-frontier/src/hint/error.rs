//! Why hints and metadata cannot be written or read. Sizes and tags only, never bytes.

/// Why bytes do not begin with a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardHintDecodeError {
    /// There is not even a tag.
    #[error("the hint is empty")]
    EmptyData,
    /// The tag is none of ours.
    #[error("hint tag {0:#04x} is unknown")]
    UnknownTag(u8),
    /// A prefix hint ends before its length, or before the bytes that its length announces.
    #[error("the prefix hint has {actual} bytes; it needs {expected_min}")]
    TruncatedPrefix {
        /// Bytes that are needed to go on.
        expected_min: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// A manifest hint ends before its three numbers do.
    #[error("the manifest hint has {actual} bytes; it needs {expected_min}")]
    TruncatedManifest {
        /// Bytes that are needed.
        expected_min: usize,
        /// Bytes that are there.
        actual: usize,
    },
    /// A manifest hint names no row.
    #[error("the manifest hint covers no row: [{start_row}, {end_row})")]
    InvertedManifestRows {
        /// First row.
        start_row: u64,
        /// First row behind the last.
        end_row: u64,
    },
}

/// Why a shard's metadata is not an envelope with a hint in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the shard metadata is malformed: {}", describe(.hint_error))]
pub struct ShardMetadataDecodeError {
    /// What is wrong with the hint. `None` if the envelope is at fault: its length field is cut,
    /// or announces more bytes than follow or than the hint takes, or the whole is too long.
    #[source]
    pub hint_error: Option<ShardHintDecodeError>,
}

impl ShardMetadataDecodeError {
    pub(super) const ENVELOPE: Self = Self { hint_error: None };
}

fn describe(hint_error: &Option<ShardHintDecodeError>) -> &dyn core::fmt::Display {
    match hint_error {
        Some(error) => error,
        None => &"its hint length does not fit",
    }
}

/// Why a hint or metadata was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ShardEncodeError {
    /// The prefix is longer than its length field can say.
    #[error("the hint prefix has {size} bytes; at most {max} can be framed")]
    PrefixTooLarge { size: usize, max: usize },
    /// The hint by itself is longer than metadata may be.
    #[error("the hint takes {size} bytes; at most {max} are allowed")]
    HintTooLarge {
        /// Bytes needed.
        size: usize,
        max: usize,
    },
    /// Hint and connector bytes together are longer than metadata may be.
    #[error("the metadata takes {size} bytes; at most {max} are allowed")]
    MetadataTooLarge {
        /// Bytes needed.
        size: usize,
        max: usize,
    },
    /// A manifest hint names no row.
    #[error("the manifest hint covers no row: [{start_row}, {end_row})")]
    InvertedManifestRows {
        /// First row.
        start_row: u64,
        /// First row behind the last.
        end_row: u64,
    },
}
