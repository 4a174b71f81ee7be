//! The finite sets of texts that parts of an expression stand for.

use regex_syntax::hir::{Class, Hir, HirKind};

use super::{Anchor, MAX_ANCHOR_LEN, MAX_TEXTS, Next, Reach};

/// A class with more members than this is not spelled out.
const MAX_CLASS: usize = 16;

/// One text; letters whose case does not matter are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text {
    bytes: Vec<u8>,
    ignore_case: bool,
}

impl Text {
    pub(super) fn then(&self, tail: &Self) -> Self {
        let bytes = [self.bytes.as_slice(), tail.bytes.as_slice()].concat();
        Self { bytes, ignore_case: self.ignore_case || tail.ignore_case }
    }

    pub(super) fn anchor(&self, reach: Reach, next: Next) -> Anchor {
        let mut bytes = self.bytes.clone();
        let next = if bytes.len() > MAX_ANCHOR_LEN { Next::ANY } else { next };
        bytes.truncate(MAX_ANCHOR_LEN);
        if self.ignore_case {
            bytes.make_ascii_lowercase();
        }
        Anchor { bytes, ignore_case: self.ignore_case, next, reach, before: Vec::new() }
    }
}

/// All texts that `hir` matches, if they are few.
pub(super) fn exact_texts(hir: &Hir) -> Option<Vec<Text>> {
    // Counting first: most parts of most expressions stand for far too many.
    if count(hir) > MAX_TEXTS { None } else { spell_out(hir) }
}

/// How many texts `hir` matches, at least; letters of either case once. A class that is not spelled
/// out has no end of them.
fn count(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Literal(_) => 1,
        HirKind::Class(Class::Bytes(class)) => {
            let members = class.iter().map(|range| usize::from(range.end() - range.start()) + 1);
            let texts = members.sum::<usize>().div_ceil(2);
            if texts > MAX_CLASS { usize::MAX } else { texts }
        }
        HirKind::Class(Class::Unicode(_)) => usize::MAX,
        HirKind::Capture(capture) => count(&capture.sub),
        HirKind::Concat(subs) => subs.iter().map(count).fold(1, usize::saturating_mul),
        HirKind::Alternation(subs) => subs.iter().map(count).fold(0, usize::saturating_add),
        HirKind::Repetition(repetition) => {
            let Some(max) = repetition.max else { return usize::MAX };
            count(&repetition.sub).saturating_pow(max)
        }
    }
}

fn spell_out(hir: &Hir) -> Option<Vec<Text>> {
    let texts = match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![Text::default()],
        HirKind::Literal(literal) => {
            vec![Text { bytes: literal.0.to_vec(), ignore_case: false }]
        }
        HirKind::Class(class) => class_texts(class)?,
        HirKind::Capture(capture) => exact_texts(&capture.sub)?,
        HirKind::Concat(subs) => concat(subs.iter())?,
        HirKind::Alternation(branches) => {
            branches.iter().map(exact_texts).collect::<Option<Vec<_>>>()?.concat()
        }
        HirKind::Repetition(repetition) => {
            let max = repetition.max?;
            if max > 16 {
                return None;
            }
            let mut texts = Vec::new();
            for times in repetition.min..=max {
                texts.extend(concat((0..times).map(|_| &*repetition.sub))?);
            }
            texts
        }
    };
    (texts.len() <= MAX_TEXTS).then_some(texts)
}

/// The texts with which every match of the repetition `hir` begins, where it does not stand for a
/// few texts, and whether its part must follow once more.
pub(super) fn leading_texts(hir: &Hir) -> Option<(Vec<Text>, bool)> {
    let HirKind::Repetition(repetition) = hir.kind() else { return None };
    // As many copies as stay few texts.
    (1..=repetition.min.min(16))
        .map_while(|times| {
            let texts = concat((0..times).map(|_| &*repetition.sub))?;
            Some((texts, times < repetition.min))
        })
        .last()
}

fn concat<'h>(parts: impl Iterator<Item = &'h Hir>) -> Option<Vec<Text>> {
    let mut texts = vec![Text::default()];
    for part in parts {
        let more = exact_texts(part)?;
        if texts.len() * more.len() > MAX_TEXTS {
            return None;
        }
        texts = texts.iter().flat_map(|text| more.iter().map(|tail| text.then(tail))).collect();
    }
    Some(texts)
}

/// One text per member; the two cases of a letter are one member.
fn class_texts(class: &Class) -> Option<Vec<Text>> {
    let Class::Bytes(class) = class else { return None };
    let has =
        |wanted: u8| class.iter().any(|range| (range.start()..=range.end()).contains(&wanted));
    let mut texts = Vec::new();
    for byte in class.iter().flat_map(|range| range.start()..=range.end()) {
        let both_cases = byte.is_ascii_alphabetic() && has(byte ^ 0x20);
        if both_cases && byte.is_ascii_uppercase() {
            continue;
        }
        texts.push(Text { bytes: vec![byte], ignore_case: both_cases });
        if texts.len() > MAX_CLASS {
            return None;
        }
    }
    (!texts.is_empty()).then_some(texts)
}
