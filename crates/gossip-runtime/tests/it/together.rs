//! Several scans of one target at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use gossip_runtime::{ScanEnd, StateDir};

use crate::support::{Place, Watched, stop_at, token};

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

/// Whoever waits is in another process than whoever works: they know of each other by the database.
#[test]
fn a_process_that_comes_late_gets_a_part_of_the_last_shard() {
    const FILES: u64 = 700;
    let mut place = Place::new();
    place.options.threads = 1;
    for number in 0..4 * FILES {
        place.write(&format!("dir{}/{number}", number / FILES), "text");
    }
    let is_late = AtomicBool::new(false);
    let (first, second) = std::thread::scope(|scope| {
        let early = scope.spawn(|| {
            let source = Watched::with_hook(&place.tree, |key, _| {
                if key.starts_with(b"dir3/") {
                    is_late.store(true, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let outcome = place.scan(&source).unwrap();
            (outcome.end, source.keys_read().len())
        });
        let late = scope.spawn(|| {
            while !is_late.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let state = StateDir::open(place.state.path()).unwrap();
            let source = Watched::new(&place.tree);
            let outcome = place.scan_in(&state, &source, &AtomicBool::new(false)).unwrap();
            (outcome.end, source.keys_read().len())
        });
        (early.join().unwrap(), late.join().unwrap())
    });
    assert_eq!((first.0, second.0), (ScanEnd::Finished, ScanEnd::Finished));
    assert!(second.1 > 0, "{first:?}");
    assert_eq!(first.1 + second.1, 4 * FILES as usize);
}

/// Two at once would delete each other's first parts of a large file, and one that is stopped then
/// would leave it without them for good.
#[test]
fn one_process_at_a_time_takes_the_second_look() {
    const LARGE: &[u8] = b"a-large.txt";
    let mut place = Place::with_files(12);
    place.options.checkpoint_bytes = 1 << 20;
    let stop = AtomicBool::new(false);
    let outcome = place.scan_until(&stop_at(&place, &stop, 8), &stop).unwrap();
    assert_eq!(outcome.end, ScanEnd::Interrupted);
    // Its key lies before every cursor, so that only a second look meets it.
    let filler = "some text\n".repeat(50_000);
    let content: String = (0..12).map(|n| format!("{filler}key = {}\n", token(900 + n))).collect();
    place.write("a-large.txt", &content);

    let stops = [Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false))];
    let reads = Arc::new(Mutex::new(Vec::new()));
    let ended: Vec<_> = std::thread::scope(|scope| {
        let scans = [0, 1].map(|process| {
            let (place, stop, reads) = (&place, Arc::clone(&stops[process]), Arc::clone(&reads));
            scope.spawn(move || {
                let state = StateDir::open(place.state.path()).unwrap();
                let mut source = Watched::new(&place.tree);
                let stop_here = Arc::clone(&stop);
                source.on_read = Some(Arc::new(move |key, offset| {
                    if key == LARGE {
                        reads.lock().unwrap().push(process);
                        std::thread::sleep(Duration::from_millis(10));
                        // One of them is stopped in the middle of it, if it gets there first.
                        if process == 0 && offset > 3 << 20 {
                            stop_here.store(true, Ordering::Relaxed);
                        }
                    }
                }));
                place.scan_in(&state, &source, &stop).unwrap()
            })
        });
        scans.into_iter().map(|scan| scan.join().unwrap()).collect()
    });
    let finished = ended.iter().find(|outcome| outcome.end == ScanEnd::Finished);
    let finished = finished.expect("the other one is not told to stop");
    let mut readers = reads.lock().unwrap().clone();
    readers.dedup();
    assert!(readers.len() <= 2, "they took turns within one file: {readers:?}");
    assert_eq!(place.places(finished), place.undisturbed());
    assert_eq!(place.summary(finished).bytes, place.summary_elsewhere().bytes);
    let left: Vec<_> = std::fs::read_dir(place.state.path()).unwrap().collect();
    let is_lock = |name: &std::ffi::OsStr| name.to_string_lossy().contains("second-look");
    assert!(!left.into_iter().any(|entry| is_lock(&entry.unwrap().file_name())));
}
