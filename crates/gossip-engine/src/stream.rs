//! Objects that arrive in pieces.
//!
//! Keeps the bytes of one segment and of what it sees around it, whatever the size of the object,
//! and judges each segment exactly as a scan of the whole does.

use crate::engine::Engine;
use crate::finding::Finding;
use crate::limits::{CONTEXT_AFTER, CONTEXT_BEFORE, SEGMENT_LEN};
use crate::position::LineCounter;
use crate::scratch::Scratch;
use crate::segment::Segment;

/// What is read at once behind a segment and its context.
const READ_AHEAD: usize = 64 * 1024;
/// A segment, what it sees around it, and room to read ahead.
const BUFFER_LEN: usize = CONTEXT_BEFORE + SEGMENT_LEN + CONTEXT_AFTER + READ_AHEAD;

/// A scan in progress.
///
/// ```
/// use gossip_engine::{Engine, Options, RuleSet, Scratch};
///
/// let rules = r#"
///     [[rules]]
///     id = "acme-token"
///     regex = '''\bacme_[a-z0-9]{8}\b'''
/// "#;
/// let engine = Engine::new(RuleSet::from_toml("mine.toml", rules)?, Options::default());
/// let mut scratch = Scratch::new();
/// let mut offsets = Vec::new();
/// let mut stream = engine.stream(&mut scratch, None);
/// for piece in [&b"token: acme"[..], b"_q8zr", b"2lmt\n"] {
///     stream.push(piece, &mut |finding| offsets.push(finding.span().start));
/// }
/// stream.finish(&mut |finding| offsets.push(finding.span().start));
/// assert_eq!(offsets, [7]);
/// # Ok::<(), gossip_engine::RuleFileError>(())
/// ```
#[derive(Debug)]
#[must_use = "the last findings come from `finish`"]
pub struct Stream<'e> {
    engine: &'e Engine,
    scratch: &'e mut Scratch,
    path: Option<&'e [u8]>,
    /// Nothing in this path is reported.
    skipped: bool,
    /// The offset of the buffer's first byte in the object.
    base: u64,
    /// How much of the buffer is filled.
    len: usize,
    /// Where in the buffer the next segment starts.
    next: usize,
    /// At the buffer's first byte.
    lines: LineCounter,
    /// Where to go on later, once a segment was judged.
    mark: Option<StreamMark>,
    /// What the next segment reports has been reported.
    again: bool,
}

/// A place in an object from which a scan can go on, in another process if need be.
///
/// - M1: a scan that goes on from a mark reports exactly what the one that made it had not reported
///   by then.
///
/// The last segment is judged once more, silently: what it left undecided at its end, and what
/// overrules that, all begins in it, as no match reaches over a whole segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMark {
    segment: u64,
    lines: LineCounter,
}

impl StreamMark {
    /// The length of its bytes.
    pub const SIZE: usize = 24;

    /// The offset of the first byte that the scan wants to have again.
    #[must_use]
    pub fn read_from(&self) -> u64 {
        self.start().saturating_sub(CONTEXT_BEFORE as u64)
    }

    /// As bytes, to be stored.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let (lines, column) = self.lines.raw();
        for (at, number) in [self.segment, lines, column].into_iter().enumerate() {
            bytes[at * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// From what [`to_bytes`](Self::to_bytes) gave; `None` if no object is as long as that.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::SIZE]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = bytes[at * 8..][..8].try_into().expect("a number has 8 bytes");
            u64::from_le_bytes(bytes)
        };
        let end = number(0).checked_add(1)?.checked_mul(SEGMENT_LEN as u64)?;
        let lines = LineCounter::from_raw(number(1), number(2));
        (number(1) <= end && number(2) <= end).then_some(Self { segment: number(0), lines })
    }

    fn start(&self) -> u64 {
        self.segment * SEGMENT_LEN as u64
    }
}

impl<'e> Stream<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        scratch: &'e mut Scratch,
        path: Option<&'e [u8]>,
        skipped: bool,
    ) -> Self {
        // Filled with zeros once; after that it keeps its length.
        scratch.buffer.resize(BUFFER_LEN, 0);
        let lines = LineCounter::new();
        let (base, len, next, mark, again) = (0, 0, 0, None, false);
        Self { engine, scratch, path, skipped, base, len, next, lines, mark, again }
    }

    /// Goes on from a mark.
    pub(crate) fn at(mut self, mark: StreamMark) -> Self {
        self.base = mark.read_from();
        self.next = (mark.start() - self.base) as usize;
        self.lines = mark.lines;
        self.mark = Some(mark);
        self.again = true;
        self
    }

    /// Whether nothing will be reported whatever the bytes, as the rules allow everything in this
    /// path: they need not be read.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.skipped
    }

    /// Where a scan could go on that has seen the findings reported so far. `None` at the start.
    #[must_use]
    pub fn mark(&self) -> Option<StreamMark> {
        self.mark
    }

    /// Takes the next bytes of the object.
    pub fn push(&mut self, mut bytes: &[u8], on_finding: &mut impl FnMut(Finding<'_>)) {
        while !self.skipped && !bytes.is_empty() {
            let space = self.space();
            let (now, later) = bytes.split_at(space.len().min(bytes.len()));
            space[..now.len()].copy_from_slice(now);
            bytes = later;
            self.filled(now.len(), on_finding);
        }
    }

    /// Room for the next bytes of the object, never empty: read into its start, then say how many
    /// with [`filled`](Self::filled). Saves the copy that [`push`](Self::push) makes.
    ///
    /// ```
    /// # use gossip_engine::{Engine, Options, RuleSet, Scratch};
    /// use std::io::Read;
    ///
    /// # let engine = Engine::new(RuleSet::empty(), Options::default());
    /// # let mut scratch = Scratch::new();
    /// # let mut file: &[u8] = b"the bytes of a file";
    /// let mut stream = engine.stream(&mut scratch, None);
    /// loop {
    ///     let len = file.read(stream.space())?;
    ///     if len == 0 {
    ///         break;
    ///     }
    ///     stream.filled(len, &mut |finding| println!("{finding:?}"));
    /// }
    /// stream.finish(&mut |finding| println!("{finding:?}"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.scratch.buffer[self.len..]
    }

    /// Takes the first `len` bytes of what [`space`](Self::space) gave.
    ///
    /// # Panics
    /// If there was less space.
    pub fn filled(&mut self, len: usize, on_finding: &mut impl FnMut(Finding<'_>)) {
        assert!(self.len + len <= BUFFER_LEN, "{len} bytes into {}", BUFFER_LEN - self.len);
        if self.skipped {
            return;
        }
        self.len += len;
        // While there are more: the bytes after a segment may be the object's last, and only
        // `finish` knows.
        while self.len > self.next + SEGMENT_LEN + CONTEXT_AFTER {
            self.scan_segment(SEGMENT_LEN, on_finding);
        }
    }

    /// The object is complete: reports the rest.
    pub fn finish(mut self, on_finding: &mut impl FnMut(Finding<'_>)) {
        while !self.skipped && self.next < self.len {
            let len = SEGMENT_LEN.min(self.len - self.next);
            self.scan_segment(len, on_finding);
        }
        self.scratch.candidates.flush(u64::MAX, &self.engine.rules, on_finding);
    }

    fn scan_segment(&mut self, len: usize, on_finding: &mut impl FnMut(Finding<'_>)) {
        // Taken out, so that the scratch is free.
        let mut buffer = std::mem::take(&mut self.scratch.buffer);
        let end = self.next + len;
        let to = self.len.min(end + CONTEXT_AFTER);
        let segment =
            Segment { engine: self.engine, path: self.path, base: self.base, text: &buffer[..to] };
        segment.scan(self.scratch, self.next..end);
        self.scratch.candidates.place(&buffer[..self.len], self.base, self.lines);
        let done = self.base + end as u64;
        let mark =
            StreamMark { segment: (done - len as u64) / SEGMENT_LEN as u64, lines: self.lines };
        self.mark = Some(mark);
        if std::mem::take(&mut self.again) {
            self.scratch.candidates.flush(done, &self.engine.rules, &mut |_| {});
        } else {
            self.scratch.candidates.flush(done, &self.engine.rules, on_finding);
        }
        let gone = end.saturating_sub(CONTEXT_BEFORE);
        self.lines.advance(&buffer[..gone]);
        buffer.copy_within(gone..self.len, 0);
        self.len -= gone;
        self.base += gone as u64;
        self.next = end - gone;
        self.scratch.buffer = buffer;
    }
}
