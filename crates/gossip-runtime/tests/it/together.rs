//! Several scans of one target at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Barrier, Mutex};

use gossip_runtime::{ScanEnd, StateDir};

use crate::support::{Place, Watched};

#[test]
fn scans_of_one_target_at_once_share_one_run_and_cover_everything() {
    for _ in 0..3 {
        let place = Place::with_files(60);
        let all = Mutex::new(Vec::new());
        let barrier = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    // As a process of its own would: nothing is shared but the directory.
                    let state = StateDir::open(place.state.path()).unwrap();
                    let source = Watched::new(&place.tree);
                    barrier.wait();
                    let outcome = place.scan_in(&state, &source, &AtomicBool::new(false)).unwrap();
                    all.lock().unwrap().push((outcome, source.keys_read().len()));
                });
            }
        });
        let all = all.into_inner().unwrap();
        // One that comes when the others are done makes a run of its own.
        assert!(all.iter().all(|(outcome, _)| outcome.end == ScanEnd::Finished), "{all:?}");
        let newest = all.iter().map(|(outcome, _)| outcome).max_by_key(|o| o.run).unwrap();
        let summary = place.summary(newest);
        assert_eq!((summary.items, summary.findings), (60, 20));
        assert_eq!(place.places(newest), place.undisturbed());
        let read: usize = all.iter().map(|(_, read)| read).sum();
        assert_eq!(read, 60, "each file is read by one");
    }
}
