//! S7: no tenant sees or changes what is another's. Tenants here have the same run, shard and
//! operation numbers, so that a look-up that forgets the tenant finds something.

use super::ledger::{Ledger, Run, Shard};
use super::{Observation, Verdict, Violation, demand};
use crate::record::ShardRecordView;
use crate::run::RunRecord;
use crate::sim::op::{Answer, Operation, Refusal};

const S7: &str = "S7 tenants";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let Observation { operation, answer, .. } = seen;
    if matches!(answer, Answer::Refused(Refusal::Backend { .. })) {
        return Ok(());
    }
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
pub(super) fn inspect_counts(ledger: &Ledger, runs: usize, shards: usize) -> Verdict {
    let made = (ledger.runs().len(), ledger.shards().len());
    demand(made == (runs, shards), S7, || {
        format!("{runs} runs and {shards} shards are stored; {made:?} were made")
    })
}
