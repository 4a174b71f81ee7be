//! A shard in a worker's hands: what was done and is not stored yet, and how it is stored.

use std::time::Duration;

use gossip_contracts::coordination::{CursorUpdate, RestoredShardState, ShardSpec};
use gossip_contracts::identity::OpId;
use gossip_coordination::{
    CheckpointError, CompleteError, CoordinationBackend, IdempotentOutcome, InfraError, Lease,
    RenewError,
};
use gossip_coordination::{CommitError, TransactionalBackend};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite;

use crate::batch::{Batch, OCCURRENCES_MAX};
use crate::clock::{new_op_id, now};
use crate::in_item::InItem;
use crate::item::{InHand, ItemContext};
use crate::options::ScanOptions;
use crate::state::LOCAL_TENANT;
use crate::store;

/// Times that a commit is tried when the database fails in passing.
const COMMIT_TRIES: u32 = 5;
/// The wait before the second try; later ones are multiples of it.
const COMMIT_PAUSE: Duration = Duration::from_millis(20);

/// Whether a worker may go on with a shard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Held {
    Yes,
    /// Another worker has it, or its run is over.
    Lost,
}

pub(crate) struct Hold {
    pub(crate) lease: Lease,
    pub(crate) spec: ShardSpec,
    pub(crate) batch: Batch,
    /// The last key stored, or the one with which the shard was acquired.
    stored_key: Option<Vec<u8>>,
    /// The item that whoever had the shard before left in the middle.
    part: Option<InItem>,
    /// Where the part of the item in hand ends that is stored.
    part_end: Option<u64>,
}

impl Hold {
    pub(crate) fn new(lease: Lease, restored: RestoredShardState) -> Result<Self, InfraError> {
        let cursor = restored.cursor.as_update();
        let part = match cursor.token() {
            Some(token) => Some(InItem::from_token(token).ok_or_else(|| {
                InfraError::corruption("claim", "the shard's cursor has a token of another kind")
            })?),
            None => None,
        };
        Ok(Self {
            lease,
            batch: Batch::default(),
            stored_key: cursor.last_key().map(Into::into),
            part,
            part_end: None,
            spec: restored.spec,
        })
    }

    /// The item to begin with, before the listing goes on behind [`reached`](Self::reached).
    pub(crate) fn take_part(&mut self) -> Option<InItem> {
        let part = self.part.take()?;
        self.part_end = Some(part.mark.read_from());
        Some(part)
    }

    /// The last key that was handled, stored or not.
    pub(crate) fn reached(&self) -> Option<&[u8]> {
        self.batch.last_key().or(self.stored_key.as_deref())
    }

    /// Stores what is done.
    pub(crate) fn save(
        &mut self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
    ) -> Result<Held, InfraError> {
        let Some(last_key) = self.batch.last_key().map(<[u8]>::to_vec) else {
            return Ok(Held::Yes);
        };
        self.store(coordinator, context, last_key, None)
    }

    /// Before the next read of an item: stores what is done, and the part of the item that is, when
    /// it is time or `now_or_never`.
    pub(crate) fn pace(
        &mut self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
        options: &ScanOptions,
        now_or_never: bool,
        item: &mut InHand<'_>,
    ) -> Result<Held, InfraError> {
        let now_ms = now().as_raw();
        if item.offset == 0 {
            self.part_end = None;
        }
        let due = now_or_never
            || self.batch.is_due(item.next, options, now_ms)
            || item.row.occurrences.len() >= OCCURRENCES_MAX;
        let further = item.mark.is_some_and(|mark| mark.read_from() > self.part_end.unwrap_or(0));
        if due && (further || !self.batch.is_empty()) {
            // Nothing before the item is done: a cursor needs a key all the same, and the token says
            // that what is at this one is not done either.
            let start = self.spec.as_ref().start();
            let last_key = self.reached().unwrap_or(start).to_vec();
            if self.store(coordinator, context, last_key, Some(item))? == Held::Lost {
                return Ok(Held::Lost);
            }
        }
        self.batch.reading(item.next, now_ms);
        Ok(Held::Yes)
    }

    fn store(
        &mut self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
        last_key: Vec<u8>,
        item: Option<&mut InHand<'_>>,
    ) -> Result<Held, InfraError> {
        let part = item.as_ref().and_then(|item| {
            let (key, version) = (item.row.key.clone(), item.row.version.clone());
            item.mark.map(|mark| InItem { key, version, opened_at_ms: item.opened_at_ms, mark })
        });
        let token = part.as_ref().map(InItem::to_token);
        let part_row = item.as_ref().filter(|_| part.is_some()).map(|item| item.part_row());
        let (batch, lease) = (&self.batch, &self.lease);
        let outcome = commit(|op_id| {
            coordinator.checkpoint_with(
                now(),
                LOCAL_TENANT,
                lease,
                CursorUpdate::new(Some(&last_key), token.as_deref()),
                op_id,
                |tx| {
                    batch.write(tx, context.scope, context.run)?;
                    part_row
                        .iter()
                        .try_for_each(|row| store::put_item(tx, context.scope, row, context.run))
                },
            )
        });
        match outcome {
            Ok(_) => {
                self.stored_key = Some(last_key);
                self.part_end = part.map(|part| part.mark.read_from());
                let in_hand = item.as_ref().map_or(0, |item| item.offset);
                self.batch.clear(in_hand - self.part_end.unwrap_or(0).min(in_hand));
                if let Some(item) = item.filter(|_| self.part_end.is_some()) {
                    item.part_is_stored(context.stats);
                }
                Ok(Held::Yes)
            }
            Err(CommitError::Refused(CheckpointError::BackendError(error))) => Err(error),
            Err(CommitError::Refused(refusal)) => {
                tracing::info!(%refusal, "a checkpoint was refused");
                Ok(Held::Lost)
            }
            Err(CommitError::Caller(error)) => Err(caller_error("checkpoint.writes", &error)),
        }
    }

    /// Everything is handled: stores the rest and marks the shard as done.
    pub(crate) fn complete(
        self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
    ) -> Result<Held, InfraError> {
        // A shard in which nothing was found to do is done at its start: a final cursor needs a key.
        let start = self.spec.as_ref().start();
        let last_key = self.reached().unwrap_or(start).to_vec();
        let outcome = commit(|op_id| {
            coordinator.complete_with(
                now(),
                LOCAL_TENANT,
                &self.lease,
                CursorUpdate::at(&last_key),
                op_id,
                |tx| self.batch.write(tx, context.scope, context.run),
            )
        });
        match outcome {
            Ok(_) => Ok(Held::Yes),
            Err(CommitError::Refused(CompleteError::BackendError(error))) => Err(error),
            Err(CommitError::Refused(refusal)) => {
                tracing::info!(%refusal, "a completion was refused");
                Ok(Held::Lost)
            }
            Err(CommitError::Caller(error)) => Err(caller_error("complete.writes", &error)),
        }
    }

    /// Renews the lease if less than half of it is left.
    pub(crate) fn renew_if_needed(
        &mut self,
        coordinator: &mut SqliteCoordinator,
        lease_ms: u64,
    ) -> Result<Held, InfraError> {
        let now = now();
        let left = self.lease.deadline().as_raw().saturating_sub(now.as_raw());
        if left > lease_ms / 2 {
            return Ok(Held::Yes);
        }
        match coordinator.renew(now, LOCAL_TENANT, &self.lease) {
            Ok(renewed) => {
                self.lease.set_deadline(renewed.new_deadline);
                Ok(Held::Yes)
            }
            Err(RenewError::BackendError(error)) => Err(error),
            Err(_) => Ok(Held::Lost),
        }
    }
}

/// Commits under one operation id, again while the database fails in passing: a commit whose answer
/// was lost is then recognised.
fn commit<R: TransientRefusal>(
    mut attempt: impl FnMut(OpId) -> Result<IdempotentOutcome<()>, CommitError<R, rusqlite::Error>>,
) -> Result<IdempotentOutcome<()>, CommitError<R, rusqlite::Error>> {
    let op_id = new_op_id();
    for tried in 1.. {
        match attempt(op_id) {
            Err(CommitError::Refused(refusal))
                if refusal.is_transient() && tried < COMMIT_TRIES =>
            {
                std::thread::sleep(COMMIT_PAUSE * tried);
            }
            outcome => return outcome,
        }
    }
    unreachable!("the tries are counted")
}

/// A refusal that may not be one.
trait TransientRefusal {
    fn is_transient(&self) -> bool;
}

impl TransientRefusal for CheckpointError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::BackendError(error) if error.is_retryable())
    }
}

impl TransientRefusal for CompleteError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::BackendError(error) if error.is_retryable())
    }
}

/// SQLite's messages name tables and columns, never what is in them.
fn caller_error(step: &'static str, error: &rusqlite::Error) -> InfraError {
    InfraError::transient(step, error.to_string())
}
