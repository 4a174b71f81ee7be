//! What a scan needs besides the engine, owned by the caller so that it is made once.

use std::ops::Range;

use regex_automata::meta::Cache;
use regex_automata::util::primitives::NonMaxUsize;

use crate::candidates::Candidates;
use crate::context::Known;
use crate::decode::Decoded;
use crate::detect::Folders;
use crate::limits::MAX_DECODE_DEPTH;

/// Room for one scan at a time. Keep one per thread: once it has grown, scanning a buffer without
/// findings allocates nothing. It adapts to whichever engine uses it.
#[derive(Default)]
pub struct Scratch {
    pub(crate) engine: u64,
    /// One per rule, made when the rule's expression is first tried.
    pub(crate) caches: Vec<Option<Box<Cache>>>,
    /// One per rule: in which view, and which starts of matches, were searched last. Of a rule that
    /// keywords announce all of them, of another those at which no match begins.
    pub(crate) searched: Vec<(u64, Range<usize>)>,
    /// One per rule: whether it is for the path, once that was asked.
    pub(crate) path_fits: Vec<Option<bool>>,
    pub(crate) folders: Folders,
    /// Numbers the views of a scan.
    pub(crate) views: u64,
    pub(crate) slots: Vec<Option<NonMaxUsize>>,
    pub(crate) candidates: Candidates,
    pub(crate) known: Known,
    pub(crate) layers: [Decoded; MAX_DECODE_DEPTH as usize],
    /// Where in a view escapes begin; one list for each depth.
    pub(crate) escapes: [Vec<usize>; MAX_DECODE_DEPTH as usize + 1],
    /// Bytes of a stream that are still needed.
    pub(crate) buffer: Vec<u8>,
}

impl Scratch {
    /// Empty; grows as it is used.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes it fit an engine of so many rules.
    pub(crate) fn begin(&mut self, engine: u64, rules: usize, slots: usize) {
        if self.engine != engine {
            self.engine = engine;
            self.caches.clear();
            self.caches.resize_with(rules, || None);
            self.searched.clear();
            self.searched.resize(rules, (0, 0..0));
            self.path_fits.resize(rules, None);
            self.slots.clear();
            self.slots.resize(slots, None);
        }
        self.path_fits.fill(None);
        self.candidates.clear();
        self.known.clear();
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let made = self.caches.iter().flatten().count();
        write!(f, "Scratch({made} of {} expressions in use)", self.caches.len())
    }
}
