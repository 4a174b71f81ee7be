//! A large item read by several threads, while their workers have nothing else to do.
//!
//! The item is scanned in rounds. In each, every thread has a part of as many bytes as may be read
//! again after a kill; when all are done, what they found is committed with the mark at the end of the
//! last part (T1), as if one thread had read them all. Whoever goes on from there needs no crew.
//!
//! - Q1: the parts of a round lie between marks of the engine, so that together they report what one
//!   scan reports there, each finding once (the engine's M1).

use std::ops::Range;

use gossip_contracts::connector::{ConnectorError, ItemReader};
use gossip_engine::{Scratch, StreamMark};

use crate::findings::OccurrenceRow;
use crate::item::{ItemContext, Subject};
use crate::stats::ScanStats;

/// Threads beyond that would wait for the one that reads.
const THREADS_MAX: usize = 16;

/// What each thread of a crew needs.
#[derive(Default)]
pub(crate) struct Crew {
    members: Vec<Member>,
}

#[derive(Default)]
struct Member {
    scratch: Scratch,
    bytes: Vec<u8>,
    found: Vec<OccurrenceRow>,
    reader: Option<Box<dyn ItemReader>>,
}

/// What a round read.
pub(crate) struct Round {
    /// Where the scan of the item can go on.
    pub(crate) mark: StreamMark,
    pub(crate) found: Vec<OccurrenceRow>,
}

/// How a round is cut.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    threads: usize,
    /// Marks from one part to the next.
    steps: u64,
}

impl Plan {
    /// A round from `mark` of an item of `size` bytes by up to `threads` threads, each of which reads
    /// `bytes` at most; `None` if that would not be worth it.
    pub(crate) fn new(threads: usize, bytes: u64, mark: StreamMark, size: u64) -> Option<Self> {
        // What a part reads around its own.
        let steps = (bytes / StreamMark::STEP).checked_sub(2).filter(|steps| *steps > 0)?;
        let threads = threads.min(THREADS_MAX);
        let end = mark.read_to(steps * threads as u64);
        (threads > 1 && end < size).then_some(Self { threads, steps })
    }

    /// Bytes that the round reads, each counted once.
    pub(crate) fn bytes(self, mark: StreamMark) -> u64 {
        mark.read_to(self.steps * self.threads as u64) - mark.read_from()
    }

    fn range(self, mark: StreamMark, part: usize) -> Range<u64> {
        let before = part as u64 * self.steps;
        mark.read_from_after(before)..mark.read_to(before + self.steps)
    }
}

impl Crew {
    /// Nothing is kept for another item: large ones are few, and their buffers large.
    pub(crate) fn begin_item(&mut self) {
        self.members.clear();
    }

    /// Scans an item from `mark` on, which an earlier scan of it made.
    pub(crate) fn run(
        &mut self,
        context: &ItemContext<'_>,
        subject: &Subject,
        plan: Plan,
        mark: StreamMark,
    ) -> Result<Round, ConnectorError> {
        self.members.resize_with(plan.threads.max(self.members.len()), Member::default);
        let members = &mut self.members[..plan.threads];
        let read =
            at_once(members, |part, member| member.read(context, subject, plan.range(mark, part)));
        read.into_iter().collect::<Result<(), ConnectorError>>()?;
        // Lines are counted through: the one thing that a part must know of those before it.
        let mut marks = vec![mark];
        for member in &*members {
            let last = marks[marks.len() - 1];
            marks.push(last.after(plan.steps, &member.bytes));
        }
        at_once(members, |part, member| member.scan(context, subject, marks[part]));
        let found = members.iter_mut().flat_map(|member| member.found.drain(..)).collect();
        Ok(Round { mark: marks[plan.threads], found })
    }
}

impl Member {
    fn read(
        &mut self,
        context: &ItemContext<'_>,
        subject: &Subject,
        range: Range<u64>,
    ) -> Result<(), ConnectorError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(context.source.open(&subject.key)?),
        };
        let changed = |message: &str| {
            let message = message.to_owned();
            ConnectorError::Retryable { operation: "read", message }
        };
        if !subject.is_version(reader.version()) {
            return Err(changed("the item changed while it was read"));
        }
        self.bytes.resize((range.end - range.start) as usize, 0);
        let mut done = 0;
        while done < self.bytes.len() {
            match reader.read_at(range.start + done as u64, &mut self.bytes[done..])? {
                0 => return Err(changed("the item ended while it was read")),
                read => done += read,
            }
        }
        ScanStats::add(&context.stats.bytes, done as u64);
        Ok(())
    }

    fn scan(&mut self, context: &ItemContext<'_>, subject: &Subject, mark: StreamMark) {
        let Self { scratch, bytes, found, .. } = self;
        let mut stream = context.engine.resume(scratch, Some(subject.path()), mark);
        stream.push(bytes, &mut |finding| found.extend(context.occurrence(subject, &finding)));
    }
}

/// Does something with each, all at once; the first on this thread.
fn at_once<R: Send>(
    members: &mut [Member],
    each: impl Fn(usize, &mut Member) -> R + Sync,
) -> Vec<R> {
    let each = &each;
    std::thread::scope(|scope| {
        let (first, others) = members.split_first_mut().expect("a crew has members");
        let others: Vec<_> = others
            .iter_mut()
            .zip(1..)
            .map(|(member, part)| scope.spawn(move || each(part, member)))
            .collect();
        let first = each(0, first);
        let joined = others.into_iter().map(|other| match other.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(first).chain(joined).collect()
    })
}
