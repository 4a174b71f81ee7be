//! Objects that arrive in pieces.
//!
//! Keeps the bytes of one segment and of what it sees around it, whatever the size of the object,
//! and judges each segment exactly as a scan of the whole does.

use std::fmt;

use crate::detect::Told;
use crate::engine::Engine;
use crate::finding::Finding;
use crate::limits::{CONTEXT_AFTER, CONTEXT_BEFORE, SEGMENT_LEN};
use crate::position::{LineCounter, Position};
use crate::scratch::Scratch;
use crate::segment::Segment;

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
#[must_use = "the last findings come from `finish`"]
pub struct Stream<'e> {
    engine: &'e Engine,
    scratch: &'e mut Scratch,
    path: Option<&'e [u8]>,
    /// Nothing in this path is reported.
    skipped: bool,
    /// What the path says of the bytes.
    told: Told,
    /// The offset of the buffer's first byte in the object.
    base: u64,
    /// Bytes of the object that the buffer holds; what is behind them is left over.
    filled: usize,
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
        let lines = LineCounter::from_raw(number(1), number(2), end)?;
        Some(Self { segment: number(0), lines })
    }

    /// The length of what is judged at once: marks are so far apart.
    pub const STEP: u64 = SEGMENT_LEN as u64;

    /// The offset behind the bytes that a scan from here takes to make the mark `steps` after this
    /// one, and no further mark. If the object ends before, it makes fewer.
    #[must_use]
    pub fn read_to(&self, steps: u64) -> u64 {
        (self.segment + steps + 1) * Self::STEP + CONTEXT_AFTER as u64 + 1
    }

    /// The mark `steps` after this one, as far as it is known before the bytes up to there are: a scan
    /// from it counts lines as if they began there. [`follow`](Self::follow) and
    /// [`place`](Self::place) make up for that.
    ///
    /// So a large object is scanned in parts at once: a scan from each of two marks, up to
    /// [`read_to`](Self::read_to), reports what one scan would have reported between them (M1).
    #[must_use]
    pub fn ahead(&self, steps: u64) -> Self {
        Self { segment: self.segment + steps, lines: self.lines.restarted() }
    }

    /// What `made` is, a mark that a scan from [`ahead`](Self::ahead) of here made, once it is known
    /// that the scan began at this mark.
    #[must_use]
    pub fn follow(&self, made: Self) -> Self {
        Self { segment: made.segment, lines: self.lines.follow(made.lines) }
    }

    /// The same for the position of a finding.
    #[must_use]
    pub fn place(&self, found: Position) -> Position {
        self.lines.place(found)
    }

    fn start(&self) -> u64 {
        self.segment * SEGMENT_LEN as u64
    }
}

/// How far it has come: the path may be private.
impl fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = self.base + self.filled as u64;
        f.debug_struct("Stream").field("read", &read).field("mark", &self.mark).finish()
    }
}

impl<'e> Stream<'e> {
    pub(crate) fn new(
        engine: &'e Engine,
        scratch: &'e mut Scratch,
        path: Option<&'e [u8]>,
        skipped: bool,
    ) -> Self {
        let (lines, mark) = (LineCounter::default(), None);
        let told = Told::by(path, &mut scratch.folders);
        Self {
            engine,
            scratch,
            path,
            skipped,
            told,
            base: 0,
            filled: 0,
            next: 0,
            lines,
            mark,
            again: false,
        }
    }

    /// Goes on from a mark of the same object that another scan made: push the bytes from
    /// [`StreamMark::read_from`] on.
    pub fn skip_to(&mut self, mark: StreamMark) {
        self.engine.begin(self.scratch, self.path);
        self.filled = 0;
        self.base = mark.read_from();
        self.next = (mark.start() - self.base) as usize;
        self.lines = mark.lines;
        self.mark = Some(mark);
        self.again = true;
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
        if self.skipped {
            return;
        }
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(SEGMENT_LEN));
            self.room(now.len()).copy_from_slice(now);
            self.filled += now.len();
            self.scan_full_segments(on_finding);
            bytes = later;
        }
    }

    /// Reads the next bytes of the object straight into the stream: `read` is given room for `max`
    /// bytes and returns how many it has filled, 0 at the object's end.
    ///
    /// As long as no more than [`READ_MAX`](Self::READ_MAX) bytes have been read nothing is reported,
    /// and [`buffered`](Self::buffered) has all of them.
    ///
    /// # Panics
    /// If `read` says that it has filled more room than there is.
    pub fn read<E>(
        &mut self,
        max: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
        on_finding: &mut impl FnMut(Finding<'_>),
    ) -> Result<usize, E> {
        let read = read(self.room(max))?;
        assert!(read <= max, "{read} bytes were read into room for {max}");
        self.filled += read;
        self.scan_full_segments(on_finding);
        Ok(read)
    }

    /// Bytes that may be read before the first of them are judged.
    pub const READ_MAX: usize = SEGMENT_LEN + CONTEXT_AFTER;

    /// The bytes at hand: those that are not judged yet, and some before them.
    #[must_use]
    pub fn buffered(&self) -> &[u8] {
        &self.scratch.buffer[..self.filled]
    }

    /// The object is complete: reports the rest.
    pub fn finish(mut self, on_finding: &mut impl FnMut(Finding<'_>)) {
        while !self.skipped && self.next < self.filled {
            let len = SEGMENT_LEN.min(self.filled - self.next);
            self.scan_buffered(len, on_finding);
        }
        self.flush(u64::MAX, on_finding);
    }

    /// `bytes` are the object: reports everything, and copies none of them.
    pub(crate) fn scan_whole(mut self, bytes: &[u8], on_finding: &mut impl FnMut(Finding<'_>)) {
        let mut rest = bytes;
        while !self.skipped && self.next < rest.len() {
            let len = SEGMENT_LEN.min(rest.len() - self.next);
            self.scan_segment(rest, len, on_finding);
            rest = &rest[self.move_on(rest, len)..];
        }
        self.flush(u64::MAX, on_finding);
    }

    /// The rest of the object is not read, and none of its bytes are judged: reports what its path
    /// shows by itself.
    pub fn finish_unread(mut self, on_finding: &mut impl FnMut(Finding<'_>)) {
        if !self.skipped && self.mark.is_none() {
            self.flush(u64::MAX, on_finding);
        }
    }

    /// Room behind what the buffer holds. It grows once; what it holds is overwritten, not cleared.
    fn room(&mut self, len: usize) -> &mut [u8] {
        let end = self.filled + len;
        if self.scratch.buffer.len() < end {
            self.scratch.buffer.resize(end, 0);
        }
        &mut self.scratch.buffer[self.filled..end]
    }

    /// Judges every segment with all that it may see after it, but for the object's last: whether it
    /// is that, only `finish` knows.
    fn scan_full_segments(&mut self, on_finding: &mut impl FnMut(Finding<'_>)) {
        while !self.skipped && self.filled > self.next + SEGMENT_LEN + CONTEXT_AFTER {
            self.scan_buffered(SEGMENT_LEN, on_finding);
        }
    }

    fn scan_buffered(&mut self, len: usize, on_finding: &mut impl FnMut(Finding<'_>)) {
        // Taken out, so that the scratch is free.
        let mut buffer = std::mem::take(&mut self.scratch.buffer);
        self.scan_segment(&buffer[..self.filled], len, on_finding);
        let gone = self.move_on(&buffer[..self.filled], len);
        buffer.copy_within(gone..self.filled, 0);
        self.filled -= gone;
        self.scratch.buffer = buffer;
    }

    /// Judges the next `len` bytes; `text` is what is at hand of the object.
    fn scan_segment(&mut self, text: &[u8], len: usize, on_finding: &mut impl FnMut(Finding<'_>)) {
        if self.base == 0 {
            self.lines = LineCounter::at_start_of(text);
        }
        let end = self.next + len;
        let seen = &text[..text.len().min(end + CONTEXT_AFTER)];
        let (engine, path, told) = (self.engine, self.path, self.told);
        let segment = Segment { engine, path, told, base: self.base, text: seen };
        segment.scan(self.scratch, self.next..end);
        let Scratch { candidates, known, .. } = &mut *self.scratch;
        candidates.place(text, self.base, self.lines, known, path);
        let done = self.base + end as u64;
        let mark =
            StreamMark { segment: (done - len as u64) / SEGMENT_LEN as u64, lines: self.lines };
        self.mark = Some(mark);
        if std::mem::take(&mut self.again) {
            self.scratch.candidates.flush_silently(done, &self.engine.rules);
        } else {
            self.flush(done, on_finding);
        }
    }

    /// Reports what no byte from `done` on can overrule.
    fn flush(&mut self, done: u64, on_finding: &mut impl FnMut(Finding<'_>)) {
        let Scratch { candidates, known, .. } = &mut *self.scratch;
        candidates.flush(done, &self.engine.rules, known, on_finding);
    }

    /// Goes on to the segment behind one of this length. Returns how many bytes of `text` that one
    /// does not see: all, if there is none.
    fn move_on(&mut self, text: &[u8], len: usize) -> usize {
        let end = self.next + len;
        let gone = if end == text.len() { end } else { end.saturating_sub(CONTEXT_BEFORE) };
        if gone < text.len() {
            self.lines.advance(&text[..gone]);
        }
        self.base += gone as u64;
        self.next = end - gone;
        gone
    }
}
