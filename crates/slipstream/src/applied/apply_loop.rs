//! The thread that applies and stores, batch by batch, and drops the keys that have vanished.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot, watch};

use super::FoldError;
use super::export::{ExportError, ExportRequest};
use super::seen::Seen;
use super::status::{Control, FoldStatus, Shared};
use crate::kv::{CursorExpiry, Key, KvUpdate, LogCursor, VersionToken, WatchCursor};
use crate::protocol::{self, Authority, Stored, Vanished};
use crate::snapshot::{SnapshotError, SnapshotStore};

/// While it waits to try again, the thread looks this often whether it should end.
const NAP: Duration = Duration::from_millis(20);

/// What the caller does with updates.
///
/// Updates may come more than once (after an interruption, or a crash), always in the order of the
/// log. A resync adds deletes, of unknown version, of the keys that have vanished from the bucket; until
/// it is over there is no `on_applied`. `()` does nothing: the store is all there is.
pub trait Applier: Send + 'static {
    /// An update as the caller sees it.
    type Item;

    /// Reads an update. `None` for one that does not concern the caller: it is stored, and counts,
    /// all the same.
    fn parse(&mut self, update: &KvUpdate) -> Option<Self::Item>;

    /// Applies what was parsed of a batch, if there is anything.
    fn apply(&mut self, batch: Vec<Self::Item>);

    /// The store has taken everything up to this cursor.
    fn on_applied(&mut self, cursor: &WatchCursor, revision: u64) {
        let _ = (cursor, revision);
    }

    /// A resync begins, and this is the fold's cursor until its end: whoever stores cursors stores it
    /// before anything that follows. Nobody can resume from it.
    fn on_resync(&mut self, cursor: &WatchCursor) {
        let _ = cursor;
    }

    /// Whether the applier has entries that the store does not have ([`CursorOnly`](crate::CursorOnly)).
    fn keeps_entries(&self) -> bool {
        false
    }

    /// A resync is about to end: every entry of the applier's own is to go for which `is_current` says
    /// no, given its key and the version that it came with.
    fn retain(&mut self, is_current: &dyn Fn(&str, VersionToken) -> bool) {
        let _ = is_current;
    }

    /// After a repair: keys that are in the fold and that the bucket did not list. They were kept,
    /// because the log may have evicted them.
    fn unconfirmed(&mut self, keys: Vec<Key>) {
        let _ = keys;
    }
}

impl Applier for () {
    type Item = std::convert::Infallible;

    fn parse(&mut self, _: &KvUpdate) -> Option<Self::Item> {
        None
    }

    fn apply(&mut self, _: Vec<Self::Item>) {}
}

/// Updates that are applied and stored together.
pub(super) struct Batch {
    pub(super) updates: Vec<KvUpdate>,
    /// Covers them. Not stored in a resync.
    pub(super) cursor: LogCursor,
    /// When the last update was written, in Unix nanoseconds; 0 if there is none.
    pub(super) stored_at_ns: u64,
    /// Whether more was known to come when it was received.
    pub(super) more: bool,
    /// Whether the watch has now handed out everything that it began with.
    pub(super) synced: bool,
}

/// What the watch loop asks for. Each is done after everything that was asked before.
pub(super) enum Command {
    /// A watch goes on from this revision, with a complete fold.
    Resume {
        revision: u64,
    },
    /// A resync begins. Its cursor is stored with everything until its end.
    BeginResync {
        cursor: LogCursor,
        lists: bool,
    },
    Batch(Batch),
    FinishResync(Finish),
    Export(ExportRequest),
    /// How the fold stands, when everything before is stored.
    Standing(oneshot::Sender<Standing>),
}

/// The end of a resync: everything that it waited for is in the commands before.
pub(super) struct Finish {
    pub(super) floor: u64,
    pub(super) vanished: Vanished,
    /// How many keys a listing of the whole bucket has to have brought, if that is known.
    pub(super) subjects: Option<u64>,
    /// Whether nobody has written since the listing began, so that each key came once.
    pub(super) untouched: bool,
    /// What the fold has when the vanished keys are gone.
    pub(super) cursor: LogCursor,
    pub(super) finished: oneshot::Sender<Finished>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// The fold is complete.
    Complete,
    /// The listing brought too few keys, or too many. Nothing was dropped.
    NotWhole { delivered: u64 },
    /// The fold is to end. It is still in the resync.
    ShutDown,
}

/// How a fold stands that no watch feeds.
pub(super) struct Standing {
    pub(super) cursor: Result<Option<LogCursor>, CursorExpiry>,
    /// Whether it has keys, though no cursor.
    pub(super) has_orphans: bool,
}

/// A resync that goes on.
struct Resync {
    /// In repair.
    cursor: WatchCursor,
    lists: bool,
    /// What was listed; nobody needs to know that of a fold that had nothing when the listing began.
    seen: Option<Seen>,
    /// Updates that came.
    delivered: u64,
    /// The version of the first one: nothing that came is below it.
    first: Option<u64>,
}

pub(super) struct ApplyLoop<S, A> {
    store: S,
    applier: A,
    authority: Authority,
    resync: Option<Resync>,
    batch_max: usize,
    /// Of the scope.
    prefixes: Vec<String>,
    status: watch::Sender<FoldStatus>,
    shared: Arc<Shared>,
}

impl<S: SnapshotStore, A: Applier> ApplyLoop<S, A> {
    pub(super) fn new(
        store: S,
        applier: A,
        control: &Control,
        batch_max: usize,
        prefixes: Vec<String>,
    ) -> Self {
        Self {
            store,
            applier,
            authority: Authority::new(0),
            resync: None,
            batch_max,
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
            Command::Resume { revision } => {
                self.resync = None;
                self.authority = Authority::new(revision);
                self.status.send_modify(|status| status.applied = revision);
            }
            Command::BeginResync { cursor, lists } => self.begin_resync(&cursor, lists)?,
            Command::Batch(batch) => self.fold(batch)?,
            Command::FinishResync(finish) => self.finish_resync(finish)?,
            // Everything before it has been stored.
            Command::Export(request) => {
                let _ = request.reply.send(Err(ExportError::Unsupported));
            }
            Command::Standing(reply) => {
                let _ = reply.send(self.standing().map_err(FoldError::Read)?);
            }
        }
        Ok(())
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
            self.store(&[], &cursor)?;
        }
        self.applier.on_resync(&cursor);
        let has_entries =
            self.applier.keeps_entries() || !self.is_empty().map_err(FoldError::Read)?;
        let compares = lists && has_entries;
        let seen = compares.then(Seen::new);
        self.resync = Some(Resync { cursor, lists, seen, delivered: 0, first: None });
        Ok(())
    }

    /// A1.
    fn fold(&mut self, batch: Batch) -> Result<(), FoldError> {
        let applied = match self.resync.take() {
            Some(mut resync) => {
                resync.note(&batch.updates);
                self.apply(&batch.updates);
                self.store(&batch.updates, &resync.cursor)?;
                self.resync = Some(resync);
                None
            }
            None => Some(self.fold_complete(&batch)?),
        };
        self.status.send_modify(|status| {
            applied.into_iter().for_each(|revision| status.applied(revision));
            status.updates += batch.updates.len() as u64;
            status.behind = batch.more;
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
        let revision = self.authority.apply();
        let cursor = batch.cursor.encode();
        if !batch.updates.is_empty() || cursor != self.store.cursor() {
            self.store(&batch.updates, &cursor)?;
        }
        self.applier.on_applied(&cursor, revision);
        Ok(revision)
    }

    fn apply(&mut self, updates: &[KvUpdate]) {
        let items: Vec<_> =
            updates.iter().filter_map(|update| self.applier.parse(update)).collect();
        if !items.is_empty() {
            self.applier.apply(items);
        }
    }

    /// Stores a batch, however often that takes (A2).
    fn store(&mut self, updates: &[KvUpdate], cursor: &WatchCursor) -> Result<(), FoldError> {
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
        let counts = untouched || resync.seen.is_some();
        if counts && subjects.is_some_and(|subjects| subjects != delivered) {
            let _ = finished.send(Finished::NotWhole { delivered });
            return Ok(());
        }
        let gone = self.vanished(resync, floor).map_err(FoldError::Read)?;
        let (lists, in_repair) = (resync.lists, resync.cursor.clone());
        if vanished == Vanished::Delete {
            self.applier.retain(&|key, version| !resync.is_vanished(key, version, floor));
        }
        let (dropped, unconfirmed) = match vanished {
            Vanished::Delete => (gone, Vec::new()),
            Vanished::Keep => (Vec::new(), gone),
        };
        let counts = (dropped.len() as u64, unconfirmed.len() as u64);
        if !unconfirmed.is_empty() {
            let count = counts.1;
            tracing::warn!(count, "keys of the fold that the bucket did not list are kept");
            self.applier.unconfirmed(unconfirmed);
        }
        let (revision, cursor) = (cursor.position.revision, cursor.encode());
        if !self.drop_keys(dropped, &in_repair, &cursor)? {
            let _ = finished.send(Finished::ShutDown);
            return Ok(());
        }
        self.resync = None;
        self.authority = Authority::new(revision);
        self.applier.on_applied(&cursor, revision);
        // Whoever sees the status finds the watch loop following on.
        let _ = finished.send(Finished::Complete);
        self.status.send_modify(|status| {
            status.applied(revision);
            status.resynced(lists, counts.0, counts.1);
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
            self.store(&[], last)?;
        }
        let mut chunks = deletes.chunks(self.batch_max).peekable();
        while let Some(chunk) = chunks.next() {
            if self.shared.is_shut_down() {
                return Ok(false);
            }
            self.apply(chunk);
            let cursor = if chunks.peek().is_none() { last } else { in_repair };
            self.store(chunk, cursor)?;
        }
        Ok(true)
    }

    /// The keys that the log does not have, whoever took them.
    fn vanished(&self, resync: &Resync, floor: u64) -> Result<Vec<Key>, SnapshotError> {
        let mut gone = Vec::new();
        // All that a listing into an empty fold brought may be at or above the floor.
        let all_above = resync.first.is_none_or(|first| first >= floor);
        if resync.lists && resync.seen.is_none() && all_above {
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
        if let Some(seen) = &mut self.seen {
            updates.iter().for_each(|update| seen.note(update));
        }
    }

    fn is_vanished(&self, key: &str, version: VersionToken, floor: u64) -> bool {
        let listed = self.seen.as_ref().is_none_or(|seen| seen.has_value(key.as_bytes()));
        protocol::is_vanished(listed, version.as_u64(), floor)
    }

    /// The keys that came; or the updates, where nobody has looked at the keys.
    fn count(&self) -> u64 {
        self.seen.as_ref().map_or(self.delivered, Seen::count)
    }
}
