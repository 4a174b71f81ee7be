//! S14: a session knows what its worker was told: the shard as it was granted, less what it gave away
//! since, when its lease ends, and what else there is to do.

use gossip_contracts::identity::{LogicalTime, ShardId};
use gossip_coordination::{AcquireResultView, CapacityHint, CoordinationBackend, WorkerSession};

use super::{OracleResult, demand};
use crate::op::OwnedRange;
use crate::wire::Grant;

const S14: &str = "S14 session";

/// What a worker was told, all in all.
#[derive(Debug)]
pub(crate) struct Told(Grant);

impl Told {
    pub(crate) const fn of(grant: Grant) -> Self {
        Self(grant)
    }

    /// A renewal was heard, or a checkpoint that renewed; maybe again.
    pub(crate) fn renewed(&mut self, new_deadline: LogicalTime, capacity: CapacityHint) {
        let lease = &mut self.0.acquired.lease;
        lease.set_deadline(new_deadline.max(lease.deadline()));
        self.0.capacity = capacity;
    }

    /// A residual split was heard, maybe again, when a later one had taken more.
    pub(crate) fn split(&mut self, kept: &OwnedRange, residual: ShardId) {
        let acquired = &mut *self.0.acquired;
        if kept.end[..] < acquired.range.end[..] {
            acquired.range = kept.clone();
        }
        if !acquired.spawned.contains(&residual) {
            acquired.spawned.push(residual);
        }
    }

    pub(crate) fn check<B: CoordinationBackend>(
        &self,
        session: &WorkerSession<'_, B>,
    ) -> OracleResult {
        let (lease, capacity) = (*session.lease(), session.capacity());
        let snapshot = session.initial_snapshot();
        self.compare(&Grant::of(&AcquireResultView { lease, snapshot, capacity }))
    }

    fn compare(&self, session: &Grant) -> OracleResult {
        demand(self.0 == *session, S14, || {
            format!("a worker was told {:?}, its session says {session:?}", self.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Acquired, Answer, OwnedCursor};
    use crate::oracles::testing::*;

    const HINT: CapacityHint =
        CapacityHint { available_count: 2, earliest_deadline: None, is_estimate: false };

    fn grant(change: impl FnOnce(&mut Acquired)) -> Grant {
        let Answer::Acquired(mut acquired) = acquired(lease(1, 2, 100), OwnedCursor::default())
        else {
            unreachable!("it is an acquired shard")
        };
        change(&mut acquired);
        Grant { acquired, capacity: HINT }
    }

    #[test]
    fn a_session_that_differs_in_anything_from_what_was_granted_is_noticed() {
        let told = Told::of(grant(|_| {}));
        assert_eq!(told.compare(&grant(|_| {})), Ok(()));
        let changes: [fn(&mut Acquired); 7] = [
            |it| it.lease.set_deadline(at(101)),
            |it| it.range.metadata = b"other"[..].into(),
            |it| it.range.end = range(0, 9).end,
            |it| it.cursor = cursor(1),
            |it| it.parent = Some(KEY.shard),
            |it| it.spawned.push(KEY.shard),
            |it| it.status = gossip_coordination::ShardStatus::Done,
        ];
        for change in changes {
            assert_fires(told.compare(&grant(change)), "S14");
        }
        let other =
            Grant { capacity: CapacityHint { available_count: 3, ..HINT }, ..grant(|_| {}) };
        assert_fires(told.compare(&other), "S14");
    }

    #[test]
    fn a_session_that_missed_its_renewal_is_noticed() {
        let mut told = Told::of(grant(|_| {}));
        told.renewed(at(150), HINT);
        assert_fires(told.compare(&grant(|_| {})), "S14");
        assert_eq!(told.compare(&grant(|it| it.lease.set_deadline(at(150)))), Ok(()));
    }

    #[test]
    fn a_session_that_is_wider_or_narrower_than_what_was_kept_is_noticed() {
        let (first, second) = (ShardId::derived_from_raw(1), ShardId::derived_from_raw(2));
        let mut told = Told::of(grant(|_| {}));
        told.split(&range(0, 8), first);
        told.split(&range(0, 5), second);
        told.split(&range(0, 8), first);
        let left = |end, spawned: &[ShardId]| {
            grant(|it| (it.range, it.spawned) = (range(0, end), spawned.to_vec()))
        };
        assert_eq!(told.compare(&left(5, &[first, second])), Ok(()));
        assert_fires(told.compare(&left(8, &[first, second])), "S14");
        assert_fires(told.compare(&left(10, &[first, second])), "S14");
        assert_fires(told.compare(&left(5, &[first])), "S14");
    }
}
