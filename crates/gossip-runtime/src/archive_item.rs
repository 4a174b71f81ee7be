//! An item that is an archive: the files in it are scanned one after the other.
//!
//! - I1: the files of an archive have numbers, in an order that its bytes decide. A partial item says
//!   how many of them are done, and how far the next; whoever goes on unpacks from the start, and passes
//!   over those. What is found is named by file and offset, so what was committed of one is not doubled.
//! - I2: why files were not scanned is part of that, for those that are done. What the walk reports it
//!   reports again, also of what is passed over: no token has it.
//! - I3: once the archive's own bytes could not be read, the walk ends and nothing is committed: that a
//!   read failed says nothing about what is in the archive.

use std::cell::Cell;
use std::io::{self, Read, Seek, SeekFrom};
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use gossip_archive::{
    Format, InnerPath, Limits, NotRead, Stop, VisitError, Visitor, read_full, unpack,
};
use gossip_contracts::connector::{ConnectorError, ItemReader};
use gossip_engine::{Finding, Scratch, Stream};

use crate::batch::{Batch, InProgress, Position};
use crate::item::{CHUNK, ItemContext, Subject};
use crate::ledger::ItemRow;
use crate::partial_item::{Inside, PartialAt, PartialItem};
use crate::reason::Reason;
use crate::scan::ScanError;
use crate::scan_loop::{Flow, ReadEnd, Shared, Work, checkpoint_and_renew};
use crate::stats::ScanStats;
use crate::totals::Reasons;

/// What an archive may cost.
pub(crate) const LIMITS: Limits = Limits::DEFAULT;

/// Bytes of the archive read at a time.
const BUFFER: usize = 128 << 10;

/// An archive that is being scanned.
pub(crate) struct ArchiveInProgress<'a> {
    context: &'a ItemContext<'a>,
    subject: &'a Subject,
    row: ItemRow,
    opened_at_ms: u64,
    /// Where to go on (I1).
    inside: Inside,
    /// What the walk reported (I2).
    reported: Reasons,
    /// The number of the next file.
    next: u64,
    /// Bytes of the file in progress that were read.
    offset: u64,
}

impl<'a> ArchiveInProgress<'a> {
    /// To be gone on with after `partial`, or from the start. `row` is what is known already.
    pub(crate) fn new(
        context: &'a ItemContext<'a>,
        subject: &'a Subject,
        row: ItemRow,
        partial: Option<&PartialItem>,
    ) -> Self {
        let (inside, opened_at_ms) = match partial {
            Some(PartialItem { at: PartialAt::Inside(inside), opened_at_ms, .. }) => {
                (inside.clone(), *opened_at_ms)
            }
            _ => (Inside::default(), subject.opened_at_ms),
        };
        Self {
            context,
            subject,
            row,
            opened_at_ms,
            inside,
            reported: Reasons::default(),
            next: 0,
            offset: 0,
        }
    }

    /// The file in progress is done.
    fn end_file(&mut self, not_scanned: Option<Reason>) {
        if let Some(reason) = not_scanned {
            self.inside.not_scanned.add(reason, 1);
        }
        self.inside.done = self.next;
        self.inside.mark = None;
        self.offset = 0;
    }

    /// All of it was seen.
    fn finish(self, reader: &dyn ItemReader) -> Result<ItemRow, ConnectorError> {
        let Self { context, mut row, inside, mut reported, opened_at_ms, .. } = self;
        reported.add_all(&inside.not_scanned);
        row.failed = reported.take_failure();
        row.inside = reported;
        context.settle(reader, &mut row, opened_at_ms)?;
        Ok(row)
    }
}

impl InProgress for ArchiveInProgress<'_> {
    fn row(&self) -> &ItemRow {
        &self.row
    }

    fn partial_is_committed(&mut self) {
        self.context.partial_is_committed(&mut self.row);
    }

    fn partial(&self) -> Option<PartialItem> {
        self.position()?;
        Some(self.subject.partial(self.opened_at_ms, PartialAt::Inside(self.inside.clone())))
    }

    fn position(&self) -> Option<Position> {
        let Inside { done, mark, .. } = &self.inside;
        (*done > 0 || mark.is_some()).then(|| (*done, mark.map_or(0, |mark| mark.read_from())))
    }

    fn read_again(&self) -> u64 {
        self.offset.saturating_sub(self.inside.mark.map_or(0, |mark| mark.read_from()))
    }

    /// None of its own bytes are done with before it ends.
    fn bytes_done(&self) -> u64 {
        0
    }
}

/// What scanning an archive needs.
pub(crate) struct ArchiveScan<'s, W> {
    pub(crate) shared: &'s Shared<'s>,
    pub(crate) work: &'s mut W,
    pub(crate) scratch: &'s mut Scratch,
    pub(crate) batch: &'s mut Batch,
    pub(crate) archive: ArchiveInProgress<'s>,
    /// Why the scan does not go on.
    halted: Option<Result<Flow, ScanError>>,
    /// The archive's own bytes could not be read: what the walk makes of that is not committed (I3).
    source_failed: Rc<Cell<bool>>,
}

impl<'s, W: Work> ArchiveScan<'s, W> {
    pub(crate) fn new(
        shared: &'s Shared<'s>,
        work: &'s mut W,
        scratch: &'s mut Scratch,
        batch: &'s mut Batch,
        archive: ArchiveInProgress<'s>,
    ) -> Self {
        let source_failed = Rc::default();
        Self { shared, work, scratch, batch, archive, halted: None, source_failed }
    }

    /// Scans the archive, whose first bytes are `head`.
    pub(crate) fn run(
        mut self,
        reader: Box<dyn ItemReader>,
        format: Format,
        head: Vec<u8>,
    ) -> Result<ReadEnd, ScanError> {
        let context = &self.shared.context;
        self.batch.begin_item(&self.archive);
        let size = reader.size();
        let failed = Rc::clone(&self.source_failed);
        let mut source = ItemBytes::new(reader, head, &context.stats.bytes, failed);
        let name = self.archive.subject.path();
        let unpacked = unpack(&mut source, size, name, format, &LIMITS, &mut self);
        match (self.halted, source.error) {
            (Some(halted), _) => halted.map(ReadEnd::Left),
            (None, Some(error)) => Err(error.into()),
            (None, None) => {
                assert_eq!(unpacked, Ok(()), "who stops the walk says why");
                Ok(ReadEnd::Done(self.archive.finish(&*source.reader)?))
            }
        }
    }

    /// Commits and renews when it is time.
    fn checkpoint_and_renew(&mut self) -> Result<(), Stop> {
        if self.source_failed.get() {
            return Err(Stop);
        }
        match checkpoint_and_renew(
            self.shared,
            self.work,
            self.batch,
            &mut self.archive,
            CHUNK as u64,
        ) {
            Ok(Flow::Continue) => Ok(()),
            other => {
                self.halted = Some(other);
                Err(Stop)
            }
        }
    }

    /// Scans a file; why it was not scanned, if it was not.
    fn scan(
        &mut self,
        path: &InnerPath,
        bytes: &mut dyn Read,
    ) -> Result<Option<Reason>, VisitError> {
        let context = &self.shared.context;
        let inner = self.archive.subject.inside(context.target, path.shown());
        let slashed = [self.archive.subject.path(), b"/", path.slashed()].concat();
        let mark = self.archive.inside.mark;
        self.archive.offset = mark.map_or(0, |mark| mark.read_from());
        self.pass(bytes, self.archive.offset)?;
        let mut scratch = std::mem::take(self.scratch);
        let stream = match mark {
            Some(mark) => context.engine.resume(&mut scratch, Some(&slashed), mark),
            None => context.engine.stream(&mut scratch, Some(&slashed)),
        };
        let scanned = self.scan_stream(&inner, &slashed, stream, bytes);
        *self.scratch = scratch;
        scanned
    }

    fn scan_stream(
        &mut self,
        inner: &Subject,
        path: &[u8],
        mut stream: Stream<'_>,
        bytes: &mut dyn Read,
    ) -> Result<Option<Reason>, VisitError> {
        let context = &self.shared.context;
        if stream.is_silent() {
            return Ok(Some(Reason::AllowedPath));
        }
        loop {
            self.archive.inside.mark = stream.mark();
            self.checkpoint_and_renew()?;
            let occurrences = &mut self.archive.row.occurrences;
            let mut on_finding =
                |found: Finding<'_>| occurrences.extend(context.occurrence(inner, &found));
            let read = match stream.read(CHUNK, |room| read_full(bytes, room), &mut on_finding) {
                Ok(read) => read,
                Err(error) => {
                    // What could be read is scanned.
                    stream.finish(&mut on_finding);
                    return Err(error.into());
                }
            };
            if self.archive.offset == 0
                && let Some(reason) =
                    Reason::of_content(context.source.classifier().kind(path, stream.buffered()))
            {
                stream.finish_unread(&mut on_finding);
                return Ok(Some(reason));
            }
            self.archive.offset += read as u64;
            self.batch.add_bytes(read as u64);
            if read == 0 {
                stream.finish(&mut on_finding);
                return Ok(None);
            }
        }
    }

    /// Passes over so many bytes.
    fn pass(&mut self, bytes: &mut dyn Read, mut len: u64) -> Result<(), VisitError> {
        let mut buf = [0; 16 << 10];
        while len > 0 {
            let room = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
            bytes.read_exact(&mut buf[..room])?;
            len -= room as u64;
            self.checkpoint_and_renew()?;
        }
        Ok(())
    }
}

impl<W: Work> Visitor for ArchiveScan<'_, W> {
    fn file(&mut self, path: &InnerPath, bytes: &mut dyn Read) -> Result<(), VisitError> {
        if self.source_failed.get() {
            return Err(VisitError::Stop);
        }
        self.archive.next += 1;
        if self.archive.next <= self.archive.inside.done {
            return Ok(());
        }
        match self.scan(path, bytes) {
            Ok(not_scanned) => {
                self.archive.end_file(not_scanned);
                Ok(())
            }
            Err(VisitError::Read(_)) if self.source_failed.get() => Err(VisitError::Stop),
            Err(error) => {
                if matches!(error, VisitError::Read(_)) {
                    // As far as it can be; why no further, the walk says (I2).
                    self.archive.end_file(None);
                }
                Err(error)
            }
        }
    }

    fn not_read(&mut self, _: &InnerPath, why: NotRead) {
        self.archive.reported.add(Reason::of_archive(why), 1);
    }

    fn tick(&mut self) -> Result<(), Stop> {
        self.checkpoint_and_renew()
    }
}

/// An item's bytes as a file. Keeps the error of its source.
struct ItemBytes<'s> {
    reader: Box<dyn ItemReader>,
    bytes_read: &'s AtomicU64,
    error: Option<ConnectorError>,
    /// Set with the error.
    failed: Rc<Cell<bool>>,
    buf: Vec<u8>,
    /// The offset of the buffer's first byte.
    base: u64,
    offset: u64,
}

impl<'s> ItemBytes<'s> {
    const fn new(
        reader: Box<dyn ItemReader>,
        head: Vec<u8>,
        bytes_read: &'s AtomicU64,
        failed: Rc<Cell<bool>>,
    ) -> Self {
        Self { reader, bytes_read, error: None, failed, buf: head, base: 0, offset: 0 }
    }

    /// What the buffer has at the offset.
    fn buffered(&self) -> &[u8] {
        let at = self.offset.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.buf.get(at..)).unwrap_or_default()
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.error.is_some() {
            return Err(io::ErrorKind::Other.into());
        }
        self.buf.resize(BUFFER, 0);
        match self.reader.read_at(self.offset, &mut self.buf) {
            Ok(read) => {
                self.buf.truncate(read);
                self.base = self.offset;
                ScanStats::add(self.bytes_read, read as u64);
                Ok(())
            }
            Err(error) => {
                self.buf.clear();
                self.error = Some(error);
                self.failed.set(true);
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

impl Read for ItemBytes<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.buffered().is_empty() {
            self.fill()?;
        }
        let read = self.buffered().read(buf)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Seek for ItemBytes<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(by) => self.reader.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.offset.checked_add_signed(by),
        };
        self.offset = offset.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}
