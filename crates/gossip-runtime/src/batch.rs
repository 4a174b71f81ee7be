//! What was done since the last commit, and when it is time for the next.

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::Transaction;

use crate::clock::now;
use crate::ledger::{self, ItemRow, LedgerRow};
use crate::options::ScanOptions;
use crate::partial_item::PartialItem;
use crate::runs::{self, Scope};
use crate::scan::ScanError;
use crate::scan_loop::{Flow, Work};
use crate::shard_token::ShardToken;
use crate::totals::Counts;
use crate::transaction::Unwritten;

/// Findings that may wait for a commit: a bound on memory, not on findings.
const OCCURRENCES_MAX: usize = 10_000;

/// A place in an item: a file of an archive, or 0, and an offset.
pub(crate) type Position = (u64, u64);

/// An item in whose middle a commit may be made.
pub(crate) trait InProgress {
    /// The row so far. Its version is that of the whole item.
    fn row(&self) -> &ItemRow;

    /// Its occurrences up to now are committed.
    fn partial_is_committed(&mut self);

    /// What a token says of it, once something was scanned.
    fn partial(&self) -> Option<PartialItem>;

    /// Where it would be gone on with from there.
    fn position(&self) -> Option<Position>;

    /// Bytes that were read and would be read again from there.
    fn read_again(&self) -> u64;

    /// Bytes of it that the ledger calls done.
    fn bytes_done(&self) -> u64;
}

/// What was done since the last commit, and how far that goes.
#[derive(Default)]
pub(crate) struct Batch {
    rows: Vec<ItemRow>,
    unchanged: Vec<Vec<u8>>,
    /// Bytes read that would have to be read again.
    uncommitted_bytes: u64,
    occurrences: usize,
    began_ms: Option<u64>,
    /// Commits of the shard.
    step: u64,
    /// The last key that was handled, committed or not.
    reached: Option<Vec<u8>>,
    /// Of everything up to there, also of what was committed long ago (T2).
    counts: Counts,
    /// The source's token for what comes after the last page that was handled.
    listing: Option<Vec<u8>>,
    /// Whether `reached` is ahead of the last commit.
    has_advanced: bool,
    /// What is committed of the item in progress, or was when it was left.
    partial: Option<PartialItem>,
    /// Of the item in progress, where it would be gone on with if the worker died.
    committed_at: Position,
    /// Of the item in progress, how often it was begun anew (T4).
    restarts: u32,
}

/// What one commit makes durable.
pub(crate) struct Commit<'c> {
    batch: &'c Batch,
    /// The item in progress, if something of it was scanned, and what its token says.
    in_progress: Option<(PartialItem, &'c dyn InProgress)>,
}

impl Commit<'_> {
    /// The last key that was handled.
    pub(crate) fn reached(&self) -> Option<&[u8]> {
        self.batch.reached()
    }

    /// What the cursor says beside that key.
    pub(crate) fn token(&self) -> ShardToken {
        ShardToken {
            step: self.batch.step.saturating_add(1),
            counts: self.batch.counts.clone(),
            partial: self.in_progress.as_ref().map(|(partial, _)| partial.clone()),
            listing: self.batch.listing.clone(),
            restarts: if self.in_progress.is_some() { self.batch.restarts } else { 0 },
        }
    }

    /// Writes all of it, as long as the run has not ended (D9).
    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        run: RunId,
    ) -> Result<(), Unwritten> {
        runs::check_open(tx, run)?;
        for key in &self.batch.unchanged {
            ledger::keep_item(tx, scope, key, run)?;
        }
        for row in &self.batch.rows {
            row.put(tx, scope, run)?;
        }
        match self.in_progress {
            Some((_, item)) => item.row().put_partial(tx, scope, run, item.bytes_done()),
            None => Ok(()),
        }
    }
}

impl Batch {
    /// Empty, and everything up to `reached` is committed, with `token`.
    pub(crate) fn starting_after(reached: Option<&[u8]>, token: ShardToken) -> Self {
        let ShardToken { step, counts, partial, listing, restarts } = token;
        let reached = reached.map(Into::into);
        Self { step, reached, counts, partial, listing, restarts, ..Self::default() }
    }

    /// What is committed of the item in progress, or was when it was left.
    pub(crate) const fn partial(&self) -> Option<&PartialItem> {
        self.partial.as_ref()
    }

    /// The last key that was handled, committed or not.
    pub(crate) fn reached(&self) -> Option<&[u8]> {
        self.reached.as_deref()
    }

    /// The source's token for what comes after the last page that was handled.
    pub(crate) fn listing(&self) -> Option<&[u8]> {
        self.listing.as_deref()
    }

    /// Notes that a page was handled, and the source's token for what comes after it.
    pub(crate) fn end_page(&mut self, listing: Option<&[u8]>) {
        self.listing = listing.map(Into::into);
    }

    pub(crate) fn add_row(&mut self, row: ItemRow) {
        self.counts.add_item(row.bytes, row.not_scanned(), &row.inside);
        self.occurrences += row.occurrences.len();
        self.rows.push(row);
    }

    pub(crate) fn add_unchanged(&mut self, key: &[u8], row: &LedgerRow) {
        self.add_covered(row);
        self.unchanged.push(key.to_vec());
    }

    /// Counts an item that the ledger has in this run.
    pub(crate) fn add_covered(&mut self, row: &LedgerRow) {
        self.counts.add_item(row.bytes, row.skipped, &row.inside);
    }

    /// Notes that everything up to `key` is handled.
    pub(crate) fn advance(&mut self, key: &[u8], now_ms: u64) {
        self.began_ms.get_or_insert(now_ms);
        let reached = self.reached.get_or_insert_default();
        reached.clear();
        reached.extend_from_slice(key);
        self.has_advanced = true;
        self.partial = None;
        self.restarts = 0;
    }

    /// Notes that an item that was left in the middle has changed, and is begun anew.
    pub(crate) fn begin_anew(&mut self) {
        self.partial = None;
        self.restarts = self.restarts.saturating_add(1);
    }

    /// Notes that an item is begun, in whose middle commits may be made.
    pub(crate) fn begin_item(&mut self, item: &dyn InProgress) {
        self.committed_at = item.position().unwrap_or_default();
    }

    /// Whether it should be committed before `next` more bytes are read: what is read again after a
    /// kill then stays within `checkpoint_bytes`.
    fn is_due(&self, next: u64, options: &ScanOptions, now_ms: u64) -> bool {
        self.uncommitted_bytes.saturating_add(next) > options.checkpoint_bytes
            || self.rows.len() + self.unchanged.len() >= options.checkpoint_items
            || self.occurrences >= OCCURRENCES_MAX
            || self
                .began_ms
                .is_some_and(|began| now_ms >= began.saturating_add(options.checkpoint_ms))
    }

    /// Between two items: commits what is done, when it is time.
    pub(crate) fn commit_if_due(
        &mut self,
        work: &mut impl Work,
        options: &ScanOptions,
    ) -> Result<Flow, ScanError> {
        if self.is_due(0, options, now().as_raw()) {
            return self.commit(work);
        }
        Ok(Flow::Continue)
    }

    /// Commits what is done, if anything is.
    pub(crate) fn commit(&mut self, work: &mut impl Work) -> Result<Flow, ScanError> {
        if !self.has_advanced {
            return Ok(Flow::Continue);
        }
        self.commit_with(work, None)
    }

    /// What is left to commit when a range is finished.
    pub(crate) fn rest(&self) -> Commit<'_> {
        Commit { batch: self, in_progress: None }
    }

    /// Before the next `next` bytes of an item are read: commits what is done, and the part of the item
    /// that is, when it is time or when it is forced.
    pub(crate) fn checkpoint_mid_item(
        &mut self,
        work: &mut impl Work,
        options: &ScanOptions,
        item: &mut dyn InProgress,
        next: u64,
        force: bool,
    ) -> Result<Flow, ScanError> {
        let now_ms = now().as_raw();
        let due = force
            || self.is_due(next, options, now_ms)
            || item.row().occurrences.len() >= OCCURRENCES_MAX;
        // T4. Who stops in time goes on from there.
        let further = (force || self.restarts < options.max_shard_retries)
            && item.position().unwrap_or_default() > self.committed_at;
        let has_rows = !self.rows.is_empty() || !self.unchanged.is_empty();
        if due && (further || has_rows) {
            let flow = self.commit_with(work, Some(item))?;
            if flow != Flow::Continue {
                return Ok(flow);
            }
        }
        self.began_ms.get_or_insert(now_ms);
        Ok(Flow::Continue)
    }

    /// Notes that so many bytes of the item in progress were read.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.uncommitted_bytes += bytes;
    }

    fn commit_with(
        &mut self,
        work: &mut impl Work,
        item: Option<&mut dyn InProgress>,
    ) -> Result<Flow, ScanError> {
        let in_progress = item.as_deref().and_then(|item| Some((item.partial()?, item)));
        let partial = in_progress.as_ref().map(|(partial, _)| partial.clone());
        let flow = work.commit(&Commit { batch: self, in_progress })?;
        if flow != Flow::Continue {
            return Ok(flow);
        }
        self.step = self.step.saturating_add(1);
        self.rows.clear();
        self.unchanged.clear();
        self.occurrences = 0;
        self.began_ms = None;
        self.has_advanced = false;
        self.committed_at = item.as_ref().and_then(|item| item.position()).unwrap_or_default();
        self.uncommitted_bytes = item.as_ref().map_or(0, |item| item.read_again());
        if let Some(item) = item.filter(|_| partial.is_some()) {
            item.partial_is_committed();
        }
        self.partial = partial;
        Ok(Flow::Continue)
    }
}
