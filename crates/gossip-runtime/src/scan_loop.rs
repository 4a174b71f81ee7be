//! The scan loop: lists a range of keys, handles what is listed, and commits what is done.
//!
//! There is one loop, and two kinds of work for it: a leased shard ([`crate::shard_work`]), and a
//! second look at everything by a run that was interrupted ([`crate::second_look`]).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gossip_archive::{Format, HEAD_SIZE};
use gossip_contracts::connector::{ConnectorError, ItemReader, Page, PageEntry};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_coordination_sqlite::rusqlite::Transaction;
use gossip_coordination_sqlite::{SqliteCoordinator, WorkerSlots};
use gossip_engine::Scratch;

use crate::archive_item::{ArchiveInProgress, ArchiveScan};
use crate::batch::{Batch, Commit, InProgress};
use crate::clock::now;
use crate::crew::{Crew, CrewEnd, Holder, Part};
use crate::item::{ItemContext, ItemInProgress, Known, OpenItem, Step as ItemStep, read_head};
use crate::ledger::{self, ItemRow, LedgerRow};
use crate::options::ScanOptions;
use crate::partial_item::{PartialAt, PartialItem};
use crate::scan::ScanError;
use crate::shard_token::ShardToken;
use crate::transaction;
use crate::worker::ShardChanges;

/// Entries listed at a time.
const PAGE_ENTRIES: usize = 256;
/// Listings in a row that may fail transiently.
const LIST_TRIES: u32 = 5;
/// The wait before the second of them; later ones are multiples of it.
const LIST_BACKOFF: Duration = Duration::from_millis(20);
/// Reads of an item in a row that may fail transiently without getting further.
const READ_TRIES: u32 = 4;
/// The wait before the second of them; each later one is four times as long.
const READ_BACKOFF: Duration = Duration::from_millis(25);
/// How often whoever waits looks whether to go on.
const WAIT_STEP: Duration = Duration::from_millis(20);

/// What all workers of a scan share.
pub(crate) struct Shared<'s> {
    pub(crate) context: ItemContext<'s>,
    pub(crate) options: &'s ScanOptions,
    pub(crate) slots: WorkerSlots,
    /// How long the run's leases last.
    pub(crate) lease_ms: u64,
    /// The caller wants an end.
    pub(crate) stop: &'s AtomicBool,
    /// A worker has failed.
    pub(crate) halt: AtomicBool,
    /// Workers that have nothing to do.
    pub(crate) idle: AtomicUsize,
    pub(crate) shard_changes: ShardChanges,
}

impl Shared<'_> {
    pub(crate) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.halt.load(Ordering::Relaxed)
    }

    /// Workers that have nothing to do.
    pub(crate) fn idle(&self) -> usize {
        self.idle.load(Ordering::Relaxed)
    }
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Flow {
    Continue,
    /// The worker was told to stop.
    Stop,
    /// Another worker has the shard, or the run is over: nothing more may be committed.
    Lost,
}

/// A range of keys to work through, and how what is done there becomes durable.
pub(crate) trait Work: Send {
    /// The keys to work through.
    fn range(&self) -> ShardSpecRef<'_>;

    /// For reading the ledger.
    fn coordinator(&self) -> &SqliteCoordinator;

    /// Makes what was done durable, all of it or nothing.
    fn commit(&mut self, commit: &Commit<'_>) -> Result<Flow, ScanError>;

    /// Asked often: renews what gives the right to go on, before it runs out.
    fn renew_if_needed(&mut self) -> Result<Flow, ScanError>;

    /// A page was listed whose entries come after `after`; nothing of it is handled yet.
    fn page_listed(&mut self, after: Option<&[u8]>, page: &Page) -> Result<Flow, ScanError>;

    /// A page was handled, and another follows.
    fn page_handled(&mut self, reached: Option<&[u8]>) -> Result<(), ScanError>;
}

/// The loop's buffers. One for each worker; its memory stays.
#[derive(Default)]
pub(crate) struct ScanLoop {
    scratch: Scratch,
    page: Page,
    known: Vec<Option<LedgerRow>>,
    pub(crate) batch: Batch,
}

impl ScanLoop {
    /// Works through `work` after `reached`, beginning with an item that was left in the middle if
    /// `token` has one. [`Flow::Continue`]: to its end, and [`Batch::rest`] is not committed yet.
    pub(crate) fn run(
        &mut self,
        shared: &Shared<'_>,
        work: &mut impl Work,
        reached: Option<&[u8]>,
        token: ShardToken,
    ) -> Result<Flow, ScanError> {
        self.batch = Batch::starting_after(reached, token);
        if let Some(PartialItem { key, version, .. }) = self.batch.partial().cloned() {
            let Self { scratch, batch, .. } = self;
            let flow = Step { shared, work, scratch, batch }.handle_unknown(&key, &version)?;
            if flow != Flow::Continue {
                return Ok(flow);
            }
        }
        loop {
            let flow = self.run_page(shared, work)?;
            if flow != Flow::Continue || self.page.is_last() {
                return Ok(flow);
            }
            work.page_handled(self.batch.reached())?;
        }
    }

    fn run_page(&mut self, shared: &Shared<'_>, work: &mut impl Work) -> Result<Flow, ScanError> {
        let Self { scratch, page, known, batch } = self;
        let flow = list(shared, work, batch, page)?;
        if flow != Flow::Continue {
            return Ok(flow);
        }
        let flow = work.page_listed(batch.reached(), page)?;
        if flow != Flow::Continue {
            return Ok(flow);
        }
        let scope = shared.context.scope;
        let find = |tx: &Transaction<'_>| ledger::find_items(tx, scope, page, known);
        transaction::read(work.coordinator(), "ledger.read", find)?;
        let mut step = Step { shared, work, scratch, batch };
        for (entry, row) in page.iter().zip(&*known) {
            let flow = step.handle(&entry, row.as_ref())?;
            if flow != Flow::Continue {
                return Ok(flow);
            }
        }
        batch.end_page(page.token());
        Ok(Flow::Continue)
    }
}

/// How the reading of an item ended.
pub(crate) enum ReadEnd {
    /// All that is to be known of it is.
    Done(ItemRow),
    /// It was left in the middle.
    Left(Flow),
}

/// What handling one entry needs.
struct Step<'l, W> {
    shared: &'l Shared<'l>,
    work: &'l mut W,
    scratch: &'l mut Scratch,
    batch: &'l mut Batch,
}

impl<W: Work> Step<'_, W> {
    /// Handles one entry, and commits what is done when it is time.
    fn handle(
        &mut self,
        entry: &PageEntry<'_>,
        row: Option<&LedgerRow>,
    ) -> Result<Flow, ScanError> {
        if self.shared.stopping() {
            return Ok(Flow::Stop);
        }
        let context = &self.shared.context;
        match context.look_at(entry, row) {
            Known::Covered(row) => self.batch.add_covered(row),
            Known::Unchanged(row) => {
                context.count_unchanged(entry);
                self.batch.add_unchanged(entry.key, row);
            }
            Known::NotOffered(row) => self.add(row),
            Known::MustRead => return self.handle_unknown(entry.key, entry.version),
        }
        self.advance(entry.key)
    }

    /// Handles an item that has to be read, from its start or from where it was left.
    fn handle_unknown(&mut self, key: &[u8], listed: &[u8]) -> Result<Flow, ScanError> {
        match self.read(key, listed)? {
            ReadEnd::Done(row) => self.add(row),
            ReadEnd::Left(flow) => return Ok(flow),
        }
        self.advance(key)
    }

    fn add(&mut self, row: ItemRow) {
        self.shared.context.count(&row);
        self.batch.add_row(row);
    }

    fn advance(&mut self, key: &[u8]) -> Result<Flow, ScanError> {
        self.batch.advance(key, now().as_raw());
        match self.batch.commit_if_due(self.work, self.shared.options)? {
            Flow::Continue => self.work.renew_if_needed(),
            flow => Ok(flow),
        }
    }

    /// Reads an item. While that fails transiently it goes on from the last commit; once it does not get
    /// further the item has failed, and what was committed of it stays.
    fn read(&mut self, key: &[u8], listed: &[u8]) -> Result<ReadEnd, ScanError> {
        let mut failures = 0;
        loop {
            let before = self.batch.partial().cloned();
            let error = match self.read_once(key, before.as_ref()) {
                Err(ScanError::Source(error)) => error,
                outcome => return outcome,
            };
            let got_further =
                self.batch.partial().is_some_and(|now| now.is_further(before.as_ref()));
            failures = if got_further { 1 } else { failures + 1 };
            if !error.is_retryable() || failures == READ_TRIES {
                return Ok(ReadEnd::Done(self.shared.context.unreadable(key, listed, &error)));
            }
            let flow = self.wait(READ_BACKOFF * 4_u32.pow(failures - 1))?;
            if flow != Flow::Continue {
                return Ok(ReadEnd::Left(flow));
            }
        }
    }

    /// Waits, as long as the worker may go on.
    fn wait(&mut self, time: Duration) -> Result<Flow, ScanError> {
        let end = Instant::now() + time;
        loop {
            if self.shared.stopping() {
                return Ok(Flow::Stop);
            }
            let flow = self.work.renew_if_needed()?;
            let left = end.saturating_duration_since(Instant::now());
            if flow != Flow::Continue || left.is_zero() {
                return Ok(flow);
            }
            std::thread::sleep(left.min(WAIT_STEP));
        }
    }

    fn read_once(
        &mut self,
        key: &[u8],
        partial: Option<&PartialItem>,
    ) -> Result<ReadEnd, ScanError> {
        let Self { shared, work, scratch, batch } = self;
        let context = &shared.context;
        let OpenItem { subject, mut reader } = context.open(key)?;
        // What was committed of another version says nothing of this one.
        let is_changed = partial.is_some_and(|partial| !subject.is_version(&partial.version));
        let mut partial = partial.filter(|_| !is_changed);
        if is_changed {
            batch.begin_anew();
        }
        if let Some(PartialItem { at: PartialAt::Inside(_), .. }) = partial {
            if let (head, Some(format)) = archive_format(&mut *reader)? {
                let row = subject.begin_row(reader.size(), partial);
                let archive = ArchiveInProgress::new(context, &subject, row, partial);
                let scan = ArchiveScan::new(shared, *work, scratch, batch, archive);
                return scan.run(reader, format, head);
            }
            // The content is another, whatever the version says.
            partial = None;
        }
        let mut item = ItemInProgress::begin(context, &subject, reader, partial, scratch);
        batch.begin_item(&item);
        let (mut has_more, mut is_changing) = (!item.is_skipped(), false);
        while has_more {
            let crew = if is_changing { None } else { Crew::gather(shared, &subject, &item) };
            // What a crew reads begins where the last commit ends.
            let all = shared.options.checkpoint_bytes;
            let next = if crew.is_some() { all } else { item.next_len() };
            let mut flow = checkpoint_and_renew(shared, *work, batch, &mut item, next)?;
            if let Some(crew) = crew.filter(|_| flow == Flow::Continue) {
                match crew.run(CrewHolder { shared, work: *work, batch, item: &mut item })? {
                    CrewEnd::Read => continue,
                    CrewEnd::Changed => {
                        is_changing = true;
                        continue;
                    }
                    CrewEnd::Left(left) => flow = left,
                }
            }
            if flow != Flow::Continue {
                return Ok(ReadEnd::Left(flow));
            }
            let before = item.offset();
            match item.step() {
                Ok(ItemStep::More) => {}
                Ok(ItemStep::End) => has_more = false,
                Err(error) => {
                    // Whoever tries again goes on from here, and if nobody does what was found stays.
                    let kept =
                        batch.checkpoint_mid_item(*work, shared.options, &mut item, 0, true)?;
                    return if kept == Flow::Continue {
                        Err(error.into())
                    } else {
                        Ok(ReadEnd::Left(kept))
                    };
                }
                Ok(ItemStep::Archive(format)) => {
                    let (reader, row, head) = item.into_archive();
                    let archive = ArchiveInProgress::new(context, &subject, row, None);
                    let scan = ArchiveScan::new(shared, *work, scratch, batch, archive);
                    return scan.run(reader, format, head);
                }
            }
            batch.add_bytes(item.offset() - before);
        }
        Ok(ReadEnd::Done(item.finish()?))
    }
}

/// What a crew reads goes on from where the item stands.
struct CrewHolder<'h, 'i, W> {
    shared: &'h Shared<'h>,
    work: &'h mut W,
    batch: &'h mut Batch,
    item: &'h mut ItemInProgress<'i>,
}

impl<W: Work> Holder for CrewHolder<'_, '_, W> {
    fn take(&mut self, part: Part) -> Result<Flow, ScanError> {
        let Self { shared, work, batch, item } = self;
        batch.add_bytes(part.bytes);
        item.skip(part);
        checkpoint_and_renew(shared, *work, batch, *item, shared.options.checkpoint_bytes)
    }

    fn renew_if_needed(&mut self) -> Result<Flow, ScanError> {
        self.work.renew_if_needed()
    }
}

/// In the middle of an item, before its `next` bytes are read: commits what is done when it is time or
/// when the scan stops, and renews what gives the right to go on.
pub(crate) fn checkpoint_and_renew(
    shared: &Shared<'_>,
    work: &mut impl Work,
    batch: &mut Batch,
    item: &mut dyn InProgress,
    next: u64,
) -> Result<Flow, ScanError> {
    let stop = shared.stopping();
    match batch.checkpoint_mid_item(work, shared.options, item, next, stop)? {
        Flow::Continue if stop => Ok(Flow::Stop),
        Flow::Continue => work.renew_if_needed(),
        flow => Ok(flow),
    }
}

/// The first bytes of an item, and the format that they are of if it is an archive.
fn archive_format(
    reader: &mut dyn ItemReader,
) -> Result<(Vec<u8>, Option<Format>), ConnectorError> {
    let mut head = vec![0; HEAD_SIZE];
    let len = read_head(reader, &mut head)?;
    head.truncate(len);
    let format = Format::detect(&head);
    Ok((head, format))
}

/// Lists what comes after what was handled, again while that fails transiently and the worker may go
/// on.
fn list(
    shared: &Shared<'_>,
    work: &mut impl Work,
    batch: &Batch,
    page: &mut Page,
) -> Result<Flow, ScanError> {
    let cursor = CursorUpdate::new(batch.reached(), batch.listing());
    let mut failures = 0;
    loop {
        match shared.context.source.list(work.range(), cursor, PAGE_ENTRIES, page) {
            Ok(()) => return Ok(Flow::Continue),
            // Whether it would have passed will be seen next time.
            Err(error) if error.is_retryable() && shared.stopping() => return Ok(Flow::Stop),
            Err(error) if error.is_retryable() && failures + 1 < LIST_TRIES => {
                failures += 1;
                std::thread::sleep(LIST_BACKOFF * failures);
            }
            Err(error) => return Err(error.into()),
        }
        // A source may take its time to say that it does not answer.
        let flow = work.renew_if_needed()?;
        if flow != Flow::Continue {
            return Ok(flow);
        }
    }
}
