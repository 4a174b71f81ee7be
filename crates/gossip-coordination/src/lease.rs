//! Leases: who may work on a shard, and until when.
//!
//! - L1: a lease is live in `now < deadline` and over from `deadline` on.
//! - L2: renewing never shortens a lease.
//! - L3: a lease keeps other workers out while it is live, and then for as long as clocks may differ;
//!   not at all once its holder is known to be gone.

use core::fmt;

use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId,
};

/// The capability that an acquire returns and every worker's operation presents.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    tenant: TenantId,
    key: ShardKey,
    owner: WorkerId,
    fence: FenceEpoch,
    deadline: LogicalTime,
}

impl Lease {
    /// A lease. Workers receive theirs from a coordinator; only backends and tests make them.
    ///
    /// # Panics
    /// If `fence` is below [`FenceEpoch::INITIAL`] or `deadline` is [`LogicalTime::ZERO`].
    #[must_use]
    pub fn new(
        tenant: TenantId,
        key: ShardKey,
        owner: WorkerId,
        fence: FenceEpoch,
        deadline: LogicalTime,
    ) -> Self {
        assert!(fence >= FenceEpoch::INITIAL, "a lease needs a fence epoch, not {fence}");
        assert!(deadline > LogicalTime::ZERO, "a lease needs a deadline");
        Self { tenant, key, owner, fence, deadline }
    }

    /// Whose shard it is.
    #[must_use]
    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// The shard that the lease is for.
    #[must_use]
    pub const fn key(&self) -> ShardKey {
        self.key
    }

    /// The run of the leased shard.
    #[must_use]
    pub const fn run(&self) -> RunId {
        self.key.run
    }

    /// The leased shard's id in its run.
    #[must_use]
    pub const fn shard(&self) -> ShardId {
        self.key.shard
    }

    /// The worker that holds it.
    #[must_use]
    pub const fn owner(&self) -> WorkerId {
        self.owner
    }

    /// The fence; every later holder has a greater one.
    #[must_use]
    pub const fn fence(&self) -> FenceEpoch {
        self.fence
    }

    /// When it ends (L1).
    #[must_use]
    pub const fn deadline(&self) -> LogicalTime {
        self.deadline
    }

    /// Takes over the deadline of a renewal.
    ///
    /// # Panics
    /// If `deadline` lies before the current one (L2).
    pub fn set_deadline(&mut self, deadline: LogicalTime) {
        assert!(
            deadline >= self.deadline,
            "a renewal moved a deadline from {} back to {deadline}",
            self.deadline
        );
        self.deadline = deadline;
    }
}

/// The owner stays out: logs are read by more people than may know who works where.
impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("tenant", &self.tenant)
            .field("key", &self.key)
            .field("owner", &format_args!("<redacted>"))
            .field("fence", &self.fence)
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// The part of a lease that the shard's record keeps. One value, so that an owner without a
/// deadline cannot be written down.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseHolder {
    owner: WorkerId,
    deadline: LogicalTime,
}

impl LeaseHolder {
    /// A holder.
    ///
    /// # Panics
    /// If `deadline` is [`LogicalTime::ZERO`].
    #[must_use]
    pub fn new(owner: WorkerId, deadline: LogicalTime) -> Self {
        assert!(deadline > LogicalTime::ZERO, "a lease needs a deadline");
        Self { owner, deadline }
    }

    /// The worker that holds the shard.
    #[must_use]
    pub const fn owner(&self) -> WorkerId {
        self.owner
    }

    /// When the lease ends (L1).
    #[must_use]
    pub const fn deadline(&self) -> LogicalTime {
        self.deadline
    }

    /// L1.
    #[must_use]
    pub fn is_live_at(&self, now: LogicalTime) -> bool {
        now < self.deadline
    }

    /// L3: until [`Takeover::free_from`], unless the holder is gone.
    #[must_use]
    pub fn keeps_others_out_at(&self, now: LogicalTime, takeover: Takeover) -> bool {
        !takeover.holder_is_gone && now < takeover.free_from(self.deadline)
    }
}

/// What a backend knows about a shard's holder beyond the shard's record: when another worker may
/// take the shard over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Takeover {
    /// The holder of the lease in the record is known to be gone: the key that vanishes with it has
    /// vanished, say. As of the view from which the record was read.
    pub holder_is_gone: bool,
    /// How far the clocks of workers may differ, in milliseconds: for so long after its deadline a
    /// lease keeps other workers out. The holder itself stops at the deadline.
    pub skew_allowance: u64,
}

impl Takeover {
    /// When the deadline has passed, where all workers have one clock.
    pub const AT_DEADLINE: Self = Self { holder_is_gone: false, skew_allowance: 0 };

    /// L3: from when on others may take a shard whose lease ends at `deadline` and whose holder is
    /// not known to be gone.
    #[must_use]
    pub fn free_from(self, deadline: LogicalTime) -> LogicalTime {
        deadline.checked_add(self.skew_allowance).unwrap_or(LogicalTime::from_raw(u64::MAX))
    }
}

impl fmt::Debug for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseHolder")
            .field("owner", &format_args!("<redacted>"))
            .field("deadline", &self.deadline)
            .finish()
    }
}

/// Who owns a shard, by itself: what a store keeps under a key that vanishes with its owner, beside
/// the shard's record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnerRecord {
    worker: WorkerId,
    fence: FenceEpoch,
}

impl OwnerRecord {
    /// An owner.
    ///
    /// # Panics
    /// If `fence` is below [`FenceEpoch::INITIAL`].
    #[must_use]
    pub fn new(worker: WorkerId, fence: FenceEpoch) -> Self {
        assert!(fence >= FenceEpoch::INITIAL, "an owner needs a fence epoch, not {fence}");
        Self { worker, fence }
    }

    /// The worker that holds the shard.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The fence under which it acquired the shard.
    #[must_use]
    pub const fn fence(&self) -> FenceEpoch {
        self.fence
    }
}

impl fmt::Debug for OwnerRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnerRecord")
            .field("worker", &format_args!("<redacted>"))
            .field("fence", &self.fence)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(fence: u64, deadline: u64) -> Lease {
        Lease::new(
            TenantId::from_bytes([1; 32]),
            ShardKey::new(RunId::from_raw(1), ShardId::from_raw(2)),
            WorkerId::from_raw(777_777),
            FenceEpoch::from_raw(fence),
            LogicalTime::from_raw(deadline),
        )
    }

    #[test]
    fn a_lease_is_over_at_its_deadline() {
        let holder = LeaseHolder::new(WorkerId::from_raw(1), LogicalTime::from_raw(10));
        assert!(holder.is_live_at(LogicalTime::from_raw(9)));
        assert!(!holder.is_live_at(LogicalTime::from_raw(10)));
    }

    #[test]
    fn a_lease_keeps_others_out_until_no_clock_may_take_it_for_live() {
        let holder = LeaseHolder::new(WorkerId::from_raw(1), LogicalTime::from_raw(10));
        let out = |now, holder_is_gone, skew_allowance| {
            let takeover = Takeover { holder_is_gone, skew_allowance };
            holder.keeps_others_out_at(LogicalTime::from_raw(now), takeover)
        };
        assert!(out(9, false, 0) && !out(10, false, 0));
        assert!(out(14, false, 5) && !out(15, false, 5));
        assert!(!out(1, true, 0) && !out(12, true, 5));
        // An allowance beyond all times: until the last of them.
        assert!(out(u64::MAX - 1, false, u64::MAX) && !out(u64::MAX, false, u64::MAX));
    }

    #[test]
    #[should_panic(expected = "fence epoch")]
    fn a_lease_without_a_fence_is_a_bug() {
        let _ = lease(0, 10);
    }

    #[test]
    #[should_panic(expected = "deadline")]
    fn a_lease_without_a_deadline_is_a_bug() {
        let _ = lease(1, 0);
    }

    #[test]
    #[should_panic(expected = "deadline")]
    fn a_holder_without_a_deadline_is_a_bug() {
        let _ = LeaseHolder::new(WorkerId::from_raw(1), LogicalTime::ZERO);
    }

    #[test]
    fn a_deadline_may_stay_or_move_forward() {
        let mut lease = lease(1, 10);
        lease.set_deadline(LogicalTime::from_raw(10));
        lease.set_deadline(LogicalTime::from_raw(11));
        assert_eq!(lease.deadline(), LogicalTime::from_raw(11));
    }

    #[test]
    #[should_panic(expected = "back to 9")]
    fn a_deadline_never_moves_back() {
        lease(1, 10).set_deadline(LogicalTime::from_raw(9));
    }

    #[test]
    #[should_panic(expected = "fence epoch")]
    fn an_owner_without_a_fence_is_a_bug() {
        let _ = OwnerRecord::new(WorkerId::from_raw(1), FenceEpoch::ZERO);
    }

    #[test]
    fn debug_hides_the_owner() {
        let worker = WorkerId::from_raw(777_777);
        let holder = LeaseHolder::new(worker, LogicalTime::from_raw(10));
        let owner = OwnerRecord::new(worker, FenceEpoch::INITIAL);
        for shown in [format!("{:?}", lease(1, 10)), format!("{holder:?}"), format!("{owner:?}")] {
            assert!(shown.contains("<redacted>") && !shown.contains("777777"), "{shown}");
        }
    }
}
