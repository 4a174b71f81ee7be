//! Claims: getting some shard of a run rather than a particular one.

use gossip_contracts::coordination::MAX_INITIAL_SHARDS;
use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};

use crate::error::{AcquireError, ClaimError};
use crate::run::RunStatus;
use crate::scratch::{AcquireResultView, AcquireScratch, Granted};
use crate::traits::{ClaimCandidates, CoordinationBackend, RunManagement};

/// Collections of candidates that a claim may lose to other workers before it gives up. One that
/// loses this often had better wait.
const LOST_ROUNDS_MAX: usize = 16;

/// Collections in which a candidate may turn out to be settled, mostly because the claim itself
/// parks it as poisoned. Such a shard is no candidate again, so there is an end to them. An index
/// that offers the same settled shard again lies, and that counts as a loss.
const SETTLED_ROUNDS_MAX: usize = MAX_INITIAL_SHARDS;

/// Claims shards of a run.
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

    /// Takes back a shard of `run` that the worker still holds, whether or not its lease has run out:
    /// what a worker does first whose claim was not answered, or that has taken over another's id.
    /// Fence and count of tries go up as with every acquire.
    ///
    /// For a worker that holds nothing that it knows of. Call it until it returns `None`, working on
    /// each shard before asking for the next: a shard that is still held is returned again.
    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError>;
}

/// All that a coordinator offers to sync callers.
pub trait CoordinationFacade: CoordinationBackend + RunManagement + ShardClaiming {}

impl<B: CoordinationBackend + RunManagement + ShardClaiming> CoordinationFacade for B {}

/// What a claim wants to know next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimStep {
    /// Collect candidates into [`ClaimSearch::candidates_mut`].
    Collect,
    /// Acquire this shard, and end with it or say [`ClaimSearch::refused`].
    Acquire(ShardKey),
    /// No shard is to be had.
    End(ClaimError),
}

/// The search for a shard that fits every backend, without I/O: try the candidates one by one, and
/// collect again while other workers are faster. [`claim_from_candidates`] drives it; an async backend
/// does so itself, with awaits.
#[derive(Clone, Debug)]
pub struct ClaimSearch {
    run: RunId,
    candidates: ClaimCandidates,
    /// The candidate to try next; `None` before they are collected.
    next: Option<usize>,
    /// One that turned out to be settled, of these candidates and of those before.
    settled: Option<ShardId>,
    last_settled: Option<ShardId>,
    lost_rounds: usize,
    settled_rounds: usize,
}

impl ClaimSearch {
    /// A search that begins.
    #[must_use]
    pub const fn new(run: RunId) -> Self {
        Self {
            run,
            candidates: ClaimCandidates::new(),
            next: None,
            settled: None,
            last_settled: None,
            lost_rounds: 0,
            settled_rounds: 0,
        }
    }

    /// Where [`ClaimStep::Collect`] puts what it finds.
    pub const fn candidates_mut(&mut self) -> &mut ClaimCandidates {
        &mut self.candidates
    }

    /// What to do next.
    pub fn step(&mut self) -> ClaimStep {
        let Some(next) = self.next else {
            self.next = Some(0);
            return ClaimStep::Collect;
        };
        let status = self.candidates.status;
        if status != RunStatus::Active {
            return ClaimStep::End(ClaimError::RunNotActive { run: self.run, status });
        }
        if let Some(&shard) = self.candidates.shards.get(next) {
            self.next = Some(next + 1);
            return ClaimStep::Acquire(ShardKey::new(self.run, shard));
        }
        if self.candidates.shards.is_empty() || !self.may_look_again() {
            let earliest_deadline = self.candidates.earliest_deadline;
            return ClaimStep::End(ClaimError::NoneAvailable { earliest_deadline });
        }
        self.next = Some(0);
        ClaimStep::Collect
    }

    /// Counts a collection that came to nothing.
    fn may_look_again(&mut self) -> bool {
        let settled = self.settled.take();
        if settled.is_some() && settled != self.last_settled {
            self.settled_rounds += 1;
        } else {
            self.lost_rounds += 1;
        }
        self.last_settled = settled;
        self.lost_rounds < LOST_ROUNDS_MAX && self.settled_rounds < SETTLED_ROUNDS_MAX
    }

    /// A candidate was not granted: goes on with the next, or ends.
    pub fn refused(&mut self, refusal: AcquireError) -> Result<(), ClaimError> {
        match refusal {
            AcquireError::ShardTerminal { shard, .. } => self.settled = Some(shard.shard),
            AcquireError::AlreadyLeased { .. } | AcquireError::ShardNotFound { .. } => {}
            AcquireError::RunNotActive { run, status } => {
                return Err(ClaimError::RunNotActive { run, status });
            }
            AcquireError::TenantMismatch { expected } => {
                return Err(ClaimError::TenantMismatch { expected });
            }
            AcquireError::BackendError(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// The claim that fits every backend.
pub fn claim_from_candidates<'s, B: CoordinationBackend + RunManagement>(
    backend: &mut B,
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    worker: WorkerId,
    scratch: &'s mut AcquireScratch,
) -> Result<AcquireResultView<'s>, ClaimError> {
    let mut search = ClaimSearch::new(run);
    loop {
        match search.step() {
            ClaimStep::Collect => {
                let out = search.candidates_mut();
                backend.collect_claim_candidates_into(now, tenant, run, worker, out)?;
            }
            ClaimStep::Acquire(key) => {
                let acquired = backend.acquire_and_restore_into(now, tenant, key, worker, scratch);
                match acquired.map(|view| Granted::of(&view)) {
                    Ok(granted) => return Ok(granted.view(scratch)),
                    Err(refusal) => search.refused(refusal)?,
                }
            }
            ClaimStep::End(error) => return Err(error),
        }
    }
}
