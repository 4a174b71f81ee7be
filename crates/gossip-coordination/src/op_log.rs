//! The short memory that makes retries harmless: the last operations of a shard or a run.
//!
//! - O1: an operation id stands in a log at most once.
//! - O2: a full log forgets its oldest entry. What it forgot is either fenced off by then or
//!   converges when it is executed again.

use gossip_contracts::identity::{LogicalTime, OpId};
use gossip_stdx::RingBuffer;

/// Operations that a shard remembers.
pub const OP_LOG_CAP: usize = 16;
/// Operations that a run remembers.
pub const RUN_OP_LOG_CAP: usize = 8;

/// The operations of a shard, oldest first.
pub type OpLog = RingBuffer<OpLogEntry<OpKind>, OP_LOG_CAP>;
/// The operations of a run, oldest first.
pub type RunOpLog = RingBuffer<OpLogEntry<RunOpKind>, RUN_OP_LOG_CAP>;

/// Operations on a shard that can be retried under their id. Stored as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OpKind {
    /// The cursor moved.
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
/// A refusal leaves the record untouched, log included, so this protocol writes `Completed` only;
/// the other two are part of the stored format.
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
pub(crate) enum Seen<'a, K> {
    /// The log does not know it.
    New,
    /// It was executed with these very parameters.
    Before(&'a OpLogEntry<K>),
    /// Its id was used with other parameters, whose hash this is.
    Otherwise(u64),
}

/// Looks `op_id` up, newest entry first: a retry follows closely upon what it repeats.
///
/// # Panics
/// If `payload_hash` is 0.
pub(crate) fn look_up<K: Copy, const N: usize>(
    log: &RingBuffer<OpLogEntry<K>, N>,
    op_id: OpId,
    payload_hash: u64,
) -> Seen<'_, K> {
    assert!(payload_hash != 0, "a payload hash of zero means that nothing was hashed");
    match log.iter().rev().find(|entry| entry.op_id == op_id) {
        None => Seen::New,
        Some(entry) if entry.payload_hash == payload_hash => Seen::Before(entry),
        Some(entry) => Seen::Otherwise(entry.payload_hash),
    }
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
        assert_eq!(look_up(&log, OpId::from_raw(2), 10), Seen::New);
        assert_eq!(look_up(&log, OpId::from_raw(1), 10), Seen::Before(&entry(1, 10)));
        assert_eq!(look_up(&log, OpId::from_raw(1), 11), Seen::Otherwise(10));
    }

    #[test]
    fn the_seventeenth_operation_evicts_the_first() {
        let mut log = OpLog::new();
        for id in 1..=17 {
            log.push_back_overwrite(entry(id, id));
        }
        assert_eq!(look_up(&log, OpId::from_raw(1), 1), Seen::New);
        assert_eq!(look_up(&log, OpId::from_raw(2), 2), Seen::Before(&entry(2, 2)));
    }

    #[test]
    #[should_panic(expected = "hash of zero")]
    fn looking_up_a_zero_hash_is_a_bug() {
        look_up(&OpLog::new(), OpId::from_raw(1), 0);
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
        assert!(!format!("{:?}", entry(1, 987_654_321)).contains("987654321"));
    }
}
