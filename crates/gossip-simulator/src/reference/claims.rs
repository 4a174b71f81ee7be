//! Claims: which of the free shards a claim gets, and which poisoned ones it parks on its way.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{CapacityHint, ClaimError, ParkReason, RunStatus, ShardStatus};

use super::Reference;
use super::state::Shard;
use crate::op::{Acquired, Answer, Operation};

/// What a claim was answered.
pub type ClaimAnswer = Result<Box<Acquired>, ClaimError>;

impl Reference {
    /// Whether a backend was right to answer a claim with `actual`; if not, why.
    ///
    /// A claim takes the shard whose turn it is, and parks the poisoned ones before it. Of leases
    /// that ended together the backend may take any, and of all where it keeps no order: `parked`
    /// lists what it parked.
    pub fn check_claim(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        actual: &ClaimAnswer,
        parked: &[ShardId],
    ) -> Result<(), String> {
        let status = self.runs.get(&(tenant, run)).map(|run| run.status);
        match (status, actual) {
            (None, Err(ClaimError::RunNotFound)) => return Ok(()),
            (None, _) => return Err("there is no such run".into()),
            (Some(RunStatus::Active), _) => {}
            (Some(status), actual) => {
                let expected = ClaimError::RunNotActive { run, status };
                return expect(actual.as_ref().err() == Some(&expected), || expected.to_string());
            }
        }
        if let Some(&until) = self.cooldowns.get(&(tenant, worker)) {
            // A wait that is longer than the cooldown was noted before the clock stepped back.
            if now < until
                && until.as_raw() <= now.as_raw().saturating_add(self.bounds.claim_cooldown)
            {
                let expected = ClaimError::Throttled { retry_after: until };
                return expect(actual.as_ref().err() == Some(&expected), || expected.to_string());
            }
            self.cooldowns.remove(&(tenant, worker));
        }
        let (free, poisoned) = self.claimable(now, tenant, run, worker);
        match actual {
            Ok(acquired) => {
                let shard = acquired.lease.shard();
                expect(free.contains(&shard), || format!("shard {shard} is not free"))?;
                let turn = |id: ShardId| self.runs[&(tenant, run)].shards[&id].turn();
                let (own, first) = (turn(shard), free.iter().copied().min_by_key(|&id| turn(id)));
                let in_turn = self.bounds.claims_in_turn;
                expect(!in_turn || first.is_some_and(|first| turn(first) == own), || {
                    format!("it is the turn of {first:?}, not of {shard}")
                })?;
                let fits = |&id: &ShardId| match parked.contains(&id) {
                    _ if !in_turn => true,
                    true => turn(id) <= own,
                    false => turn(id) >= own,
                };
                expect(poisoned.iter().all(fits), || {
                    format!("on the way through {poisoned:?} to {shard} it parked {parked:?}")
                })?;
                for id in poisoned.into_iter().filter(|id| parked.contains(id)) {
                    self.poison(tenant, run, id);
                }
                let key = ShardKey::new(run, shard);
                let expected = self.answer(now, &Operation::Acquire { tenant, key, worker });
                let right = matches!(&expected, Answer::Acquired(model) if model == acquired);
                expect(right, || format!("the claim should have got {expected:?}"))
            }
            Err(ClaimError::NoneAvailable { earliest_deadline }) => {
                expect(free.is_empty(), || format!("shards {free:?} are free"))?;
                poisoned.iter().for_each(|&id| self.poison(tenant, run, id));
                let first = self.runs[&(tenant, run)].earliest_deadline(now);
                expect(*earliest_deadline == first, || format!("the first lease ends {first:?}"))?;
                if self.bounds.claim_cooldown > 0 {
                    let until = LogicalTime::from_raw(
                        now.as_raw().saturating_add(self.bounds.claim_cooldown),
                    );
                    self.cooldowns.insert((tenant, worker), until);
                }
                Ok(())
            }
            Err(error) => Err(format!("a claim in an active run was refused: {error}")),
        }
    }

    /// Whether a hint about other work that goes with a grant or renewal of `key` was right: it says
    /// what there is. Only how many leases are over it need not know, once one is; and of a large run it
    /// may know the part in which the shard itself lies.
    pub fn check_hint(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        hint: CapacityHint,
    ) -> Result<(), String> {
        let run = &self.runs[&(tenant, key.run)];
        let free = || run.shards.values().filter(|shard| shard.is_free_at(now));
        let over = free().filter(|shard| shard.holder.is_some()).count();
        let free = free().count();
        let first =
            run.shards.values().filter_map(|shard| shard.holder).map(|it| it.keeps_until).min();
        let promised = hint.available_count as usize;
        let right = match over {
            0 => promised == free && !hint.is_estimate,
            _ => promised > free - over && promised <= free && hint.is_estimate,
        } && hint.earliest_deadline == first;
        let ends =
            |end| run.shards.values().filter_map(|it| it.holder).any(|it| it.keeps_until == end);
        let own = run.shards.get(&key.shard).and_then(|it| it.holder).map(|it| it.keeps_until);
        let of_own_part = match (hint.earliest_deadline, own) {
            (Some(end), own) => ends(end) && own.is_none_or(|own| end <= own),
            (None, own) => own.is_none(),
        };
        let is_of_part = run.shards.len() > self.bounds.hints_of_all_max
            && hint.is_estimate
            && promised <= free
            && of_own_part;
        expect(right || is_of_part, || {
            format!("{free} shards are free and the first lease ends {first:?}")
        })
    }

    /// The shards that a claim may get, and those that it would park instead. A shard that its own
    /// worker holds is neither.
    fn claimable(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> (Vec<ShardId>, Vec<ShardId>) {
        let run = &self.runs[&(tenant, run)];
        let tries = |id: &ShardId| run.shards[id].tries;
        let is_own = |shard: &Shard| shard.held_at(now).is_some_and(|held| held.owner == worker);
        let unheld = run.shards.iter().filter(|(_, shard)| {
            let is_active = shard.status == ShardStatus::Active;
            is_active && shard.kept_from(worker, now).is_none() && !is_own(shard)
        });
        unheld.map(|(&id, _)| id).partition(|id| tries(id) < run.config.max_shard_retries)
    }

    fn poison(&mut self, tenant: TenantId, run: RunId, id: ShardId) {
        let run = self.runs.get_mut(&(tenant, run)).expect("the claim looked at this run");
        let shard = run.shards.get_mut(&id).expect("the claim looked at this shard");
        assert_eq!(shard.status, ShardStatus::Active, "only active shards are claimable");
        shard.park(ParkReason::Poisoned);
    }
}

fn expect(right: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if right { Ok(()) } else { Err(otherwise()) }
}
