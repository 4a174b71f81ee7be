//! Makes `src/literals/fours.txt`, the table by which the first stage chooses what to look for.
//!
//! `cargo run --release -p gossip-engine --example gram_model -- OUT MEGABYTES:DIRECTORY-OR-FILE…`
//!
//! Reads so many megabytes of text of each, files in an order that has nothing to do with their names.
//! The committed table was made of `45:` a cargo registry's sources, `12:` Debian's `/usr/share`, `5:` its
//! Python packages, `1:` `/etc` and `4:` the log of the benchmarks.
//!
//! A line has how many bits of surprise its groups of four bytes have, and the groups. Bytes are folded as
//! the first stage folds them (bit 5 set), so that a line end shows as `*`; `·` is a blank and `_` itself.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const GROUPS: usize = 8000;
const GROUPS_PER_LINE: usize = 24;
/// No file counts for more.
const MAX_FILE: usize = 200_000;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(out), sources) = (arguments.next(), arguments) else {
        eprintln!("usage: gram_model OUT MEGABYTES:DIRECTORY-OR-FILE…");
        return ExitCode::from(2);
    };
    let mut counts = vec![0; 1 << 24];
    for source in sources {
        let parts = source.split_once(':');
        let Some((Ok(megabytes), path)) = parts.map(|(size, path)| (size.parse(), path)) else {
            eprintln!("{source}: not MEGABYTES:PATH");
            return ExitCode::from(2);
        };
        read(Path::new(path), megabytes, &mut counts);
    }
    match std::fs::write(&out, table(&counts)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{out}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path, megabytes: usize, counts: &mut [u64]) {
    let mut files = Vec::new();
    list(path, &mut files);
    files.sort_by_cached_key(|path| {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        hasher.finish()
    });
    let mut left = megabytes * 1_000_000;
    // One file alone is read as far as is asked for.
    let most = if files.len() == 1 { left } else { MAX_FILE };
    for file in files {
        let Ok(bytes) = std::fs::read(&file) else { continue };
        if bytes[..bytes.len().min(8000)].contains(&0) {
            continue;
        }
        let text = &bytes[..bytes.len().min(most).min(left)];
        left -= text.len();
        for four in text.windows(4).filter(|four| four.is_ascii()) {
            counts[four.iter().fold(0, |place, byte| place << 6 | six(*byte))] += 1;
        }
    }
}

fn list(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_symlink() {
        return;
    }
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| list(&entry.path(), files)),
        Err(_) => files.push(path.to_owned()),
    }
}

/// All that a byte of ASCII has when it is folded, in six bits.
fn six(byte: u8) -> usize {
    usize::from(byte & 0x1F | byte >> 1 & 0x20)
}

fn shown(six: usize) -> char {
    match (six as u8 & 0x1F | 0x20) | (six as u8 & 0x20) << 1 {
        b' ' => '·',
        0x7F => '_',
        byte => char::from(byte),
    }
}

fn table(counts: &[u64]) -> String {
    let all: u64 = counts.iter().sum();
    let mut common: Vec<_> = (0..counts.len()).filter(|place| counts[*place] > 0).collect();
    common.sort_by_key(|place| (std::cmp::Reverse(counts[*place]), *place));
    common.truncate(GROUPS);
    let bits = |place: &usize| (all as f64 / counts[*place] as f64).log2().round() as u32;
    let mut table = String::new();
    for alike in common.chunk_by(|a, b| bits(a) == bits(b)) {
        for line in alike.chunks(GROUPS_PER_LINE) {
            let groups =
                line.iter().flat_map(|place| [18, 12, 6, 0].map(|by| shown(place >> by & 63)));
            table += &format!("{:2} {}\n", bits(&line[0]), groups.collect::<String>());
        }
    }
    table
}
