//! Many shards from one range: all of them are staged, or none (B2).

use core::iter::once;

use gossip_contracts::coordination::{MAX_SPLIT_CHILDREN, ShardSpecInputError};

use super::{PreallocShardBuilder, PreallocShardBuilderError};
use crate::{manifest_shard_ref, range_shard_ref};

impl<const CAP: usize> PreallocShardBuilder<'_, CAP> {
    /// Stages `[start, end)` as ranges that meet at `split_points`; returns how many.
    ///
    /// Checks the number of children, then the room for them, then every boundary, and only then
    /// touches the arena.
    pub fn split_range_by_boundaries(
        &mut self,
        start: &[u8],
        split_points: &[&[u8]],
        end: &[u8],
        connector_extra: &[u8],
    ) -> Result<usize, PreallocShardBuilderError> {
        let children = split_points.len() + 1;
        self.check_children(children)?;

        let starts = || once(start).chain(split_points.iter().copied());
        let ranges = || starts().zip(split_points.iter().copied().chain(once(end)));
        // As an end, an empty point would mean "no end" and pass for one.
        if let Some((before, _)) = starts().zip(split_points).find(|(_, point)| point.is_empty()) {
            let (start_len, end_len) = (before.len(), 0);
            return Err(PreallocShardBuilderError::RangeInvalid(
                ShardSpecInputError::InvertedRange { start_len, end_len },
            ));
        }
        for (start, end) in ranges() {
            range_shard_ref(start, end, connector_extra, &mut self.scratch)
                .map_err(PreallocShardBuilderError::RangeInvalid)?;
        }
        self.all_or_nothing(|builder| {
            ranges().try_for_each(|(start, end)| {
                builder.add_range(start, end, connector_extra).map(drop)
            })
        })?;
        Ok(children)
    }

    /// Stages the rows `[start_row, end_row)` of one manifest in chunks of `rows_per_shard`, the
    /// last as short as it comes; returns how many.
    ///
    /// Checks the number of children (chunks of no rows would be without number), then the room
    /// for them, then the rows and the metadata, and only then touches the arena.
    pub fn split_manifest_by_rows(
        &mut self,
        manifest_id: u64,
        start_row: u64,
        end_row: u64,
        rows_per_shard: u64,
        connector_extra: &[u8],
    ) -> Result<usize, PreallocShardBuilderError> {
        let children = match rows_per_shard {
            0 => usize::MAX,
            rows => {
                end_row.saturating_sub(start_row).div_ceil(rows).try_into().unwrap_or(usize::MAX)
            }
        };
        self.check_children(children)?;
        // The children's metadata has the same length as that of the whole.
        manifest_shard_ref(manifest_id, start_row, end_row, connector_extra, &mut self.scratch)
            .map_err(PreallocShardBuilderError::ManifestCtorInvalid)?;
        self.all_or_nothing(|builder| {
            let mut row = start_row;
            while row < end_row {
                let next = row.saturating_add(rows_per_shard).min(end_row);
                builder.add_manifest(manifest_id, row, next, connector_extra)?;
                row = next;
            }
            Ok(())
        })?;
        Ok(children)
    }

    fn check_children(&self, requested: usize) -> Result<(), PreallocShardBuilderError> {
        if requested > MAX_SPLIT_CHILDREN {
            let limit = MAX_SPLIT_CHILDREN;
            return Err(PreallocShardBuilderError::FanOutExceeded { limit, requested });
        }
        self.check_room(requested)
    }

    /// Runs `stage`; if it fails half-way, takes back what it staged, newest first.
    fn all_or_nothing(
        &mut self,
        stage: impl FnOnce(&mut Self) -> Result<(), PreallocShardBuilderError>,
    ) -> Result<(), PreallocShardBuilderError> {
        let before = self.entries.len();
        stage(self).inspect_err(|_| {
            while self.entries.len() > before {
                let entry = self.entries.pop().expect("more entries than before");
                assert!(self.arena.free(entry.handle), "a staged shard left the arena");
            }
        })
    }
}
