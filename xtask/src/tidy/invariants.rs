//! Numbered invariants: `//! - L1: a lease is over at its deadline.`
//!
//! Assertions and tests cite the number, so it names one thing in its crate, and ARCHITECTURE.md
//! links to the file that states it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Violation;

/// Where each invariant is stated: by crate and number.
#[derive(Default)]
pub(super) struct Invariants(BTreeMap<(String, String), Vec<(PathBuf, usize)>>);

impl Invariants {
    /// Notes what a source file of a crate states.
    pub(super) fn read(&mut self, path: &Path, text: &str) {
        let mut parts = path.iter().map(|part| part.to_string_lossy());
        let (Some(top), Some(name), Some(folder)) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        if top != "crates" || folder != "src" {
            return;
        }
        for (line, number) in text.lines().zip(1..) {
            if let Some(invariant) = stated(line) {
                let key = (name.to_string(), invariant.to_owned());
                self.0.entry(key).or_default().push((path.to_owned(), number));
            }
        }
    }

    pub(super) fn check(&self, architecture: &str) -> Vec<Violation> {
        let mut violations = Vec::new();
        for ((_, invariant), places) in &self.0 {
            let ((path, line), others) = places.split_first().expect("it stands somewhere");
            if !architecture.contains(&format!("({})", path.display())) {
                let message = format!("{invariant} is stated here; ARCHITECTURE.md has no link");
                violations.push(Violation::new(path, *line, message));
            }
            for (other, line) in others {
                let message = format!("{invariant} is another invariant in {}", path.display());
                violations.push(Violation::new(other, *line, message));
            }
        }
        violations
    }
}

/// The number of the invariant that a line of documentation states.
fn stated(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let text = line.strip_prefix("//! - ").or_else(|| line.strip_prefix("/// - "))?;
    let end = text.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (number, rest) = text.split_at(end);
    let (letter, digits) = number.split_at_checked(1)?;
    let is_number = letter.bytes().all(|byte| byte.is_ascii_uppercase())
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && rest.starts_with([':', ' '])).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invariant_is_a_letter_and_a_number_at_the_start_of_an_item() {
        assert_eq!(stated("//! - L1: a lease ends"), Some("L1"));
        assert_eq!(stated("    /// - S10 [`liveness`]: every run ends"), Some("S10"));
        for none in ["//! L1: a lease", "// - L1: a", "//! - LL: a", "//! - L: a", "//! - SHA1sum"]
        {
            assert_eq!(stated(none), None, "{none}");
        }
    }

    #[test]
    fn a_number_stated_twice_or_without_a_link_is_caught() {
        let mut invariants = Invariants::default();
        let (a, b) = (Path::new("crates/x/src/a.rs"), Path::new("crates/x/src/b.rs"));
        invariants.read(a, "//! - L1: one\n//! - L2: two\n");
        invariants.read(b, "//! - L2: another\n");
        invariants.read(Path::new("crates/y/src/a.rs"), "//! - L1: of another crate\n");
        invariants.read(Path::new("crates/y/tests/a.rs"), "//! - L1: not of the crate\n");
        let linked = "(crates/x/src/a.rs) (crates/y/src/a.rs)";
        let found = invariants.check(linked);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].path.as_path(), found[0].line), (b, 1));
        assert_eq!(invariants.check("(crates/x/src/a.rs)").len(), 2);
    }
}
