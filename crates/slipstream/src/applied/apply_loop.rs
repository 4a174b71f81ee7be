//! The thread that applies and stores, batch by batch.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot, watch};

use super::FoldError;
use super::export::{ExportError, ExportRequest};
use super::status::{Control, FoldStatus, Shared};
use crate::kv::{Key, KvUpdate, VersionToken, WatchCursor};
use crate::log_cursor;
use crate::protocol::{self, Authority, Stored};
use crate::snapshot::{SnapshotError, SnapshotStore};

/// While it waits to try again, the thread looks this often whether it should end.
const NAP: Duration = Duration::from_millis(20);

/// What the caller does with updates.
///
/// Updates may come more than once (after an interruption, or a crash), always in the order of the
/// log. Besides, there are deletes of keys that the bucket was found not to have: of unknown version,
/// and without `on_applied` after them; or with the version of the value that they take the place of.
/// `()` does nothing: the store is all there is.
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

    /// After a repair: keys that are in the fold and that the bucket did not list. They were kept,
    /// because the log forgets current values or because there was no reader to ask.
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
#[derive(Default)]
pub(super) struct Batch {
    pub(super) updates: Vec<KvUpdate>,
    pub(super) cursor: WatchCursor,
    /// What the cursor stands for.
    pub(super) revision: u64,
    /// When the last update was written, in Unix nanoseconds; 0 if there is none.
    pub(super) stored_at_ns: u64,
    /// Whether more was known to come when it was received.
    pub(super) more: bool,
    /// Whether the watch has now handed out everything that it began with.
    pub(super) synced: bool,
}

/// A listing of the bucket's keys.
pub(super) struct Listing {
    pub(super) live: HashSet<Key>,
    /// The head of the log before it.
    pub(super) up_to: u64,
    /// And after it: what it does not have may have been deleted up to here.
    pub(super) end: u64,
}

impl Listing {
    /// Of a value that is on its way.
    pub(super) fn is_vanished(&self, key: &str, revision: Option<u64>) -> bool {
        protocol::has_vanished(self.live.contains(key), revision, self.up_to)
    }
}

pub(super) enum Command {
    /// A watch was armed at this revision. Whether it lists the bucket, and whether keys that it
    /// does not list are to be reported.
    Arm {
        revision: u64,
        lists: bool,
        report: bool,
    },
    Batch(Batch),
    /// Delete what the bucket no longer has; answers with how many. Whether the cursor goes as well:
    /// it has expired, and must not be taken for good later.
    Sweep {
        forget: bool,
        listing: Arc<Listing>,
        deleted: oneshot::Sender<u64>,
    },
    Export(ExportRequest),
    /// Answers with where the store stands.
    Where(oneshot::Sender<Standing>),
}

/// Where a store stands.
pub(super) struct Standing {
    pub(super) cursor: WatchCursor,
    /// Whether it has no cursor and yet entries of the scope, of which nobody knows how old they are.
    pub(super) has_orphans: bool,
}

pub(super) struct ApplyLoop<S, A> {
    store: S,
    applier: A,
    authority: Authority,
    batch_max: usize,
    /// Hashes of the keys that a listing watch has brought, while they are counted.
    seen: Option<(HashSet<u64>, RandomState)>,
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
            batch_max,
            seen: None,
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
            Command::Arm { revision, lists, report } => {
                self.authority = Authority::new(revision);
                self.seen = report.then(|| (HashSet::new(), RandomState::new()));
                self.status.send_modify(|status| {
                    // A listing begins at nothing, but the fold still has what it had.
                    if !lists {
                        status.applied = revision;
                    }
                });
            }
            Command::Batch(batch) => {
                self.fold(&batch)?;
                if batch.synced {
                    self.synced()?;
                }
            }
            Command::Sweep { forget, listing, deleted } => {
                let count = self.sweep(&listing, forget)?;
                let _ = deleted.send(count);
            }
            // Everything before it has been stored.
            Command::Export(request) => {
                let _ = request.reply.send(Err(ExportError::Unsupported));
            }
            Command::Where(reply) => {
                let _ = reply.send(self.standing().map_err(FoldError::Read)?);
            }
        }
        Ok(())
    }

    fn standing(&self) -> Result<Standing, SnapshotError> {
        let cursor = self.store.cursor();
        let mut has_orphans = false;
        for prefix in self.prefixes.iter().filter(|_| cursor.is_none()) {
            self.store.for_each_key(prefix, &mut |_| {
                has_orphans = true;
                ControlFlow::Break(())
            })?;
        }
        Ok(Standing { cursor, has_orphans })
    }

    /// A1.
    fn fold(&mut self, batch: &Batch) -> Result<(), FoldError> {
        for update in &batch.updates {
            self.authority.receive(update.version().as_u64());
        }
        // A watch's position passes what was never sent to it, too.
        self.authority.receive(Some(batch.revision));
        if let Some((seen, state)) = &mut self.seen {
            seen.extend(batch.updates.iter().map(|update| state.hash_one(update.key().as_bytes())));
        }
        self.apply(&batch.updates);
        let revision = self.authority.apply();
        if !batch.updates.is_empty() || batch.cursor != self.store.cursor() {
            self.store(&batch.updates, &batch.cursor)?;
        }
        self.applier.on_applied(&batch.cursor, revision);
        self.status.send_modify(|status| {
            status.applied = revision;
            status.head = status.head.max(revision);
            status.updates += batch.updates.len() as u64;
            status.behind = batch.more;
            if batch.stored_at_ns > 0 {
                let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(batch.stored_at_ns);
                status.applied_at = Some(at);
            }
        });
        Ok(())
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

    /// Deletes the keys that the listing lacks, without moving the cursor; but it says how far the
    /// log went that does not have them.
    fn sweep(&mut self, listing: &Listing, forget: bool) -> Result<u64, FoldError> {
        let gone = self.absent(listing).map_err(FoldError::Read)?;
        let count = gone.len() as u64;
        let cursor = match forget {
            true => WatchCursor::none(),
            false => log_cursor::amended(self.store.cursor(), listing.end, u64::MAX),
        };
        let delete = |key| KvUpdate::Delete { key, version: VersionToken::unknown() };
        let deletes: Vec<KvUpdate> = gone.into_iter().map(delete).collect();
        for batch in deletes.chunks(self.batch_max) {
            self.apply(batch);
            self.store(batch, &cursor)?;
        }
        Ok(count)
    }

    fn absent(&self, listing: &Listing) -> Result<Vec<Key>, SnapshotError> {
        let mut gone = Vec::new();
        for prefix in &self.prefixes {
            self.store.for_each_key(prefix, &mut |key| {
                if !listing.live.contains(key) {
                    gone.push(Key::from(key));
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(gone)
    }

    fn synced(&mut self) -> Result<(), FoldError> {
        if let Some((seen, state)) = self.seen.take() {
            let mut unconfirmed = Vec::new();
            for prefix in &self.prefixes {
                let note = &mut |key: &str| {
                    if !seen.contains(&state.hash_one(key.as_bytes())) {
                        unconfirmed.push(Key::from(key));
                    }
                    ControlFlow::Continue(())
                };
                self.store.for_each_key(prefix, note).map_err(FoldError::Read)?;
            }
            let count = unconfirmed.len() as u64;
            if count > 0 {
                tracing::warn!(count, "keys of the fold that the bucket did not list were kept");
                self.applier.unconfirmed(unconfirmed);
            }
            self.status.send_modify(|status| {
                if let Some(repair) = &mut status.last_repair {
                    repair.unconfirmed = count;
                }
            });
        }
        self.status.send_modify(|status| status.synced = true);
        Ok(())
    }
}
