//! Whether a backend that keeps bytes in one block of memory could have run out of it.
//!
//! The model does not follow where a record lies. It knows how many there are and how long each is;
//! free bytes lie between them, so in at most one stretch more than there are records. If the free
//! bytes are too many for all those stretches to be shorter than the record that was refused, one of
//! them would have held it.

use super::Reference;
use crate::op::{Operation, OwnedCursor, OwnedRange};

/// What a record takes is a multiple of this.
const GRANULE: usize = 16;

/// Records and the bytes that they take.
#[derive(Clone, Copy, Default)]
struct Usage {
    records: usize,
    bytes: usize,
}

impl Usage {
    fn add(&mut self, record: usize) {
        self.records += 1;
        self.bytes += record;
    }

    /// Whether one more record of `size` may find no place.
    const fn may_refuse(self, capacity: usize, size: usize) -> bool {
        capacity.saturating_sub(self.bytes) < (self.records + 1) * size
    }
}

impl Reference {
    /// Whether what `operation` stores may not fit.
    pub(super) fn may_lack_room(&self, operation: &Operation) -> bool {
        let Some(capacity) = self.bounds.byte_capacity else { return false };
        let mut usage = Usage::default();
        for shard in self.runs.values().flat_map(|run| run.shards.values()) {
            usage.add(size_of_range(&shard.range));
            size_of_cursor(&shard.cursor).into_iter().for_each(|size| usage.add(size));
        }
        // What is replaced is given back only when all that is new has found its place.
        stored_by(operation).into_iter().any(|size| {
            let may_refuse = usage.may_refuse(capacity, size);
            usage.add(size);
            may_refuse
        })
    }
}

/// The records that an operation brings along.
fn stored_by(operation: &Operation) -> Vec<usize> {
    match operation {
        Operation::RegisterShards { shards, .. } => shards
            .iter()
            .flat_map(|row| [Some(size_of_range(&row.range)), size_of_cursor(&row.cursor)])
            .flatten()
            .collect(),
        Operation::Checkpoint { cursor, .. } | Operation::Complete { cursor, .. } => {
            size_of_cursor(cursor).into_iter().collect()
        }
        Operation::SplitReplace { children, .. } => children.iter().map(size_of_range).collect(),
        Operation::SplitResidual { kept, residual, .. } => {
            vec![size_of_range(residual), size_of_range(kept)]
        }
        _ => Vec::new(),
    }
}

fn size_of_range(range: &OwnedRange) -> usize {
    (range.start.len() + range.end.len() + range.metadata.len()).next_multiple_of(GRANULE)
}

/// A cursor that is nowhere is not stored.
fn size_of_cursor(cursor: &OwnedCursor) -> Option<usize> {
    let OwnedCursor { last_key, token } = cursor;
    let size = |bytes: &Option<_>| bytes.as_ref().map_or(0, |bytes: &crate::op::Bytes| bytes.len());
    (last_key.is_some() || token.is_some())
        .then(|| (size(last_key) + size(token)).next_multiple_of(GRANULE))
}
