//! Writes that fail: files of a process may not grow beyond a limit. The process is the test binary,
//! started again.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Paused, contents, cursor, keys, libtest_name, open, place, put};
use crate::protocol::MAX_STORE_APPLY_FAILURES;
use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotStore};

/// Set in a process whose files are to be limited: the path of its fold.
pub const LIMITED: &str = "SLIPSTREAM_CONFORMANCE_LIMITED";

/// Runs `work` on a fold in a process that survives [`with_a_limit`], and then `after`, here. `name`
/// is the test that calls, with the crate's name before it.
pub fn limited(name: &str, work: impl FnOnce(&Path), after: impl FnOnce(&Path)) {
    if let Some(path) = std::env::var_os(LIMITED) {
        return work(Path::new(&path));
    }
    let (_dir, path) = place();
    // Without the trap the limit kills.
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", libtest_name(name), "--nocapture", "--test-threads=1"])
        .env(LIMITED, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{errors}");
    after(&path);
}

/// No file of this process grows beyond so many bytes meanwhile.
pub fn with_a_limit(bytes: u64, work: impl FnOnce()) {
    let unlimited = getrlimit(Resource::Fsize);
    let limit = Rlimit { current: Some(bytes), maximum: unlimited.maximum };
    setrlimit(Resource::Fsize, limit).unwrap();
    work();
    setrlimit(Resource::Fsize, unlimited).unwrap();
}

/// Of an engine, which refuses everything once a write has failed. `name` as above.
pub fn failed_writes_heal<S: SnapshotStore>(name: &str) {
    let work = |path: &Path| {
        let mut store: S = open(path);
        fail_and_heal(&mut store);
        fail_while_being_read(&mut store);
        fail_and_be_removed::<S>(&path.with_extension("removed"));
    };
    limited(name, work, |path| {
        let store: S = open(path);
        assert_eq!((store.cursor(), keys(&store, "").concat()), (cursor(5), "abcd".to_owned()));
    });
}

fn fail_and_heal<S: SnapshotStore>(store: &mut S) {
    let reader = store.reader();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let before = contents(store);
    let batch = [put("b", vec![1; 1000], 2), put("c", "1", 3)];
    with_a_limit(100, || {
        for _ in 0..3 {
            assert!(store.apply(&batch, &cursor(3)).is_err());
            assert_eq!(store.cursor(), cursor(1));
        }
    });
    store.apply(&batch, &cursor(3)).unwrap();
    assert_eq!((reader.cursor(), keys(&reader, "").len()), (cursor(3), 3));
    assert_eq!(contents(&reader)["a"], before["a"]);
    store.apply(&[], &cursor(4)).unwrap();
}

/// Somebody who is in the middle of a range has the database, and so its lock.
fn fail_while_being_read<S: SnapshotStore>(store: &mut S) {
    let batch = [put("d", "1", 5)];
    let reader = Paused::in_a_range(store.reader());
    with_a_limit(100, || assert!(store.apply(&batch, &cursor(5)).is_err()));
    for _ in 0..2 * MAX_STORE_APPLY_FAILURES {
        let refused = store.apply(&batch, &cursor(5));
        assert!(matches!(refused, Err(SnapshotError::BeingRead)), "{refused:?}");
        assert_eq!(store.cursor(), cursor(4));
    }
    assert_eq!(reader.go_on().unwrap(), ["a", "b", "c"]);
    store.apply(&batch, &cursor(5)).unwrap();
}

/// What is not there any more is not made again, without what was in it.
fn fail_and_be_removed<S: SnapshotStore>(path: &Path) {
    let mut store: S = open(path);
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let batch = [put("b", vec![1; 1000], 2)];
    with_a_limit(100, || assert!(store.apply(&batch, &cursor(2)).is_err()));
    fs::remove_dir_all(path).unwrap();
    for _ in 0..2 {
        let refused = store.apply(&batch, &cursor(2));
        let Err(SnapshotError::Io { source, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((source.kind(), store.cursor()), (ErrorKind::NotFound, cursor(1)));
        assert!(!path.exists());
    }
    fs::create_dir(path).unwrap();
    let refused = store.apply(&batch, &cursor(2));
    assert!(matches!(refused, Err(SnapshotError::Corrupted(_))), "{refused:?}");
    assert_eq!(fs::read_dir(path).unwrap().count(), 0);
}
