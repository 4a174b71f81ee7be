//! A leased shard as work: what is done is committed with its cursor.
//!
//! - W1: what a worker read, what it found and how far it came are committed in one transaction. A
//!   worker that dies has done all of what its last checkpoint says, and nothing else counts.
//! - W2: a worker that lost its lease commits nothing more for that shard, and nothing once the run has
//!   ended (D9).
//! - W3: a worker that is told to stop commits what it has, and releases its shard.
//! - W4: a split whose answer was lost is settled, or no further byte is read.

use std::fmt;
use std::time::Duration;

use gossip_contracts::connector::{ConnectorError, Page};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::OpId;
use gossip_coordination::{
    CommitError, EndError, InfraError, LeasedOperationError, ParkReason, WorkerSession,
};
use gossip_coordination_sqlite::SqliteCoordinator;

use crate::batch::{Batch, Commit};
use crate::clock::now;
use crate::plan::ResidualSplit;
use crate::scan::ScanError;
use crate::scan_loop::{Flow, ScanLoop, Shared, Work};
use crate::shard_token::ShardToken;
use crate::transaction::Unwritten;

/// Times that an operation is tried when the database fails in passing.
const TRIES: u32 = 5;
/// The wait before the second try; later ones are multiples of it.
const BACKOFF: Duration = Duration::from_millis(20);

type Session<'w> = WorkerSession<'w, SqliteCoordinator>;

/// A shard that this worker holds.
pub(crate) struct ShardWork<'w> {
    shared: &'w Shared<'w>,
    session: Session<'w>,
    /// Somebody waits, in whichever process, and no shard is free: so the last checkpoint was told.
    is_wanted: bool,
}

impl<'w> ShardWork<'w> {
    pub(crate) const fn new(shared: &'w Shared<'w>, session: Session<'w>) -> Self {
        Self { shared, session, is_wanted: false }
    }

    /// Works on the shard until it is done, parked, released or lost; [`Flow::Lost`] in that case.
    pub(crate) fn run(mut self, scan_loop: &mut ScanLoop) -> Result<Flow, ScanError> {
        let cursor = self.session.cursor();
        let token = match cursor.token() {
            Some(token) => ShardToken::from_bytes(token).ok_or(ScanError::TokenOfAnotherKind)?,
            None => ShardToken::default(),
        };
        let reached = cursor.last_key().map(<[u8]>::to_vec);
        let flow = match scan_loop.run(self.shared, &mut self, reached.as_deref(), token) {
            Ok(Flow::Continue) => self.complete(&scan_loop.batch.rest())?,
            Ok(Flow::Stop) => self.release(&mut scan_loop.batch)?,
            Ok(Flow::Lost) => Flow::Lost,
            Err(ScanError::Source(error)) => self.park(&mut scan_loop.batch, &error)?,
            Err(error) => return Err(error),
        };
        if flow == Flow::Lost {
            tracing::debug!("a shard was lost");
        }
        Ok(flow)
    }

    /// Everything is handled: commits the rest and marks the shard as done.
    fn complete(self, rest: &Commit<'_>) -> Result<Flow, ScanError> {
        let last_key = self.cursor_key(rest.reached());
        let (scope, run) = (self.shared.context.scope, self.shared.context.run);
        let token = rest.token().to_bytes();
        let cursor = CursorUpdate::new(Some(&last_key), Some(&token));
        let ended = end(self.session, |session, op_id| {
            session.complete_with(now(), cursor, op_id, |tx| rest.write(tx, scope, run))
        });
        lost_if_unwritten("a completion", "complete.writes", ended)
    }

    /// W3.
    fn release(mut self, batch: &mut Batch) -> Result<Flow, ScanError> {
        match batch.commit(&mut self)? {
            Flow::Continue => {
                let ended = end(self.session, |session, _| session.release(now()));
                lost_if_refused("a release", ended)
            }
            flow => Ok(flow),
        }
    }

    /// The source does not answer for this shard: commits what there is and parks it.
    fn park(mut self, batch: &mut Batch, error: &ConnectorError) -> Result<Flow, ScanError> {
        tracing::warn!(%error, "a shard cannot be listed and is parked");
        self.shared.context.stats.parked(error);
        let reason = match error {
            ConnectorError::PermissionDenied { .. } => ParkReason::PermissionDenied,
            ConnectorError::NotFound { .. } => ParkReason::NotFound,
            ConnectorError::Retryable { .. } => ParkReason::TooManyErrors,
            _ => ParkReason::Other,
        };
        match batch.commit(&mut self)? {
            Flow::Continue => {
                let ended = end(self.session, |session, op_id| session.park(now(), reason, op_id));
                lost_if_refused("a park", ended)
            }
            flow => Ok(flow),
        }
    }

    /// The key of a cursor. One needs a key even before anything is done: the shard's start, and
    /// while an item there is in progress the token says that it is not done.
    fn cursor_key(&self, reached: Option<&[u8]>) -> Vec<u8> {
        reached.unwrap_or(self.session.spec().start()).to_vec()
    }

    /// The half that is furthest away, if the source knows where it begins.
    fn plan_split(&self, reached: Option<&[u8]>) -> Option<ResidualSplit> {
        let range = self.session.spec();
        // Everything up to here has been handed to the scanner, committed or not.
        let cursor = CursorUpdate::new(reached, None);
        let points = self.shared.context.source.split_points(range, cursor, 1).ok()?;
        ResidualSplit::at(range, points.first()?)
            .inspect_err(|error| tracing::debug!(%error, "a shard is not split there"))
            .ok()
    }
}

impl Work for ShardWork<'_> {
    fn range(&self) -> ShardSpecRef<'_> {
        self.session.spec()
    }

    fn coordinator(&self) -> &SqliteCoordinator {
        self.session.backend()
    }

    /// W1, W2.
    fn commit(&mut self, commit: &Commit<'_>) -> Result<Flow, ScanError> {
        let last_key = self.cursor_key(commit.reached());
        let token = commit.token().to_bytes();
        let cursor = CursorUpdate::new(Some(&last_key), Some(&token));
        let (scope, run) = (self.shared.context.scope, self.shared.context.run);
        let moved = retrying(|op_id| {
            // The lease goes on with it: who commits in time renews nothing else.
            self.session
                .checkpoint_and_renew_with(now(), cursor, op_id, |tx| commit.write(tx, scope, run))
        });
        if let Ok(answer) = &moved {
            let told = answer.as_ref().into_inner();
            // One who waited and was killed counts for a while: a shard that nobody takes is enough.
            self.is_wanted = told.idle_workers > 0 && told.capacity.available_count == 0;
        }
        lost_if_unwritten("a checkpoint", "checkpoint.writes", moved)
    }

    /// Renews the lease if less than half of it is left.
    fn renew_if_needed(&mut self) -> Result<Flow, ScanError> {
        let now = now();
        let left = self.session.lease().deadline().as_raw().saturating_sub(now.as_raw());
        if left > self.shared.lease_ms / 2 {
            return Ok(Flow::Continue);
        }
        lost_if_refused("a renewal", self.session.renew(now))
    }

    fn page_listed(&mut self, _: Option<&[u8]>, _: &Page) -> Result<Flow, ScanError> {
        Ok(Flow::Continue)
    }

    /// Gives what is furthest away to a worker that has nothing to do.
    fn page_handled(&mut self, reached: Option<&[u8]>) -> Result<(), ScanError> {
        if self.shared.idle() == 0 && !self.is_wanted {
            return Ok(());
        }
        let Some(split) = self.plan_split(reached) else { return Ok(()) };
        self.is_wanted = false;
        let plan = split.plan();
        // W4: while nobody knows whether it took effect, the error ends this worker.
        match retrying(|op_id| self.session.split_residual(now(), &plan, op_id)) {
            Ok(_) => {
                self.shared.shard_changes.announce();
                Ok(())
            }
            Err(error) => match error.backend_error() {
                Some(error) => Err(error.clone().into()),
                None => {
                    tracing::debug!(%error, "a split was refused");
                    Ok(())
                }
            },
        }
    }
}

/// Tries an operation under one id again while it fails in passing: one whose answer was lost is
/// then recognised.
fn retrying<T, E: LeasedOperationError>(
    mut attempt: impl FnMut(OpId) -> Result<T, E>,
) -> Result<T, E> {
    let op_id = OpId::random();
    for tried in 1.. {
        match attempt(op_id) {
            Err(error) if error.is_retryable() && tried < TRIES => {
                std::thread::sleep(BACKOFF * tried);
            }
            outcome => return outcome,
        }
    }
    unreachable!("the tries are counted")
}

/// The same for an operation that ends its session.
fn end<'w, T, E: LeasedOperationError>(
    session: Session<'w>,
    mut attempt: impl FnMut(Session<'w>, OpId) -> Result<T, EndError<Session<'w>, E>>,
) -> Result<T, E> {
    let mut session = Some(session);
    retrying(|op_id| {
        let held = session.take().expect("an error that may pass hands the session back");
        attempt(held, op_id).map_err(|EndError { error, session: back }| {
            session = back.map(|back| *back);
            error
        })
    })
}

/// A refusal means that the shard is no longer this worker's.
fn lost_if_refused<T, E: LeasedOperationError + fmt::Display>(
    what: &str,
    answer: Result<T, E>,
) -> Result<Flow, ScanError> {
    match answer {
        Ok(_) => Ok(Flow::Continue),
        Err(error) => match error.backend_error() {
            Some(error) => Err(error.clone().into()),
            None if error.lease_is_over() => {
                tracing::info!(%error, "{what} was refused");
                Ok(Flow::Lost)
            }
            // A bug of this program: the shard is left to another worker, or parked in the end.
            None => {
                tracing::error!(%error, "{what} was refused though the lease is live");
                Ok(Flow::Lost)
            }
        },
    }
}

/// The same with writes of this worker's, which may be refused as well (D9).
fn lost_if_unwritten<T, E: LeasedOperationError + From<InfraError> + fmt::Display>(
    what: &str,
    step: &'static str,
    answer: Result<T, CommitError<E, Unwritten>>,
) -> Result<Flow, ScanError> {
    let answer = match answer {
        Ok(done) => Ok(done),
        Err(CommitError::Refused(error)) => Err(error),
        Err(CommitError::Caller(Unwritten::Failed(error))) => {
            Err(InfraError::transient(step, error.to_string()).into())
        }
        Err(CommitError::Caller(Unwritten::Superseded)) => {
            tracing::info!("{what} was refused: the run has ended");
            return Ok(Flow::Lost);
        }
    };
    lost_if_refused(what, answer)
}
