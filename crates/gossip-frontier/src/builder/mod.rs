//! Staging the shards with which a run starts.
//!
//! - B1: a successful add takes the next shard id; a failed one takes nothing.
//! - B2: a bulk split stages all of its children or none.
//! - B3: every staged handle is live in the builder's arena, until the arena is cleared.
//!
//! Each shard is checked when it is added, the whole manifest when it is built. Registering it is
//! left to coordination.

mod error;
mod split;
#[cfg(test)]
mod tests;

use core::fmt;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, MAX_INITIAL_SHARDS, ShardArena, ShardSpec, ShardSpecHandle,
    ShardSpecRef, validate_manifest,
};
use gossip_contracts::identity::ShardId;
use gossip_stdx::InlineVec;

use crate::{ShardSpecScratch, manifest_shard_ref, prefix_shard_ref, range_shard_ref};

pub use error::PreallocShardBuilderError;

/// Entries live inline, so this bounds the builder's share of the stack.
const MAX_CAP: usize = 1024;

/// The first id that belongs to shards made by splits.
const FIRST_DERIVED_ID: u64 = ShardId::derived_from_raw(0).as_raw();

/// Collects up to `CAP` shards in a borrowed arena, then hands them over as one manifest.
///
/// The arena is the builder's while it lives: [`reset`](Self::reset) and dropping the builder both
/// clear it. Cursors are borrowed until the builder is gone.
///
/// ```
/// use gossip_contracts::coordination::{CursorUpdate, ShardArena};
/// use gossip_frontier::PreallocShardBuilder;
///
/// let mut arena = ShardArena::with_capacity(4, 1024);
/// let mut builder = PreallocShardBuilder::<4>::new(&mut arena, 4)?;
/// builder.add_prefix(b"docs/", b"")?;
/// builder.add_range_with_cursor(b"src/", b"src0", b"", CursorUpdate::at(b"src/lib.rs"))?;
/// assert_eq!(builder.build_inputs()?.len(), 2);
/// # Ok::<(), gossip_frontier::PreallocShardBuilderError>(())
/// ```
///
/// More than 1024 entries do not compile; several builders with ids that follow each other
/// ([`with_first_id`](Self::with_first_id)) fill larger runs.
///
/// ```compile_fail,E0080
/// # use gossip_contracts::coordination::ShardArena;
/// # use gossip_frontier::PreallocShardBuilder;
/// let mut arena = ShardArena::with_capacity(4, 1024);
/// let _ = PreallocShardBuilder::<1025>::new(&mut arena, 4);
/// ```
pub struct PreallocShardBuilder<'a, const CAP: usize> {
    arena: &'a mut ShardArena,
    entries: InlineVec<Entry<'a>, CAP>,
    entry_limit: usize,
    first_id: ShardId,
    scratch: ShardSpecScratch,
}

/// One staged shard. Its id is the first id plus its position.
#[derive(Clone, Copy)]
struct Entry<'a> {
    handle: ShardSpecHandle,
    cursor: CursorUpdate<'a>,
}

impl<'a, const CAP: usize> PreallocShardBuilder<'a, CAP> {
    /// A builder for at most `entry_limit` shards, with ids from 0.
    ///
    /// Checks the limit against zero, then `CAP`, then `MAX_INITIAL_SHARDS`.
    pub fn new(
        arena: &'a mut ShardArena,
        entry_limit: usize,
    ) -> Result<Self, PreallocShardBuilderError> {
        Self::with_first_id(arena, entry_limit, ShardId::from_raw(0))
    }

    /// [`new`](Self::new) with ids from `first_id`. None of the `entry_limit` ids may be one of a
    /// shard made by a split.
    pub fn with_first_id(
        arena: &'a mut ShardArena,
        entry_limit: usize,
        first_id: ShardId,
    ) -> Result<Self, PreallocShardBuilderError> {
        const { assert!(CAP <= MAX_CAP, "a builder holds at most 1024 entries") };
        check_limits(entry_limit, CAP, first_id)?;
        let scratch = ShardSpecScratch::new();
        Ok(Self { arena, entries: InlineVec::new(), entry_limit, first_id, scratch })
    }

    /// Shards staged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no shard is staged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Shards that may be staged.
    #[must_use]
    pub fn entry_limit(&self) -> usize {
        self.entry_limit
    }

    /// The id of the next shard. Once the builder is full, the first id for a builder after it.
    #[must_use]
    pub fn next_id(&self) -> ShardId {
        self.id_at(self.entries.len())
    }

    /// The arena, to see how full it is.
    #[must_use]
    pub fn arena(&self) -> &ShardArena {
        self.arena
    }

    /// Stages the range `[start, end)`.
    pub fn add_range(
        &mut self,
        start: &[u8],
        end: &[u8],
        connector_extra: &[u8],
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.add_range_with_cursor(start, end, connector_extra, CursorUpdate::initial())
    }

    /// [`add_range`](Self::add_range) with earlier progress.
    pub fn add_range_with_cursor(
        &mut self,
        start: &[u8],
        end: &[u8],
        connector_extra: &[u8],
        cursor: CursorUpdate<'a>,
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.check_room(1)?;
        let spec = range_shard_ref(start, end, connector_extra, &mut self.scratch)
            .map_err(PreallocShardBuilderError::RangeInvalid)?;
        let handle = self.arena.alloc(spec).map_err(PreallocShardBuilderError::SlabFull)?;
        Ok(self.push(handle, cursor))
    }

    /// Stages all keys that begin with `prefix`.
    pub fn add_prefix(
        &mut self,
        prefix: &[u8],
        connector_extra: &[u8],
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.add_prefix_with_cursor(prefix, connector_extra, CursorUpdate::initial())
    }

    /// [`add_prefix`](Self::add_prefix) with earlier progress.
    pub fn add_prefix_with_cursor(
        &mut self,
        prefix: &[u8],
        connector_extra: &[u8],
        cursor: CursorUpdate<'a>,
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.check_room(1)?;
        let spec = prefix_shard_ref(prefix, connector_extra, &mut self.scratch)
            .map_err(PreallocShardBuilderError::PrefixInvalid)?;
        let handle = self.arena.alloc(spec).map_err(PreallocShardBuilderError::SlabFull)?;
        Ok(self.push(handle, cursor))
    }

    /// Stages the rows `[start_row, end_row)` of one manifest.
    pub fn add_manifest(
        &mut self,
        manifest_id: u64,
        start_row: u64,
        end_row: u64,
        connector_extra: &[u8],
    ) -> Result<ShardId, PreallocShardBuilderError> {
        let cursor = CursorUpdate::initial();
        self.add_manifest_with_cursor(manifest_id, start_row, end_row, connector_extra, cursor)
    }

    /// [`add_manifest`](Self::add_manifest) with earlier progress.
    pub fn add_manifest_with_cursor(
        &mut self,
        manifest_id: u64,
        start_row: u64,
        end_row: u64,
        connector_extra: &[u8],
        cursor: CursorUpdate<'a>,
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.check_room(1)?;
        let spec =
            manifest_shard_ref(manifest_id, start_row, end_row, connector_extra, &mut self.scratch)
                .map_err(PreallocShardBuilderError::ManifestCtorInvalid)?;
        let handle = self.arena.alloc(spec).map_err(PreallocShardBuilderError::SlabFull)?;
        Ok(self.push(handle, cursor))
    }

    /// Stages a copy of any valid spec, its metadata as it is.
    pub fn add_spec_ref(
        &mut self,
        spec: ShardSpecRef<'_>,
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.check_room(1)?;
        ShardSpec::validate_ref(spec).map_err(PreallocShardBuilderError::SpecInvalid)?;
        let handle = self.arena.alloc(spec).map_err(PreallocShardBuilderError::SlabFull)?;
        Ok(self.push(handle, CursorUpdate::initial()))
    }

    /// Stages a spec that is already in the arena, without a copy.
    pub fn add_spec_handle(
        &mut self,
        handle: ShardSpecHandle,
    ) -> Result<ShardId, PreallocShardBuilderError> {
        self.check_room(1)?;
        let spec = self.arena.get(handle).ok_or(PreallocShardBuilderError::InvalidSpecHandle)?;
        ShardSpec::validate_ref(spec).map_err(PreallocShardBuilderError::SpecInvalid)?;
        Ok(self.push(handle, CursorUpdate::initial()))
    }

    /// The staged shards as a manifest, in the order in which they were added. Changes nothing, so
    /// it can be asked again, and staging can go on.
    ///
    /// With several builders for one run, each sees its own shards only: check the rows of all of
    /// them together with `validate_manifest` (registration does).
    pub fn build_inputs(&self) -> Result<Vec<InitialShardInput<'_>>, PreallocShardBuilderError> {
        let rows = (self.entries.iter().enumerate())
            .map(|(index, entry)| {
                let spec = (self.arena.get(entry.handle))
                    .ok_or(PreallocShardBuilderError::InvalidSpecHandle)?;
                Ok(InitialShardInput::new(self.id_at(index), spec, entry.cursor))
            })
            .collect::<Result<Vec<_>, _>>()?;
        validate_manifest(&rows).map_err(PreallocShardBuilderError::ManifestInvalid)?;
        Ok(rows)
    }

    /// Forgets every shard, clears the arena (so all of its handles go stale) and starts again at
    /// the first id.
    pub fn reset(&mut self) {
        self.entries.clear();
        self.arena.clear();
    }

    fn check_room(&self, additional: usize) -> Result<(), PreallocShardBuilderError> {
        let (limit, current) = (self.entry_limit, self.entries.len());
        if additional > limit - current {
            return Err(PreallocShardBuilderError::CapacityExceeded { limit, current, additional });
        }
        Ok(())
    }

    /// The last step of every add: it cannot fail.
    fn push(&mut self, handle: ShardSpecHandle, cursor: CursorUpdate<'a>) -> ShardId {
        let id = self.next_id();
        self.entries.push(Entry { handle, cursor });
        assert!(self.entries.len() <= self.entry_limit, "{} entries", self.entries.len());
        id
    }

    /// Below bit 63 for every entry: `with_first_id` saw to it.
    fn id_at(&self, index: usize) -> ShardId {
        ShardId::from_raw(self.first_id.as_raw() + index as u64)
    }
}

impl<const CAP: usize> Drop for PreallocShardBuilder<'_, CAP> {
    fn drop(&mut self) {
        self.arena.clear();
    }
}

impl<const CAP: usize> fmt::Debug for PreallocShardBuilder<'_, CAP> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreallocShardBuilder")
            .field("len", &self.len())
            .field("entry_limit", &self.entry_limit)
            .field("first_id", &self.first_id)
            .finish_non_exhaustive()
    }
}

/// With `MAX_CAP` below `MAX_INITIAL_SHARDS` the third check never speaks; it stands for the day on
/// which one of the two moves.
fn check_limits(
    entry_limit: usize,
    cap: usize,
    first: ShardId,
) -> Result<(), PreallocShardBuilderError> {
    if entry_limit == 0 {
        return Err(PreallocShardBuilderError::EntryLimitZero);
    }
    if entry_limit > cap {
        return Err(PreallocShardBuilderError::CapMismatch { entry_limit, cap });
    }
    if entry_limit > MAX_INITIAL_SHARDS {
        let max = MAX_INITIAL_SHARDS;
        return Err(PreallocShardBuilderError::EntryLimitExceedsManifestMax { entry_limit, max });
    }
    if first.is_derived() || FIRST_DERIVED_ID - first.as_raw() < entry_limit as u64 {
        return Err(PreallocShardBuilderError::ShardIdsExhausted { first, entry_limit });
    }
    Ok(())
}
