//! The caller's writes in the coordinator's transactions, touching its own schema's tables only.
//! W1 and W2 are [`TransactionalBackend`]'s.

use std::convert::Infallible;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId, TenantId};
use gossip_coordination::transition::{self, CursorRequest, Decision};
use gossip_coordination::{
    CheckpointError, CommitError, CompleteError, CoordError, FoundShard, IdempotentOutcome,
    InfraError, Lease, ShardUpdate, TransactionalBackend,
};
use rusqlite::Transaction;

use crate::coordinator::SqliteCoordinator;
use crate::error::{Steps, steps};
use crate::shards::{Buffers, Shard, Stored};
use crate::sql;

/// What the caller's writes come to.
type Outcome<R, E> = Result<IdempotentOutcome<()>, CommitError<R, E>>;

/// A checkpoint or a completion, undecided.
type Decide = for<'v, 'a, 'q, 'r> fn(
    Option<FoundShard<'v, 'a>>,
    LogicalTime,
    &'q CursorRequest<'r>,
) -> Result<Decision<ShardUpdate<'r>, ()>, CoordError>;

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
    ) -> Outcome<CheckpointError, E> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        self.move_cursor(steps!("checkpoint"), now, &request, transition::checkpoint, writes)
    }

    fn complete_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
    ) -> Outcome<CompleteError, E> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        self.move_cursor(steps!("complete"), now, &request, transition::complete, writes)
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

    fn move_cursor<R, E>(
        &mut self,
        steps: &Steps,
        now: LogicalTime,
        request: &CursorRequest<'_>,
        decide: Decide,
        writes: impl FnOnce(&Transaction<'_>) -> Result<(), E>,
    ) -> Outcome<R, E>
    where
        R: From<CoordError> + From<InfraError>,
    {
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let key = request.lease.key();
        let stored = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, request.tenant, key, record, decoded)?;
            let decision = decide(found.as_ref().map(Shard::found), now, request);
            let decision = decision.map_err(|refusal| CommitError::Refused(refusal.into()))?;
            let Decision::Execute(update) = decision else {
                return Ok::<_, CommitError<R, E>>(None);
            };
            run_writes(tx, steps, writes)?;
            let shard = found.expect("transitions refuse to act on a shard that is not there");
            shard.store(tx, steps, &update, encoded)?;
            Ok(Some(Stored::new(&shard, update)))
        })?;
        Ok(self.report(now, stored))
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
