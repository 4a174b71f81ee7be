//! The words beside a credential word, and what each says. Kept in `vocabulary.txt`.

use std::sync::OnceLock;

const TEXT: &str = include_str!("vocabulary.txt");
/// Longer words are none of ours.
const MAX_WORD: usize = 24;

/// What a word says; its place is its bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    DeniesBehind,
    NeutralBehind,
    DeniesBefore,
    NamesPlace,
    MakesKey,
    GluedToPass,
    Prose,
    DeniesPassword,
}

/// Whether `word`, in either case, says this.
pub(super) fn says(word: &[u8], role: Role) -> bool {
    roles(word) & bit(role) != 0
}

/// Whether `word`, in either case, says anything.
pub(super) fn is_known(word: &[u8]) -> bool {
    roles(word) != 0
}

/// The bits of a word's roles.
fn roles(word: &[u8]) -> u8 {
    let mut lower = [0; MAX_WORD];
    let Some(lower) = lower.get_mut(..word.len()) else { return 0 };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let words = words();
    let found = words.binary_search_by(|(word, _)| word.as_bytes().cmp(&*lower));
    found.map_or(0, |at| words[at].1)
}

fn bit(role: Role) -> u8 {
    1 << role as u8
}

/// Sorted, each once, with the bits of its roles.
fn words() -> &'static [(&'static str, u8)] {
    static WORDS: OnceLock<Vec<(&str, u8)>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let mut all = Vec::new();
        let mut role = None;
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix('[') {
                Some(section) => role = Some(section_role(section)),
                None => {
                    let bits = role.map_or(0, bit);
                    all.extend(line.split_ascii_whitespace().map(|word| (word, bits)));
                }
            }
        }
        all.sort_unstable();
        let mut words: Vec<(&str, u8)> = Vec::with_capacity(all.len());
        for (word, bits) in all {
            match words.last_mut() {
                Some((last, roles)) if *last == word => *roles |= bits,
                _ => words.push((word, bits)),
            }
        }
        words
    })
}

/// # Panics
/// If the file has another section; a test reads it.
fn section_role(section: &str) -> Role {
    match section.trim_end_matches(']') {
        "denies-behind" => Role::DeniesBehind,
        "neutral-behind" => Role::NeutralBehind,
        "denies-before" => Role::DeniesBefore,
        "names-place" => Role::NamesPlace,
        "makes-key" => Role::MakesKey,
        "glued-to-pass" => Role::GluedToPass,
        "prose" => Role::Prose,
        "denies-password" => Role::DeniesPassword,
        other => panic!("vocabulary.txt has a section `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_roles_are_told_apart() {
        assert!(words().iter().all(|(word, bits)| *bits != 0 && word.len() <= MAX_WORD));
        assert!(says(b"File", Role::DeniesBehind));
        assert!(!says(b"file", Role::MakesKey));
        assert!(says(b"API", Role::MakesKey));
        assert!(says(b"data", Role::NeutralBehind) && says(b"data", Role::MakesKey));
        assert!(!says(b"a word that is much longer than any", Role::DeniesBehind));
    }
}
