//! Comparisons of bytes with words, ASCII letters in either case.

/// Whether `text` is one of `words`.
pub(crate) fn is_any(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// Where in `text` the `word` stands, which is in lower case and not empty.
pub(crate) fn find_iter<'t>(text: &'t [u8], word: &'t str) -> impl Iterator<Item = usize> + 't {
    let word = word.as_bytes();
    let first = word[0];
    debug_assert!(!first.is_ascii_uppercase());
    let is_at = |at: &usize| {
        text[*at..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word))
    };
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), text).filter(is_at)
}

/// Whether `text` contains `word`, which is in lower case.
pub(crate) fn contains(text: &[u8], word: &str) -> bool {
    word.is_empty() || find_iter(text, word).next().is_some()
}

/// Whether `text` contains one of `words`, which are in lower case.
pub(crate) fn contains_any(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| contains(text, word))
}

/// Whether `text` begins with one of `words`.
pub(crate) fn starts_with_any(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| {
        text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// Whether `text` ends in one of `words`.
pub(crate) fn ends_with_any(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| {
        let start = text.len().checked_sub(word.len());
        start.is_some_and(|start| text[start..].eq_ignore_ascii_case(word.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_match_in_either_case_and_nothing_else_does() {
        assert!(is_any(b"NULL", &["nil", "null"]) && !is_any(b"nulls", &["null"]));
        assert!(contains(b"mySECRETs", "secret") && !contains(b"secre", "secret"));
        assert!(contains(b"[x]", "[") && !contains(b"{x}", "["), "signs have no case");
        assert!(contains_any(b"a-Mock-b", &["fake", "mock"]));
        assert!(starts_with_any(b"My_key", &["the_", "my_"]) && !starts_with_any(b"m", &["my_"]));
        assert!(ends_with_any(b"API_KEY", &["token", "key"]) && !ends_with_any(b"y", &["key"]));
    }
}
