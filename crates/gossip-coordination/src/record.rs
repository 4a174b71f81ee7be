//! The shard record: as it stands ([`ShardRecordView`]), as it is kept outside a slab
//! ([`ShardRecord`]), and as a decision changes it ([`ShardUpdate`]).
//!
//! A transition reads a view, which any store can offer (slab slots, decoded bytes, a model's
//! state), and returns an update that borrows from the request only. The store applies it.

use gossip_contracts::coordination::{
    Cursor, CursorSemantics, CursorUpdate, ShardSpec, ShardSpecRef,
};
use gossip_contracts::identity::{FenceEpoch, LogicalTime, ShardId, ShardKey, TenantId};
use gossip_stdx::InlineVec;

use crate::invariants::{InvariantViolation, check_shard_invariants, check_update};
use crate::lease::{LeaseHolder, Takeover};
use crate::op_log::{OpKind, OpLog, OpLogEntry};
use crate::run::RunGate;
use crate::status::{ParkReason, ShardStatus};

/// The small part of a record that transitions replace as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardState {
    /// Where the shard stands.
    pub status: ShardStatus,
    /// Why it is parked, exactly when it is.
    pub park_reason: Option<ParkReason>,
    /// The fencing token that the current lease carries.
    pub fence: FenceEpoch,
    /// Who holds it. A holder whose deadline has passed holds nothing.
    pub lease: Option<LeaseHolder>,
    /// Acquires since the cursor last moved, releases taken off: how often it may have killed
    /// its worker.
    pub acquires_since_progress: u32,
}

/// When a shard may be acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// At once: nobody holds it.
    Now,
    /// Once its lease is over: from this deadline on, and what [`Takeover`] adds to it.
    From(LogicalTime),
    /// It is done, split or parked.
    Never,
}

impl ShardState {
    /// The state of a shard that was never acquired.
    pub const NEW: Self = Self {
        status: ShardStatus::Active,
        park_reason: None,
        fence: FenceEpoch::INITIAL,
        lease: None,
        acquires_since_progress: 0,
    };

    /// The holder that keeps other workers out at `now` (L3).
    #[must_use]
    pub fn holder_at(&self, now: LogicalTime, takeover: Takeover) -> Option<LeaseHolder> {
        self.lease.filter(|holder| holder.keeps_others_out_at(now, takeover))
    }

    /// Whether a worker could claim the shard at `now`.
    #[must_use]
    pub fn is_available_at(&self, now: LogicalTime, takeover: Takeover) -> bool {
        self.status == ShardStatus::Active && self.holder_at(now, takeover).is_none()
    }

    /// When somebody else than its holder may acquire it. Backends build their indexes of free shards
    /// on this.
    #[must_use]
    pub fn availability(&self) -> Availability {
        match (self.status, self.lease) {
            (ShardStatus::Active, None) => Availability::Now,
            (ShardStatus::Active, Some(holder)) => Availability::From(holder.deadline()),
            _ => Availability::Never,
        }
    }
}

/// A record as it stands, borrowed from wherever it is kept.
#[derive(Clone, Copy, Debug)]
pub struct ShardRecordView<'a> {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its run, and its number there.
    pub key: ShardKey,
    /// Status, lease and fence.
    pub state: ShardState,
    /// The keys that it covers.
    pub spec: ShardSpecRef<'a>,
    /// How far work has come.
    pub cursor: CursorUpdate<'a>,
    /// What the cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
    /// The shards that were split from it, oldest first.
    pub spawned: &'a [ShardId],
    /// The operations that a replay is recognised by.
    pub op_log: &'a OpLog,
}

impl<'a> ShardRecordView<'a> {
    /// A shard that is about to be created.
    #[must_use]
    pub fn new_shard(
        tenant: TenantId,
        key: ShardKey,
        spec: ShardSpecRef<'a>,
        cursor: CursorUpdate<'a>,
        cursor_semantics: CursorSemantics,
        parent: Option<ShardId>,
    ) -> Self {
        static NO_OPERATIONS: OpLog = OpLog::new();
        Self {
            tenant,
            key,
            state: ShardState::NEW,
            spec,
            cursor,
            cursor_semantics,
            parent,
            spawned: &[],
            op_log: &NO_OPERATIONS,
        }
    }

    /// The record that a split of this one makes under `id`. It starts from nothing: the parent's
    /// cursor says nothing about keys behind it.
    #[must_use]
    pub fn child<'c>(&self, id: ShardId, spec: ShardSpecRef<'c>) -> ShardRecordView<'c> {
        ShardRecordView::new_shard(
            self.tenant,
            ShardKey::new(self.key.run, id),
            spec,
            CursorUpdate::initial(),
            self.cursor_semantics,
            Some(self.key.shard),
        )
    }

    /// Panics unless all ten record invariants hold.
    pub fn assert_invariants(&self) {
        self.check_invariants().unwrap_or_else(|violation| panic!("{violation}"));
    }

    pub(crate) fn check_invariants(&self) -> Result<(), InvariantViolation> {
        check_shard_invariants(
            self.key,
            &self.state,
            self.parent,
            self.spawned.iter().copied(),
            self.op_log.op_ids(),
        )
    }
}

/// What a backend finds under a tenant and a key: the shard, and what its run says.
#[derive(Clone, Copy, Debug)]
pub struct FoundShard<'v, 'a> {
    /// The shard as it is stored.
    pub shard: &'v ShardRecordView<'a>,
    /// Whether its run takes operations.
    pub run: &'v RunGate,
}

impl FoundShard<'_, '_> {
    /// V4: only a shard that may be seen is found.
    pub(crate) fn is_visible(&self) -> bool {
        self.run.shows_shards()
    }
}

/// A record that owns its bytes, for stores that keep records as encoded blobs, and for models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardRecord {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its run, and its number there.
    pub key: ShardKey,
    /// Status, lease and fence.
    pub state: ShardState,
    /// The keys that it covers.
    pub spec: ShardSpec,
    /// How far work has come.
    pub cursor: Cursor,
    /// What the cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
    /// The shards that were split from it, oldest first.
    pub spawned: Vec<ShardId>,
    /// The operations that a replay is recognised by.
    pub op_log: OpLog,
}

impl ShardRecord {
    /// Copies a view.
    ///
    /// # Panics
    /// If the view's range or cursor is not valid; a view of a record always is.
    #[must_use]
    pub fn from_view(view: &ShardRecordView<'_>) -> Self {
        Self {
            tenant: view.tenant,
            key: view.key,
            state: view.state,
            spec: ShardSpec::new(view.spec).expect("a record's range is valid"),
            cursor: Cursor::new(view.cursor).expect("a record's cursor is valid"),
            cursor_semantics: view.cursor_semantics,
            parent: view.parent,
            spawned: view.spawned.to_vec(),
            op_log: view.op_log.clone(),
        }
    }

    /// The record as transitions read it.
    #[must_use]
    pub fn view(&self) -> ShardRecordView<'_> {
        ShardRecordView {
            tenant: self.tenant,
            key: self.key,
            state: self.state,
            spec: self.spec.as_ref(),
            cursor: self.cursor.as_update(),
            cursor_semantics: self.cursor_semantics,
            parent: self.parent,
            spawned: &self.spawned,
            op_log: &self.op_log,
        }
    }

    /// Carries out a decision.
    ///
    /// # Panics
    /// If the update's range or cursor is not valid; transitions only return valid ones.
    pub fn apply(&mut self, update: &ShardUpdate<'_>) {
        self.state = update.state;
        if let Some(spec) = update.spec {
            self.spec = ShardSpec::new(spec).expect("a decided range is valid");
        }
        if let Some(cursor) = update.cursor {
            self.cursor = Cursor::new(cursor).expect("a decided cursor is valid");
        }
        self.spawned.extend_from_slice(&update.spawned);
        if let Some(entry) = update.log {
            self.op_log.push_back_overwrite(entry);
        }
    }
}

/// What a decision changes in a record. Fields that are `None` or empty stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardUpdate<'r> {
    /// The new status, lease and fence.
    pub state: ShardState,
    /// Where its cursor goes, if it moves.
    pub cursor: Option<CursorUpdate<'r>>,
    /// What is left of its range, if a split took some.
    pub spec: Option<ShardSpecRef<'r>>,
    /// Shards to append to those spawned.
    pub spawned: InlineVec<ShardId, 4>,
    /// The entry to append to the op-log.
    pub log: Option<OpLogEntry<OpKind>>,
}

impl<'r> ShardUpdate<'r> {
    /// Only status, lease and fence change.
    pub(crate) fn of_state(state: ShardState) -> Self {
        Self { state, cursor: None, spec: None, spawned: InlineVec::new(), log: None }
    }

    /// Panics unless the ten record invariants hold once this is applied to `before`, and unless
    /// the change of status is a legal one. Called by every transition, so that nothing broken is
    /// ever handed to a store.
    pub(crate) fn checked_against(self, before: &ShardRecordView<'_>) -> Self {
        assert_transition_legal(before.state.status, self.state.status, self.log.as_ref());
        assert!(
            self.state.fence >= before.state.fence,
            "shard {}: fence {} moved back to {}",
            before.key,
            before.state.fence,
            self.state.fence
        );
        check_update(before, &self).unwrap_or_else(|violation| panic!("{violation}"));
        self
    }

    /// What the record will have spawned.
    pub(crate) fn spawned_after<'i>(
        &'i self,
        before: &ShardRecordView<'i>,
    ) -> impl Iterator<Item = ShardId> + 'i {
        before.spawned.iter().chain(&*self.spawned).copied()
    }

    /// What the record's op-log will hold, oldest first.
    pub(crate) fn op_log_after<'i>(
        &'i self,
        before: &ShardRecordView<'i>,
    ) -> impl Iterator<Item = OpLogEntry<OpKind>> + 'i {
        before.op_log.iter().skip(self.evicted_from(before)).chain(self.log)
    }

    /// Entries that the record's op-log will lose.
    pub(crate) fn evicted_from(&self, before: &ShardRecordView<'_>) -> usize {
        usize::from(self.log.is_some() && before.op_log.is_full())
    }
}

/// Terminal states are left only by unparking.
fn assert_transition_legal(from: ShardStatus, to: ShardStatus, log: Option<&OpLogEntry<OpKind>>) {
    let unpark = log.is_some_and(|entry| entry.kind() == OpKind::Unpark);
    let legal = match (from, to) {
        (ShardStatus::Parked, ShardStatus::Active) => unpark,
        (ShardStatus::Active, _) => true,
        _ => false,
    };
    assert!(legal, "a shard cannot go from {from:?} to {to:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op_log::OpResult;
    use gossip_contracts::identity::{OpId, RunId, WorkerId};

    fn entry(kind: OpKind) -> OpLogEntry<OpKind> {
        OpLogEntry::new(OpId::from_raw(1), kind, OpResult::Completed, 1, LogicalTime::from_raw(1))
    }

    #[test]
    fn an_available_shard_is_active_and_not_held() {
        let at = LogicalTime::from_raw;
        let held = ShardState {
            lease: Some(LeaseHolder::new(WorkerId::from_raw(1), at(10))),
            ..ShardState::NEW
        };
        let available =
            |state: &ShardState, now| state.is_available_at(at(now), Takeover::AT_DEADLINE);
        assert!(available(&ShardState::NEW, 1));
        assert!(!available(&held, 9));
        assert!(available(&held, 10));
        assert!(!available(&ShardState { status: ShardStatus::Done, ..ShardState::NEW }, 1));
        let gone = Takeover { holder_is_gone: true, ..Takeover::AT_DEADLINE };
        assert!(held.is_available_at(at(9), gone));
    }

    #[test]
    fn only_unpark_leaves_a_terminal_state() {
        assert_transition_legal(
            ShardStatus::Parked,
            ShardStatus::Active,
            Some(&entry(OpKind::Unpark)),
        );
        for (from, to, log) in [
            (ShardStatus::Parked, ShardStatus::Active, Some(entry(OpKind::Park))),
            (ShardStatus::Parked, ShardStatus::Active, None),
            (ShardStatus::Parked, ShardStatus::Done, Some(entry(OpKind::Unpark))),
            (ShardStatus::Done, ShardStatus::Active, Some(entry(OpKind::Unpark))),
            (ShardStatus::Split, ShardStatus::Split, None),
        ] {
            let outcome =
                std::panic::catch_unwind(|| assert_transition_legal(from, to, log.as_ref()));
            assert!(outcome.is_err(), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn a_child_starts_from_nothing_with_its_parents_semantics() {
        let parent = ShardRecordView {
            cursor: CursorUpdate::at(b"c"),
            ..ShardRecordView::new_shard(
                TenantId::from_bytes([1; 32]),
                ShardKey::new(RunId::from_raw(1), ShardId::from_raw(2)),
                ShardSpecRef::new(b"a", b"z", b""),
                CursorUpdate::initial(),
                CursorSemantics::Dispatched,
                None,
            )
        };
        let child = parent.child(ShardId::derived_from_raw(3), ShardSpecRef::new(b"m", b"z", b""));
        child.assert_invariants();
        assert_eq!(child.cursor, CursorUpdate::initial());
        assert_eq!(child.cursor_semantics, CursorSemantics::Dispatched);
        assert_eq!(child.parent, Some(ShardId::from_raw(2)));
        assert_eq!(child.tenant, parent.tenant);
        assert_eq!(child.state, ShardState::NEW);
    }

    fn view() -> ShardRecordView<'static> {
        ShardRecordView::new_shard(
            TenantId::from_bytes([1; 32]),
            ShardKey::new(RunId::from_raw(1), ShardId::from_raw(2)),
            ShardSpecRef::new(b"a", b"z", b""),
            CursorUpdate::initial(),
            CursorSemantics::Completed,
            None,
        )
    }

    #[test]
    #[should_panic(expected = "R1: shard 1/2")]
    fn a_broken_record_is_a_bug() {
        let mut view = view();
        view.state.status = ShardStatus::Parked;
        view.assert_invariants();
    }

    #[test]
    #[should_panic(expected = "R6: shard 1/2")]
    fn a_decision_that_breaks_a_record_is_a_bug() {
        let state = ShardState { status: ShardStatus::Split, ..ShardState::NEW };
        ShardUpdate::of_state(state).checked_against(&view());
    }

    #[test]
    #[should_panic(expected = "fence 3 moved back to 2")]
    fn a_decision_that_lowers_the_fence_is_a_bug() {
        let mut view = view();
        view.state.fence = FenceEpoch::from_raw(3);
        let state = ShardState { fence: FenceEpoch::from_raw(2), ..view.state };
        ShardUpdate::of_state(state).checked_against(&view);
    }

    /// R9 asks about the log as it will be: a full one forgets its oldest entry first.
    #[test]
    fn an_id_may_come_back_as_its_entry_is_evicted() {
        let log_of = |ids: std::ops::RangeInclusive<u64>| {
            let (at, result) = (LogicalTime::from_raw(1), OpResult::Completed);
            let mut log = OpLog::new();
            for id in ids {
                let op_id = OpId::from_raw(id);
                log.push_back_overwrite(OpLogEntry::new(op_id, OpKind::Park, result, 1, at));
            }
            log
        };
        let log_one = |op_log: &OpLog| {
            let view = ShardRecordView { op_log, ..view() };
            let log = Some(entry(OpKind::Checkpoint));
            ShardUpdate { log, ..ShardUpdate::of_state(view.state) }.checked_against(&view);
        };
        let (full, one_short) = (log_of(1..=16), log_of(1..=15));
        log_one(&full);
        let outcome = std::panic::catch_unwind(|| log_one(&one_short));
        assert!(outcome.is_err(), "operation 1 stands in the log twice");
    }
}
