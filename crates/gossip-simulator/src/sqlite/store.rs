//! The embedded coordinator as a scan uses it: every checkpoint and every completion brings a row of
//! the caller's along, in the same transaction.

use std::num::NonZeroUsize;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CheckpointRenewal,
    ClaimCandidates, ClaimError, CommitError, CompleteError, CoordinationBackend, CreateRunError,
    DeleteRunError, EventCollector, GetRunError, IdempotentOutcome, InfraError, Lease, ParkError,
    ParkReason, RegisterShardsError, ReleaseError, RenewError, RenewResult, RevokeLeaseError,
    RunConfig, RunManagement, RunProgress, RunRecord, RunSummary, RunTransitionError,
    ShardClaiming, ShardFilter, ShardSummary, SplitReplaceError, SplitResidualError,
    TransactionalBackend, UnparkError,
};
use gossip_coordination_sqlite::rusqlite::{self, Transaction};
use gossip_coordination_sqlite::{CallerSchema, SqliteCoordinator};

/// What the caller keeps: one row for each operation that moved a cursor.
pub(crate) const PAGES: CallerSchema = CallerSchema {
    name: "sim",
    retired: 0,
    steps: &[
        "CREATE TABLE sim_pages(tenant BLOB NOT NULL, run INTEGER NOT NULL, \
         shard INTEGER NOT NULL, op INTEGER NOT NULL, findings BLOB NOT NULL) STRICT",
        // What another process writes.
        "CREATE TABLE sim_rival(id INTEGER PRIMARY KEY, times INTEGER NOT NULL) STRICT",
    ],
};

/// A row of the caller's, but for what was found: tenant, run, shard and operation.
pub(crate) type Page = ([u8; 32], i64, i64, i64);

#[derive(Debug)]
pub struct Store {
    pub(crate) coordinator: SqliteCoordinator,
    /// Bytes that a page brings along.
    pub(crate) page_len: u32,
    /// The rows of what was answered as carried out, since somebody took them.
    pub(crate) pages: Vec<Page>,
    events: Option<EventCollector>,
}

impl Store {
    pub(crate) const fn new(coordinator: SqliteCoordinator) -> Self {
        Self { coordinator, page_len: 0, pages: Vec::new(), events: None }
    }

    /// Runs `f` and puts the events of what it does into `collector`.
    pub(crate) fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        collector.lend(self, |store| &mut store.events, f)
    }

    /// Every cursor move that was answered as carried out has a row.
    fn note<T, R: From<InfraError>>(
        &mut self,
        page: Page,
        asked: Result<IdempotentOutcome<T>, CommitError<R, rusqlite::Error>>,
    ) -> Result<IdempotentOutcome<T>, R> {
        let outcome = asked.map_err(refusal)?;
        if outcome.is_executed() {
            self.pages.push(page);
        }
        Ok(outcome)
    }

    /// Asks the coordinator, its events going where ours go.
    pub(crate) fn ask<R>(&mut self, f: impl FnOnce(&mut SqliteCoordinator) -> R) -> R {
        match &mut self.events {
            Some(collector) => self.coordinator.with_events(collector, f),
            None => f(&mut self.coordinator),
        }
    }
}

fn page(lease: &Lease, op_id: OpId) -> Page {
    let (run, shard) = (lease.run().as_raw() as i64, lease.shard().as_raw() as i64);
    (*lease.tenant().as_bytes(), run, shard, op_id.as_raw() as i64)
}

fn add_page(tx: &Transaction<'_>, page: &Page, len: u32) -> rusqlite::Result<()> {
    let sql = "INSERT INTO sim_pages VALUES (?1, ?2, ?3, ?4, zeroblob(?5))";
    let mut statement = tx.prepare_cached(sql)?;
    let (tenant, run, shard, op) = page;
    statement.execute((tenant, run, shard, op, len)).map(drop)
}

/// A row that cannot be written is the store's failure, like any other.
fn refusal<R: From<InfraError>>(error: CommitError<R, rusqlite::Error>) -> R {
    match error {
        CommitError::Refused(refusal) => refusal,
        CommitError::Caller(error) => InfraError::transient("sim.page", error.to_string()).into(),
    }
}

impl CoordinationBackend for Store {
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        self.ask(|it| it.acquire_and_restore_into(now, tenant, key, worker, scratch))
    }

    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        self.ask(|it| it.renew(now, tenant, lease))
    }

    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        self.ask(|it| it.release(now, tenant, lease))
    }

    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        let (page, len) = (page(lease, op_id), self.page_len);
        let write = |tx: &Transaction<'_>| add_page(tx, &page, len);
        let asked = self.ask(|it| it.checkpoint_with(now, tenant, lease, cursor, op_id, write));
        self.note(page, asked)
    }

    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let (page, len) = (page(lease, op_id), self.page_len);
        let write = |tx: &Transaction<'_>| add_page(tx, &page, len);
        let asked =
            self.ask(|it| it.checkpoint_and_renew_with(now, tenant, lease, cursor, op_id, write));
        self.note(page, asked)
    }

    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        let (page, len) = (page(lease, op_id), self.page_len);
        let write = |tx: &Transaction<'_>| add_page(tx, &page, len);
        let asked = self.ask(|it| it.complete_with(now, tenant, lease, cursor, op_id, write));
        self.note(page, asked)
    }

    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        self.ask(|it| it.park_shard(now, tenant, lease, reason, op_id))
    }

    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        self.ask(|it| it.split_replace(now, tenant, lease, plan, op_id))
    }

    fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        self.ask(|it| it.split_residual(now, tenant, lease, plan, op_id))
    }
}

impl RunManagement for Store {
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        self.ask(|it| it.create_run(now, tenant, run, config))
    }

    fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        self.ask(|it| it.register_shards(now, tenant, run, shards, op_id))
    }

    fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        self.coordinator.get_run(tenant, run)
    }

    fn get_run_progress(&self, tenant: TenantId, run: RunId) -> Result<RunProgress, GetRunError> {
        self.coordinator.get_run_progress(tenant, run)
    }

    fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        self.coordinator.list_shards_into(now, tenant, run, filter, out)
    }

    fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.ask(|it| it.complete_run_with(now, tenant, run, result, op_id))
    }

    fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.ask(|it| it.fail_run(now, tenant, run, op_id))
    }

    fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.ask(|it| it.cancel_run(now, tenant, run, op_id))
    }

    fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        self.ask(|it| it.unpark_shard(now, tenant, key, op_id))
    }

    fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        self.ask(|it| it.collect_claim_candidates_into(now, tenant, run, worker, out))
    }

    fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        self.ask(|it| it.revoke_lease(now, tenant, key, fence))
    }

    fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        self.coordinator.list_runs_into(tenant, after, limit, out)
    }

    fn list_shards_page_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        out: &mut Vec<ShardSummary>,
    ) -> Result<Option<ShardId>, GetRunError> {
        self.coordinator.list_shards_page_into(now, tenant, run, filter, after, limit, out)
    }

    fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError> {
        self.ask(|it| it.delete_run(now, tenant, run))
    }

    fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        self.ask(|it| it.note_idle(now, tenant, run, worker))
    }
}

impl ShardClaiming for Store {
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        self.ask(|it| it.claim_next_available(now, tenant, run, worker, scratch))
    }

    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        self.ask(|it| it.reacquire_own(now, tenant, run, worker, scratch))
    }
}
