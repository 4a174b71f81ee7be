//! Services that give out keys, by the words in names and lines. Kept in `services.txt`.

use std::sync::OnceLock;

const TEXT: &str = include_str!("services.txt");
/// Longer words name none.
pub(super) const MAX_WORD: usize = 24;
/// How far before a name its service may be named.
pub(super) const MAX_BEFORE: usize = 40;

/// Whether `text` has a word that names a service; names in camel case are taken apart, and a name may
/// be written as two or three words: `NEW_RELIC_KEY`.
pub(super) fn is_named(text: &[u8]) -> bool {
    let mut start = 0;
    let mut last = [0..0, 0..0];
    for at in 1..=text.len() {
        let (before, here) = (text[at - 1], text.get(at).copied());
        let hump =
            here.is_some_and(|here| here.is_ascii_uppercase() && before.is_ascii_lowercase());
        let ends = here.is_none_or(|here| !here.is_ascii_alphanumeric());
        if !before.is_ascii_alphanumeric() {
            start = at;
        } else if hump || ends {
            let [first, second] = last;
            let word = &text[start..at];
            if is_service(&[word])
                || is_service(&[&text[second.clone()], word])
                || is_service(&[&text[first], &text[second.clone()], word])
            {
                return true;
            }
            last = [second, start..at];
            start = if hump { at } else { at + 1 };
        }
    }
    false
}

/// Whether the words, put together, name one.
fn is_service(words: &[&[u8]]) -> bool {
    let mut lower = [0; MAX_WORD];
    let mut len = 0;
    for word in words {
        let Some(room) = lower.get_mut(len..len + word.len()) else { return false };
        room.copy_from_slice(word);
        len += word.len();
    }
    let lower = &mut lower[..len];
    lower.make_ascii_lowercase();
    services().binary_search_by(|service| service.as_bytes().cmp(&*lower)).is_ok()
}

/// What nobody else is called.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    section("[names]")
}

/// What others are called, too.
pub(super) fn words_to_look_for() -> impl Iterator<Item = &'static str> {
    section("[looked-for words]")
}

/// Whether it is one of [`words_to_look_for`].
pub(super) fn is_word_to_look_for(name: &[u8]) -> bool {
    static WORDS: OnceLock<Vec<&str>> = OnceLock::new();
    let sorted = WORDS.get_or_init(|| {
        let mut names: Vec<_> = words_to_look_for().collect();
        names.sort_unstable();
        names
    });
    let mut lower = [0; MAX_WORD];
    let Some(lower) = lower.get_mut(..name.len()) else { return false };
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    sorted.binary_search_by(|word| word.as_bytes().cmp(&*lower)).is_ok()
}

fn section(head: &str) -> impl Iterator<Item = &'static str> {
    let (_, names) = TEXT.split_once(head).expect("services.txt has such a section");
    let names = names.split_once("\n\n").map_or(names, |(names, _)| names);
    names.split_ascii_whitespace()
}

/// All of them, sorted.
fn services() -> &'static [&'static str] {
    static SERVICES: OnceLock<Vec<&str>> = OnceLock::new();
    SERVICES.get_or_init(|| {
        let lines = TEXT.lines().filter(|line| !line.starts_with(['#', '[']));
        let mut services: Vec<_> = lines.flat_map(str::split_ascii_whitespace).collect();
        services.sort_unstable();
        services
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_recognised_as_words_only() {
        assert!(is_named(b"CLOCKIFY_API_KEY"));
        assert!(is_named(b"const infuraSecret"));
        assert!(is_named(b"the key of clockify is "));
        assert!(is_named(b"NEW_RELIC_KEY") && is_named(b"my-new-relic-key"));
        assert!(!is_named(b"new_key_relic") && is_named(b"eagle-eye.networks"));
        assert!(!is_named(b"clockifying_key"));
        assert!(!is_named(b"api_key"));
        assert!(services().iter().all(|service| service.len() <= MAX_WORD));
        assert!(services().windows(2).all(|pair| pair[0] < pair[1]), "each once");
    }

    #[test]
    fn words_announce_nothing_by_themselves() {
        let names: Vec<_> = names().collect();
        assert!(names.contains(&"clockify") && !names.contains(&"here"));
        assert!(is_service(&[b"here"]) && is_service(&[b"clockify"]));
    }

    /// `docs/vendors.md` says how each vendor's keys are found: rules in backquotes in the tables, and
    /// services in the lists.
    #[test]
    fn the_page_of_vendors_names_nothing_that_is_not_there() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vendors.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rules = crate::RuleSet::builtin();
        let (mut ids, mut names) = (0, 0);
        let mut in_list = false;
        for line in page.lines() {
            if line.starts_with('|') {
                for id in line.split('`').skip(1).step_by(2) {
                    assert!(rules.get(id).is_some(), "no rule {id}");
                    ids += 1;
                }
            }
            in_list = line.starts_with("- ") || (in_list && line.starts_with("  "));
            if in_list {
                for name in line.trim_start_matches("- ").split_ascii_whitespace() {
                    assert!(is_service(&[name.as_bytes()]), "no service {name}");
                    names += 1;
                }
            }
        }
        assert!(ids > 200 && names > 400, "{ids} rules, {names} services");
    }
}
