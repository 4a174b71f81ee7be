//! Fingerprints of operations' parameters, and the ids that splits derive.
//!
//! A fingerprint starts with the operation's tag, so that a checkpoint and a completion at the same
//! cursor differ. Fingerprints and derived ids are stored: golden values pin them.

use std::cell::RefCell;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    CanonicalBytes, CanonicalHasher, OP_PAYLOAD_V1, OpId, RunId, RunResult, SPLIT_ID_V1, ShardId,
    ShardKey,
};

use crate::status::ParkReason;

pub(crate) fn checkpoint(cursor: CursorUpdate<'_>) -> u64 {
    fingerprint(b"checkpoint", &cursor)
}

pub(crate) fn checkpoint_and_renew(cursor: CursorUpdate<'_>) -> u64 {
    fingerprint(b"checkpoint_and_renew", &cursor)
}

pub(crate) fn complete(cursor: CursorUpdate<'_>) -> u64 {
    fingerprint(b"complete", &cursor)
}

pub(crate) fn park(reason: ParkReason) -> u64 {
    fingerprint(b"park", &reason)
}

pub(crate) fn split_replace(plan: &SplitReplacePlan<'_>) -> u64 {
    fingerprint(b"split_replace", plan)
}

pub(crate) fn split_residual(plan: &SplitResidualPlan<'_>) -> u64 {
    fingerprint(b"split_residual", plan)
}

pub(crate) fn unpark(shard: ShardKey) -> u64 {
    fingerprint(b"unpark", &shard)
}

pub(crate) fn register_shards(shards: &[InitialShardInput<'_>]) -> u64 {
    struct Manifest<'m>(&'m [InitialShardInput<'m>]);
    impl CanonicalBytes for Manifest<'_> {
        fn feed(&self, hasher: &mut CanonicalHasher) {
            hasher.value(&(self.0.len() as u64));
            for shard in self.0 {
                hasher.value(shard);
            }
        }
    }
    fingerprint(b"register_shards", &Manifest(shards))
}

/// Without a result as it was before there were any.
pub(crate) fn complete_run(run: RunId, result: Option<RunResult>) -> u64 {
    struct Completion(RunId, RunResult);
    impl CanonicalBytes for Completion {
        fn feed(&self, hasher: &mut CanonicalHasher) {
            hasher.value(&self.0).value(&self.1);
        }
    }
    match result {
        None => fingerprint(b"complete_run", &run),
        Some(result) => fingerprint(b"complete_run_with_result", &Completion(run, result)),
    }
}

pub(crate) fn fail_run(run: RunId) -> u64 {
    fingerprint(b"fail_run", &run)
}

pub(crate) fn cancel_run(run: RunId) -> u64 {
    fingerprint(b"cancel_run", &run)
}

fn fingerprint<const N: usize>(tag: &[u8; N], payload: &impl CanonicalBytes) -> u64 {
    thread_local! {
        // Making a hasher costs as much as hashing a cursor with it.
        static HASHER: RefCell<CanonicalHasher> = RefCell::new(CanonicalHasher::new(&OP_PAYLOAD_V1));
    }
    let hash =
        HASHER.with_borrow_mut(|hasher| hasher.reset().value(tag).value(payload).finish_u64());
    // Zero is reserved for "nothing was hashed".
    hash.max(1)
}

/// What a derived shard is to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DerivedShardKind {
    /// One of the shards that replace it.
    Child = 0,
    /// The shard that takes the rest of its range.
    Residual = 1,
}

/// The id of a shard that a split makes: the same for every execution of the same operation, with
/// bit 63 set.
///
/// `index` is the shard's place among all that its parent spawned, for children; residuals have
/// index 0, as their operation makes only one.
#[must_use]
pub fn derive_split_shard_id(
    run: RunId,
    parent: ShardId,
    op_id: OpId,
    kind: DerivedShardKind,
    index: u32,
) -> ShardId {
    ShardId::derived_from_raw(
        CanonicalHasher::new(&SPLIT_ID_V1)
            .value(&run)
            .value(&parent)
            .value(&op_id)
            .value(&(kind as u8))
            .value(&index)
            .finish_u64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gossip_contracts::coordination::ShardSpecRef;

    /// Stored in records: a changed line here breaks replay across an upgrade.
    #[test]
    fn golden_values() {
        let cursor = CursorUpdate::new(Some(b"key"), Some(b"token"));
        let (run, shard, op) = (RunId::from_raw(1), ShardId::from_raw(2), OpId::from_raw(3));
        let (left, right) =
            (ShardSpecRef::new(b"a", b"b", b"m"), ShardSpecRef::new(b"b", b"c", b""));
        let shown = [
            ("checkpoint", checkpoint(cursor)),
            ("complete", complete(cursor)),
            ("park", park(ParkReason::NotFound)),
            ("split_replace", split_replace(&SplitReplacePlan::new([left, right]))),
            ("split_residual", split_residual(&SplitResidualPlan::new(left, right))),
            ("unpark", unpark(ShardKey::new(run, shard))),
            ("register_shards", register_shards(&[InitialShardInput::new(shard, left, cursor)])),
            ("complete_run", complete_run(run, None)),
            ("fail_run", fail_run(run)),
            ("cancel_run", cancel_run(run)),
            ("child", derive_split_shard_id(run, shard, op, DerivedShardKind::Child, 0).as_raw()),
            (
                "residual",
                derive_split_shard_id(run, shard, op, DerivedShardKind::Residual, 0).as_raw(),
            ),
        ]
        .map(|(name, value)| format!("{name} {value:016x}\n"))
        .concat();
        assert_eq!(shown, include_str!("../tests/golden/payloads.txt"));
    }

    /// The operations that were added after the first format was written.
    #[test]
    fn golden_values_of_later_operations() {
        let cursor = CursorUpdate::new(Some(b"key"), Some(b"token"));
        let (run, result) = (RunId::from_raw(1), RunResult::from_bytes([7; 32]));
        let shown = [
            ("checkpoint_and_renew", checkpoint_and_renew(cursor)),
            ("complete_run_with_result", complete_run(run, Some(result))),
        ]
        .map(|(name, value)| format!("{name} {value:016x}\n"))
        .concat();
        assert_eq!(shown, include_str!("../tests/golden/payloads-2.txt"));
    }

    #[test]
    fn every_input_of_a_derived_id_counts() {
        let derive = |run, parent, op, kind, index| {
            derive_split_shard_id(
                RunId::from_raw(run),
                ShardId::from_raw(parent),
                OpId::from_raw(op),
                kind,
                index,
            )
        };
        let base = derive(1, 2, 3, DerivedShardKind::Child, 0);
        assert!(base.is_derived());
        for other in [
            derive(9, 2, 3, DerivedShardKind::Child, 0),
            derive(1, 9, 3, DerivedShardKind::Child, 0),
            derive(1, 2, 9, DerivedShardKind::Child, 0),
            derive(1, 2, 3, DerivedShardKind::Residual, 0),
            derive(1, 2, 3, DerivedShardKind::Child, 9),
        ] {
            assert_ne!(base, other);
        }
    }
}
