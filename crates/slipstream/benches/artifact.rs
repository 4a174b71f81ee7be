//! Export and import of a fold of a million keys, beside a plain copy and hash of the same bytes.
//!
//! A ratio is the subject's time by the reference's: a cost. Both are the fastest of some turns, but for the
//! first export, which writes what is in memory. The reference does not sync what it writes; `synced` is
//! the same with a sync of each file, which whoever promises that the copy survives has to pay.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Instant;

use gossip_bench::figure;
use slipstream::artifact::{About, DATA, ExportManifest};
use slipstream::{
    AppendLogSnapshot, FjallSnapshot, Key, KvEntry, KvUpdate, SnapshotStore, VersionToken,
    WatchCursor, WatchScope,
};

const N: u64 = 1_000_000;
const BATCH: u64 = 1000;
const TURNS: usize = 5;
const CHUNK: usize = 1 << 18;

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    if "log".starts_with(&wanted) {
        measure::<AppendLogSnapshot>("log");
    }
    if "fjall".starts_with(&wanted) {
        measure::<FjallSnapshot>("fjall");
    }
}

fn measure<S: SnapshotStore>(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let at = |what: &str| dir.path().join(what);
    let (_, mut store) = S::load(&at("fold")).expect("an empty fold");
    fill(&mut store);
    let mut fastest = [f64::INFINITY; 4];
    let mut first = None;
    for _ in 0..TURNS {
        let began = Instant::now();
        let exported = store.export_to(&at("artifact"), About::new(WatchScope::All));
        let export = began.elapsed().as_secs_f64();
        first.get_or_insert(export);
        let manifest = exported.expect("an artifact");
        let copied = [false, true].map(|sync| {
            let took = copy_and_hash(&at("artifact").join(DATA), &manifest, &at("copy"), sync);
            fs::remove_dir_all(at("copy")).expect("the copy goes");
            took
        });
        let began = Instant::now();
        let imported = S::import(&at("artifact"), &at("imported"), &WatchScope::All);
        let import = began.elapsed().as_secs_f64();
        imported.expect("a fold");
        for (least, took) in fastest.iter_mut().zip([copied[0], copied[1], export, import]) {
            *least = least.min(took);
        }
        for made in [at("artifact"), at("imported")] {
            let is_dir = made.is_dir();
            let removed = if is_dir { fs::remove_dir_all(made) } else { fs::remove_file(made) };
            removed.expect("it goes");
        }
    }
    let [plain, synced, export, import] = fastest;
    figure(&format!("artifact-{name}-copy-and-hash"), plain, "s", None);
    figure(&format!("artifact-{name}-copy-and-hash-synced"), synced, "s", Some(synced / plain));
    let first = first.expect("there are turns");
    for (what, took) in [("export", export), ("import", import), ("first-export", first)] {
        figure(&format!("artifact-{name}-{what}"), took, "s", Some(took / plain));
        figure(&format!("artifact-{name}-{what}-by-synced"), took, "s", Some(took / synced));
    }
}

fn fill(store: &mut impl SnapshotStore) {
    for first in (0..N).step_by(BATCH as usize) {
        let put = |at: u64| {
            let version = VersionToken::from_u64(at + 1);
            let mut value = vec![at as u8; 100];
            value[..8].copy_from_slice(&at.to_le_bytes());
            KvUpdate::Put(KvEntry {
                key: Key::from(format!("key.{at:019}")),
                value: value.into(),
                version,
            })
        };
        let batch: Vec<KvUpdate> = (first..first + BATCH).map(put).collect();
        let cursor = WatchCursor::from_bytes((first + BATCH).to_be_bytes().to_vec());
        store.apply(&batch, &cursor.expect("eight bytes")).expect("it is stored");
    }
}

/// Seconds.
fn copy_and_hash(from: &Path, manifest: &ExportManifest, to: &Path, sync: bool) -> f64 {
    let began = Instant::now();
    let mut chunk = vec![0; CHUNK];
    for file in &manifest.files {
        let target = to.join(&file.path);
        fs::create_dir_all(target.parent().expect("below a directory")).expect("a directory");
        let mut source = File::open(from.join(&file.path)).expect("a file of the artifact");
        let mut copy = File::create(target).expect("a file of the copy");
        let mut hasher = blake3::Hasher::new();
        loop {
            let some = source.read(&mut chunk).expect("it is read");
            if some == 0 {
                break;
            }
            hasher.update(&chunk[..some]);
            copy.write_all(&chunk[..some]).expect("it is written");
        }
        assert_eq!(hasher.finalize().as_bytes(), &file.hash);
        if sync {
            copy.sync_all().expect("it is synced");
        }
    }
    began.elapsed().as_secs_f64()
}
