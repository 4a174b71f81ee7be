//! S11: an independent model of the protocol gives the same answer.

use gossip_contracts::identity::{LogicalTime, RunId, TenantId};

use super::{EmptyClaim, Observation, Verdict, Violation, demand};
use crate::scratch::CapacityHint;
use crate::sim::op::Operation;
use crate::sim::reference::Reference;

const S11: &str = "S11 agreement";

pub(super) fn check(model: &mut Reference, seen: Observation<'_>) -> Verdict {
    model.check(seen.now, seen.operation, seen.answer).map_err(|expected| Violation {
        oracle: S11,
        what: format!(
            "to {:?} the backend said {:?}, the model {expected:?}",
            seen.operation, seen.answer
        ),
    })
}

/// Before the claim's grant is taken in.
pub(super) fn check_claimed(model: &mut Reference, seen: Observation<'_>) -> Verdict {
    let &Operation::Acquire { tenant, key, worker } = seen.operation else {
        return demand(false, S11, || "a claim is made of acquires".to_owned());
    };
    said(model.check_claimed(seen.now, tenant, key.run, worker, key.shard))
}

pub(super) fn check_empty_claim(model: &mut Reference, seen: EmptyClaim<'_>) -> Verdict {
    let EmptyClaim { now, tenant, run, worker, refusal } = seen;
    said(model.check_empty_claim(now, tenant, run, worker, refusal))
}

pub(super) fn check_hint(
    model: &Reference,
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    hint: CapacityHint,
) -> Verdict {
    said(model.check_hint(now, tenant, run, hint))
}

fn said(verdict: Result<(), String>) -> Verdict {
    verdict.map_err(|what| Violation { oracle: S11, what })
}
