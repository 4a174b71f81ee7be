//! The caller's writes in the coordinator's transactions, touching its own schema's tables only.
//! W1 and W2 are [`TransactionalBackend`]'s.

use std::convert::Infallible;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId, TenantId};
use gossip_coordination::transition::{self, CursorRequest, Decision, RenewingCheckpoint};
use gossip_coordination::{
    CheckpointError, CheckpointRenewal, CommitError, CompleteError, CoordError, FoundShard,
    IdempotentOutcome, InfraError, Lease, ShardUpdate, TransactionalBackend,
};
use rusqlite::Transaction;

use crate::coordinator::SqliteCoordinator;
use crate::error::{Steps, steps};
use crate::shards::{Buffers, RunRow, Shard, Stored};
use crate::sql;

/// What the caller's writes come to.
type Outcome<T, R, E> = Result<IdempotentOutcome<T>, CommitError<R, E>>;

/// What was decided of a cursor: its shard's change, and something to answer.
type Decided<'r, A> = Result<Decision<(ShardUpdate<'r>, A), A>, CoordError>;

impl TransactionalBackend for SqliteCoordinator {
    type Transaction<'t> = Transaction<'t>;

    fn checkpoint_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
    ) -> Outcome<(), CheckpointError, E> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide = |found: Option<FoundShard<'_, '_>>| {
            transition::checkpoint(found, now, &request).map(without_answer)
        };
        self.move_cursor(steps!("checkpoint"), now, &request, decide, writes, |_, _, ()| Ok(()))
    }

    fn checkpoint_and_renew_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
    ) -> Outcome<CheckpointRenewal, CheckpointError, E> {
        let steps = steps!("checkpoint_and_renew");
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide = |found: Option<FoundShard<'_, '_>>| {
            let decision = transition::checkpoint_and_renew(found, now, &request)?;
            Ok(match decision {
                Decision::Execute(RenewingCheckpoint { update, new_deadline }) => {
                    Decision::Execute((update, new_deadline))
                }
                Decision::Replay(new_deadline) => Decision::Replay(new_deadline),
            })
        };
        self.move_cursor(steps, now, &request, decide, writes, |tx, run, new_deadline| {
            Ok(CheckpointRenewal {
                new_deadline,
                capacity: run.capacity(tx, steps.load, now)?,
                idle_workers: run.idle_workers(tx, steps.load, now)?,
            })
        })
    }

    fn complete_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
    ) -> Outcome<(), CompleteError, E> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide = |found: Option<FoundShard<'_, '_>>| {
            transition::complete(found, now, &request).map(without_answer)
        };
        self.move_cursor(steps!("complete"), now, &request, decide, writes, |_, _, ()| Ok(()))
    }
}

impl SqliteCoordinator {
    /// Runs the caller's own transaction on its own schema's tables. It is stored when `f` succeeds,
    /// and undone when it fails or panics.
    pub fn transaction<T, E>(
        &mut self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, CommitError<InfraError, E>> {
        let steps = steps!("transaction");
        sql::write(&self.conn, steps, |tx| run_writes(tx, steps, f))
    }

    /// Runs the caller's reads on one consistent view. What `f` might write is undone.
    pub fn read<T, E>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, CommitError<InfraError, E>> {
        sql::read(&self.conn, steps!("read"), |tx| f(tx).map_err(CommitError::Caller))
    }

    /// Decides, runs the caller's writes, stores the decision and makes the answer, in one transaction.
    fn move_cursor<'r, R, E, A, T>(
        &mut self,
        steps: &Steps,
        now: LogicalTime,
        request: &CursorRequest<'r>,
        decide: impl FnOnce(Option<FoundShard<'_, '_>>) -> Decided<'r, A>,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
        answer: impl FnOnce(&Transaction<'_>, &RunRow, A) -> Result<T, InfraError>,
    ) -> Outcome<T, R, E>
    where
        R: From<CoordError> + From<InfraError>,
    {
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let key = request.lease.key();
        let (answer, stored) = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, request.tenant, key, record, decoded)?;
            let decision = decide(found.as_ref().map(Shard::found));
            let decision = decision.map_err(|refusal| CommitError::Refused(refusal.into()))?;
            let shard = found.expect("transitions refuse to act on a shard that is not there");
            let (update, decided) = match decision {
                Decision::Execute((update, decided)) => (update, decided),
                Decision::Replay(decided) => {
                    return Ok::<_, CommitError<R, E>>((answer(tx, &shard.run, decided)?, None));
                }
            };
            run_writes(tx, steps, writes)?;
            shard.store(tx, steps, &update, encoded)?;
            let answer = answer(tx, &shard.run, decided)?;
            Ok((answer, Some(Stored::new(&shard, update))))
        })?;
        Ok(self.report(now, stored).map(|()| answer))
    }
}

/// A decision that says no more than that it was made.
fn without_answer(decision: Decision<ShardUpdate<'_>, ()>) -> Decision<(ShardUpdate<'_>, ()), ()> {
    match decision {
        Decision::Execute(update) => Decision::Execute((update, ())),
        Decision::Replay(()) => Decision::Replay(()),
    }
}

/// The caller's part. SQLite may have ended the transaction in it, because the disk is full say,
/// or the caller by mistake; either way what follows would be stored by itself.
fn run_writes<T, R: From<InfraError>, E>(
    tx: &Transaction<'_>,
    steps: &Steps,
    writes: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, CommitError<R, E>> {
    let value = writes(tx).map_err(CommitError::Caller)?;
    if tx.is_autocommit() {
        let message = "the transaction ended before the operation did";
        return Err(InfraError::transient(steps.writes, message).into());
    }
    Ok(value)
}

/// No writes of the caller.
pub(crate) fn nothing(_: &Transaction<'_>) -> Result<(), Infallible> {
    Ok(())
}
