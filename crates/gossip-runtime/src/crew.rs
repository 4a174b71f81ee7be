//! A large item read by several threads, while their workers have nothing else to do.
//!
//! Each thread takes the next part of the item, scans it, and takes another. A part that is done waits
//! for those before it; what they found is then handed over, with the mark at the end of the part
//! (T1), as if one thread had read them all. Whoever goes on from there needs no crew.
//!
//! - Q1: parts lie between marks of the engine, so that together they report what one scan reports
//!   there, each finding once (the engine's M1).
//! - Q2: parts that are taken and not handed over are together as long as what every thread of the crew
//!   may read again after a kill.
//! - Q3: the lease is renewed however long the threads wait for the source. Once it is lost they stop.
//! - Q4: a thread that does not find the version that the holder has open ends the crew, not the item: the
//!   holder reads on, as it would have without one.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, TryLockError};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use gossip_contracts::connector::{ConnectorError, ItemReader};
use gossip_engine::{Position, Scratch, StreamMark};

use crate::findings::OccurrenceRow;
use crate::item::{CHUNK, ItemInProgress, Subject};
use crate::scan::ScanError;
use crate::scan_loop::{Flow, Shared};
use crate::stats::ScanStats;

/// Threads beyond that would wait for the one that commits.
const THREADS_MAX: usize = 16;
/// The shortest part, in steps from mark to mark: each judges one step that another judges, too.
const STEPS_MIN: u64 = 4;
/// What has to be left of an item so that threads are started for it.
const STEPS_WORTH: u64 = 16;

/// How often it is seen to that the lease goes on, in its length (Q3).
const LOOKS_PER_LEASE: u64 = 8;

/// The holder of the lease, for whom a crew reads. One thread calls it at a time.
pub(crate) trait Holder: Send {
    /// Takes the next part over, and says whether to go on.
    fn take(&mut self, part: Part) -> Result<Flow, ScanError>;

    /// Renews the lease before it runs out, and says whether to go on.
    fn renew_if_needed(&mut self) -> Result<Flow, ScanError>;
}

/// How a crew ended.
pub(crate) enum CrewEnd {
    /// What is left is for one thread, for now.
    Read,
    /// What is left is for one thread: the item changes, or is gone (Q4).
    Changed,
    /// The item is to be left.
    Left(Flow),
}

/// A part of an item.
pub(crate) struct Part {
    /// Where the scan of the item can go on.
    pub(crate) mark: StreamMark,
    pub(crate) found: Vec<OccurrenceRow>,
    /// How long it is.
    pub(crate) bytes: u64,
}

impl Part {
    /// Its lines were counted from its start, which is now known to be at this mark.
    fn placed_at(mut self, start: StreamMark) -> Self {
        let place = |line: &mut u64, column: &mut u64| {
            let placed = start.place(Position { line: *line, column: *column });
            (*line, *column) = (placed.line, placed.column);
        };
        for found in &mut self.found {
            place(&mut found.line, &mut found.column);
            place(&mut found.end_line, &mut found.end_column);
        }
        Self { mark: start.follow(self.mark), ..self }
    }
}

/// An item to be read by several threads.
pub(crate) struct Crew<'c> {
    shared: &'c Shared<'c>,
    subject: &'c Subject,
    /// Where they begin.
    mark: StreamMark,
    /// Of the item.
    size: u64,
    /// Of the longest part.
    steps_max: u64,
}

impl<'c> Crew<'c> {
    /// To read on in an item, if there are threads for it and it is worth it.
    pub(crate) fn gather(
        shared: &'c Shared<'c>,
        subject: &'c Subject,
        item: &ItemInProgress<'_>,
    ) -> Option<Self> {
        let context = &shared.context;
        if shared.idle() == 0
            || !context.source.capabilities().range_reads
            || !subject.has_version()
            || !item.reads_anywhere()
            // Q1 is of lines.
            || context.engine.rules().compares_columns()
        {
            return None;
        }
        let (mark, size) = (item.mark()?, item.size());
        // Without what a part reads around its own.
        let steps_max = (shared.options.checkpoint_bytes / StreamMark::STEP).saturating_sub(2);
        let crew = Self { shared, subject, mark, size, steps_max };
        (steps_max > 0 && crew.steps_left(mark) >= STEPS_WORTH).then_some(crew)
    }

    /// Reads the item until so little of it is left that one thread may as well do that, or until the
    /// others are wanted elsewhere. The holder gets the parts in order.
    pub(crate) fn run(self, holder: impl Holder) -> Result<CrewEnd, ScanError> {
        let progress = Progress {
            threads: 1,
            handed_over: self.mark,
            next: self.mark.ahead(0),
            waiting: BTreeMap::new(),
            holder,
            end: None,
            is_over: false,
        };
        let reading = Reading { crew: self, progress: Mutex::new(progress), moved: Condvar::new() };
        std::thread::scope(|scope| {
            let renewer = scope.spawn(|| reading.renew());
            let over = OverOnDrop(&reading);
            let (mut first, mut others) = (Member::default(), Vec::new());
            loop {
                for _ in 0..reading.enlist() {
                    others.push(scope.spawn(|| reading.help()));
                }
                if reading.crew.shared.idle() == 0 || !reading.read_next(&mut first) {
                    break;
                }
            }
            others.into_iter().for_each(join);
            drop(over);
            join(renewer);
        });
        let progress = reading.progress.into_inner().expect("who panicked did not come here");
        progress.end.unwrap_or(Ok(CrewEnd::Read))
    }

    /// How many marks follow this one before the item ends.
    fn steps_left(&self, mark: StreamMark) -> u64 {
        self.size.saturating_sub(mark.read_to(0) + 1) / StreamMark::STEP
    }

    /// How long the part at this mark is. The last ones are shorter, so that all threads end together.
    fn steps_at(&self, mark: StreamMark, threads: usize) -> Option<u64> {
        let (left, least) = (self.steps_left(mark), STEPS_MIN.min(self.steps_max));
        (left >= least).then(|| (left / threads as u64).clamp(least, self.steps_max))
    }
}

fn join(thread: ScopedJoinHandle<'_, ()>) {
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// What the threads share.
struct Reading<'c, H> {
    crew: Crew<'c>,
    progress: Mutex<Progress<H>>,
    /// Something was handed over, or there is an end, or all have left.
    moved: Condvar,
}

struct Progress<H> {
    threads: usize,
    /// Everything before it is handed over.
    handed_over: StreamMark,
    /// Where the next part begins, but for its lines.
    next: StreamMark,
    /// Parts that wait for those before them, by the offset that they begin at.
    waiting: BTreeMap<u64, Part>,
    holder: H,
    /// Once no further part is to be read.
    end: Option<Result<CrewEnd, ScanError>>,
    /// All who read have left.
    is_over: bool,
}

impl<H> Progress<H> {
    /// Whatever is not to go on ends it. The first end counts.
    fn follow(&mut self, flow: Result<Flow, ScanError>) {
        if !matches!(flow, Ok(Flow::Continue)) {
            self.end.get_or_insert(flow.map(CrewEnd::Left));
        }
    }
}

/// A part to read.
struct Task {
    start: StreamMark,
    steps: u64,
}

impl<H: Holder> Reading<'_, H> {
    /// Renews the lease until all have left (Q3).
    fn renew(&self) {
        let _on_panic = EndOnPanic(self);
        let between = Duration::from_millis((self.crew.shared.lease_ms / LOOKS_PER_LEASE).max(1));
        let Ok(mut progress) = self.progress.lock() else { return };
        while !progress.is_over {
            let Ok((woken, _)) = self.moved.wait_timeout(progress, between) else { return };
            progress = woken;
            // After an error of one the others may still wait for the source.
            if !progress.is_over && !matches!(progress.end, Some(Ok(CrewEnd::Left(_)))) {
                let flow = progress.holder.renew_if_needed();
                progress.follow(flow);
            }
        }
        self.moved.notify_all();
    }

    /// How many threads more there are to be, one for each worker that has nothing to do.
    fn enlist(&self) -> usize {
        let wanted = (1 + self.crew.shared.idle()).min(THREADS_MAX);
        let Ok(mut progress) = self.progress.lock() else { return 0 };
        let more = wanted.saturating_sub(progress.threads);
        progress.threads += more;
        more
    }

    /// Reads parts until there are none, or until a worker has something to do.
    fn help(&self) {
        let mut member = Member::default();
        while !self.is_dismissed() && self.read_next(&mut member) {}
    }

    fn is_dismissed(&self) -> bool {
        let Ok(mut progress) = self.progress.lock() else { return true };
        let is_dismissed = progress.threads > 1 + self.crew.shared.idle();
        progress.threads -= usize::from(is_dismissed);
        is_dismissed
    }

    /// Reads a part, and hands over what can be; whether to go on.
    fn read_next(&self, member: &mut Member) -> bool {
        let Some(task) = self.take() else { return false };
        let _on_panic = EndOnPanic(self);
        let scanned = member.scan(&self.crew, &task, || self.has_ended());
        self.put(&task, scanned)
    }

    /// Asked often, so it does not wait for who is at it.
    fn has_ended(&self) -> bool {
        self.crew.shared.stopping()
            || match self.progress.try_lock() {
                Ok(progress) => progress.end.is_some(),
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Poisoned(_)) => true,
            }
    }

    fn take(&self) -> Option<Task> {
        let crew = &self.crew;
        let mut progress = self.progress.lock().ok()?;
        while progress.end.is_none() && !crew.shared.stopping() {
            let (start, threads) = (progress.next, progress.threads);
            let steps = crew.steps_at(start, threads)?;
            let unsettled = start.read_to(steps) - progress.handed_over.read_from();
            // Q2.
            if unsettled <= threads as u64 * crew.shared.options.checkpoint_bytes {
                progress.next = start.ahead(steps);
                return Some(Task { start, steps });
            }
            progress = self.moved.wait(progress).ok()?;
        }
        None
    }

    fn put(&self, task: &Task, scanned: Result<Scanned, ConnectorError>) -> bool {
        let Ok(mut progress) = self.progress.lock() else { return false };
        let progress = &mut *progress;
        match scanned {
            Ok(Scanned::Part(part)) => drop(progress.waiting.insert(task.start.read_from(), part)),
            Ok(Scanned::Left) => {}
            Ok(Scanned::Changed) => drop(progress.end.get_or_insert(Ok(CrewEnd::Changed))),
            Err(error) => progress.follow(Err(error.into())),
        }
        while progress.end.is_none()
            && let Some(part) = progress.waiting.remove(&progress.handed_over.read_from())
        {
            let part = part.placed_at(progress.handed_over);
            progress.handed_over = part.mark;
            let flow = progress.holder.take(part);
            progress.follow(flow);
        }
        self.moved.notify_all();
        progress.end.is_none()
    }
}

/// A part that will never be handed over is waited for by nobody.
struct EndOnPanic<'r, 'c, H>(&'r Reading<'c, H>);

impl<H> Drop for EndOnPanic<'_, '_, H> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        if let Ok(mut progress) = self.0.progress.lock() {
            progress.follow(Ok(Flow::Stop));
        }
        self.0.moved.notify_all();
    }
}

/// The lease of nobody who reads is not renewed.
struct OverOnDrop<'r, 'c, H>(&'r Reading<'c, H>);

impl<H> Drop for OverOnDrop<'_, '_, H> {
    fn drop(&mut self) {
        if let Ok(mut progress) = self.0.progress.lock() {
            progress.is_over = true;
        }
        self.0.moved.notify_all();
    }
}

/// What became of a part.
enum Scanned {
    Part(Part),
    /// It was left in the middle, as there is an end.
    Left,
    /// Q4.
    Changed,
}

/// What each thread has of its own.
#[derive(Default)]
struct Member {
    scratch: Scratch,
    reader: Option<Box<dyn ItemReader>>,
}

impl Member {
    fn scan(
        &mut self,
        crew: &Crew<'_>,
        task: &Task,
        has_ended: impl Fn() -> bool,
    ) -> Result<Scanned, ConnectorError> {
        let Crew { shared, subject, .. } = *crew;
        let context = &shared.context;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => match context.source.open(&subject.key) {
                Err(ConnectorError::NotFound { .. }) => return Ok(Scanned::Changed),
                opened => none.insert(opened?),
            },
        };
        if !subject.is_version(reader.version()) {
            return Ok(Scanned::Changed);
        }
        let Task { start, steps } = *task;
        let (mut offset, end) = (start.read_from(), start.read_to(steps));
        // The part behind this one is another thread's.
        reader.limit_read_ahead(end);
        let mut found = Vec::new();
        let mut stream = context.engine.resume(&mut self.scratch, Some(subject.path()), start);
        while offset < end {
            if has_ended() {
                return Ok(Scanned::Left);
            }
            let room = (CHUNK as u64).min(end - offset) as usize;
            let read = stream.read(room, |room| reader.read_at(offset, room), &mut |finding| {
                found.extend(context.occurrence(subject, &finding));
            })?;
            if read == 0 {
                return Ok(Scanned::Changed);
            }
            ScanStats::add(&context.stats.bytes, read as u64);
            offset += read as u64;
        }
        let mark = stream.mark().expect("a part is several segments");
        assert_eq!(mark.read_from(), start.ahead(steps).read_from(), "Q1");
        Ok(Scanned::Part(Part { mark, found, bytes: steps * StreamMark::STEP }))
    }
}
