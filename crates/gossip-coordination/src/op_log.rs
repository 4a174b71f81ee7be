//! The short memory that makes retries harmless: the last operations of a shard or a run.
//!
//! - O1: an operation id stands in a log at most once.
//! - O2: a full log forgets its oldest entry. What it forgot is fenced off by then, or refused because
//!   its cursor is behind (C1), or converges when it is executed again. The exception is an unpark, which needs no lease: retried
//!   after sixteen later operations, it sets a shard going that was parked again meanwhile.

use gossip_contracts::identity::{LogicalTime, OpId};
use gossip_stdx::RingBuffer;

/// Operations that a shard remembers.
pub const OP_LOG_CAP: usize = 16;
/// Operations that a run remembers.
pub const RUN_OP_LOG_CAP: usize = 8;

/// The operations of a shard.
pub type OpLog = OperationLog<OpKind, OP_LOG_CAP>;
/// The operations of a run.
pub type RunOpLog = OperationLog<RunOpKind, RUN_OP_LOG_CAP>;

/// The last `N` operations, oldest first.
///
/// Ids lie apart from what they name: almost every look-up finds nothing, and then reads two cache
/// lines instead of eight.
#[derive(Clone, PartialEq, Eq)]
pub struct OperationLog<K, const N: usize> {
    ids: RingBuffer<OpId, N>,
    outcomes: RingBuffer<Outcome<K>, N>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Outcome<K> {
    payload_hash: u64,
    executed_at: LogicalTime,
    kind: K,
    result: OpResult,
}

impl<K: Copy, const N: usize> OperationLog<K, N> {
    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self { ids: RingBuffer::new(), outcomes: RingBuffer::new() }
    }

    /// Operations held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no operation is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether the next operation will evict the oldest.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.ids.is_full()
    }

    /// The operations, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OpLogEntry<K>> {
        self.ids.iter().zip(self.outcomes.iter()).map(|(&id, outcome)| outcome.of(id))
    }

    /// The ids, oldest first.
    pub fn op_ids(&self) -> impl ExactSizeIterator<Item = OpId> {
        self.ids.iter().copied()
    }

    /// Appends an operation, evicting the oldest if the log is full (O2).
    pub fn push_back_overwrite(&mut self, entry: OpLogEntry<K>) {
        let OpLogEntry { op_id, payload_hash, executed_at, kind, result } = entry;
        self.ids.push_back_overwrite(op_id);
        self.outcomes.push_back_overwrite(Outcome { payload_hash, executed_at, kind, result });
    }

    /// Forgets every operation.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.outcomes.clear();
    }

    /// What the log says of an operation that arrives.
    ///
    /// # Panics
    /// If `payload_hash` is 0.
    pub(crate) fn look_up(&self, op_id: OpId, payload_hash: u64) -> Remembered<K> {
        assert!(payload_hash != 0, "a payload hash of zero means that nothing was hashed");
        let Some(position) = self.ids.iter().position(|&id| id == op_id) else {
            return Remembered::New;
        };
        let outcome = self.outcomes.get(position).expect("every id has an outcome");
        // What was not carried out is no success to repeat.
        if outcome.payload_hash == payload_hash && outcome.result == OpResult::Completed {
            Remembered::Before(outcome.of(op_id))
        } else {
            Remembered::Otherwise(outcome.payload_hash)
        }
    }
}

impl<K: Copy> Outcome<K> {
    fn of(&self, op_id: OpId) -> OpLogEntry<K> {
        let Self { payload_hash, executed_at, kind, result } = *self;
        OpLogEntry { op_id, payload_hash, executed_at, kind, result }
    }
}

impl<K: Copy, const N: usize> Default for OperationLog<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + core::fmt::Debug, const N: usize> core::fmt::Debug for OperationLog<K, N> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Operations on a shard that can be retried under their id. Stored as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// A checkpoint, also one that renewed.
    Checkpoint = 0,
    /// The shard is done.
    Complete = 1,
    /// The shard was halted.
    Park = 2,
    /// The shard was replaced by children.
    SplitReplace = 3,
    /// The shard gave away the rest of its range.
    SplitResidual = 4,
    /// An administrator set a parked shard going again.
    Unpark = 5,
}

impl OpKind {
    /// The kind stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Checkpoint),
            1 => Some(Self::Complete),
            2 => Some(Self::Park),
            3 => Some(Self::SplitReplace),
            4 => Some(Self::SplitResidual),
            5 => Some(Self::Unpark),
            _ => None,
        }
    }
}

/// Operations on a run that can be retried under their id. Stored as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RunOpKind {
    /// The run got its shards.
    RegisterShards = 0,
    /// The run ended well.
    Complete = 1,
    /// The run failed.
    Fail = 2,
    /// The run was called off.
    Cancel = 3,
}

impl RunOpKind {
    /// The kind stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::RegisterShards),
            1 => Some(Self::Complete),
            2 => Some(Self::Fail),
            3 => Some(Self::Cancel),
            _ => None,
        }
    }
}

/// How a logged operation ended. Stored as a byte.
///
/// A refusal leaves the record untouched, log included, so this protocol writes no `Error`; it is
/// part of the stored format. `Superseded` is a registration whose place another has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpResult {
    /// It was carried out.
    Completed = 0,
    /// It was refused.
    Error = 1,
    /// It was valid, but something later overtook it.
    Superseded = 2,
}

impl OpResult {
    /// The result stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Completed),
            1 => Some(Self::Error),
            2 => Some(Self::Superseded),
            _ => None,
        }
    }
}

/// One remembered operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OpLogEntry<K> {
    op_id: OpId,
    payload_hash: u64,
    executed_at: LogicalTime,
    kind: K,
    result: OpResult,
}

impl<K: Copy> OpLogEntry<K> {
    /// An operation executed at `executed_at`.
    ///
    /// # Panics
    /// If `payload_hash` is 0 or `executed_at` is [`LogicalTime::ZERO`].
    #[must_use]
    pub fn new(
        op_id: OpId,
        kind: K,
        result: OpResult,
        payload_hash: u64,
        executed_at: LogicalTime,
    ) -> Self {
        assert!(payload_hash != 0, "a payload hash of zero means that nothing was hashed");
        assert!(executed_at > LogicalTime::ZERO, "an operation is executed at some time");
        Self { op_id, payload_hash, executed_at, kind, result }
    }

    /// The caller's id for the operation.
    #[must_use]
    pub const fn op_id(&self) -> OpId {
        self.op_id
    }

    /// What it did.
    #[must_use]
    pub const fn kind(&self) -> K {
        self.kind
    }

    /// How it ended.
    #[must_use]
    pub const fn result(&self) -> OpResult {
        self.result
    }

    /// The fingerprint of its parameters.
    #[must_use]
    pub const fn payload_hash(&self) -> u64 {
        self.payload_hash
    }

    /// When it was first executed.
    #[must_use]
    pub const fn executed_at(&self) -> LogicalTime {
        self.executed_at
    }
}

/// The hash stays out: who can read logs must not be able to probe payloads.
impl<K: core::fmt::Debug> core::fmt::Debug for OpLogEntry<K> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OpLogEntry")
            .field("op_id", &self.op_id)
            .field("kind", &self.kind)
            .field("result", &self.result)
            .field("executed_at", &self.executed_at)
            .finish_non_exhaustive()
    }
}

/// What a log says of an operation that arrives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Remembered<K> {
    /// The log does not know it.
    New,
    /// It was executed with these very parameters.
    Before(OpLogEntry<K>),
    /// Its id was used otherwise, with parameters whose hash this is.
    Otherwise(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, hash: u64) -> OpLogEntry<OpKind> {
        OpLogEntry::new(
            OpId::from_raw(id),
            OpKind::Checkpoint,
            OpResult::Completed,
            hash,
            LogicalTime::from_raw(1),
        )
    }

    #[test]
    fn discriminants_are_stable_and_unknown_bytes_are_none() {
        for raw in 0..=u8::MAX {
            assert_eq!(OpKind::from_raw(raw).map(|k| k as u8), (raw < 6).then_some(raw));
            assert_eq!(RunOpKind::from_raw(raw).map(|k| k as u8), (raw < 4).then_some(raw));
            assert_eq!(OpResult::from_raw(raw).map(|r| r as u8), (raw < 3).then_some(raw));
        }
    }

    #[test]
    fn a_log_tells_new_repeated_and_reused_ids_apart() {
        let mut log = OpLog::new();
        log.push_back_overwrite(entry(1, 10));
        assert_eq!(log.look_up(OpId::from_raw(2), 10), Remembered::New);
        assert_eq!(log.look_up(OpId::from_raw(1), 10), Remembered::Before(entry(1, 10)));
        assert_eq!(log.look_up(OpId::from_raw(1), 11), Remembered::Otherwise(10));
    }

    #[test]
    fn an_operation_that_was_logged_as_anything_but_completed_is_not_repeated_as_a_success() {
        for result in [OpResult::Error, OpResult::Superseded] {
            let mut log = OpLog::new();
            let (op_id, at) = (OpId::from_raw(1), LogicalTime::from_raw(1));
            log.push_back_overwrite(OpLogEntry::new(op_id, OpKind::Park, result, 10, at));
            assert_eq!(log.look_up(op_id, 10), Remembered::Otherwise(10));
        }
    }

    #[test]
    fn the_seventeenth_operation_evicts_the_first() {
        let mut log = OpLog::new();
        for id in 1..=17 {
            log.push_back_overwrite(entry(id, id));
        }
        assert_eq!(log.look_up(OpId::from_raw(1), 1), Remembered::New);
        assert_eq!(log.look_up(OpId::from_raw(2), 2), Remembered::Before(entry(2, 2)));
    }

    /// The two rings of a log move as one.
    #[test]
    fn a_log_holds_what_was_appended_oldest_first() {
        let mut log = OpLog::new();
        assert!(log.is_empty() && !log.is_full());
        for id in 1..=20 {
            log.push_back_overwrite(entry(id, 100 + id));
            assert_eq!(log.len() as u64, id.min(16));
            assert_eq!((log.is_empty(), log.is_full()), (false, id >= 16));
            assert!(log.iter().eq((id.saturating_sub(15).max(1)..=id).map(|n| entry(n, 100 + n))));
            assert!(log.op_ids().eq(log.iter().map(|entry| entry.op_id())));
        }
        assert!(log.iter().all(|entry| matches!(
            log.look_up(entry.op_id(), entry.payload_hash()),
            Remembered::Before(found) if found == entry
        )));
        log.clear();
        assert_eq!((log.len(), log.iter().count(), log.op_ids().count()), (0, 0, 0));
        assert_eq!(log, OpLog::new());
        assert_eq!(log.look_up(OpId::from_raw(20), 120), Remembered::New);
    }

    #[test]
    #[should_panic(expected = "hash of zero")]
    fn looking_up_a_zero_hash_is_a_bug() {
        OpLog::new().look_up(OpId::from_raw(1), 0);
    }

    #[test]
    #[should_panic(expected = "hash of zero")]
    fn logging_a_zero_hash_is_a_bug() {
        let _ = entry(1, 0);
    }

    #[test]
    #[should_panic(expected = "some time")]
    fn logging_at_no_time_is_a_bug() {
        let _ = OpLogEntry::new(
            OpId::from_raw(1),
            OpKind::Park,
            OpResult::Completed,
            1,
            LogicalTime::ZERO,
        );
    }

    #[test]
    fn debug_hides_the_hash() {
        let mut log = OpLog::new();
        log.push_back_overwrite(entry(1, 987_654_321));
        for shown in [format!("{:?}", entry(1, 987_654_321)), format!("{log:?}")] {
            assert!(shown.contains("Checkpoint") && !shown.contains("987654321"), "{shown}");
        }
    }
}
