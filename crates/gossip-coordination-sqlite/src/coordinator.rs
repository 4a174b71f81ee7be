//! The coordinator: a connection and the room that its operations share.

use std::fmt;
use std::path::Path;

use gossip_contracts::identity::{LogicalTime, RunId, TenantId};
use gossip_coordination::{EventCollector, EventKind, IdempotentOutcome, StateTransitionEvent};
use rusqlite::Connection;

use crate::config::SqliteConfig;
use crate::error::OpenError;
use crate::open;
use crate::shards::{Buffers, Stored};

/// A coordinator on a SQLite file. Any number may be open on one file, in threads of one process
/// and in other processes; each is used by one thread at a time.
pub struct SqliteCoordinator {
    pub(crate) conn: Connection,
    pub(crate) config: SqliteConfig,
    pub(crate) buffers: Buffers,
    events: Option<EventCollector>,
}

impl SqliteCoordinator {
    /// Opens the database at `path`, in a directory that exists; creates it if it is missing, for
    /// its owner's eyes only, and brings an older one up to date.
    ///
    /// A file that is something else, damaged or too new is left as it is.
    pub fn open(path: impl AsRef<Path>, config: SqliteConfig) -> Result<Self, OpenError> {
        let conn = open::open(path.as_ref(), &config)?;
        Ok(Self { conn, config, buffers: Buffers::default(), events: None })
    }

    /// How the database is used.
    #[must_use]
    pub const fn config(&self) -> &SqliteConfig {
        &self.config
    }

    /// The connection, for tests that make SQLite fail.
    #[doc(hidden)]
    pub const fn connection_mut(&mut self) -> &mut Connection {
        &mut self.conn
    }

    /// Runs `f` and puts the events of what it does into `collector`, each after its commit, also
    /// when `f` panics.
    pub fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        collector.lend(self, |coordinator| &mut coordinator.events, f)
    }

    /// Reports what was committed, if anything was.
    pub(crate) fn report(
        &mut self,
        now: LogicalTime,
        stored: Option<Stored<'_>>,
    ) -> IdempotentOutcome<()> {
        let Some(Stored { tenant, key, before, update }) = stored else {
            return IdempotentOutcome::Replayed(());
        };
        self.emit(tenant, key.run, now, || update.event(key.shard, &before));
        IdempotentOutcome::Executed(())
    }

    pub(crate) fn emit(
        &mut self,
        tenant: TenantId,
        run: RunId,
        at: LogicalTime,
        kind: impl FnOnce() -> EventKind,
    ) {
        if let Some(collector) = &mut self.events {
            collector.emit(StateTransitionEvent { tenant, run, at, kind: kind() });
        }
    }
}

/// The buffers stay out: they hold keys and tokens of the last operation.
impl fmt::Debug for SqliteCoordinator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteCoordinator")
            .field("path", &self.conn.path())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
