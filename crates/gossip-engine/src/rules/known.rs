//! What is to know of the expressions of the built-in rules. The build script looks into them, so that
//! a program need not whenever it starts.

use crate::literals::{Anchor, ByteSet, Facts, Next, Reach};

/// Expressions, sorted, with what [`Facts`] has of each.
type Known = (&'static str, usize, bool, Option<usize>, Option<&'static [KnownAnchor]>);
/// What an [`Anchor`] has.
type KnownAnchor = (&'static [u8], bool, ([u64; 4], bool), (usize, usize), &'static [u8]);

static EXPRESSIONS: &[Known] = include!(concat!(env!("OUT_DIR"), "/expressions.rs"));

/// What is to know of `source`, if it is an expression of a built-in rule.
pub(super) fn facts(source: &str) -> Option<Facts> {
    let at = EXPRESSIONS.binary_search_by(|known| known.0.cmp(source)).ok()?;
    let (_, groups, matches_empty, max_len, anchors) = EXPRESSIONS[at];
    let anchor = |(bytes, ignore_case, (next, open), (min, max), before): &KnownAnchor| Anchor {
        bytes: bytes.to_vec(),
        ignore_case: *ignore_case,
        next: Next { bytes: ByteSet::from_bits(*next), end: *open, open: *open },
        reach: Reach { min: *min, max: *max },
        before: before.to_vec(),
    };
    let anchors = anchors.map(|anchors| anchors.iter().map(anchor).collect());
    Some(Facts { anchors, groups, matches_empty, max_len })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    #[test]
    fn what_is_known_is_what_the_expression_says() {
        assert!(EXPRESSIONS.len() > 300, "{} expressions", EXPRESSIONS.len());
        assert!(EXPRESSIONS.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted");
        for (source, ..) in EXPRESSIONS {
            let (_, hir) = Pattern::parse(source).unwrap();
            assert_eq!(facts(source), Some(Facts::of(&hir)), "{source}");
        }
    }

    #[test]
    fn nothing_is_known_of_others() {
        assert_eq!(facts("mine_[0-9]{8}"), None);
    }
}
