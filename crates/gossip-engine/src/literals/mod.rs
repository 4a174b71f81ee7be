//! Which literal bytes every match of a regular expression must contain, and how far into the match
//! they stand.
//!
//! The first stage of a scan looks for these *anchors* only; a rule's regular expression runs where
//! one of them was found. So an anchor that is rare in ordinary text is worth more than a long one.
//!
//! - A1: every match of the expression contains one of its anchors, at a distance from the match's
//!   start that the anchor's [`Reach`] allows.
//! - A2: an anchor has at least [`MIN_ANCHOR_LEN`] bytes.

mod exact;
mod rarity;

use regex_syntax::hir::{Class, Hir, HirKind};

use exact::{Text, exact_texts, leading_texts};
pub(crate) use rarity::rarity_bits;

/// Shorter literals are everywhere; an expression that guarantees no longer one has no anchor.
pub(crate) const MIN_ANCHOR_LEN: usize = 3;
/// How far into a match an anchor may stand. What an expression puts further ahead of its anchor
/// is not looked at.
pub(crate) const MAX_REACH: usize = 512;
/// More alternatives than this make a worse first stage than a shorter literal does.
const MAX_TEXTS: usize = 80;

/// How far from the match's start an anchor stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// A literal that announces a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    /// In lower case where `ignore_case` is set.
    pub(crate) bytes: Vec<u8>,
    /// ASCII letters match in either case.
    pub(crate) ignore_case: bool,
    /// What may follow the literal in a match.
    pub(crate) next: ByteSet,
    /// Where in the match it stands.
    pub(crate) reach: Reach,
}

/// A set of byte values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(crate) const EMPTY: Self = Self([0; 4]);
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(crate) fn contains(self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    fn union(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] | other.0[at]))
    }

    fn of_class(class: &Class) -> Self {
        let mut set = Self::EMPTY;
        match class {
            Class::Bytes(class) => class
                .iter()
                .for_each(|range| (range.start()..=range.end()).for_each(|byte| set.insert(byte))),
            Class::Unicode(_) => set = Self::ALL,
        }
        set
    }
}

impl std::fmt::Debug for ByteSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ByteSet({})", self.0.iter().map(|word| word.count_ones()).sum::<u32>())
    }
}

/// The anchors of an expression, or none if it guarantees no usable literal.
pub(crate) fn anchors(hir: &Hir) -> Option<Vec<Anchor>> {
    best(hir).map(|set| set.anchors)
}

/// Anchors of which one is in every match, and how often they are expected in ordinary text.
struct AnchorSet {
    anchors: Vec<Anchor>,
    cost: f64,
}

impl AnchorSet {
    fn new(anchors: Vec<Anchor>) -> Option<Self> {
        if anchors.is_empty() || anchors.iter().any(|anchor| anchor.bytes.len() < MIN_ANCHOR_LEN) {
            return None;
        }
        // A literal at a known place is confirmed by one anchored search, any other by several or
        // by a search of a window: prefer the former, unless it is much more common. And prefer
        // few: each one makes the first stage's table fuller.
        let number = 1.0 + anchors.len() as f64 / 8.0;
        let cost: f64 = anchors
            .iter()
            .map(|anchor| {
                let spread = 1.0 + (anchor.reach.max - anchor.reach.min).min(8) as f64;
                spread * (-rarity_bits(&anchor.bytes)).exp2()
            })
            .sum();
        Some(Self { anchors, cost: cost * number })
    }

    fn better(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.cost < a.cost { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// The same anchors in an expression that has `ahead` before this one.
    fn shifted(mut self, ahead: Reach, next: ByteSet) -> Self {
        for anchor in &mut self.anchors {
            anchor.reach.min = (anchor.reach.min + ahead.min).min(MAX_REACH);
            anchor.reach.max = (anchor.reach.max + ahead.max).min(MAX_REACH);
            anchor.next = anchor.next.union(next);
        }
        self
    }
}

fn best(hir: &Hir) -> Option<AnchorSet> {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    let mut found = None;
    let mut ahead = Reach { min: 0, max: 0 };
    for at in 0..parts.len() {
        found = AnchorSet::better(found, literal_from(&parts[at..], ahead));
        let inner = best_inside(parts[at]).map(|set| {
            // What follows the part may follow its last literal; not tracked more finely.
            set.shifted(ahead, ByteSet::ALL)
        });
        found = AnchorSet::better(found, inner);
        let properties = parts[at].properties();
        ahead.min = ahead.min.saturating_add(properties.minimum_len().unwrap_or(0)).min(MAX_REACH);
        ahead.max =
            ahead.max.saturating_add(properties.maximum_len().unwrap_or(MAX_REACH)).min(MAX_REACH);
    }
    found
}

/// The anchors inside one part that is not plain text.
fn best_inside(hir: &Hir) -> Option<AnchorSet> {
    match hir.kind() {
        HirKind::Alternation(branches) => {
            let sets = branches.iter().map(best).collect::<Option<Vec<_>>>()?;
            AnchorSet::new(sets.into_iter().flat_map(|set| set.anchors).collect())
        }
        HirKind::Repetition(repetition) if repetition.min >= 1 => best(&repetition.sub),
        _ => None,
    }
}

/// The texts that the parts from the first on must begin with.
fn literal_from(parts: &[&Hir], ahead: Reach) -> Option<AnchorSet> {
    let mut texts = vec![Text::default()];
    let mut found = None;
    for (at, part) in parts.iter().enumerate() {
        let exact = exact_texts(part);
        let last = exact.is_none();
        let Some(more) = exact.or_else(|| leading_texts(part)) else { break };
        if texts.len() * more.len() > MAX_TEXTS {
            break;
        }
        texts = texts.iter().flat_map(|text| more.iter().map(|tail| text.then(tail))).collect();
        let next = if last { ByteSet::ALL } else { first_bytes(&parts[at + 1..]) };
        let anchors = texts.iter().map(|text| text.anchor(ahead, next)).collect();
        found = AnchorSet::better(found, AnchorSet::new(anchors));
        if last {
            break;
        }
    }
    found
}

/// The bytes with which a match of the parts can begin; all, if it can be empty.
fn first_bytes(parts: &[&Hir]) -> ByteSet {
    let mut set = ByteSet::EMPTY;
    for part in parts {
        let (bytes, can_be_empty) = match part.kind() {
            HirKind::Look(_) | HirKind::Empty => (ByteSet::EMPTY, true),
            HirKind::Literal(literal) => {
                let mut bytes = ByteSet::EMPTY;
                bytes.insert(literal.0[0]);
                (bytes, false)
            }
            HirKind::Class(class) => (ByteSet::of_class(class), false),
            HirKind::Repetition(repetition) => {
                let mut inner = Vec::new();
                flatten(&repetition.sub, &mut inner);
                (first_bytes(&inner), repetition.min == 0)
            }
            _ => (ByteSet::ALL, false),
        };
        set = set.union(bytes);
        if !can_be_empty {
            return set;
        }
    }
    ByteSet::ALL
}

/// The parts of nested concatenations and groups, in order.
fn flatten<'h>(hir: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match hir.kind() {
        HirKind::Concat(subs) => subs.iter().for_each(|sub| flatten(sub, parts)),
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        _ => parts.push(hir),
    }
}

#[cfg(test)]
mod tests;
