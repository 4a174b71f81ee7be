//! The thread that applies and stores, batch by batch, and drops the keys that have vanished.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};

use super::FoldError;
use super::applier::Applier;
use super::command::{Batch, Command, Finish, Finished, Standing};
use super::listed::ListedKeys;
use super::status::{Control, FoldStatus, Shared};
use crate::artifact::About;
use crate::kv::{Key, KvUpdate, LogCursor, VersionToken, WatchCursor, WatchScope};
use crate::protocol::{self, Authority, Stored, Vanished};
use crate::snapshot::{SnapshotError, SnapshotStore};

/// While it waits to try again, the thread looks this often whether it should end.
const NAP: Duration = Duration::from_millis(20);

/// A resync that goes on, as the store has it.
pub(super) struct Resync {
    /// The in-repair cursor, which is stored with everything until the end.
    cursor: WatchCursor,
    lists: bool,
    /// The keys that were listed; `None` if the fold had no entry that could have vanished.
    listed: Option<ListedKeys>,
    /// Updates since it began, for the status.
    delivered: u64,
    /// The version of the first one: nothing that came is below it.
    first: Option<u64>,
}

pub(super) struct ApplyLoop<S, A> {
    pub(super) store: S,
    pub(super) applier: A,
    pub(super) authority: Authority,
    pub(super) resync: Option<Resync>,
    pub(super) batch_max: usize,
    bucket: Option<String>,
    scope: WatchScope,
    /// Of the scope.
    pub(super) prefixes: Vec<String>,
    pub(super) status: watch::Sender<FoldStatus>,
    pub(super) shared: Arc<Shared>,
}

impl<S: SnapshotStore, A: Applier> ApplyLoop<S, A> {
    pub(super) fn new(
        store: S,
        applier: A,
        control: &Control,
        batch_max: usize,
        bucket: Option<String>,
        scope: WatchScope,
    ) -> Self {
        let prefixes = scope.prefixes().into_iter().map(str::to_owned).collect();
        Self {
            store,
            applier,
            authority: Authority::new(0),
            resync: None,
            batch_max,
            bucket,
            scope,
            prefixes,
            status: control.status.clone(),
            shared: Arc::clone(&control.shared),
        }
    }

    /// Works until the commands end or the store does not heal.
    pub(super) fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
    ) -> (S, Result<(), FoldError>) {
        while let Some(command) = commands.blocking_recv() {
            if let Err(error) = self.execute(command) {
                return (self.store, Err(error));
            }
        }
        (self.store, Ok(()))
    }

    fn execute(&mut self, command: Command) -> Result<(), FoldError> {
        match command {
            Command::Resume { revision, incomplete } => {
                self.resync = None;
                self.authority = Authority::new(revision);
                self.status.send_modify(|status| {
                    (status.applied, status.may_be_incomplete) = (revision, incomplete);
                });
            }
            Command::BeginResync { cursor, lists } => self.begin_resync(&cursor, lists)?,
            Command::Batch(batch) => self.fold(batch)?,
            Command::FinishResync(finish) => self.finish_resync(finish)?,
            Command::Restore(from) => self.restore(*from)?,
            // Everything before it has been stored.
            Command::Export(request, cursor) => {
                let about = self.about(cursor);
                request.answer(&mut self.store, about);
            }
            Command::Standing(reply) => {
                let _ = reply.send(self.standing().map_err(FoldError::Read)?);
            }
        }
        Ok(())
    }

    fn about(&self, cursor: LogCursor) -> About {
        let applied_at = self.status.borrow().applied_at;
        let since_epoch = applied_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        About {
            bucket: self.bucket.clone(),
            scope: self.scope.clone(),
            cursor_time_ms: since_epoch.map(|since| since.as_millis() as u64),
            cursor: Some(cursor),
        }
    }

    fn standing(&self) -> Result<Standing, SnapshotError> {
        let stored = self.store.cursor();
        let cursor = (!stored.is_none()).then(|| LogCursor::decode(&stored)).transpose();
        let has_orphans = stored.is_none() && !self.is_empty()?;
        Ok(Standing { cursor, has_orphans })
    }

    fn is_empty(&self) -> Result<bool, SnapshotError> {
        let mut is_empty = true;
        for prefix in &self.prefixes {
            self.store.for_each_key(prefix, &mut |_| {
                is_empty = false;
                ControlFlow::Break(())
            })?;
        }
        Ok(is_empty)
    }

    fn begin_resync(&mut self, cursor: &LogCursor, lists: bool) -> Result<(), FoldError> {
        assert!(cursor.in_repair, "nobody may resume from the middle of a resync");
        let cursor = cursor.encode();
        self.authority = Authority::new(0);
        if cursor != self.store.cursor() {
            self.store_until_taken(&[], &cursor)?;
        }
        self.applier.on_resync(&cursor);
        self.status.send_modify(|status| status.behind = true);
        let has_entries =
            self.applier.keeps_entries() || !self.is_empty().map_err(FoldError::Read)?;
        let compares = lists && has_entries;
        let listed = compares.then(ListedKeys::new);
        self.resync = Some(Resync { cursor, lists, listed, delivered: 0, first: None });
        Ok(())
    }

    /// Applies a batch, stores it, and says so, in this order (A1).
    fn fold(&mut self, batch: Batch) -> Result<(), FoldError> {
        let applied = match self.resync.take() {
            Some(mut resync) => {
                resync.note(&batch.updates);
                self.apply(&batch.updates);
                self.store_until_taken(&batch.updates, &resync.cursor)?;
                self.resync = Some(resync);
                None
            }
            None => Some(self.fold_complete(&batch)?),
        };
        let in_resync = self.resync.is_some();
        let position = batch.cursor.position.revision;
        let incomplete = batch.cursor.incomplete;
        self.status.send_modify(|status| {
            if let Some(revision) = applied {
                status.applied(revision);
                status.may_be_incomplete = incomplete;
            }
            status.updates += batch.updates.len() as u64;
            status.behind = in_resync || batch.more || position < self.shared.received();
            if batch.stored_at_ns > 0 {
                let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(batch.stored_at_ns);
                status.applied_at = Some(at);
            }
            status.synced |= batch.synced;
        });
        Ok(())
    }

    fn fold_complete(&mut self, batch: &Batch) -> Result<u64, FoldError> {
        for update in &batch.updates {
            self.authority.receive(update.version().as_u64());
        }
        // A watch's position passes what was never sent to it, too.
        self.authority.receive(Some(batch.cursor.position.revision));
        self.apply(&batch.updates);
        let (stored, next) = (self.authority.resume_at(), batch.cursor.position.revision);
        assert!(next >= stored, "P4: the cursor would move back from {stored} to {next}");
        let revision = self.authority.apply();
        let cursor = batch.cursor.encode();
        if !batch.updates.is_empty() || cursor != self.store.cursor() {
            self.store_until_taken(&batch.updates, &cursor)?;
        }
        self.applier.on_applied(&cursor, revision);
        Ok(revision)
    }

    pub(super) fn apply(&mut self, updates: &[KvUpdate]) {
        let items: Vec<_> =
            updates.iter().filter_map(|update| self.applier.parse(update)).collect();
        if !items.is_empty() {
            self.applier.apply(items);
        }
    }

    /// Stores a batch, however often that takes (A2).
    pub(super) fn store_until_taken(
        &mut self,
        updates: &[KvUpdate],
        cursor: &WatchCursor,
    ) -> Result<(), FoldError> {
        let mut failures = 0;
        let mut waits = false;
        loop {
            let result = self.store.apply(updates, cursor);
            let being_read = matches!(result, Err(SnapshotError::BeingRead));
            if being_read && !waits {
                tracing::warn!("readers of the store keep it from being opened again; waiting");
            }
            if being_read != waits {
                waits = being_read;
                self.status.send_modify(|status| status.waits_for_readers = waits);
            }
            if waits && !self.shared.is_shut_down() {
                self.sleep(NAP);
                continue;
            }
            let wait = match (self.authority.store(result.is_ok()), result) {
                (Stored::RetryAfter(wait), Err(error)) if !self.shared.is_shut_down() => {
                    failures += 1;
                    tracing::warn!(%error, failures, "the store failed; trying again");
                    wait
                }
                (_, Err(source)) => {
                    return Err(FoldError::Store { failures: failures + 1, source });
                }
                (_, Ok(())) => return Ok(()),
            };
            self.sleep(wait);
        }
    }

    fn sleep(&self, mut wait: Duration) {
        while !wait.is_zero() && !self.shared.is_shut_down() {
            let nap = wait.min(NAP);
            std::thread::sleep(nap);
            wait -= nap;
        }
    }

    /// Drops the keys that have vanished; the cursor comes with the last of them (P6).
    fn finish_resync(&mut self, finish: Finish) -> Result<(), FoldError> {
        let Finish { floor, vanished, subjects, untouched, cursor, finished } = finish;
        let Some(resync) = &self.resync else { unreachable!("a resync is begun before it ends") };
        let delivered = resync.count();
        let counts = untouched || resync.listed.is_some();
        if counts && subjects.is_some_and(|subjects| subjects != delivered) {
            let _ = finished.send(Finished::NotWhole { delivered });
            return Ok(());
        }
        let (lists, in_repair) = (resync.lists, resync.cursor.clone());
        let keys = self.vanished_keys(resync, floor).map_err(FoldError::Read)?;
        let (dropped, unconfirmed) = match vanished {
            Vanished::Delete => (keys, Vec::new()),
            Vanished::Keep => (Vec::new(), keys),
        };
        let (dropped_count, kept_count) = (dropped.len() as u64, unconfirmed.len() as u64);
        if vanished == Vanished::Delete {
            self.applier.retain(&|key, version| !resync.is_vanished(key, version, floor));
        }
        if kept_count > 0 {
            tracing::warn!(kept_count, "keys of the fold that the bucket did not list are kept");
            self.applier.unconfirmed(unconfirmed);
        }
        let (revision, incomplete) = (cursor.position.revision, cursor.incomplete);
        let cursor = cursor.encode();
        if !self.drop_keys(dropped, &in_repair, &cursor)? {
            let _ = finished.send(Finished::ShutDown);
            return Ok(());
        }
        self.resync = None;
        self.authority = Authority::new(revision);
        self.applier.on_applied(&cursor, revision);
        let _ = finished.send(Finished::Complete);
        self.status.send_modify(|status| {
            status.applied(revision);
            status.behind = revision < self.shared.received();
            status.may_be_incomplete = incomplete;
            status.resynced(lists, dropped_count, kept_count);
        });
        Ok(())
    }

    /// Drops keys, the last of them with the final cursor. Whether it came to that, rather than to a
    /// shutdown.
    fn drop_keys(
        &mut self,
        keys: Vec<Key>,
        in_repair: &WatchCursor,
        last: &WatchCursor,
    ) -> Result<bool, FoldError> {
        let delete = |key| KvUpdate::Delete { key, version: VersionToken::unknown() };
        let deletes: Vec<KvUpdate> = keys.into_iter().map(delete).collect();
        if deletes.is_empty() {
            self.store_until_taken(&[], last)?;
        }
        let mut chunks = deletes.chunks(self.batch_max).peekable();
        while let Some(chunk) = chunks.next() {
            if self.shared.is_shut_down() {
                return Ok(false);
            }
            self.apply(chunk);
            let cursor = if chunks.peek().is_none() { last } else { in_repair };
            self.store_until_taken(chunk, cursor)?;
        }
        Ok(true)
    }

    /// The keys of the fold that the log does not have, whoever took them.
    fn vanished_keys(&self, resync: &Resync, floor: u64) -> Result<Vec<Key>, SnapshotError> {
        let mut gone = Vec::new();
        // Nothing to look for: the fold was empty, and nothing listed is below the floor.
        let all_above = resync.first.is_none_or(|first| first >= floor);
        if resync.lists && resync.listed.is_none() && all_above {
            return Ok(gone);
        }
        for prefix in &self.prefixes {
            self.store.for_each_in_range(prefix, &mut |entry| {
                if resync.is_vanished(entry.key, entry.version, floor) {
                    gone.push(Key::from(entry.key));
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(gone)
    }
}

impl Resync {
    fn note(&mut self, updates: &[KvUpdate]) {
        self.delivered += updates.len() as u64;
        if self.first.is_none() {
            self.first = updates.iter().find_map(|update| update.version().as_u64());
        }
        if let Some(listed) = &mut self.listed {
            updates.iter().for_each(|update| listed.note(update));
        }
    }

    fn is_vanished(&self, key: &str, version: VersionToken, floor: u64) -> bool {
        let listed = self.listed.as_ref().is_none_or(|keys| keys.has_value(key.as_bytes()));
        protocol::is_vanished(listed, version.as_u64(), floor)
    }

    /// The keys that came; or the updates, where nobody has looked at the keys.
    fn count(&self) -> u64 {
        self.listed.as_ref().map_or(self.delivered, ListedKeys::count)
    }
}
