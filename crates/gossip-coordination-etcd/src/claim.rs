//! Claims: some shard of a run that is free, found in one bounded page of its lists.
//!
//! A worker begins to look at a place of its own, so that workers rarely want the same shard. Shards
//! whose leases are over come first in their list, and so do those of processes that died: whoever
//! lives renews, and moves to the end.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId, WorkerId};
use gossip_coordination::codec::decode_gate;
use gossip_coordination::{ClaimCandidates, GetRunError, InfraError, RunStatus};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{damaged, steps};
use crate::keyspace::{RunKeys, deadline_of};
use crate::kv::{Kv, Read, Txn};
use crate::limits::CLAIM_PAGE;
use crate::runs::shard_ids;
use crate::shards::Stored;

impl<K: Kv> AsyncEtcdCoordinator<K> {
    pub(crate) async fn collect_candidates(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        let step = steps!("collect_claim_candidates").load;
        out.clear();
        let keys = self.keyspace.run(tenant, run);
        let from = keys.free_from(worker);
        // A lease keeps others out for as long as clocks may differ.
        let over = now.as_raw().saturating_sub(self.config.skew_allowance_ms());
        let reads = [
            Read::key(&keys.gate()),
            Read::first_keys(keys.held_until(LogicalTime::from_raw(over)), ClaimCandidates::MAX),
            Read::first_keys(keys.free().from(from.clone()), ClaimCandidates::MAX),
            Read::first_keys(keys.free().until(from), ClaimCandidates::MAX),
            Read::first_keys(keys.held(), CLAIM_PAGE),
        ];
        let answer = self.read(step, Txn::reads(reads)).await?;
        let [gate, over, here, before, held] = &answer.found[..] else {
            unreachable!("five reads have five answers")
        };
        let gate = Stored::of(gate);
        if !gate.exists() {
            return Err(GetRunError::RunNotFound);
        }
        let gate = decode_gate(&gate.bytes).map_err(|error| damaged(step, &keys.gate(), &error))?;
        out.status = gate.gate.status;
        out.earliest_deadline = held.entries.first().and_then(|entry| deadline_of(&entry.key));
        if out.status != RunStatus::Active {
            return Ok(());
        }
        let found = [over, here, before].into_iter().flat_map(shard_ids);
        out.shards.extend(found.take(ClaimCandidates::MAX));
        if out.shards.is_empty() {
            let ownerless = self.ownerless(step, &keys, worker, &shard_ids(held)).await?;
            out.shards.extend(ownerless.into_iter().take(ClaimCandidates::MAX));
        }
        Ok(())
    }

    /// Those of `held` whose owner keys are gone, and which the worker does not hold itself.
    async fn ownerless(
        &self,
        step: &'static str,
        keys: &RunKeys,
        worker: WorkerId,
        held: &[ShardId],
    ) -> Result<Vec<ShardId>, InfraError> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let own = held.iter().map(|&shard| Read::key(&keys.held_by(worker, shard)));
        let owners = held.iter().map(|&shard| Read::key(&keys.owner(shard)));
        let answer = self.read(step, Txn::reads(own.chain(owners))).await?;
        let (own, owners) = answer.found.split_at(held.len());
        let gone = held.iter().zip(own).zip(owners);
        let gone = gone.filter(|((_, own), owner)| own.count == 0 && owner.count == 0);
        Ok(gone.map(|((&shard, _), _)| shard).collect())
    }
}
