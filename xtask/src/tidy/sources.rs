//! Rules over single files.

use std::path::Path;

use super::Violation;

/// A file beyond this is more than one thing.
const MAX_LINES: usize = 800;

/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Where a person's own files are, on the systems that we know.
const MACHINE_ROOTS: [&str; 4] = ["/work/", "/root/", "/home/", "/Users/"];

pub(super) fn size(path: &Path, text: &str) -> Vec<Violation> {
    let lines = text.lines().count();
    if lines <= MAX_LINES || LONG_FILES.iter().any(|(long, _)| path == Path::new(long)) {
        return Vec::new();
    }
    let message = format!("{lines} lines, more than {MAX_LINES}: find the two things in it");
    vec![Violation::new(path, 0, message)]
}

/// Paths that exist on one machine only, in any file.
pub(super) fn machine_paths(path: &Path, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for root in MACHINE_ROOTS {
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            let after = text[at + root.len()..].chars().next();
            let starts_a_path = !before.is_some_and(is_path_character);
            if starts_a_path && after.is_some_and(|c| c.is_alphanumeric() || c == '.' || c == '_') {
                let message = format!("a path below `{root}` exists on one machine only");
                found.push(Violation::new(path, line_of(text, at), message));
            }
        }
    }
    found
}

/// What a merge that nobody finished leaves, in any file.
pub(super) fn conflict_markers(path: &Path, text: &str) -> Vec<Violation> {
    let is_marker = |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
    let marked = text.lines().zip(1..).filter(|(line, _)| is_marker(line));
    marked.map(|(_, line)| Violation::new(path, line, "a merge was not finished here")).collect()
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || "/._-~*}$)".contains(c)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[Violation]) -> Vec<usize> {
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn a_file_of_more_than_800_lines_is_caught() {
        let path = Path::new("a.rs");
        assert!(size(path, &"x\n".repeat(MAX_LINES)).is_empty());
        assert_eq!(size(path, &"x\n".repeat(MAX_LINES + 1)).len(), 1);
    }

    #[test]
    fn every_exception_for_a_long_file_has_a_reason() {
        assert!(LONG_FILES.iter().all(|(_, reason)| !reason.trim().is_empty()));
    }

    fn paths(text: &str) -> usize {
        machine_paths(Path::new("a.md"), text).len()
    }

    #[test]
    fn a_path_of_one_machine_is_caught_in_any_file() {
        for root in MACHINE_ROOTS {
            assert_eq!(paths(&format!("see {root}someone/notes")), 1, "{root}");
            assert_eq!(paths(&format!("\"{root}.config\"")), 1, "{root}");
        }
    }

    #[test]
    fn other_paths_pass() {
        for root in MACHINE_ROOTS {
            assert_eq!(paths(&format!("a path that starts with {root} is refused")), 0, "{root}");
            assert_eq!(paths(&format!("example.org{root}page, src{root}a.rs, ~{root}b")), 0);
        }
        assert_eq!(paths("/usr/share, /tmp/x, /workspace/y"), 0);
    }

    #[test]
    fn an_unfinished_merge_is_caught_in_any_file() {
        let marked = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n";
        assert_eq!(lines(&conflict_markers(Path::new("a.md"), marked)), [2, 6]);
        let none = "a <<<<<<< b\n=======\n    >>>>>>> c\n";
        assert!(conflict_markers(Path::new("a.md"), none).is_empty());
    }
}
