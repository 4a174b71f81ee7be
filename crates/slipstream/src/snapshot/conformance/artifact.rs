//! Folds that travel.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::kill::child;
use super::{CHILD, batch, contents, cursor, libtest_name, number, open, place, put, scale};
use crate::artifact::{
    About, ArtifactError, ArtifactInvalid, DATA, ExportManifest, MANIFEST, MAX_MANIFEST_LEN,
};
use crate::kv::{LogCursor, WatchCursor, WatchScope};
use crate::protocol::Position;
use crate::snapshot::SnapshotStore;

fn about() -> About {
    About::new(WatchScope::All)
}

/// A fold of an artifact, opened.
fn import<S: SnapshotStore>(artifact: &Path, path: &Path) -> (WatchCursor, S) {
    let manifest = S::import(artifact, path, &WatchScope::All).unwrap();
    let (at, store) = S::load(path).unwrap();
    assert_eq!(at, manifest.cursor);
    (at, store)
}

/// The names in a directory, hidden ones too.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort_unstable();
    names
}

pub fn an_artifact_becomes_the_same_fold<S: SnapshotStore>() {
    let (dir, path) = place();
    let artifact = dir.path().join("artifact");
    let mut store: S = open(&path);
    for n in 1..=300 {
        store.apply(&batch(n), &cursor(n)).unwrap();
    }
    let before = contents(&store);
    let manifest = store.export_to(&artifact, about()).unwrap();
    assert_eq!((&manifest.cursor, manifest.evicted), (&cursor(300), false));
    assert_eq!(fs::read(artifact.join(MANIFEST)).unwrap(), manifest.encode());
    assert!(manifest.total_size() > 0);
    // The fold goes on, and the artifact is of the moment in which it was made.
    for n in 301..=400 {
        store.apply(&batch(n), &cursor(n)).unwrap();
    }
    let after = contents(&store);
    let (second, third) = (dir.path().join("second"), dir.path().join("third"));
    let (at, mut copy) = import::<S>(&artifact, &second);
    assert_eq!((at, contents(&copy)), (cursor(300), before.clone()));
    for n in 301..=400 {
        copy.apply(&batch(n), &cursor(n)).unwrap();
    }
    drop(copy);
    let (at, copy) = S::load(&second).unwrap();
    assert_eq!((at, contents(&copy)), (cursor(400), after));
    // Whatever became of the fold, and of the one that was made of it.
    drop((store, copy));
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap()
    } else {
        fs::remove_file(path).unwrap()
    }
    let (at, copy) = import::<S>(&artifact, &third);
    assert_eq!((at, contents(&copy)), (cursor(300), before));
    drop(copy);
    assert_eq!(names(dir.path()), ["artifact", "second", "third"], "no stage is left");
}

pub fn a_changed_artifact_is_refused_and_nothing_is_left<S: SnapshotStore>() {
    let (dir, path) = place();
    let artifact = dir.path().join("artifact");
    let mut store: S = open(&path);
    for n in 1..=20 {
        store.apply(&batch(n), &cursor(n)).unwrap();
    }
    let manifest = store.export_to(&artifact, about()).unwrap();
    let refused = |why: &str| {
        let to = dir.path().join("imported");
        match S::import(&artifact, &to, &WatchScope::All).err() {
            Some(ArtifactError::Invalid(reason)) => {
                assert_eq!(names(dir.path()), ["artifact", "fold"], "{why}");
                reason
            }
            other => panic!("{why}: {other:?}"),
        }
    };
    for file in &manifest.files {
        let name = &file.path;
        let at = artifact.join(DATA).join(name);
        let bytes = fs::read(&at).unwrap();
        // The file may be shared with the fold: it is replaced, not written to.
        let replace = |bytes: &[u8]| {
            fs::remove_file(&at).unwrap();
            fs::write(&at, bytes).unwrap();
        };
        for changed in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
            let mut other = bytes.clone();
            if let Some(byte) = other.get_mut(changed) {
                *byte ^= 1;
                replace(&other);
                assert_eq!(refused(name), ArtifactInvalid::Hash(name.clone()));
            }
        }
        if !bytes.is_empty() {
            replace(&bytes[..bytes.len() - 1]);
            assert_eq!(refused(name), ArtifactInvalid::Size(name.clone()));
        }
        replace(&[&bytes[..], b"x"].concat());
        assert_eq!(refused(name), ArtifactInvalid::Size(name.clone()));
        fs::remove_file(&at).unwrap();
        assert_eq!(refused(name), ArtifactInvalid::Missing(name.clone()));
        let elsewhere = dir.path().join("fold");
        symlink(&elsewhere, &at).unwrap();
        assert_eq!(refused(name), ArtifactInvalid::Unlisted(name.clone()));
        fs::remove_file(&at).unwrap();
        fs::write(&at, &bytes).unwrap();
    }
    let extra = artifact.join(DATA).join("extra");
    fs::write(&extra, "").unwrap();
    assert_eq!(refused("extra"), ArtifactInvalid::Unlisted("extra".into()));
    fs::remove_file(&extra).unwrap();
    let manifest_at = artifact.join(MANIFEST);
    let bytes = fs::read(&manifest_at).unwrap();
    for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&manifest_at, &bytes[..len]).unwrap();
        assert!(matches!(refused("manifest"), ArtifactInvalid::Manifest(_)));
    }
    fs::remove_file(&manifest_at).unwrap();
    assert!(matches!(refused("manifest"), ArtifactInvalid::Manifest(_)));
    fs::write(&manifest_at, &bytes).unwrap();
    let (at, _copy) = import::<S>(&artifact, &dir.path().join("at last"));
    assert_eq!(at, cursor(20));
}

pub fn an_artifact_of_something_else_is_refused<S: SnapshotStore>() {
    let (dir, path) = place();
    let artifact = dir.path().join("artifact");
    let mut store: S = open(&path);
    store.apply(&[put("a.b", "1", 1), put("b", "2", 2)], &cursor(2)).unwrap();
    let manifest = store.export_to(&artifact, about()).unwrap();
    let refused = |change: &dyn Fn(&mut ExportManifest), scope: &WatchScope| {
        let mut changed = manifest.clone();
        change(&mut changed);
        fs::write(artifact.join(MANIFEST), changed.encode()).unwrap();
        match S::import(&artifact, &dir.path().join("imported"), scope).err() {
            Some(ArtifactError::Invalid(reason)) => {
                assert_eq!(names(dir.path()), ["artifact", "fold"]);
                reason
            }
            other => panic!("{other:?}"),
        }
    };
    let (all, prefix) = (WatchScope::All, WatchScope::Prefix("a.".into()));
    let backend = refused(&|manifest| manifest.backend.push('x'), &all);
    assert!(matches!(backend, ArtifactInvalid::Backend { .. }));
    let generation = refused(&|manifest| manifest.generation += 1, &all);
    assert!(matches!(generation, ArtifactInvalid::Generation { .. }));
    // One of the whole bucket seeds no fold of a prefix, nor the other way round.
    assert_eq!(refused(&|_| {}, &prefix), ArtifactInvalid::Scope);
    assert_eq!(
        refused(&|manifest| manifest.prefixes = vec!["a.".into()], &all),
        ArtifactInvalid::Scope
    );
    assert_eq!(refused(&|manifest| manifest.cursor = cursor(3), &all), ArtifactInvalid::Cursor);
    for path in ["../escaped", "/escaped", "a//b", "./a", "", "a\\b", "keyspaces/x/current", "odd"]
    {
        let elsewhere = |manifest: &mut ExportManifest| manifest.files[0].path = path.into();
        let reason = refused(&elsewhere, &all);
        // A file of an innocent name is missed where it should be.
        let is_named = matches!(
            reason,
            ArtifactInvalid::Path(_) | ArtifactInvalid::Manifest(_) | ArtifactInvalid::Unlisted(_)
        );
        assert!(is_named, "{path}: {reason}");
    }
}

pub fn an_artifact_is_written_over_nothing<S: SnapshotStore>() {
    let (dir, path) = place();
    let artifact = dir.path().join("artifact");
    let mut store: S = open(&path);
    assert!(matches!(store.export_to(&artifact, about()), Err(ArtifactError::Incomplete)));
    store.apply(&[], &LogCursor::in_repair(&WatchScope::All, false, 0, 0).encode()).unwrap();
    assert!(matches!(store.export_to(&artifact, about()), Err(ArtifactError::Incomplete)));
    let of_prefix = LogCursor::new(Position::at(1, 1), &WatchScope::Prefix("a".into()));
    store.apply(&[put("a", "1", 1)], &of_prefix.encode()).unwrap();
    assert!(matches!(store.export_to(&artifact, about()), Err(ArtifactError::OtherScope)));
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    // What no manifest has room for could not be imported.
    let prefix = "p".repeat(MAX_MANIFEST_LEN as usize);
    let endless = store.export_to(&artifact, About::new(WatchScope::Prefix(prefix)));
    let too_long = ArtifactInvalid::Manifest("it is too long");
    assert!(matches!(endless, Err(ArtifactError::Invalid(why)) if why == too_long));
    assert_eq!(names(dir.path()), ["fold"]);
    fs::write(&artifact, "theirs").unwrap();
    assert!(matches!(store.export_to(&artifact, about()), Err(ArtifactError::Exists)));
    assert_eq!(fs::read(&artifact).unwrap(), b"theirs");
    fs::remove_file(&artifact).unwrap();
    store.export_to(&artifact, about()).unwrap();
    let onto_itself = S::import(&artifact, &path, &WatchScope::All);
    assert!(matches!(onto_itself.err(), Some(ArtifactError::Exists)));
    assert_eq!(contents(&store).len(), 1);
    let nowhere = dir.path().join("no directory").join("artifact");
    assert!(matches!(store.export_to(&nowhere, about()), Err(ArtifactError::Io { .. })));
    assert_eq!(names(dir.path()), ["artifact", "fold"]);
}

/// Exporters and importers are killed at any moment; what is at a destination is complete, and what
/// they leave beside it goes with the next one. `name` is the test that calls.
pub fn killed_exports_and_imports<S: SnapshotStore>(name: &str) {
    if let Some(path) = std::env::var_os(CHILD) {
        export_and_import_for_ever::<S>(Path::new(&path));
    }
    let (dir, path) = place();
    let mut store: S = open(&path);
    for n in 1..=200 {
        store.apply(&batch(n), &cursor(n)).unwrap();
    }
    let expected = contents(&store);
    drop(store);
    let mut stages = 0;
    for kill in 0..10 * scale() {
        run_and_kill(&path, libtest_name(name), Duration::from_millis(kill * 13 % 60));
        stages += names(dir.path()).iter().filter(|name| name.starts_with('.')).count();
        let artifact = dir.path().join("artifact");
        if artifact.exists() {
            let again = dir.path().join("again");
            let (at, copy) = import::<S>(&artifact, &again);
            assert_eq!((number(&at), contents(&copy)), (200, expected.clone()));
            drop(copy);
            remove(&again);
            remove(&artifact);
        }
        let imported = dir.path().join("imported");
        if imported.exists() {
            let (at, copy) = S::load(&imported).unwrap();
            assert_eq!((number(&at), contents(&copy)), (200, expected.clone()));
            drop(copy);
            remove(&imported);
        }
    }
    assert!(stages > 0, "nobody was killed in the middle");
    open::<S>(&path).export_to(&dir.path().join("last"), about()).unwrap();
    assert_eq!(names(dir.path()), ["fold", "last"]);
}

fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
}

fn run_and_kill(path: &Path, name: &str, after: Duration) {
    let mut child = child(path, name);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "@"), "it did not get to work");
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn export_and_import_for_ever<S: SnapshotStore>(path: &Path) -> ! {
    let mut store: S = open(path);
    let at = |name| path.with_file_name(name);
    let mut out = std::io::stdout().lock();
    // libtest has begun a line.
    writeln!(out, "\n@").unwrap();
    out.flush().unwrap();
    loop {
        store.export_to(&at("artifact"), about()).unwrap();
        S::import(&at("artifact"), &at("imported"), &WatchScope::All).unwrap();
        // They go at once, as they came: what is half removed is not a fold.
        let gone = at(".slipstream-stage-removed");
        fs::create_dir(&gone).unwrap();
        fs::rename(at("imported"), gone.join("imported")).unwrap();
        fs::rename(at("artifact"), gone.join("artifact")).unwrap();
        fs::remove_dir_all(gone).unwrap();
    }
}
