//! A library's front page shows how it is used, and the example is run as a doctest.

use std::path::Path;

use super::Violation;

/// Whether users of the crate see a target of this kind.
pub(super) fn is_library(kind: &str) -> bool {
    matches!(kind, "lib" | "rlib" | "dylib" | "proc-macro")
}

/// Wants a tested example in the `//!` lines of a library's root file.
pub(super) fn front_page(path: &Path, text: &str) -> Vec<Violation> {
    if blocks(text).any(is_tested) {
        return Vec::new();
    }
    let message = "the crate's front page (`//!`) shows no example that is run as a doctest";
    vec![Violation::new(path, 0, message)]
}

/// The info strings of the fenced code blocks in the `//!` lines.
fn blocks(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix("//!"));
    let fences = lines.filter_map(|line| line.trim().strip_prefix("```"));
    // Every second fence closes a block.
    fences.step_by(2)
}

/// Whether rustdoc compiles and runs a block with this info string.
fn is_tested(info: &str) -> bool {
    info.split([',', ' '])
        .filter(|word| !word.is_empty())
        .all(|word| word == "rust" || word == "should_panic" || word.starts_with("edition"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caught(docs: &str) -> bool {
        let text = format!("{docs}\npub fn a() {{}}\n");
        !front_page(Path::new("lib.rs"), &text).is_empty()
    }

    #[test]
    fn a_front_page_without_a_tested_example_is_caught() {
        assert!(caught(""));
        assert!(caught("//! Words."));
        for info in ["ignore", "no_run", "text", "sh", "compile_fail", "rust,ignore", "toml"] {
            assert!(caught(&format!("//! Words.\n//! ```{info}\n//! a();\n//! ```")), "{info}");
        }
        assert!(caught("/// ```\n/// a();\n/// ```"), "an item's example is not the front page");
    }

    #[test]
    fn a_tested_example_passes_wherever_it_stands() {
        for info in ["", "rust", "should_panic", "rust,edition2024"] {
            assert!(!caught(&format!("//! ```{info}\n//! a();\n//! ```")), "{info}");
        }
        assert!(!caught("//! ```text\n//! x\n//! ```\n//!\n//! ```\n//! a();\n//! ```"));
    }
}
