//! Stopped, resumed, started over.

use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::identity::RunId;
use gossip_runtime::{Admin, ScanEnd, ScanOptions};

use crate::support::{Place, Watched, content, file_name, stop_at};

#[test]
fn a_scan_that_was_stopped_and_resumed_finds_what_an_undisturbed_one_finds() {
    for nth in [1, 2, 7, 20, 39] {
        let place = Place::with_files(40);
        let stop = AtomicBool::new(false);
        let first = place.scan_until(&stop_at(&place, &stop, nth), &stop).unwrap();
        assert_eq!(first.end, ScanEnd::Interrupted, "stopped at {nth}");
        let source = place.source();
        let second = place.scan(&source).unwrap();
        assert_eq!(second.run, first.run);
        assert!(second.resumed);
        assert_eq!(second.end, ScanEnd::Finished);
        assert_eq!(place.places(&second), place.undisturbed());
        assert_eq!(place.summary(&second).items, 40);
        // Told to stop, workers store what they have done, all but the item in hand.
        assert!(source.keys_read().len() <= 40 - nth + place.options.threads, "stopped at {nth}");
    }
}

#[test]
fn what_was_created_behind_the_cursor_meanwhile_is_found() {
    let mut place = Place::with_files(40);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 30), &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    // One before everything, one changed that had been scanned.
    place.write("dir0/a first.txt", &content(0));
    place.write(&file_name(0), &format!("more\n{}", content(0)));
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn fresh_starts_a_run_of_its_own() {
    let mut place = Place::with_files(20);
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 10), &stop).unwrap();
    place.options = ScanOptions { fresh: true, ..place.options.clone() };
    let second = place.scan(&place.source()).unwrap();
    assert_ne!(first.run, second.run);
    assert_eq!((second.resumed, second.end), (false, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
    assert!(place.summary(&first).ended_ms.is_some(), "the first is called off");
}

/// In the middle of the only big file.
fn big() -> Place {
    let mut place = Place::new();
    place.options.threads = 1;
    let filler = "some text\n".repeat(100_000);
    place.write("a.txt", &content(0));
    place.write("big.txt", &format!("{}{filler}{}", content(3), content(6)));
    place.write("c.txt", &content(9));
    place
}

#[test]
fn an_item_that_a_stop_interrupts_is_not_stored() {
    let place = big();
    let stop = AtomicBool::new(false);
    let source = Watched::with_hook(&place.tree, |key, _| {
        if key == b"big.txt" {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let first = place.scan_until(&source, &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    assert_eq!(place.places(&first), [("a.txt".to_owned(), 206)]);
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_eq!(source.keys_read(), ["big.txt", "c.txt"]);
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn an_item_during_which_the_lease_was_lost_is_not_stored() {
    let place = big();
    let cancelled = AtomicBool::new(false);
    let source = Watched::with_hook(&place.tree, |key, _| {
        if key == b"big.txt" {
            let mut admin = Admin::open(&place.state).unwrap();
            admin.cancel(RunId::from_raw(1)).unwrap();
            cancelled.store(true, Ordering::Relaxed);
        }
    });
    let outcome = place.scan(&source).unwrap();
    assert!(cancelled.load(Ordering::Relaxed));
    assert_eq!(outcome.end, ScanEnd::Cancelled);
    let found = place.places(&outcome);
    assert!(found.iter().all(|(key, _)| key == "a.txt"), "{found:?}");
    assert_eq!(place.summary(&outcome).findings as usize, found.len());
}
