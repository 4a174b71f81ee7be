//! Room for what an acquire brings back, owned by the caller, so that acquiring allocates nothing.

use core::fmt;

use gossip_contracts::coordination::{
    Cursor, CursorSemantics, CursorUpdate, MAX_KEY_SIZE, MAX_METADATA_SIZE, MAX_SPAWNED_PER_SHARD,
    MAX_TOKEN_SIZE, RestoredShardState, ShardSpec, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, ShardId};

use crate::lease::Lease;
use crate::record::ShardRecordView;
use crate::status::ShardStatus;

/// Room for one shard's snapshot at the largest sizes allowed: about 53 KiB, on the heap. Make one per
/// worker and use it for every acquire.
#[derive(Clone, Debug)]
pub struct AcquireScratch {
    spec_start: Room<MAX_KEY_SIZE>,
    spec_end: Room<MAX_KEY_SIZE>,
    spec_metadata: Room<MAX_METADATA_SIZE>,
    cursor_last_key: Room<MAX_KEY_SIZE>,
    has_last_key: bool,
    cursor_token: Room<MAX_TOKEN_SIZE>,
    has_token: bool,
    spawned: Vec<ShardId>,
}

/// Up to `MAX` bytes.
#[derive(Clone)]
struct Room<const MAX: usize>(Vec<u8>);

impl<const MAX: usize> Room<MAX> {
    fn new() -> Self {
        Self(Vec::with_capacity(MAX))
    }

    /// Panics if they are too many.
    fn fill(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= MAX, "{} bytes where {MAX} are allowed", bytes.len());
        self.0.clear();
        self.0.extend_from_slice(bytes);
    }
}

/// Keys, metadata and tokens are not for showing.
impl<const MAX: usize> fmt::Debug for Room<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

impl AcquireScratch {
    /// Empty room.
    #[must_use]
    pub fn new() -> Self {
        Self {
            spec_start: Room::new(),
            spec_end: Room::new(),
            spec_metadata: Room::new(),
            cursor_last_key: Room::new(),
            has_last_key: false,
            cursor_token: Room::new(),
            has_token: false,
            spawned: Vec::with_capacity(MAX_SPAWNED_PER_SHARD),
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.write_spec(ShardSpecRef::new(b"", b"", b""));
        self.write_cursor(CursorUpdate::initial());
        self.spawned.clear();
    }

    /// Copies a range.
    ///
    /// # Panics
    /// If it exceeds the limits; a record's range does not.
    pub fn write_spec(&mut self, spec: ShardSpecRef<'_>) {
        self.spec_start.fill(spec.start());
        self.spec_end.fill(spec.end());
        self.spec_metadata.fill(spec.metadata());
    }

    /// Copies a cursor.
    ///
    /// # Panics
    /// If it exceeds the limits; a record's cursor does not.
    pub fn write_cursor(&mut self, cursor: CursorUpdate<'_>) {
        self.has_last_key = cursor.last_key().is_some();
        self.cursor_last_key.fill(cursor.last_key().unwrap_or_default());
        self.has_token = cursor.token().is_some();
        self.cursor_token.fill(cursor.token().unwrap_or_default());
    }

    /// Copies the ids of spawned shards.
    pub fn write_spawned_iter(&mut self, spawned: impl IntoIterator<Item = ShardId>) {
        self.spawned.clear();
        self.spawned.extend(spawned);
    }

    /// One more spawned shard, unless it is known.
    pub(crate) fn note_spawned(&mut self, shard: ShardId) {
        if !self.spawned.contains(&shard) {
            self.spawned.push(shard);
        }
    }

    /// Copies all that a snapshot shows.
    pub fn write_record(&mut self, shard: &ShardRecordView<'_>) {
        self.write_spec(shard.spec);
        self.write_cursor(shard.cursor);
        self.spawned.clear();
        self.spawned.extend_from_slice(shard.spawned);
    }

    /// The snapshot that was written, with the small fields given here.
    #[must_use]
    pub fn view(
        &self,
        status: ShardStatus,
        cursor_semantics: CursorSemantics,
        parent: Option<ShardId>,
    ) -> ShardSnapshotView<'_> {
        ShardSnapshotView {
            status,
            spec: ShardSpecRef::new(&self.spec_start.0, &self.spec_end.0, &self.spec_metadata.0),
            cursor: CursorUpdate::new(
                self.has_last_key.then_some(self.cursor_last_key.0.as_slice()),
                self.has_token.then_some(self.cursor_token.0.as_slice()),
            ),
            cursor_semantics,
            parent,
            spawned: &self.spawned,
        }
    }
}

impl Default for AcquireScratch {
    fn default() -> Self {
        Self::new()
    }
}

/// A shard as it stood when it was acquired, without what is the coordinator's own business: lease,
/// fence, op-log, tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardSnapshotView<'a> {
    /// Where it stood.
    pub status: ShardStatus,
    /// The keys that it covers.
    pub spec: ShardSpecRef<'a>,
    /// How far work had come.
    pub cursor: CursorUpdate<'a>,
    /// What the cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
    /// The shards that were split from it, oldest first.
    pub spawned: &'a [ShardId],
}

/// What a worker gets with a shard: lease, range and cursor.
#[derive(Clone, Copy, Debug)]
pub struct AcquireResultView<'a> {
    /// The capability for every further operation.
    pub lease: Lease,
    /// Where to go on.
    pub snapshot: ShardSnapshotView<'a>,
    /// What else there is to do.
    pub capacity: CapacityHint,
}

impl AcquireResultView<'_> {
    /// An owned copy of what a scanner needs.
    ///
    /// # Panics
    /// If the snapshot's range or cursor is not valid; a backend's snapshot is.
    #[must_use]
    pub fn to_restored_state(&self) -> RestoredShardState {
        RestoredShardState {
            key: self.lease.key(),
            spec: ShardSpec::new(self.snapshot.spec).expect("a snapshot's range is valid"),
            cursor: Cursor::new(self.snapshot.cursor).expect("a snapshot's cursor is valid"),
            cursor_semantics: self.snapshot.cursor_semantics,
            parent: self.snapshot.parent,
        }
    }
}

/// An acquired shard without its bytes, which stay in the scratch that it was copied into.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    /// The capability for every further operation.
    pub lease: Lease,
    /// What else there is to do.
    pub capacity: CapacityHint,
    /// Where the shard stood.
    pub status: ShardStatus,
    /// What its cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
}

impl Granted {
    /// What is not in the scratch.
    #[must_use]
    pub fn of(acquired: &AcquireResultView<'_>) -> Self {
        let AcquireResultView { lease, snapshot, capacity } = *acquired;
        let ShardSnapshotView { status, cursor_semantics, parent, .. } = snapshot;
        Self { lease, capacity, status, cursor_semantics, parent }
    }

    /// The acquired shard, with the bytes in `scratch`.
    #[must_use]
    pub fn view<'s>(&self, scratch: &'s AcquireScratch) -> AcquireResultView<'s> {
        let snapshot = scratch.view(self.status, self.cursor_semantics, self.parent);
        AcquireResultView { lease: self.lease, snapshot, capacity: self.capacity }
    }
}

/// A hint how much work waits in the run, sent along with acquires and renewals. Advice only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CapacityHint {
    /// Shards that could be claimed.
    pub available_count: u32,
    /// When the first of the shards that are held is free for others, at the latest; the backend's
    /// allowance for clocks that differ is in it.
    pub earliest_deadline: Option<LogicalTime>,
    /// Whether `available_count` is a lower bound rather than the number.
    pub is_estimate: bool,
}

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewResult {
    /// When it ends now.
    pub new_deadline: LogicalTime,
    /// What else there is to do.
    pub capacity: CapacityHint,
}

/// A checkpoint that renewed its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRenewal {
    /// When the lease ends. A replay says when it ended after the first execution.
    pub new_deadline: LogicalTime,
    /// What else there is to do, as of this answer.
    pub capacity: CapacityHint,
    /// Workers that look for work in the run in vain, as of this answer.
    pub idle_workers: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_empty_are_told_apart() {
        let mut scratch = AcquireScratch::new();
        for cursor in [
            CursorUpdate::initial(),
            CursorUpdate::at(b"k"),
            CursorUpdate::new(Some(b"k"), Some(b"")),
            CursorUpdate::new(None, Some(b"t")),
            CursorUpdate::initial(),
        ] {
            scratch.write_cursor(cursor);
            let view = scratch.view(ShardStatus::Active, CursorSemantics::Completed, None);
            assert_eq!(view.cursor, cursor);
        }
    }

    #[test]
    fn nothing_is_left_of_an_earlier_snapshot() {
        let mut scratch = AcquireScratch::new();
        scratch.write_spec(ShardSpecRef::new(b"aaaa", b"bbbb", b"meta"));
        scratch.write_cursor(CursorUpdate::new(Some(b"abab"), Some(b"token")));
        scratch.write_spawned_iter([ShardId::derived_from_raw(1), ShardId::derived_from_raw(2)]);
        scratch.write_spec(ShardSpecRef::new(b"c", b"d", b""));
        scratch.write_spawned_iter([ShardId::derived_from_raw(3)]);
        let view = scratch.view(ShardStatus::Active, CursorSemantics::Completed, None);
        assert_eq!(view.spec, ShardSpecRef::new(b"c", b"d", b""));
        assert_eq!(view.spawned, [ShardId::derived_from_raw(3)]);
        scratch.reset();
        let view = scratch.view(ShardStatus::Active, CursorSemantics::Completed, None);
        assert_eq!(
            (view.spec.start(), view.spec.end(), view.spawned.len()),
            (&b""[..], &b""[..], 0)
        );
        assert!(view.cursor.is_initial());
    }

    #[test]
    fn debug_shows_no_byte() {
        let mut scratch = AcquireScratch::new();
        scratch.write_spec(ShardSpecRef::new(b"hush", b"hush2", b"hush3"));
        scratch.write_cursor(CursorUpdate::new(Some(b"hush"), Some(b"hush")));
        let shown = format!("{scratch:?}");
        assert!(!shown.contains("hush") && !shown.contains("104, 117"), "{shown}");
    }
}
