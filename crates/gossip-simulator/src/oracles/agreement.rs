//! S11: the reference model, written from the documents alone, gives the same answer.

use gossip_contracts::identity::{LogicalTime, ShardId, ShardKey, TenantId};

use super::{Observation, OracleResult, Violation, demand};
use crate::reference::{Bounds, ClaimAnswer, Reference};
use crate::simulated::Applicant;

const S11: &str = "S11 agreement";

pub(super) struct Agreement(Reference);

impl Agreement {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self(Reference::new(bounds))
    }

    pub(super) fn check(&mut self, seen: Observation<'_>) -> OracleResult {
        self.0.check(seen.now, seen.operation, seen.answer).map_err(|expected| Violation {
            oracle: S11,
            what: format!(
                "{:?} at {} was answered {:?}; the model says {expected:?}",
                seen.operation, seen.now, seen.answer
            ),
        })
    }

    pub(super) fn note_store_fails(&mut self, fails: bool) {
        self.0.hints_may_fail = fails;
    }

    pub(super) fn note_silence(&mut self) {
        self.0.end_silent_processes();
    }

    pub(super) fn check_claim(&mut self, claim: &Claim<'_>) -> OracleResult {
        let Claim { by: Applicant { now, tenant, run, worker }, answer, parked } = *claim;
        let judged = self.0.check_claim(now, tenant, run, worker, answer, parked);
        judged.map_err(|what| Violation {
            oracle: S11,
            what: format!("a claim of run {run} at {now} was answered {answer:?}: {what}"),
        })
    }

    pub(super) fn check_hint(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        hint: &gossip_coordination::CapacityHint,
    ) -> OracleResult {
        let judged = self.0.check_hint(now, tenant, key, *hint);
        demand(judged.is_ok(), S11, || format!("{hint:?}: {judged:?}"))
    }
}

/// A claim as a whole, for the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim<'o> {
    pub(crate) by: Applicant,
    pub(crate) answer: &'o ClaimAnswer,
    /// Poisoned shards that it parked on its way.
    pub(crate) parked: &'o [ShardId],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Answer, Operation};
    use crate::oracles::testing::*;
    use gossip_contracts::coordination::CursorSemantics;
    use gossip_contracts::identity::WorkerId;
    use gossip_coordination::{ClaimError, ShardLimits};

    #[test]
    fn an_answer_that_the_model_does_not_give_is_noticed() {
        let mut agreement =
            Agreement::new(Bounds::of_shards(ShardLimits { per_tenant: 10, global: 10 }));
        let config = gossip_coordination::RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: 50,
            max_shard_retries: TRIES,
        };
        let operation = Operation::CreateRun { tenant: tenant(1), run: RUN, config };
        let accepted = Answer::Accepted;
        let seen = |answer| Observation { now: at(50), operation: &operation, answer, events: &[] };
        assert_eq!(agreement.check(seen(&accepted)), Ok(()));
        assert_fires(agreement.check(seen(&accepted)), "S11");
        let (worker, parked) = (WorkerId::from_raw(1), &[][..]);
        let answer = Err(ClaimError::NoneAvailable { earliest_deadline: None });
        let (tenant, run) = (tenant(1), RUN);
        let by = Applicant { now: at(50), tenant, run, worker };
        let claim = Claim { by, answer: &answer, parked };
        assert_fires(agreement.check_claim(&claim), "S11");
    }
}
