//! A run with its shards, and the index that lets claims find work without looking for it.
//!
//! - A1: every active shard is in one place: the list `free` if nobody was granted it, else the heap
//!   `leased`.
//! - A2: `leased` is ordered by deadline, so an expired lease is at its front.
//! - A3: settled shards are in neither.

use gossip_contracts::identity::{LogicalTime, ShardId, ShardKey, TenantId, WorkerId};
use gossip_stdx::{ByteSlab, SlabFull};
use hashbrown::HashMap;

use super::deadlines::Deadlines;
use super::list::{Link, List};
use super::shard::Shard;
use crate::lease::Takeover;
use crate::record::{Availability, ShardRecordView, ShardUpdate};
use crate::run::{RunProgress, RunRecord};
use crate::scratch::CapacityHint;

#[derive(Debug)]
pub(super) struct Run {
    pub(super) record: RunRecord,
    pub(super) progress: RunProgress,
    by_id: HashMap<ShardId, u32>,
    shards: Vec<Shard>,
    /// One for each shard.
    links: Vec<Link>,
    free: List,
    leased: Deadlines,
    /// Workers that look for work in vain, and until when that counts.
    pub(super) idle: HashMap<WorkerId, LogicalTime>,
}

impl Run {
    pub(super) fn new(record: RunRecord) -> Self {
        Self {
            record,
            progress: RunProgress::default(),
            by_id: HashMap::new(),
            shards: Vec::new(),
            links: Vec::new(),
            free: List::EMPTY,
            leased: Deadlines::default(),
            idle: HashMap::new(),
        }
    }

    /// Gives the slab back what the run's shards took; how many they were.
    pub(super) fn release(self, slab: &mut ByteSlab) -> usize {
        let count = self.shards.len();
        self.shards.into_iter().for_each(|shard| shard.release(slab));
        count
    }

    pub(super) fn find(&self, shard: ShardId) -> Option<u32> {
        self.by_id.get(&shard).copied()
    }

    pub(super) fn view<'s>(&'s self, index: u32, slab: &'s ByteSlab) -> ShardRecordView<'s> {
        let shard = &self.shards[index as usize];
        let key = ShardKey::new(self.record.run, shard.id);
        shard.view(self.record.tenant, key, self.record.config.cursor_semantics, slab)
    }

    /// All shards in id order.
    pub(super) fn views<'s>(
        &'s self,
        slab: &'s ByteSlab,
    ) -> impl Iterator<Item = ShardRecordView<'s>> {
        let mut order: Vec<u32> = (0..self.shards.len() as u32).collect();
        order.sort_unstable_by_key(|&index| self.shards[index as usize].id);
        order.into_iter().map(|index| self.view(index, slab))
    }

    /// Makes room for shards that are about to be added, so that adding cannot fail half-way.
    pub(super) fn reserve(&mut self, additional: usize) {
        self.shards.reserve(additional);
        self.links.reserve(additional);
        self.by_id.reserve(additional);
        self.leased.reserve(additional);
    }

    pub(super) fn add(&mut self, shard: Shard) {
        let index = u32::try_from(self.shards.len()).expect("a run has fewer than 2^32 shards");
        let previous = self.by_id.insert(shard.id, index);
        assert!(previous.is_none(), "shard {} was added twice", shard.id);
        self.progress.add(shard.state.status);
        self.shards.push(shard);
        self.links.push(Link::UNLINKED);
        self.leased.add_shard();
        self.enlist(index);
    }

    /// Carries out a decision; changes nothing when its bytes do not fit.
    pub(super) fn apply(
        &mut self,
        index: u32,
        slab: &mut ByteSlab,
        update: &ShardUpdate<'_>,
    ) -> Result<(), SlabFull> {
        let before = self.shards[index as usize].state;
        self.shards[index as usize].apply(slab, update)?;
        if before.status != update.state.status {
            self.progress.remove(before.status);
            self.progress.add(update.state.status);
        }
        if before.availability() != update.state.availability() {
            match before.availability() {
                Availability::Now => self.free.remove(&mut self.links, index),
                Availability::From(_) => self.leased.remove(index),
                Availability::Never => {}
            }
            self.enlist(index);
        }
        Ok(())
    }

    fn enlist(&mut self, index: u32) {
        match self.shards[index as usize].state.availability() {
            Availability::Now => self.free.push_back(&mut self.links, index),
            Availability::From(deadline) => self.leased.insert(index, deadline),
            Availability::Never => {}
        }
    }

    /// Shards that could be acquired at `now`: first one whose worker is gone, then those that have
    /// waited longest.
    pub(super) fn claimable(
        &self,
        now: LogicalTime,
        takeover: Takeover,
    ) -> impl Iterator<Item = ShardId> {
        let expired = self.first_expired(now, takeover);
        let free = self.free.iter(&self.links);
        expired.into_iter().chain(free).map(|index| self.shards[index as usize].id)
    }

    /// The shard whose lease ends first, if that keeps nobody out any more.
    fn first_expired(&self, now: LogicalTime, takeover: Takeover) -> Option<u32> {
        let (_, index) = self.leased.first()?;
        self.shards[index as usize].state.is_available_at(now, takeover).then_some(index)
    }

    /// A shard that `worker` was granted and has neither released nor lost. Looks at leases only.
    pub(super) fn owned_by(&self, worker: WorkerId) -> Option<ShardId> {
        let mut leased = self.leased.iter().map(|index| &self.shards[index as usize]);
        let is_own = |shard: &&Shard| shard.state.lease.is_some_and(|held| held.owner() == worker);
        leased.find(is_own).map(|shard| shard.id)
    }

    /// Workers that look for work in vain.
    pub(super) fn idle(&self, now: LogicalTime) -> u32 {
        self.idle.values().filter(|&&until| now < until).count() as u32
    }

    /// When the first of the shards that are held is free for others.
    pub(super) fn earliest_deadline(&self, takeover: Takeover) -> Option<LogicalTime> {
        self.leased.first().map(|(deadline, _)| takeover.free_from(deadline))
    }

    pub(super) fn capacity(&self, now: LogicalTime, takeover: Takeover) -> CapacityHint {
        let earliest_deadline = self.earliest_deadline(takeover);
        let some_expired = self.first_expired(now, takeover).is_some();
        CapacityHint {
            available_count: self.free.len().saturating_add(u32::from(some_expired)),
            earliest_deadline,
            is_estimate: some_expired,
        }
    }

    /// Panics unless the index and the counts say what the shards say.
    pub(super) fn assert_index(&self, tenant: TenantId) {
        assert!(self.record.tenant == tenant, "a run is kept under another tenant");
        let mut progress = RunProgress::default();
        let (mut free, mut leased) = (0, 0);
        for (index, shard) in self.shards.iter().enumerate() {
            assert!(
                self.by_id.get(&shard.id) == Some(&(index as u32)),
                "{} is misplaced",
                shard.id
            );
            progress.add(shard.state.status);
            match shard.state.availability() {
                Availability::Now => free += 1,
                Availability::From(_) => leased += 1,
                Availability::Never => {}
            }
        }
        assert!(progress == self.progress, "counted {progress:?}, kept {:?}", self.progress);
        assert!(self.by_id.len() == self.shards.len(), "an id names no shard");
        let listed: Vec<u32> = self.free.iter(&self.links).collect();
        assert!(listed.len() == free && free == self.free.len() as usize, "A1: {free} free shards");
        for index in listed {
            assert!(self.shards[index as usize].state.availability() == Availability::Now, "A1");
        }
        assert!(leased == self.leased.len(), "A1: {leased} leased shards");
        self.leased.assert_ordered(|index| {
            match self.shards[index as usize].state.availability() {
                Availability::From(deadline) => deadline,
                _ => panic!("A1: a shard without a lease is among the leased"),
            }
        });
    }
}
