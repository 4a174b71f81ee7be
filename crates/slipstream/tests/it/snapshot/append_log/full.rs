//! A disk that is full: files of this process may not grow beyond a limit.

use std::fs;
use std::path::Path;

use slipstream::snapshot_conformance::{limited, with_a_limit};
use slipstream::{SnapshotError, SnapshotStore};

use super::support::{cursor, open, put, state};

#[test]
fn a_full_disk_refuses_a_batch_and_keeps_the_fold() {
    let name = concat!(module_path!(), "::a_full_disk_refuses_a_batch_and_keeps_the_fold");
    limited(
        name,
        |path| with_a_limit(128 * 1024, || fill(path)),
        |path| {
            let store = open(path);
            assert_eq!(state(&store).0, cursor(1000));
            assert_eq!(state(&store).1.last().unwrap().key, "z");
        },
    );
}

fn fill(path: &Path) {
    let mut store = open(path);
    let mut n = 0;
    let refused = loop {
        let batch = [put(&format!("k.{n:04}"), vec![1; 5000], n)];
        match store.apply(&batch, &cursor(n + 1)) {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, SnapshotError::Io { doing: "writing to the log", .. }), "{refused}");
    assert!(n > 10, "{n} batches");
    // Nothing of it is there, in memory or in the file, and it is refused again.
    for _ in 0..2 {
        assert_eq!(store.log_len(), fs::metadata(path).unwrap().len());
        assert_eq!((state(&store).0, state(&store).1.len() as u64), (cursor(n), n));
        assert!(store.apply(&[put("b", vec![1; 9000], n)], &cursor(n + 1)).is_err());
    }
    // What fits goes in.
    store.apply(&[put("z", "1", n)], &cursor(1000)).unwrap();
}
