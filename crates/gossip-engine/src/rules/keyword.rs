//! Keywords: what must stand near a match, and announces it where its expression has no literal.
//!
//! A keyword is text in either case. `\b` at its end, as in an expression, keeps it from being the start
//! of a longer word: `_bot\b` is in `discord_bot=`, and not in `padding_bottom`.

use crate::ignore_case;
use crate::limits::NEARBY;
use crate::literals::{Anchor, MAX_ANCHOR_LEN, MIN_ANCHOR_LEN, Next, Reach};

/// What of a keyword is text, and what may follow it.
fn parse(keyword: &str) -> (&str, Next) {
    match keyword.strip_suffix(r"\b") {
        Some(text) => (text, Next::word_end()),
        None => (keyword, Next::ANY),
    }
}

/// Whether `keyword`, which is in lower case, stands in `text`.
pub(crate) fn is_in(keyword: &str, text: &[u8]) -> bool {
    let (keyword, next) = parse(keyword);
    keyword.is_empty()
        || ignore_case::find_iter(text, keyword).any(|at| next.may_be(text.get(at + keyword.len())))
}

/// Keywords as anchors. One that is too short leaves the rule without any: the others could miss what
/// it announces.
pub(super) fn anchors(keywords: &[String]) -> Vec<Anchor> {
    if keywords.iter().any(|keyword| parse(keyword).0.len() < MIN_ANCHOR_LEN) {
        return Vec::new();
    }
    let anchor = |keyword: &String| {
        let (text, next) = parse(keyword);
        let bytes: Vec<u8> = text.bytes().take(MAX_ANCHOR_LEN).collect();
        let next = if bytes.len() < text.len() { Next::ANY } else { next };
        let reach = Reach { min: 0, max: NEARBY };
        Anchor { bytes, ignore_case: true, next, reach, before: Vec::new() }
    };
    keywords.iter().map(anchor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyword_with_an_end_is_no_start_of_a_longer_word() {
        for text in ["the_BOT=1", "_bottom _bot", "_bot.x"] {
            assert!(is_in(r"_bot\b", text.as_bytes()), "{text}");
        }
        for text in ["_bottom", "_bot_x", "_bot1", "bot", r"_bo\b"] {
            assert!(!is_in(r"_bot\b", text.as_bytes()), "{text}");
        }
        assert!(is_in("_bot", b"_bottom"));
    }

    #[test]
    fn the_first_stage_is_told_what_may_follow() {
        let anchors = anchors(&["discord".to_owned(), r"_bot\b".to_owned()]);
        assert_eq!(anchors[1].bytes, b"_bot");
        let next = anchors[1].next;
        assert!(next.may_be(Some(&b'=')) && next.may_be(None) && !next.may_be(Some(&b't')));
        assert!(anchors[0].next.may_be(Some(&b't')));
        assert!(super::anchors(&[r"ab\b".to_owned()]).is_empty(), "too short");
    }
}
