//! Services that give out keys, by the words in names and lines. Kept in `services.txt`.

use std::sync::OnceLock;

const TEXT: &str = include_str!("services.txt");
/// Longer words name none.
pub(super) const MAX_WORD: usize = 24;
/// Of a name, so many bytes tell most others from it.
const START: usize = 4;
/// Of which a name may be made.
const MAX_WORDS: usize = 3;
/// How far before a name its service may be named.
pub(super) const MAX_BEFORE: usize = 40;

/// Whether `text` has a word that names a service. Names in camel case are taken apart, and a name may
/// be written as two or three words: `NEW_RELIC_KEY`.
pub(super) fn is_named(text: &[u8]) -> bool {
    let mut end = text.len();
    while end > 0 {
        if is_named_at_end(&text[..end], services()) {
            return true;
        }
        end = start_of_word(&text[..end]).min(end - 1);
    }
    false
}

/// Whether the last one, two or three words of `text` are one of the names.
fn is_named_at_end(text: &[u8], names: &Names) -> bool {
    let mut words = [&text[..0]; MAX_WORDS];
    let mut end = text.len();
    for from in (0..MAX_WORDS).rev() {
        let start = start_of_word(&text[..end]);
        words[from] = &text[start..end];
        if start == end {
            return false;
        }
        if names.has(&words[from..]) {
            return true;
        }
        // One byte joins the words of a name, or none does: `newRelic`.
        end = match start.checked_sub(1).map(|before| text[before]) {
            Some(b'_' | b'-' | b'.' | b' ') => start - 1,
            Some(before) if before.is_ascii_alphanumeric() => start,
            _ => return false,
        };
    }
    false
}

/// Where the word begins that `text` ends with: behind what is no letter and no digit, or at the hump
/// of a name in camel case.
fn start_of_word(text: &[u8]) -> usize {
    let mut start = text.len();
    while start > 0 && text[start - 1].is_ascii_alphanumeric() {
        let is_hump = start < text.len()
            && text[start].is_ascii_uppercase()
            && text[start - 1].is_ascii_lowercase();
        if is_hump {
            break;
        }
        start -= 1;
    }
    start
}

/// Names in lower case.
struct Names {
    sorted: Vec<&'static str>,
    /// A bit for the start and the length of each: most words are none, and need not be looked up.
    bits: Vec<u64>,
}

impl Names {
    const BITS: u32 = 14;

    fn new(names: impl Iterator<Item = &'static str>) -> Self {
        let mut sorted: Vec<_> = names.collect();
        sorted.sort_unstable();
        let mut bits = vec![0; 1 << (Self::BITS - u64::BITS.trailing_zeros())];
        for name in &sorted {
            let (word, bit) = Self::place(joined(&[name.as_bytes()]), name.len());
            bits[word] |= bit;
        }
        Self { sorted, bits }
    }

    fn place(first: [u8; START], len: usize) -> (usize, u64) {
        let start = u32::from_le_bytes(first);
        let hash = (start ^ len as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - Self::BITS);
        (hash as usize / 64, 1 << (hash % 64))
    }

    /// Whether the words, put together, are one of them.
    fn has(&self, words: &[&[u8]]) -> bool {
        // Most are none, which the bits tell.
        let len = words.iter().map(|word| word.len()).sum();
        let first = match words {
            [[a, b, c, d, ..]] => [*a, *b, *c, *d],
            _ => joined(words),
        };
        let (word, bit) = Self::place(first.map(|byte| byte.to_ascii_lowercase()), len);
        if len > MAX_WORD || self.bits[word] & bit == 0 {
            return false;
        }
        let mut lower: [u8; MAX_WORD] = joined(words);
        lower.make_ascii_lowercase();
        self.sorted.binary_search_by(|name| name.as_bytes().cmp(&lower[..len])).is_ok()
    }
}

/// The first bytes of the words, put together, or zeros.
fn joined<const LEN: usize>(words: &[&[u8]]) -> [u8; LEN] {
    let mut joined = [0; LEN];
    let bytes = words.iter().copied().flatten();
    joined.iter_mut().zip(bytes).for_each(|(joined, byte)| *joined = *byte);
    joined
}

/// What the first stage looks for: what nobody else is called, and what others are called, too.
pub(super) fn announced() -> impl Iterator<Item = &'static str> {
    section("[names]").chain(section("[looked-for words]"))
}

/// Whether others are called so, too.
pub(super) fn is_word(name: &[u8]) -> bool {
    static WORDS: OnceLock<Names> = OnceLock::new();
    WORDS.get_or_init(|| Names::new(section("[looked-for words]"))).has(&[name])
}

fn section(head: &str) -> impl Iterator<Item = &'static str> {
    let (_, names) = TEXT.split_once(head).expect("services.txt has such a section");
    let names = names.split_once("\n\n").map_or(names, |(names, _)| names);
    names.split_ascii_whitespace()
}

/// All of them.
fn services() -> &'static Names {
    static SERVICES: OnceLock<Names> = OnceLock::new();
    SERVICES.get_or_init(|| {
        let lines = TEXT.lines().filter(|line| !line.starts_with(['#', '[']));
        Names::new(lines.flat_map(str::split_ascii_whitespace))
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
        assert!(services().sorted.iter().all(|service| service.len() <= MAX_WORD));
        assert!(services().sorted.windows(2).all(|pair| pair[0] < pair[1]), "each once");
    }

    #[test]
    fn the_first_stage_looks_for_names_that_are_not_dear() {
        let names: Vec<_> = announced().collect();
        assert!(names.contains(&"clockify") && names.contains(&"raven"));
        assert!(!names.contains(&"here") && !names.contains(&"activecampaign"));
        for name in [&b"here"[..], b"clockify", b"raven", b"activecampaign"] {
            assert!(is_named(name));
        }
        assert!(is_word(b"Raven") && !is_word(b"clockify"));
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
                    assert!(services().has(&[name.as_bytes()]), "no service {name}");
                    names += 1;
                }
            }
        }
        assert!(ids > 200 && names > 400, "{ids} rules, {names} services");
    }
}
