use proptest::prelude::*;
use regex_automata::util::syntax;

use super::*;

fn hir(pattern: &str) -> Hir {
    syntax::parse_with(pattern, &crate::pattern::syntax_config()).unwrap()
}

fn anchors(hir: &Hir) -> Option<Vec<Anchor>> {
    Facts::of(hir).anchors
}

fn shown(pattern: &str) -> Vec<(String, usize, usize)> {
    let mut shown: Vec<_> = anchors(&hir(pattern))
        .unwrap_or_default()
        .into_iter()
        .map(|a| (String::from_utf8(a.bytes).unwrap(), a.reach.min, a.reach.max))
        .collect();
    shown.sort();
    shown
}

#[test]
fn a_prefix_is_the_anchor() {
    assert_eq!(shown(r"\bghp_[A-Za-z0-9]{36}\b"), [("ghp_".into(), 0, 0)]);
}

#[test]
fn small_classes_and_alternatives_are_spelled_out() {
    let kinds = ["gho_", "ghp_", "ghs_"].map(|kind| (kind.to_owned(), 0, 0));
    assert_eq!(shown("gh[pos]_[0-9a-f]{30}"), kinds);
    let prefixes = ["ABIA", "AKIA", "ASIA"].map(|prefix| (prefix.to_owned(), 0, 0));
    assert_eq!(shown("(?:AKIA|ASIA|ABIA)[A-Z2-7]{16}"), prefixes);
}

#[test]
fn letters_in_either_case_fold() {
    let found = anchors(&hir("(?i)DataDog.{0,9}[0-9a-f]{32}")).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].bytes, b"datadog");
    assert!(found[0].ignore_case);
}

#[test]
fn a_literal_inside_knows_its_reach() {
    assert_eq!(shown("[0-9a-f]{32}-us[a-z]{1,2}"), [("-us".into(), 32, 32)]);
    assert_eq!(shown(r"[0-9]{8,10}:AA[\w-]{33}"), [(":AA".into(), 8, 10)]);
    assert_eq!(shown(r".*secret_key"), [("secret_key".into(), 0, MAX_REACH)]);
}

#[test]
fn a_rarer_literal_inside_beats_a_common_prefix() {
    assert_eq!(shown("the [a-z]{4} T3BlbkFJ"), [(" T3BlbkFJ".into(), 8, 8)]);
}

#[test]
fn a_group_called_anchor_says_what_announces_the_expression() {
    let tail = "[a-z]{4}(?<anchor> the | of )";
    assert_eq!(shown("T3BlbkFJ[a-z]{4} the "), [("T3BlbkFJ".into(), 0, 0)]);
    assert_eq!(shown(&format!("T3BlbkFJ{tail}")), [" of ", " the "].map(|t| (t.into(), 12, 12)));
    // One that guarantees no literal says nothing.
    assert_eq!(shown("T3BlbkFJ(?<anchor>[0-9]+)"), [("T3BlbkFJ".into(), 0, 0)]);
}

#[test]
fn an_expression_without_a_literal_has_no_anchor() {
    assert_eq!(shown(r"\b[0-9a-f]{32}\b"), []);
    assert_eq!(shown(r"(?:abcd|[0-9]+)x"), []);
    assert_eq!(shown(r"(?:abcd)*x"), []);
    assert_eq!(shown(r"ab"), []);
}

#[test]
fn an_anchor_says_what_every_match_has_before_it() {
    let before = |pattern: &str| anchors(&hir(pattern)).unwrap().remove(0).before;
    assert_eq!(before(r"[a-z]{1,64}@[a-z.]{1,64}(?:\.com:|\.net:)[a-z]{6}"), b"@");
    assert_eq!(before(r"user [a-z]{1,64} (?:[a-z]{0,100} )?(?<anchor>on >)[a-z]{4}"), b"user ");
    assert_eq!(before(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3} (?<anchor>root )"), b".");
    // One of several may be another.
    assert_eq!(before(r"(?:user|role) [a-z]{1,9}(?<anchor>on >)"), b" ");
    assert_eq!(before(r"(?:user )?[a-z]{1,9}(?<anchor>on >)"), b"");
}

proptest! {
    /// A1, A3: whatever the expression matches contains an anchor within reach of the match's start, and
    /// before that what the anchor says.
    #[test]
    fn every_match_contains_an_anchor(
        (pattern, text) in prop::sample::select(vec![
            r"gh[pos]_[a-z]{4}", r"(?i-u)key[ =]{1,3}(?:abc|def)[0-9]", r"[0-9]{2,5}:AA[a-c]+",
            r"(?:foo|ba[rz])x?-[ab]{2}", r"-{5}BEGIN[A-Z ]{0,5}-{5}", r"(?:abc){2,4}d",
            r"a{3,}b[0-9]", r"(?:sk|pk)_(?:live|test)_[a-f]{3}", r"[a-c]{0,3}?token(?:s)?=",
            r"echo[ab]{1,3}(?<anchor>foo|ba[rz]+)x", r"[ab]{1,9}@[ab]{1,3}(?:\.com:|\.net:)[ab]",
            r"(?:[0-9]{1,3}\.){3}[0-9](?:[ ]root|[ ]admin) x", r"(?:user|role) [ab]+ (?:x )?on >[ab]",
        ])
        .prop_flat_map(|pattern| {
            (Just(pattern), proptest::string::bytes_regex(pattern).expect("a pattern"))
        }),
    ) {
        let anchors = anchors(&hir(pattern)).unwrap();
        let met = anchors.iter().any(|anchor| {
            (anchor.reach.min..=anchor.reach.max).any(|at| {
                let is_there = text.get(at..at + anchor.bytes.len()).is_some_and(|found| {
                    found == anchor.bytes
                        || anchor.ignore_case && found.eq_ignore_ascii_case(&anchor.bytes)
                });
                is_there && memchr::memmem::find(&text[..at], &anchor.before).is_some()
            })
        });
        prop_assert!(met, "{pattern} {:?}", String::from_utf8_lossy(&text));
    }
}
