//! Rules over single files.

use std::path::Path;

use super::Violation;
use super::lexer::{Views, is_word};

/// A file beyond this is more than one thing.
const MAX_LINES: usize = 800;

/// Files that may be longer, each with its reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// Crates whose purpose needs `unsafe`: containers over raw memory, and a global allocator.
const UNSAFE_CRATES: [&str; 2] = ["crates/gossip-stdx/", "crates/gossip-testalloc/"];

/// What marks unfinished work. In parts, so that this file does not break its own rule.
const UNFINISHED: [&str; 4] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("d", "bg!"),
    concat!("FIX", "ME"),
];

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

pub(super) fn banned_words(path: &Path, views: &Views) -> Vec<Violation> {
    let view = &views.without_strings;
    let found = UNFINISHED.iter().flat_map(|word| {
        words(view, word).map(move |at| {
            Violation::new(path, line_of(view, at), format!("`{word}` marks unfinished work"))
        })
    });
    found.collect()
}

/// `#[ignore]` and `cfg_attr(…, ignore)` without `= "reason"`.
pub(super) fn unreasoned_ignores(path: &Path, text: &str, views: &Views) -> Vec<Violation> {
    let code = &views.code;
    let unreasoned = words(code, "ignore").filter(|&at| {
        let before = code[..at].trim_end();
        let in_attribute = before.ends_with("#[")
            || before.ends_with(',') && before.rfind("#[cfg_attr(") > before.rfind(']');
        let after = &text[at + "ignore".len()..];
        in_attribute && !has_reason(after)
    });
    let message = "an ignored test says why, and which command runs it: #[ignore = \"…\"]";
    unreasoned.map(|at| Violation::new(path, line_of(code, at), message)).collect()
}

/// Whether what follows `ignore` is `= "…"` with something in the string.
fn has_reason(after: &str) -> bool {
    let Some(value) = after.trim_start().strip_prefix('=') else { return false };
    let Some(reason) = value.trim_start().strip_prefix('"') else { return false };
    reason.find('"').is_some_and(|end| !reason[..end].trim().is_empty())
}

pub(super) fn unsafe_code(path: &Path, views: &Views) -> Vec<Violation> {
    if UNSAFE_CRATES.iter().any(|allowed| path.starts_with(allowed)) {
        return Vec::new();
    }
    let message = "`unsafe` belongs in gossip-stdx or gossip-testalloc";
    words(&views.code, "unsafe")
        .map(|at| Violation::new(path, line_of(&views.code, at), message))
        .collect()
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

/// Where `word` stands by itself, as a byte offset.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let at_edge = |byte: Option<&u8>| byte.is_none_or(|byte| !is_word(*byte));
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let bytes = text.as_bytes();
        let ends_open = word.ends_with(|c: char| !c.is_alphanumeric());
        let start = at.checked_sub(1).and_then(|before| bytes.get(before));
        at_edge(start) && (ends_open || at_edge(bytes.get(at + word.len())))
    })
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

    fn banned(source: &str) -> Vec<usize> {
        lines(&banned_words(Path::new("a.rs"), &Views::of(source)))
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

    #[test]
    fn each_banned_word_is_caught_in_code_and_in_comments() {
        for word in UNFINISHED {
            assert_eq!(banned(&format!("fn a() {{\n    {word}(1)\n}}")), [2], "{word}");
            assert_eq!(banned(&format!("// {word}: later")), [1], "{word}");
        }
    }

    #[test]
    fn longer_words_and_strings_are_not_banned() {
        for word in UNFINISHED {
            assert!(banned(&format!("let a = \"{word}\"; my_{word}()")).is_empty(), "{word}");
        }
        assert!(banned("let todo = 1; dbg(todo)").is_empty());
    }

    fn ignores(source: &str) -> Vec<usize> {
        lines(&unreasoned_ignores(Path::new("a.rs"), source, &Views::of(source)))
    }

    #[test]
    fn an_ignored_test_without_a_reason_is_caught() {
        assert_eq!(ignores("#[test]\n#[ignore]\nfn a() {}"), [2]);
        assert_eq!(ignores("#[ ignore ]"), [1]);
        assert_eq!(ignores("#[ignore = \"\"]"), [1]);
        assert_eq!(ignores("#[cfg_attr(miri, ignore)]"), [1]);
    }

    #[test]
    fn an_ignored_test_with_a_reason_passes_and_so_does_the_word_elsewhere() {
        let none: [usize; 0] = [];
        assert_eq!(ignores("#[ignore = \"minutes long: cargo xtask soak\"]"), none);
        assert_eq!(ignores("#[cfg_attr(miri, ignore = \"too slow\")]"), none);
        assert_eq!(ignores("// #[ignore]\nlet s = \"#[ignore]\"; f(a, ignore)"), none);
    }

    fn unsafes(path: &str, source: &str) -> usize {
        unsafe_code(Path::new(path), &Views::of(source)).len()
    }

    #[test]
    fn unsafe_code_is_caught_outside_the_two_crates() {
        let source = "fn a() { unsafe { b() } }";
        assert_eq!(unsafes("crates/gossip-frontier/src/lib.rs", source), 1);
        assert_eq!(unsafes("crates/gossip-stdx/src/lib.rs", source), 0);
        assert_eq!(unsafes("crates/gossip-testalloc/src/lib.rs", source), 0);
        assert_eq!(unsafes("crates/gossip-stdx-more/src/lib.rs", source), 1);
        assert_eq!(unsafes("a.rs", "#![forbid(unsafe_code)] // unsafe\n\"unsafe\""), 0);
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
