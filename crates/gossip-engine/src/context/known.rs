//! What the built-in rules take for secrets in the text around one, whichever rules are at work.

use std::sync::OnceLock;

use crate::engine::Engine;
use crate::finding::Span;
use crate::options::{BadChecksum, Options};
use crate::rules::RuleSet;
use crate::scratch::Scratch;
use crate::segment::Segment;

/// Finds them. No `Debug`: it has held secrets.
#[derive(Default)]
pub(crate) struct Known {
    /// Made when it is first needed.
    scratch: Option<Box<Scratch>>,
}

impl Known {
    /// The candidates of all built-in rules in `bytes`, the first of which is at `start` in the
    /// object at `path`. A comment that allows them does not count here.
    pub(crate) fn find(&mut self, bytes: &[u8], start: u64, path: Option<&[u8]>) -> Vec<Span> {
        let engine = engine();
        let scratch = self.scratch.get_or_insert_default();
        engine.begin(scratch);
        let kind = crate::detect::FileKind::of(path);
        let segment = Segment { engine, path, kind, base: start, text: bytes };
        segment.scan(scratch, 0..bytes.len());
        let spans = scratch.candidates.spans().collect();
        scratch.candidates.clear();
        spans
    }
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
