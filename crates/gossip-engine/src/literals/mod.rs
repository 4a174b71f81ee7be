//! Which literal bytes every match of a regular expression must contain, and how far into the match
//! they stand.
//!
//! The first stage of a scan looks for these *anchors* only; a rule's regular expression runs where
//! one of them was found. So an anchor that is rare in ordinary text is worth more than a long one.
//!
//! - A1: every match of the expression contains one of its anchors, at a distance from the match's
//!   start that the anchor's [`Reach`] allows.
//! - A2: an anchor has at least [`MIN_ANCHOR_LEN`] bytes.
//! - A3: what an anchor says to stand before it does in every match, between the match's start and the anchor.
//!
//! An expression may say itself where its anchors are, by a group of the name [`ANCHOR_GROUP`].

mod exact;
mod rarity;

use regex_syntax::hir::{Class, Hir, HirKind};

use exact::{Text, exact_texts, leading_texts};

use rarity::rarity_bits;
pub(crate) use rarity::{FOUR, RARE_FOUR, common_fours, three_noise};

/// Shorter literals are everywhere; an expression that guarantees no longer one has no anchor.
pub(crate) const MIN_ANCHOR_LEN: usize = 3;
/// A literal longer than this is rare enough; more of it is not compared.
pub(crate) const MAX_ANCHOR_LEN: usize = 24;
/// How far into a match an anchor may stand. What an expression puts further ahead of its anchor
/// is not looked at.
pub(crate) const MAX_REACH: usize = 512;
/// More alternatives than this make a worse first stage than a shorter literal does.
const MAX_TEXTS: usize = 80;

/// The group whose literals announce the expression, however common they may seem.
const ANCHOR_GROUP: &str = "anchor";

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
    pub(crate) next: Next,
    /// Where in the match it stands.
    pub(crate) reach: Reach,
    /// What every match has somewhere before it (A3). Empty, if that is nothing.
    pub(crate) before: Vec<u8>,
}

/// What may follow a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) bytes: ByteSet,
    /// Also the end of the text.
    pub(crate) end: bool,
    /// Also whatever follows the expression.
    pub(crate) open: bool,
}

impl Next {
    pub(crate) const ANY: Self = Self { bytes: ByteSet::ALL, end: true, open: true };
    /// Whatever follows the expression.
    const OPEN: Self = Self { bytes: ByteSet::EMPTY, end: true, open: true };

    /// The bytes for which `may_follow` holds, and no others.
    pub(crate) fn only(may_follow: impl Fn(u8) -> bool) -> Self {
        Self { bytes: ByteSet::of(may_follow), end: false, open: false }
    }

    /// What ends a word, as `\b` has it.
    pub(crate) fn word_end() -> Self {
        Self { end: true, ..Self::only(|byte| !is_in_word(byte)) }
    }

    /// All bytes that may follow.
    pub(crate) fn allowed(&self) -> ByteSet {
        if self.open { ByteSet::ALL } else { self.bytes }
    }

    /// Whether this byte, or the end of the text, may follow.
    #[inline]
    pub(crate) fn may_be(&self, byte: Option<&u8>) -> bool {
        self.open || byte.map_or(self.end, |byte| self.bytes.contains(*byte))
    }

    fn len(self) -> usize {
        self.allowed().0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.union(other.bytes),
            end: self.end || other.end,
            open: self.open || other.open,
        }
    }

    /// With what follows filled in.
    fn followed_by(self, after: Self) -> Self {
        if !self.open {
            return self;
        }
        Self { bytes: self.bytes.union(after.bytes), ..after }
    }
}

/// A set of byte values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(crate) const EMPTY: Self = Self([0; 4]);
    pub(crate) const ALL: Self = Self([u64::MAX; 4]);

    pub(crate) fn of(is_member: impl Fn(u8) -> bool) -> Self {
        let mut set = Self::EMPTY;
        (0..=u8::MAX).filter(|byte| is_member(*byte)).for_each(|byte| set.insert(byte));
        set
    }

    pub(crate) fn from_bits(bits: [u64; 4]) -> Self {
        Self(bits)
    }

    /// A bit for each byte, from 0 on.
    pub(crate) fn bits(self) -> [u64; 4] {
        self.0
    }

    pub(crate) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    #[inline]
    pub(crate) fn contains(&self, byte: u8) -> bool {
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

/// Whether what starts here is not the tail of a longer word. An escaped line end or tab is none.
pub(crate) fn stands_alone(text: &[u8], start: usize) -> bool {
    match &text[..start] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., before] => !is_in_word(*before),
        [] => true,
    }
}

/// Whether `\b` of an expression takes the byte for part of a word.
pub(crate) fn is_in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What the engine needs to know of an expression before it is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// None if it guarantees no usable literal.
    pub(crate) anchors: Option<Vec<Anchor>>,
    /// Not counting the whole match.
    pub(crate) groups: usize,
    pub(crate) matches_empty: bool,
    pub(crate) max_len: Option<usize>,
}

impl Facts {
    pub(crate) fn of(hir: &Hir) -> Self {
        let properties = hir.properties();
        Self {
            anchors: best(hir).map(|set| set.anchors),
            groups: properties.explicit_captures_len(),
            matches_empty: properties.minimum_len() == Some(0),
            max_len: properties.maximum_len(),
        }
    }
}

/// How much work anchors make, to be compared with others.
pub(crate) fn cost(anchors: &[Anchor]) -> f64 {
    if are_usable(anchors) { expected_work(anchors) } else { f64::MAX }
}

fn are_usable(anchors: &[Anchor]) -> bool {
    !anchors.is_empty() && anchors.iter().all(|anchor| anchor.bytes.len() >= MIN_ANCHOR_LEN)
}

/// A literal at a known place is confirmed by one anchored search, any other by several or by a
/// search of a window: the former is preferred, unless it is much more common. And few are: each one
/// makes the first stage's table fuller, a short one much more so.
fn expected_work(anchors: &[Anchor]) -> f64 {
    let entries = anchors
        .iter()
        .map(|anchor| if anchor.bytes.len() == MIN_ANCHOR_LEN { anchor.next.len() } else { 2 });
    let number = 1.0 + entries.sum::<usize>() as f64 / 16.0;
    let noise = anchors.iter().map(|anchor| {
        let spread = 1.0 + 2.0 * (anchor.reach.max - anchor.reach.min).min(32) as f64;
        spread * (-rarity_bits(&anchor.bytes)).exp2()
    });
    noise.sum::<f64>() * number
}

/// Anchors of which one is in every match, and how often they are expected in ordinary text.
struct AnchorSet {
    anchors: Vec<Anchor>,
    cost: f64,
}

impl AnchorSet {
    fn new(anchors: Vec<Anchor>) -> Option<Self> {
        are_usable(&anchors).then(|| Self { cost: expected_work(&anchors), anchors })
    }

    fn better(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.cost < a.cost { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// The same behind `before`.
    fn behind(mut self, before: &[u8]) -> Self {
        for anchor in self.anchors.iter_mut().filter(|anchor| anchor.before.len() < before.len()) {
            anchor.before = before.to_vec();
        }
        self
    }

    /// The same anchors in an expression that has `ahead` before this one and `after` behind it.
    fn between(mut self, ahead: Reach, after: Next) -> Self {
        for anchor in &mut self.anchors {
            anchor.reach.min = (anchor.reach.min + ahead.min).min(MAX_REACH);
            anchor.reach.max = (anchor.reach.max + ahead.max).min(MAX_REACH);
            anchor.next = anchor.next.followed_by(after);
        }
        self
    }
}

fn best(hir: &Hir) -> Option<AnchorSet> {
    let mut parts = Vec::new();
    flatten(hir, &mut parts);
    let mut found = None;
    let mut ahead = Reach { min: 0, max: 0 };
    let mut before: &[u8] = &[];
    // Parts that a literal already covers begin no better one.
    let mut covered = 0;
    for at in 0..parts.len() {
        if let Some(group) = anchor_group(parts[at])
            && let Some(set) = best(group)
        {
            return Some(set.between(ahead, first_bytes(&parts[at + 1..])).behind(before));
        }
        if at >= covered {
            let (literal, len) = literal_from(&parts[at..], ahead);
            found = AnchorSet::better(found, literal.map(|set| set.behind(before)));
            covered = at + len;
        }
        if at >= covered {
            let inside = best_inside(parts[at]);
            let inside = inside.map(|set| set.between(ahead, first_bytes(&parts[at + 1..])));
            found = AnchorSet::better(found, inside.map(|set| set.behind(before)));
        }
        before = longer(before, literal_in(parts[at]));
        let properties = parts[at].properties();
        ahead.min = ahead.min.saturating_add(properties.minimum_len().unwrap_or(0)).min(MAX_REACH);
        ahead.max =
            ahead.max.saturating_add(properties.maximum_len().unwrap_or(MAX_REACH)).min(MAX_REACH);
    }
    found
}

/// A literal that every match of this part has.
fn literal_in(hir: &Hir) -> &[u8] {
    match hir.kind() {
        HirKind::Literal(literal) => &literal.0,
        HirKind::Repetition(repetition) if repetition.min >= 1 => literal_in(&repetition.sub),
        HirKind::Capture(capture) => literal_in(&capture.sub),
        HirKind::Concat(subs) => subs.iter().map(literal_in).fold(&[], longer),
        _ => &[],
    }
}

fn longer<'b>(one: &'b [u8], other: &'b [u8]) -> &'b [u8] {
    if other.len() > one.len() { other } else { one }
}

/// The anchors inside one part that is not plain text.
fn best_inside(hir: &Hir) -> Option<AnchorSet> {
    match hir.kind() {
        HirKind::Alternation(branches) => {
            let sets = branches.iter().map(best).collect::<Option<Vec<_>>>()?;
            AnchorSet::new(sets.into_iter().flat_map(|set| set.anchors).collect())
        }
        HirKind::Repetition(repetition) if repetition.min >= 1 => {
            // The next round may follow, too.
            let again = first_bytes(&[&repetition.sub]).union(Next::OPEN);
            best(&repetition.sub).map(|set| set.between(Reach { min: 0, max: 0 }, again))
        }
        _ => None,
    }
}

/// The texts that the parts from the first on must begin with, and how many parts they cover.
fn literal_from(parts: &[&Hir], ahead: Reach) -> (Option<AnchorSet>, usize) {
    let mut texts = vec![Text::default()];
    let mut next = Next::ANY;
    let mut found = None;
    let mut covered = 0;
    let candidate = |texts: &[Text], next: Next| {
        AnchorSet::new(texts.iter().map(|text| text.anchor(ahead, next)).collect())
    };
    for (at, part) in parts.iter().enumerate() {
        let exact = exact_texts(part);
        let last = exact.is_none();
        let after = || first_bytes(&parts[at + 1..]);
        let (more, after) = match exact {
            Some(texts) => (texts, after()),
            None => match leading_texts(part) {
                Some((texts, true)) => (texts, first_bytes_of(part)),
                Some((texts, false)) => (texts, after().union(first_bytes_of(part))),
                None => break,
            },
        };
        if more.len() > 1 {
            // Longer texts are rarer, but these would also be more.
            found = AnchorSet::better(found, candidate(&texts, next));
        }
        if texts.len() * more.len() > MAX_TEXTS {
            break;
        }
        texts = texts.iter().flat_map(|text| more.iter().map(|tail| text.then(tail))).collect();
        next = after;
        covered = at + 1;
        if last {
            break;
        }
    }
    (AnchorSet::better(found, candidate(&texts, next)), covered)
}

/// The bytes with which a match of the parts can begin; open, if it can be empty.
fn first_bytes(parts: &[&Hir]) -> Next {
    let mut next = Next::OPEN;
    for part in parts {
        next = next.followed_by(first_bytes_of(part));
    }
    next
}

fn first_bytes_of(hir: &Hir) -> Next {
    match hir.kind() {
        HirKind::Look(_) | HirKind::Empty => Next::OPEN,
        HirKind::Literal(literal) => Next::only(|byte| byte == literal.0[0]),
        HirKind::Class(class) => Next { bytes: ByteSet::of_class(class), end: false, open: false },
        HirKind::Capture(capture) => first_bytes_of(&capture.sub),
        HirKind::Repetition(repetition) => {
            let first = first_bytes_of(&repetition.sub);
            if repetition.min == 0 { first.union(Next::OPEN) } else { first }
        }
        HirKind::Concat(subs) => first_bytes(&subs.iter().collect::<Vec<_>>()),
        HirKind::Alternation(subs) => {
            subs.iter().map(first_bytes_of).reduce(Next::union).unwrap_or(Next::ANY)
        }
    }
}

/// What is in the group that says where the anchors are, if this is it.
fn anchor_group(hir: &Hir) -> Option<&Hir> {
    match hir.kind() {
        HirKind::Capture(capture) if capture.name.as_deref() == Some(ANCHOR_GROUP) => {
            Some(&capture.sub)
        }
        _ => None,
    }
}

/// The parts of nested concatenations and groups, in order.
fn flatten<'h>(hir: &'h Hir, parts: &mut Vec<&'h Hir>) {
    match hir.kind() {
        _ if anchor_group(hir).is_some() => parts.push(hir),
        HirKind::Concat(subs) => subs.iter().for_each(|sub| flatten(sub, parts)),
        HirKind::Capture(capture) => flatten(&capture.sub, parts),
        _ => parts.push(hir),
    }
}

#[cfg(test)]
mod tests;
