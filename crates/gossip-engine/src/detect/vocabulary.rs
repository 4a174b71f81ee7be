//! The words beside a credential word, and what each says. Kept in `vocabulary.txt`.

use std::sync::OnceLock;

const TEXT: &str = include_str!("vocabulary.txt");
/// Longer words are none of ours.
pub(super) const MAX_WORD: usize = 24;

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
    OfProtocol,
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
fn roles(word: &[u8]) -> u16 {
    let mut lower = [0; MAX_WORD];
    let Some(lower) = lower.get_mut(..word.len()) else { return 0 };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    let Some(place) = place(lower) else { return 0 };
    let Vocabulary { words, ends } = vocabulary();
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    let mut alike = words[usize::from(start)..usize::from(ends[place])].iter();
    alike.find(|(word, _)| word.as_bytes() == lower).map_or(0, |(_, roles)| *roles)
}

/// Words that begin with one letter and are as long stand together: few are compared.
fn place(word: &[u8]) -> Option<usize> {
    let first = word.first().filter(|first| first.is_ascii_lowercase())?;
    Some(usize::from(first - b'a') * (MAX_WORD + 1) + word.len())
}

fn bit(role: Role) -> u16 {
    1 << role as u16
}

struct Vocabulary {
    /// By place, each once, with the bits of its roles.
    words: Vec<(&'static str, u16)>,
    /// Where the words of each place end.
    ends: [u16; PLACES],
}

const PLACES: usize = 26 * (MAX_WORD + 1);

fn vocabulary() -> &'static Vocabulary {
    static VOCABULARY: OnceLock<Vocabulary> = OnceLock::new();
    VOCABULARY.get_or_init(|| {
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
        let place = |word: &str| place(word.as_bytes()).expect("a word begins with a letter");
        all.sort_unstable_by_key(|(word, _)| (place(word), *word));
        let mut words: Vec<(&str, u16)> = Vec::with_capacity(all.len());
        for (word, bits) in all {
            match words.last_mut() {
                Some((last, roles)) if *last == word => *roles |= bits,
                _ => words.push((word, bits)),
            }
        }
        let mut ends = [0; PLACES];
        for (at, end) in ends.iter_mut().enumerate() {
            *end = words.partition_point(|(word, _)| place(word) <= at) as u16;
        }
        Vocabulary { words, ends }
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
        "of-protocol" => Role::OfProtocol,
        other => panic!("vocabulary.txt has a section `{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_roles_are_told_apart() {
        assert!(vocabulary().words.iter().all(|(word, bits)| *bits != 0 && word.len() <= MAX_WORD));
        assert!(says(b"File", Role::DeniesBehind));
        assert!(!says(b"file", Role::MakesKey));
        assert!(says(b"API", Role::MakesKey));
        assert!(says(b"data", Role::NeutralBehind) && says(b"data", Role::MakesKey));
        assert!(!says(b"a word that is much longer than any", Role::DeniesBehind));
    }
}
