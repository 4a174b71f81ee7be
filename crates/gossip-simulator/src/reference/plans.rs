//! Whether manifests and split plans fit, by looking at every pair.

use gossip_contracts::coordination::{
    CursorInputError, ManifestValidationError, ShardSpecInputError, SplitValidationError,
};

use gossip_coordination::SplitCaps;

use crate::op::{Bytes, OwnedCursor, OwnedRange, OwnedShardInput};

const KEY_MAX: usize = 4096;
const TOKEN_MAX: usize = 16_384;
const METADATA_MAX: usize = 16_384;
const MANIFEST_MAX: usize = 10_000;
const CHILDREN_MAX: usize = 256;
const SPAWNED_MAX: usize = 1024;

/// Whether a key lies in a half-open range; an empty end is the end of the key space.
pub(super) fn holds(range: &OwnedRange, key: &[u8]) -> bool {
    key >= &range.start[..] && (range.end.is_empty() || key < &range.end[..])
}

/// What is wrong with a range by itself.
fn range_fault(range: &OwnedRange) -> Option<ShardSpecInputError> {
    let (start, end, metadata) = (range.start.len(), range.end.len(), range.metadata.len());
    if start > KEY_MAX {
        Some(ShardSpecInputError::StartTooLarge { size: start, max: KEY_MAX })
    } else if end > KEY_MAX {
        Some(ShardSpecInputError::EndTooLarge { size: end, max: KEY_MAX })
    } else if metadata > METADATA_MAX {
        Some(ShardSpecInputError::MetadataTooLarge { size: metadata, max: METADATA_MAX })
    } else if end > 0 && range.start[..] >= range.end[..] {
        Some(ShardSpecInputError::InvertedRange { start_len: start, end_len: end })
    } else {
        None
    }
}

/// What is wrong with a cursor's sizes.
pub(super) fn size_fault(cursor: &OwnedCursor) -> Option<CursorInputError> {
    let size = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, |bytes| bytes.len());
    let (key, token) = (size(&cursor.last_key), size(&cursor.token));
    if key > KEY_MAX {
        Some(CursorInputError::KeyTooLarge { size: key, max: KEY_MAX })
    } else if token > TOKEN_MAX {
        Some(CursorInputError::TokenTooLarge { size: token, max: TOKEN_MAX })
    } else {
        None
    }
}

/// The first fault of a manifest, in the documented order.
pub(super) fn manifest_fault(rows: &[OwnedShardInput]) -> Option<ManifestValidationError> {
    use ManifestValidationError as Fault;
    if rows.is_empty() {
        return Some(Fault::Empty);
    }
    if rows.len() > MANIFEST_MAX {
        return Some(Fault::TooManyShards { count: rows.len(), max: MANIFEST_MAX });
    }
    for row in rows {
        let OwnedShardInput { shard, range, cursor } = row;
        let shard = *shard;
        if shard.as_raw() >> 63 == 1 {
            return Some(Fault::DerivedShardId { shard });
        }
        if let Some(source) = range_fault(range) {
            return Some(Fault::SpecInvalid { shard, source });
        }
        if range.start.is_empty() || range.end.is_empty() {
            return Some(Fault::UnboundedRange { shard });
        }
        if let Some(source) = size_fault(cursor) {
            return Some(Fault::CursorInvalid { shard, source });
        }
        if cursor.last_key.as_ref().is_some_and(|key| !holds(range, key)) {
            return Some(Fault::CursorOutOfBounds { shard });
        }
    }
    let mut ids: Vec<_> = rows.iter().map(|row| row.shard).collect();
    ids.sort();
    for pair in ids.windows(2) {
        if pair[0] == pair[1] {
            return Some(Fault::DuplicateShardId { shard: pair[0] });
        }
    }
    // Ranges in key order overlap somewhere exactly when two neighbours do.
    let mut in_order: Vec<_> = rows.iter().collect();
    in_order.sort_by_key(|row| (&row.range.start[..], row.shard));
    for pair in in_order.windows(2) {
        if pair[1].range.start[..] < pair[0].range.end[..] {
            return Some(Fault::OverlappingRanges { first: pair[0].shard, second: pair[1].shard });
        }
    }
    None
}

/// The first fault of the parts into which `parent` is to be cut.
pub(super) fn parts_fault(
    parent: &OwnedRange,
    parts: &[OwnedRange],
    caps: &SplitCaps,
) -> Option<SplitValidationError> {
    use SplitValidationError as Fault;
    let count = parts.len();
    if count < 2 {
        return Some(Fault::TooFewChildren { count });
    }
    let max = CHILDREN_MAX.min(caps.max_children);
    if count > max {
        return Some(Fault::TooManyChildren { count, max });
    }
    for (index, part) in parts.iter().enumerate() {
        if let Some(source) = range_fault(part) {
            return Some(Fault::ChildInvalid { index, source });
        }
    }
    if parts[0].start != parent.start {
        return Some(Fault::StartMismatch);
    }
    for index in 1..count {
        let (end, start) = (&parts[index - 1].end[..], &parts[index].start[..]);
        if end.is_empty() || start < end {
            return Some(Fault::Overlap { index: index - 1 });
        }
        if end < start {
            return Some(Fault::Gap { index: index - 1 });
        }
    }
    (parts[count - 1].end != parent.end).then_some(Fault::EndMismatch)
}

/// Whether parts that cover their parent are more than the backend takes.
pub(super) fn size_of_parts_fault(
    parts: &[OwnedRange],
    caps: &SplitCaps,
) -> Option<SplitValidationError> {
    let of = |part: &OwnedRange| part.start.len() + part.end.len() + part.metadata.len();
    let (size, max) = (parts.iter().map(of).sum(), caps.max_bytes);
    (size > max).then_some(SplitValidationError::PartsTooLarge { size, max })
}

/// Whether a shard that has spawned `current` may spawn more.
pub(super) fn spawn_fault(current: usize, additional: usize) -> Option<SplitValidationError> {
    let max = SPAWNED_MAX;
    (current + additional > max).then_some(SplitValidationError::SpawnLimitExceeded {
        current,
        additional,
        max,
    })
}
