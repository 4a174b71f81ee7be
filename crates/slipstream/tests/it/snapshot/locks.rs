//! Who has a fold open.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use slipstream::{AppendLogSnapshot, FjallSnapshot, SnapshotStore};

use super::append_log::support::{cursor, place, put};

/// A process that is being started has copies of all handles for a moment, locked ones too.
fn closed_is_free_whoever_is_being_started<S: SnapshotStore>(rounds: u64) {
    let (_dir, path) = place();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        for n in 1..=rounds {
            let opened = S::load(&path);
            done.fetch_or(opened.is_err(), Ordering::SeqCst);
            let (at, mut store) = opened.unwrap_or_else(|error| panic!("round {n}: {error}"));
            assert_eq!(at, cursor(n - 1));
            store.apply(&[put("a", "1", n)], &cursor(n)).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn a_closed_append_log_is_free_whoever_is_being_started() {
    closed_is_free_whoever_is_being_started::<AppendLogSnapshot>(300);
}

#[test]
fn a_closed_fold_of_fjall_is_free_whoever_is_being_started() {
    closed_is_free_whoever_is_being_started::<FjallSnapshot>(50);
}
