//! What a child of a split may say about its range.

use core::fmt;

use super::wire::ShardHint;
use crate::key_encoding::{ManifestRowKey, decode_manifest_row_key, is_prefix_successor};

/// The hint of the child `[child_start, child_end)` of a shard with `parent_hint`.
///
/// - `Range` stays `Range`; the boundaries are not looked at.
/// - `Prefix` becomes `Range`, as a piece of a prefix is rarely a prefix itself. The start must
///   begin with the prefix; the end must too, or be the prefix's successor. (An empty or
///   all-`0xFF` prefix has no successor, and bounds no end above.)
/// - `Manifest` narrows to the child's rows. Checks the start, then the end, each for being a row
///   key, of this manifest, within the parent's rows; then that a row is left.
///
/// Whether the child's boundaries are in order is for the split plan to say.
pub fn propagate_hint_on_split(
    parent_hint: ShardHint<'_>,
    child_start: &[u8],
    child_end: &[u8],
) -> Result<ShardHint<'static>, HintPropagationError> {
    match parent_hint {
        ShardHint::Range => Ok(ShardHint::Range),
        ShardHint::Prefix { prefix } => demote_prefix(prefix, child_start, child_end),
        ShardHint::Manifest { manifest_id, start_row, end_row } => {
            narrow_manifest(manifest_id, start_row, end_row, child_start, child_end)
        }
    }
}

/// The keys of `[prefix, successor)` are those that begin with `prefix`, so the successor itself
/// is never written down.
fn demote_prefix(
    prefix: &[u8],
    child_start: &[u8],
    child_end: &[u8],
) -> Result<ShardHint<'static>, HintPropagationError> {
    if !child_start.starts_with(prefix) {
        return Err(HintPropagationError::InvalidPrefixBoundary { boundary: SplitBoundary::Start });
    }
    let unbounded = prefix.iter().all(|&byte| byte == 0xff);
    let end_fits = if child_end.is_empty() {
        unbounded
    } else {
        // An end at the prefix itself leaves no key.
        child_end > prefix
            && (unbounded
                || child_end.starts_with(prefix)
                || is_prefix_successor(prefix, child_end))
    };
    if !end_fits {
        return Err(HintPropagationError::InvalidPrefixBoundary { boundary: SplitBoundary::End });
    }
    Ok(ShardHint::Range)
}

fn narrow_manifest(
    manifest_id: u64,
    parent_start: u64,
    parent_end: u64,
    child_start: &[u8],
    child_end: &[u8],
) -> Result<ShardHint<'static>, HintPropagationError> {
    let start = decode_row(manifest_id, child_start, SplitBoundary::Start)?;
    if !(parent_start..parent_end).contains(&start.row()) {
        return Err(HintPropagationError::InvalidManifestBoundary {
            boundary: SplitBoundary::Start,
        });
    }
    let end = decode_row(manifest_id, child_end, SplitBoundary::End)?;
    if !(parent_start..=parent_end).contains(&end.row()) {
        return Err(HintPropagationError::InvalidManifestBoundary { boundary: SplitBoundary::End });
    }
    let (start_row, end_row) = (start.row(), end.row());
    if start_row >= end_row {
        return Err(HintPropagationError::EmptyManifestRange { start_row, end_row });
    }
    Ok(ShardHint::Manifest { manifest_id, start_row, end_row })
}

fn decode_row(
    parent: u64,
    key: &[u8],
    boundary: SplitBoundary,
) -> Result<ManifestRowKey, HintPropagationError> {
    let row = decode_manifest_row_key(key)
        .ok_or(HintPropagationError::InvalidManifestBoundary { boundary })?;
    if row.manifest_id() != parent {
        return Err(HintPropagationError::ManifestIdMismatch { parent, child: row.manifest_id() });
    }
    Ok(row)
}

/// Which boundary of a child is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBoundary {
    /// The part's first key.
    Start,
    /// The first key behind the last.
    End,
}

impl fmt::Display for SplitBoundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::End => "end",
        })
    }
}

/// Why a child gets no hint: its range is not a piece of what its parent's hint says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HintPropagationError {
    /// A boundary lies outside the parent's prefix.
    #[error("the child's {boundary} lies outside the parent's prefix")]
    InvalidPrefixBoundary {
        /// Which end of the part is meant.
        boundary: SplitBoundary,
    },
    /// A boundary is no manifest row key, or outside the parent's rows.
    #[error("the child's {boundary} is not one of the parent's manifest rows")]
    InvalidManifestBoundary {
        /// Which end of the part is meant.
        boundary: SplitBoundary,
    },
    /// A boundary is a row of another manifest.
    #[error("the child is of manifest {child}, the parent of {parent}")]
    ManifestIdMismatch {
        /// The parent's manifest.
        parent: u64,
        /// The manifest of the child's boundary.
        child: u64,
    },
    /// The child covers no row.
    #[error("the child covers no row: [{start_row}, {end_row})")]
    EmptyManifestRange {
        /// First row.
        start_row: u64,
        /// First row behind the last.
        end_row: u64,
    },
}
