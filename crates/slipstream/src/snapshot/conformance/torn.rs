//! Logs of which the end was never written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Model, batch, contents, cursor, fold_into, number, open, place};
use crate::snapshot::{SnapshotError, SnapshotStore};

const BATCHES: u64 = 8;
/// What a machine that crashed has made a file longer by, and not filled.
const ZEROS: usize = 5000;

/// `log` tells which file of a fold was appended to last: it is cut at many lengths.
pub fn torn<S: SnapshotStore>(log: impl Fn(&Path) -> PathBuf) {
    let (dir, path) = place();
    let mut states = vec![Model::new()];
    let mut ends = Vec::new();
    for half in [1..=BATCHES / 2, BATCHES / 2 + 1..=BATCHES] {
        let mut store: S = open(&path);
        for n in half {
            store.apply(&batch(n), &cursor(n)).unwrap();
            let mut state = states.last().unwrap().clone();
            fold_into(&mut state, &batch(n));
            states.push(state);
            ends.push((log(&path), written(&log(&path)).len()));
        }
    }
    let whole = written(&log(&path));
    ends.retain(|(file, end)| *file == log(&path) && *end <= whole.len());

    // A file of zeros is nobody's.
    let first = ends.iter().map(|(_, end)| *end).min().unwrap();

    let copy = dir.path().join("copy");
    let (mut latest, mut seen) = (0, BTreeSet::new());
    for len in lengths(ends.iter().map(|(_, end)| *end), whole.len()) {
        for zeros in if len < first { &[0][..] } else { &[0, ZEROS] } {
            copy_all(&path, &copy);
            let mut bytes = whole[..len].to_vec();
            bytes.resize(len + zeros, 0);
            fs::write(log(&copy), bytes).unwrap();
            let case = format!("{len} of {} bytes and {zeros} zeros", whole.len());
            if let Some(n) = check::<S>(&copy, &states, &case) {
                assert!(n >= latest, "{case} are batch {n}, fewer were {latest}");
                latest = n;
                seen.insert(n);
            }
            remove_all(&copy);
        }
    }
    assert!(seen.len() > 3 && seen.contains(&BATCHES), "seen: {seen:?}");
}

/// Opens a fold whose log is torn, and goes on; the batch that it was at, unless it is told to be
/// damaged.
fn check<S: SnapshotStore>(path: &Path, states: &[Model], case: &str) -> Option<u64> {
    let (at, mut store) = match S::load(path) {
        Ok(opened) => opened,
        Err(SnapshotError::Corrupted(_)) => return None,
        Err(error) => panic!("{case}: {error:?}"),
    };
    let n = number(&at);
    assert!(contents(&store) == states[n as usize], "{case}: not what {n} batches make");
    store.apply(&batch(n + 1), &cursor(n + 1)).unwrap();
    drop(store);
    let mut next = states[n as usize].clone();
    fold_into(&mut next, &batch(n + 1));
    let (at, store) = S::load(path).unwrap();
    assert!((at, contents(&store)) == (cursor(n + 1), next), "{case}: lost what followed");
    Some(n)
}

/// Around every end of a batch, and in the middle between two.
fn lengths(ends: impl Iterator<Item = usize>, whole: usize) -> BTreeSet<usize> {
    let ends: BTreeSet<usize> = ends.chain([0, whole]).collect();
    let middles = ends.iter().zip(ends.iter().skip(1)).map(|(from, to)| from.midpoint(*to));
    let around = ends.iter().flat_map(|end| [end.saturating_sub(1), *end]);
    around.chain(middles).filter(|len| *len <= whole).collect()
}

/// Without the room that was set aside behind the end.
fn written(log: &Path) -> Vec<u8> {
    let mut bytes = fs::read(log).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.truncate(end);
    bytes
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy_all(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// A file or a directory.
pub(super) fn remove_all(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
}
