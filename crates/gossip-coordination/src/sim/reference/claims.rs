//! Claims: which shard a claim gets is the backend's choice; that it was free is not.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId, WorkerId};

use super::Reference;
use crate::error::ClaimError;
use crate::run::RunStatus;
use crate::scratch::CapacityHint;

impl Reference {
    /// Whether a claim was right to try `shard`, before that acquire is taken in.
    pub(in crate::sim) fn check_claimed(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        shard: ShardId,
    ) -> Result<(), String> {
        if let Some(refusal) = self.refusal_of_claim(now, tenant, run, worker) {
            return Err(refusal.to_string());
        }
        let found = self.runs[&(tenant, run)].shards.get(&shard);
        let is_free = found.is_some_and(|shard| shard.is_free_at(now));
        expect(is_free, || format!("shard {shard} is not free"))
    }

    /// Whether a claim was right to end with `refusal`, after the acquires that it tried.
    pub(in crate::sim) fn check_empty_claim(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        refusal: &ClaimError,
    ) -> Result<(), String> {
        let expected = match self.refusal_of_claim(now, tenant, run, worker) {
            Some(expected) => expected,
            None => {
                let run = &self.runs[&(tenant, run)];
                if let Some((id, _)) = run.shards.iter().find(|(_, shard)| shard.is_free_at(now)) {
                    return Err(format!("shard {id} is free"));
                }
                let earliest_deadline = run.earliest_deadline(now);
                if self.claim_cooldown > 0 {
                    let until = LogicalTime::from_raw(now.as_raw() + self.claim_cooldown);
                    self.cooldowns.insert((tenant, worker), until);
                }
                ClaimError::NoneAvailable { earliest_deadline }
            }
        };
        expect(*refusal == expected, || format!("{expected} was expected"))
    }

    /// Why no claim of `worker` gets anything, whatever is free.
    fn refusal_of_claim(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Option<ClaimError> {
        match self.runs.get(&(tenant, run)).map(|run| run.status) {
            None => return Some(ClaimError::RunNotFound),
            Some(RunStatus::Active) => {}
            Some(status) => return Some(ClaimError::RunNotActive { run, status }),
        }
        let until = *self.cooldowns.get(&(tenant, worker))?;
        // A wait that is longer than the cooldown was noted before the clock stepped back.
        if now < until && until.as_raw() <= now.as_raw() + self.claim_cooldown {
            return Some(ClaimError::Throttled { retry_after: until });
        }
        self.cooldowns.remove(&(tenant, worker));
        None
    }

    /// Whether a hint about other work was right: an exact one says what there is, an estimate
    /// promises no more.
    pub(in crate::sim) fn check_hint(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        hint: CapacityHint,
    ) -> Result<(), String> {
        let run = &self.runs[&(tenant, run)];
        let free = run.shards.values().filter(|shard| shard.is_free_at(now)).count();
        let first = run.earliest_deadline(now);
        let promised = hint.available_count as usize;
        let right = if hint.is_estimate {
            promised <= free
        } else {
            promised == free && hint.earliest_deadline == first
        };
        expect(right, || format!("{free} shards are free and the first lease ends {first:?}"))
    }
}

fn expect(right: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if right { Ok(()) } else { Err(otherwise()) }
}
