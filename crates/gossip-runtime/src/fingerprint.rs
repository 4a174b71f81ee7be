//! What a finding is called on every machine.
//!
//! Made of the rule, the path, the masked text between the secret and the finding before it in its
//! line, and how many findings of the same rule before it in the same file have the same text. So it does
//! not change when lines are inserted or moved, when the tree is somewhere else, or when another
//! secret comes into the line; and as no byte of the secret is in it, it tells nothing about it. A
//! secret that takes the place of another keeps its fingerprint. What else is masked in the line is a
//! part of the text: the names before it tell secrets apart.
//!
//! Every version of a file counts by itself: a secret has one fingerprint in the work tree and in all
//! versions of a history, whichever of them there are and in whatever order they come.

use std::collections::HashMap;

use gossip_contracts::identity::{CanonicalHasher, FINDING_FINGERPRINT_V2};

use crate::reported::ReportedFinding;

/// Stands for what is masked.
const MASK: char = '…';
/// Characters of the text that count.
const TEXT_MAX: usize = 80;

/// Gives fingerprints to findings that come in their order.
#[derive(Default)]
pub struct Fingerprints {
    /// The item, and the path of the file.
    file: (Vec<u8>, Vec<u8>),
    /// How many there were of each in this version of this file.
    seen: HashMap<[u8; 32], u32>,
    /// Of the last finding of it, its line, and what stands before it there.
    last: Option<(u64, String)>,
}

impl Fingerprints {
    /// Nothing was seen.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The fingerprint of the next finding of a report, whose file is at `path` from the root of its
    /// repository, or of what was scanned. All findings must pass by, whether shown or not, those of
    /// one version of a file together and in their order.
    pub fn next(&mut self, found: &ReportedFinding, path: &[u8]) -> String {
        if self.file.0 != found.key || self.file.1 != path {
            self.file = (found.key.clone(), path.to_vec());
            self.seen.clear();
            self.last = None;
        }
        let last = self.last.take().filter(|(line, _)| *line == found.line);
        let text = text_between(last.map(|(_, before)| before).as_deref(), &found.before);
        self.last = Some((found.line, found.before.clone()));
        let mut hasher = CanonicalHasher::new(&FINDING_FINGERPRINT_V2);
        hasher.value(found.rule.as_str()).value(path).value(text.as_str());
        let ordinal = self.seen.entry(hasher.finish()).or_default();
        hasher.value(&*ordinal);
        *ordinal += 1;
        hasher.finish()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What stands between a secret and the finding before it in its line, with blanks and punctuation
/// evened out. `before` and `last` are what stands before the two: if the line is long, of either as much
/// as is shown.
fn text_between(last: Option<&str>, before: &str) -> String {
    let mut masks = before.rmatch_indices(MASK);
    let mask = last.and_then(|last| masks.find(|(at, _)| last.ends_with(&before[..*at])));
    let since = mask.map_or(before, |(at, mask)| &before[at + mask.len()..]);
    let since = since.trim_start_matches(|c: char| !c.is_alphanumeric());
    let words: Vec<&str> = since.split_whitespace().collect();
    let text = words.join(" ");
    let skip = text.chars().count().saturating_sub(TEXT_MAX);
    text.chars().skip(skip).collect()
}

#[cfg(test)]
mod tests {
    use gossip_contracts::identity::RunId;

    use super::*;

    fn found(rule: &str, before: &str) -> ReportedFinding {
        ReportedFinding {
            finding: String::new(),
            rule: rule.to_owned(),
            description: String::new(),
            severity: String::new(),
            confidence: String::new(),
            reason: String::new(),
            key: Vec::new(),
            path: Vec::new(),
            is_inside: false,
            start: 0,
            length: 0,
            line: 1,
            column: 1,
            end_line: 1,
            end_column: 1,
            redacted: String::new(),
            before: before.to_owned(),
            after: String::new(),
            silenced: None,
            first_seen: RunId::from_raw(1),
            provenance: None,
            versions: 0,
            oldest: None,
            is_in_work_tree: false,
        }
    }

    /// Of findings in one line each.
    fn of(path: &str, befores: &[&str]) -> Vec<String> {
        of_lines(path, befores.iter().map(|before| vec![*before]))
    }

    fn of_lines<'b>(path: &str, lines: impl Iterator<Item = Vec<&'b str>>) -> Vec<String> {
        let mut prints = Fingerprints::new();
        let lines = lines.zip(1..).flat_map(|(befores, line)| {
            befores.into_iter().map(move |before| ReportedFinding { line, ..found("rule", before) })
        });
        lines.map(|found| prints.next(&found, path.as_bytes())).collect()
    }

    /// Baselines hold them.
    #[test]
    fn golden_value() {
        assert_eq!(of("config/app.env", &["TOKEN="]), ["ea3b6fb584843a02abbe7200588fbbe2"]);
    }

    #[test]
    fn a_second_secret_in_the_line_is_another_and_leaves_the_first_as_it_was() {
        let one = of("a", &["a = "]);
        let in_line = |befores: &[&'static str]| of_lines("a", std::iter::once(befores.to_vec()));
        let two = in_line(&["a = ", "a = …, b = "]);
        assert_eq!((two[0] == one[0], two[1] == one[0]), (true, false));
        let before = in_line(&["b = ", "b = …, a = "]);
        assert_eq!(before[1], one[0]);
        // Of a long line less is shown before the later ones.
        let long = in_line(&["some text, b = ", "text, b = …, c = ", "b = …, c = …, a = "]);
        assert_eq!(long[2], one[0]);
    }

    /// What is masked may be a value, and its name is what tells two lines apart.
    #[test]
    fn what_is_masked_and_no_finding_does_not_end_the_text() {
        let prints = of(
            "a",
            &[
                "aws_key = … or \"",
                "gcp_key = … or \"",
                "Authorization: … ",
                "X-Api-Token: … ",
                "{\"key\":\"GH_BOT_A\",\"value\":\"",
                "{\"key\":\"GH_BOT_B\",\"value\":\"",
            ],
        );
        let different: std::collections::BTreeSet<_> = prints.iter().collect();
        assert_eq!(different.len(), prints.len());
        // None of that is by their order.
        for (number, before) in ["gcp_key = … or \"", "X-Api-Token: … "].iter().enumerate() {
            assert_eq!(of("a", &[before])[0], prints[2 * number + 1]);
        }
    }

    #[test]
    fn equal_lines_are_told_apart_by_their_order_and_blanks_do_not_matter() {
        let prints = of("a", &["x = ", "x = ", "\tx  = "]);
        assert!(prints[0] != prints[1] && prints[1] != prints[2] && prints[0] != prints[2]);
        assert_eq!(of("a", &["\tx  = "])[0], prints[0]);
        assert_ne!(of("b", &["x = "])[0], prints[0]);
    }

    #[test]
    fn versions_of_a_file_count_by_themselves() {
        let mut prints = Fingerprints::new();
        let mut next = |key: &[u8]| {
            let found = ReportedFinding { key: key.to_vec(), ..found("rule", "x = ") };
            prints.next(&found, b"a")
        };
        let [first, second] = [next(b"1"), next(b"1")];
        assert_ne!(first, second);
        assert_eq!([next(b"2"), next(b"2")], [first, second]);
    }
}
