//! Manifests of repositories out of arbitrary bytes.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

static DIR: LazyLock<tempfile::TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("there is room"));

/// The lengths of what each section has: rows, origins, further paths, texts' ends, texts, tips,
/// shallow commits.
const EACH: [usize; 7] = [20 + 29, 20 + 16, 4, 8, 1, 20, 20];

// The first bytes are how many there are of each section, the rest is what is in them: the hash is right,
// and so is the length.
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let path: PathBuf = DIR.path().join("manifest");
    let Some((counts, body)) = data.split_first_chunk::<7>() else { return };
    let counts = counts.map(|count| usize::from(count) % 32);
    let mut bytes = b"gossipGM".to_vec();
    bytes.extend([1_u32, 20].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend([1_u64, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend(counts.iter().flat_map(|count| (*count as u64).to_le_bytes()));
    let len: usize = counts.iter().zip(EACH).map(|(count, each)| count * each).sum();
    bytes.extend(body.iter().copied().chain(std::iter::repeat(0)).take(len));
    let hash = blake3::hash(&bytes);
    bytes.extend_from_slice(hash.as_bytes());
    fs::write(&path, &bytes).expect("there is room");
    let _ = gossip_git::fuzzing::manifest(&path);
    // Without a right hash nothing of it is believed.
    fs::write(&path, data).expect("there is room");
    assert_eq!(gossip_git::fuzzing::manifest(&path), 0);
});
