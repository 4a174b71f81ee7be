//! S7: no tenant sees or changes what is another's. Tenants here have the same run, shard and
//! operation numbers, so that a look-up that forgets the tenant finds something.

use gossip_coordination::{RunRecord, ShardRecordView};

use super::ledger::{Ledger, Run, Shard};
use super::{Observation, OracleResult, Violation, demand};
use crate::op::{Answer, Operation, Refusal};

const S7: &str = "S7 tenants";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let Observation { operation, answer, .. } = seen;
    let tenant = operation.tenant();
    demand(seen.events.iter().all(|event| event.tenant == tenant), S7, || {
        format!("{operation:?} told of another tenant: {:?}", seen.events)
    })?;
    if operation.lease().is_some_and(|lease| lease.tenant() != tenant) {
        let mismatch = Answer::Refused(Refusal::TenantMismatch { expected: tenant });
        return demand(*answer == mismatch, S7, || {
            format!("a lease of another tenant was answered {answer:?}")
        });
    }
    let (known, missing) = match operation.run() {
        Some((tenant, run)) => (ledger.run(tenant, run).is_some(), Refusal::RunNotFound),
        None => (ledger.subject(operation).is_some(), Refusal::ShardNotFound),
    };
    if known || matches!(operation, Operation::CreateRun { .. }) {
        return Ok(());
    }
    demand(*answer == Answer::Refused(missing), S7, || {
        format!("the tenant has none such, but {operation:?} was answered {answer:?}")
    })
}

/// The shard in the ledger that a record is of.
pub(super) fn inspect<'l>(
    ledger: &'l Ledger,
    record: &ShardRecordView<'_>,
) -> Result<&'l Shard, Violation> {
    ledger.shard(record.tenant, record.key).ok_or_else(|| Violation {
        oracle: S7,
        what: format!("{} of {} is stored, and nobody made it", record.key, record.tenant),
    })
}

/// The run in the ledger that a record is of.
pub(super) fn inspect_run<'l>(
    ledger: &'l Ledger,
    record: &RunRecord,
) -> Result<&'l Run, Violation> {
    ledger.run(record.tenant, record.run).ok_or_else(|| Violation {
        oracle: S7,
        what: format!("run {} of {} is stored, and nobody made it", record.run, record.tenant),
    })
}

/// All that was made is there; what is there was made ([`inspect`]).
pub(super) fn inspect_counts(ledger: &Ledger, runs: usize, shards: usize) -> OracleResult {
    let made = ledger.counts();
    demand(made == (runs, shards), S7, || {
        format!("{runs} runs and {shards} shards are stored; {made:?} were made")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Effect;
    use crate::oracles::testing::*;
    use gossip_coordination::EventKind;

    #[test]
    fn a_lease_of_another_tenant_that_is_answered_is_noticed() {
        let ledger = Ledger::example();
        let (lease, op_id) = (lease(1, 2, 100), op(2));
        let crossing = Operation::Checkpoint {
            tenant: tenant(2),
            lease,
            cursor: cursor(3),
            renews: false,
            op_id,
        };
        assert_fires(judged(check, &ledger, &crossing, &Answer::Replayed(Effect::Nothing)), "S7");
        assert_fires(
            judged(check, &ledger, &crossing, &Answer::Refused(Refusal::ShardNotFound)),
            "S7",
        );
        let mismatch = Answer::Refused(Refusal::TenantMismatch { expected: tenant(2) });
        assert_eq!(judged(check, &ledger, &crossing, &mismatch), Ok(()));
    }

    #[test]
    fn what_the_tenant_does_not_have_is_not_answered() {
        let ledger = Ledger::example();
        let get = Operation::GetRunProgress { tenant: tenant(2), run: RUN };
        assert_fires(judged(check, &ledger, &get, &Answer::Progress(Default::default())), "S7");
        assert_eq!(judged(check, &ledger, &get, &Answer::Refused(Refusal::RunNotFound)), Ok(()));
    }

    #[test]
    fn an_event_of_another_tenant_is_noticed() {
        let ledger = Ledger::example();
        let mut told = event(EventKind::RunCancelled);
        told.tenant = tenant(2);
        let operation = checkpoint(lease(1, 2, 100), 4, 9);
        let answer = done();
        let events = [told];
        let seen =
            Observation { now: at(50), operation: &operation, answer: &answer, events: &events };
        assert_fires(check(&ledger, seen), "S7");
    }

    #[test]
    fn a_lost_record_is_noticed() {
        let ledger = Ledger::example();
        assert_eq!(inspect_counts(&ledger, 1, 1), Ok(()));
        assert_fires(inspect_counts(&ledger, 1, 0), "S7");
        assert_fires(inspect_counts(&ledger, 2, 1), "S7");
    }
}
