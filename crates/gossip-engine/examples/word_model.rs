//! Makes `src/detect/words.bin`, the table by which the engine tells words from random letters.
//!
//! `cargo run --release -p gossip-engine --example word_model -- OUT DIRECTORY-OR-FILE…`
//!
//! Reads all text below the directories: sources (the committed table: a cargo registry's) and word
//! lists (Debian's wamerican, wngerman, wfrench, wspanish, witalian, wportuguese, wdutch, wswedish).
//! Words are the letters between other characters, names in camel case taken apart. A word counts
//! if it occurs at least three times or in a word list, with the logarithm of how often, so that
//! common words do not drown the rest.
//!
//! The table has the cost of each letter, or of the word's end, after the two before it: 27³ bytes,
//! in eighths of a bit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Letters, and the edge of a word.
const SYMBOLS: usize = 27;
const EDGE: usize = 26;
const MAX_WORD_LEN: usize = 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(out), sources) = (arguments.next(), arguments.map(PathBuf::from)) else {
        eprintln!("usage: word_model OUT DIRECTORY-OR-FILE…");
        return ExitCode::from(2);
    };
    let mut words = HashMap::new();
    sources.for_each(|source| read(&source, &mut words));
    match std::fs::write(&out, table(&words)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", Path::new(&out).display());
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path, words: &mut HashMap<Vec<u8>, u64>) {
    if path.is_dir() {
        let Ok(entries) = std::fs::read_dir(path) else { return };
        entries.flatten().for_each(|entry| read(&entry.path(), words));
    } else if let Ok(bytes) = std::fs::read(path)
        && !bytes[..bytes.len().min(8000)].contains(&0)
    {
        // Each word of a list is one by itself.
        let weight = if path.components().any(|part| part.as_os_str() == "dict") { 3 } else { 1 };
        add_words(&bytes, weight, words);
    }
}

fn add_words(text: &[u8], weight: u64, words: &mut HashMap<Vec<u8>, u64>) {
    for run in text.split(|byte| !byte.is_ascii_alphabetic()) {
        let mut start = 0;
        for at in 1..=run.len() {
            let hump = at < run.len()
                && run[at].is_ascii_uppercase()
                && (run[at - 1].is_ascii_lowercase()
                    || run.get(at + 1).is_some_and(u8::is_ascii_lowercase));
            if hump || at == run.len() {
                let word = run[start..at].to_ascii_lowercase();
                if (3..=MAX_WORD_LEN).contains(&word.len()) {
                    *words.entry(word).or_default() += weight;
                }
                start = at;
            }
        }
    }
}

fn table(words: &HashMap<Vec<u8>, u64>) -> Vec<u8> {
    let mut counts = vec![0.0f64; SYMBOLS.pow(3)];
    for (word, count) in words.iter().filter(|(_, count)| **count >= 3) {
        let weight = (*count as f64).log2().max(1.0);
        let (mut a, mut b) = (EDGE, EDGE);
        let letters = word.iter().map(|byte| usize::from(byte - b'a'));
        for c in letters.chain([EDGE]) {
            counts[(a * SYMBOLS + b) * SYMBOLS + c] += weight;
            (a, b) = (b, c);
        }
    }
    // Each pair of letters backs off to the second alone, and that to no letter at all.
    let mut pairs = vec![0.0; SYMBOLS * SYMBOLS];
    let mut single = [0.0; SYMBOLS];
    for (at, count) in counts.iter().enumerate() {
        pairs[at % (SYMBOLS * SYMBOLS)] += count;
        single[at % SYMBOLS] += count;
    }
    let total: f64 = single.iter().sum();
    let mut table = Vec::with_capacity(counts.len());
    for at in 0..counts.len() {
        let (context, b, c) = (at / SYMBOLS, at / SYMBOLS % SYMBOLS, at % SYMBOLS);
        let third = single[c] / total;
        let of_b: f64 = pairs[b * SYMBOLS..][..SYMBOLS].iter().sum();
        let second = (pairs[b * SYMBOLS + c] + 20.0 * third) / (of_b + 20.0);
        let of_context: f64 = counts[context * SYMBOLS..][..SYMBOLS].iter().sum();
        let first = (counts[at] + 10.0 * second) / (of_context + 10.0);
        table.push((-first.log2() * 8.0).round().clamp(0.0, 255.0) as u8);
    }
    table
}
