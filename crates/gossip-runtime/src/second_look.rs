//! Everything once more, by a run that was interrupted: for what was created or changed before its
//! cursors while nobody worked on it. What its ledger lacks is read; what has gone since it was read
//! is forgotten.
//!
//! No shard is leased: one process at a time takes a second look, by a lock on a file, so that nobody
//! else writes what is known of an item in progress. What is done is committed only while the run has
//! not ended: afterwards the items may be a newer run's.

use gossip_contracts::connector::{ConnectorError, KeyRange, Page, PageEntry};
use gossip_contracts::coordination::ShardSpecRef;
use gossip_coordination::{CommitError, InfraError};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::Transaction;

use crate::batch::Commit;
use crate::ledger::below;
use crate::reason::Reason;
use crate::scan::ScanError;
use crate::scan_loop::{Flow, ScanLoop, Shared, Work};
use crate::shard_token::ShardToken;
use crate::transaction::{Unwritten, read};
use crate::{ledger, runs};

pub(crate) struct SecondLook<'s> {
    shared: &'s Shared<'s>,
    coordinator: &'s mut SqliteCoordinator,
    /// Directories that could not be listed, and what is behind everything in each: the listing may still
    /// come to what is below them.
    unlisted: Vec<KeyRange>,
}

impl<'s> SecondLook<'s> {
    pub(crate) fn new(shared: &'s Shared<'s>, coordinator: &'s mut SqliteCoordinator) -> Self {
        Self { shared, coordinator, unlisted: Vec::new() }
    }

    /// [`Flow::Lost`]: somebody else has ended the run.
    pub(crate) fn run(mut self) -> Result<Flow, ScanError> {
        let mut scan_loop = ScanLoop::default();
        let outcome = scan_loop.run(self.shared, &mut self, None, ShardToken::default());
        if matches!(outcome, Ok(Flow::Lost) | Err(ScanError::Storage(_))) {
            return outcome;
        }
        match scan_loop.batch.commit(&mut self)? {
            Flow::Lost => Ok(Flow::Lost),
            _ => outcome,
        }
    }

    fn unless_ended(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> Result<(), Unwritten>,
    ) -> Result<Flow, ScanError> {
        let run = self.shared.context.run;
        let written = self.coordinator.transaction(|tx| {
            runs::check_open(tx, run)?;
            write(tx)
        });
        match written {
            Ok(()) => Ok(Flow::Continue),
            Err(CommitError::Caller(Unwritten::Superseded)) => Ok(Flow::Lost),
            Err(CommitError::Caller(Unwritten::Failed(error))) => {
                Err(InfraError::transient("second_look.writes", error.to_string()).into())
            }
            Err(CommitError::Refused(error)) => Err(error.into()),
        }
    }
}

impl Work for SecondLook<'_> {
    fn range(&self) -> ShardSpecRef<'_> {
        self.shared.context.source.key_range()
    }

    fn coordinator(&self) -> &SqliteCoordinator {
        self.coordinator
    }

    fn commit(&mut self, commit: &Commit<'_>) -> Result<Flow, ScanError> {
        let (scope, run) = (self.shared.context.scope, self.shared.context.run);
        self.unless_ended(|tx| commit.write(tx, scope, run))
    }

    fn renew_if_needed(&mut self) -> Result<Flow, ScanError> {
        Ok(Flow::Continue)
    }

    /// Forgets the items that the page passes over and that are gone.
    fn page_listed(&mut self, after: Option<&[u8]>, page: &Page) -> Result<Flow, ScanError> {
        let context = &self.shared.context;
        let range = context.source.key_range();
        let incremental = context.source.incremental_ranges();
        let counts_unlisted =
            |key: &Vec<u8>| incremental.iter().any(|(start, end)| (start..end).contains(&key));
        let after = after.unwrap_or(range.start());
        self.unlisted.retain(|(_, end)| after < &end[..]);
        let cannot_be_listed = |entry: &PageEntry<'_>| {
            entry.skip.map(Reason::of_listing).is_some_and(Reason::is_failure)
        };
        self.unlisted.extend(page.iter().filter(cannot_be_listed).map(|entry| below(entry.key)));
        let unlisted = self.unlisted.clone();
        let is_below_unlisted =
            |key: &Vec<u8>| unlisted.iter().any(|(start, end)| (start..end).contains(&key));
        let mut after = after.to_vec();
        loop {
            let mut gone = read(self.coordinator, "ledger.unlisted", |tx| {
                ledger::find_unlisted(tx, context.scope, &after, page, range.end())
            })?;
            let has_more = gone.len() == ledger::UNLISTED_MAX;
            // Those that stay must not hide what comes behind them.
            if let Some(last) = gone.last() {
                after.clone_from(last);
            }
            // The listing began before this look at the ledger: what another process has read since
            // then is not in it. What cannot be opened either is gone, unless nobody can look there (D2).
            gone.retain(|key| {
                use ConnectorError::{NotFound, Permanent};
                !counts_unlisted(key)
                    && !is_below_unlisted(key)
                    && matches!(context.source.open(key), Err(NotFound { .. } | Permanent { .. }))
            });
            if !gone.is_empty() {
                let flow = self.unless_ended(|tx| {
                    gone.iter().try_for_each(|key| Ok(ledger::forget_item(tx, context.scope, key)?))
                })?;
                if flow != Flow::Continue {
                    return Ok(flow);
                }
            }
            if !has_more {
                return Ok(Flow::Continue);
            }
        }
    }

    fn page_handled(&mut self, _: Option<&[u8]>) -> Result<(), ScanError> {
        Ok(())
    }
}
