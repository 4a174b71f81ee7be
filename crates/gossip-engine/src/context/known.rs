//! What the built-in rules take for secrets in the text around one, whichever rules are at work.
//!
//! Where there is one secret there are others, and what is in sight of them is the same text. So it is
//! looked through in blocks, counted from the start of the object, and each of them once.

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use crate::detect::Told;
use crate::engine::Engine;
use crate::finding::Span;
use crate::options::{BadChecksum, Options};
use crate::rules::RuleSet;
use crate::scratch::Scratch;
use crate::segment::Segment;

/// The size of a block.
pub(crate) const BLOCK: usize = 1024;
/// What is looked at on either side of a block: what makes a value of a word may lie outside.
pub(crate) const MARGIN: usize = 512;

/// Finds them. No `Debug`: it has held secrets.
#[derive(Default)]
pub(crate) struct Known {
    /// Made when it is first needed.
    scratch: Option<Box<Scratch>>,
    /// In order.
    blocks: Vec<Block>,
}

/// What was found in a block.
struct Block {
    number: u64,
    spans: Vec<Span>,
}

impl Known {
    /// Looks through the blocks of `range`, a range of the object at `path`, unless that was done
    /// before. `text` is what is at hand of the object, from `base` on.
    pub(crate) fn look_at(
        &mut self,
        text: &[u8],
        base: u64,
        range: Range<u64>,
        path: Option<&[u8]>,
    ) {
        // A file that is found by its name has no text.
        if text.is_empty() {
            return;
        }
        for number in blocks_of(&range) {
            let Err(at) = self.blocks.binary_search_by_key(&number, |block| block.number) else {
                continue;
            };
            let start = number * BLOCK as u64;
            let end = start + BLOCK as u64;
            let inside = |at: u64| (at.saturating_sub(base) as usize).min(text.len());
            let seen = inside(start.saturating_sub(MARGIN as u64))..inside(end + MARGIN as u64);
            let mut spans = self.find(&text[seen.clone()], base + seen.start as u64, path);
            spans.retain(|span| span.start < end && span.end() > start);
            self.blocks.insert(at, Block { number, spans });
        }
    }

    /// What was found in the blocks of `range`.
    pub(crate) fn spans(&self, range: Range<u64>) -> impl Iterator<Item = Span> {
        let numbers = blocks_of(&range);
        let first = self.blocks.partition_point(|block| block.number < *numbers.start());
        let blocks = self.blocks[first..].iter();
        let blocks = blocks.take_while(move |block| block.number <= *numbers.end());
        blocks.flat_map(|block| block.spans.iter().copied())
    }

    /// Forgets the blocks that end before `until`.
    pub(crate) fn forget(&mut self, until: u64) {
        self.blocks.retain(|block| (block.number + 1) * BLOCK as u64 >= until);
    }

    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// The candidates of all built-in rules in `bytes`, the first of which is at `start` in the
    /// object at `path`. A comment that allows them does not count here.
    fn find(&mut self, bytes: &[u8], start: u64, path: Option<&[u8]>) -> Vec<Span> {
        let engine = engine();
        let scratch = self.scratch.get_or_insert_default();
        engine.begin(scratch, path);
        let told = Told::by(path, &mut scratch.folders);
        let segment = Segment { engine, path, told, base: start, text: bytes };
        segment.scan(scratch, 0..bytes.len());
        let spans = scratch.candidates.spans().collect();
        scratch.candidates.clear();
        spans
    }
}

fn blocks_of(range: &Range<u64>) -> RangeInclusive<u64> {
    range.start / BLOCK as u64..=range.end.saturating_sub(1).max(range.start) / BLOCK as u64
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let options = Options {
            allow_comments: false,
            bad_checksum: BadChecksum::Distrust,
            ..Options::default()
        };
        Engine::new(RuleSet::builtin(), options)
    })
}
