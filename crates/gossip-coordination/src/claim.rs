//! Claims: getting some shard of a run rather than a particular one.

use gossip_contracts::coordination::MAX_INITIAL_SHARDS;
use gossip_contracts::identity::{LogicalTime, RunId, ShardKey, TenantId, WorkerId};

use crate::error::{AcquireError, ClaimError};
use crate::run::RunStatus;
use crate::scratch::{AcquireResultView, AcquireScratch};
use crate::traits::{ClaimCandidates, CoordinationBackend, RunManagement};

/// Collections of candidates that a claim may lose to other workers before it gives up. One that
/// loses this often had better wait.
const LOST_ROUNDS_MAX: usize = 16;

/// Collections in which a candidate may turn out to be settled, mostly because the claim itself
/// parks it as poisoned. Such a shard is no candidate again, so there is an end to them. An index
/// that offers the same settled shard again lies, and that counts as a loss.
const SETTLED_ROUNDS_MAX: usize = MAX_INITIAL_SHARDS;

/// Claims a shard of a run.
pub trait ShardClaiming {
    /// Acquires some shard of `run` that is free, if there is one.
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError>;
}

/// All that a coordinator offers to sync callers.
pub trait CoordinationFacade: CoordinationBackend + RunManagement + ShardClaiming {}

impl<B: CoordinationBackend + RunManagement + ShardClaiming> CoordinationFacade for B {}

/// The claim that fits every backend: try the candidates one by one, and collect again while other
/// workers are faster.
pub fn claim_from_candidates<'s, B: CoordinationBackend + RunManagement>(
    backend: &mut B,
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    worker: WorkerId,
    scratch: &'s mut AcquireScratch,
) -> Result<AcquireResultView<'s>, ClaimError> {
    let mut candidates = ClaimCandidates::new();
    let (mut lost_rounds, mut settled_rounds) = (0, 0);
    let mut last_settled = None;
    while lost_rounds < LOST_ROUNDS_MAX && settled_rounds < SETTLED_ROUNDS_MAX {
        backend.collect_claim_candidates_into(now, tenant, run, worker, &mut candidates)?;
        if candidates.status != RunStatus::Active {
            return Err(ClaimError::RunNotActive { run, status: candidates.status });
        }
        if candidates.shards.is_empty() {
            break;
        }
        let mut settled = None;
        for &shard in &candidates.shards {
            let key = ShardKey::new(run, shard);
            match backend.acquire_and_restore_into(now, tenant, key, worker, scratch) {
                Ok(acquired) => {
                    // The borrow checker does not let a loop return a view of `scratch`; its small
                    // fields are carried out and the view is taken again.
                    let (lease, capacity) = (acquired.lease, acquired.capacity);
                    let small = acquired.snapshot;
                    let (status, semantics, parent) =
                        (small.status, small.cursor_semantics, small.parent);
                    let snapshot = scratch.view(status, semantics, parent);
                    return Ok(AcquireResultView { lease, snapshot, capacity });
                }
                Err(AcquireError::ShardTerminal { .. }) => settled = Some(shard),
                Err(AcquireError::AlreadyLeased { .. } | AcquireError::ShardNotFound { .. }) => {}
                Err(AcquireError::RunNotActive { run, status }) => {
                    return Err(ClaimError::RunNotActive { run, status });
                }
                Err(AcquireError::TenantMismatch { expected }) => {
                    return Err(ClaimError::TenantMismatch { expected });
                }
                Err(AcquireError::BackendError(error)) => return Err(error.into()),
            }
        }
        if settled.is_some() && settled != last_settled {
            settled_rounds += 1;
        } else {
            lost_rounds += 1;
        }
        last_settled = settled;
    }
    Err(ClaimError::NoneAvailable { earliest_deadline: candidates.earliest_deadline })
}
