//! Reads that fail: in passing, for long, and of what is known already.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gossip_runtime::ScanEnd;

use crate::support::{Place, content, file_name, token};

const INTERVAL: u64 = 1 << 20;

/// One file of 3 MiB with tokens all along.
fn large() -> Place {
    let mut place = Place::new();
    (place.options.threads, place.options.checkpoint_bytes) = (1, INTERVAL);
    let filler = "some text\n".repeat(6_000);
    let text: String = (0..54).map(|n| format!("{filler}key = {}\n", token(n))).collect();
    assert!(text.len() > 3 << 20);
    place.write("large.txt", &text);
    place
}

/// It used to be read from its start each time, and to fail for good at the third.
#[test]
fn a_read_that_fails_in_passing_goes_on_where_it_was() {
    let place = large();
    let expected = place.undisturbed();
    let failures = Arc::new(AtomicU64::new(0));
    let mut source = place.source();
    source.fails_read = Some({
        let failures = Arc::clone(&failures);
        // Once behind each 400,000 bytes.
        Arc::new(move |offset| {
            let failed = failures.load(Ordering::Relaxed);
            let fails = offset > (failed + 1) * 400_000;
            fails && failures.fetch_add(1, Ordering::Relaxed) == failed
        })
    });
    let outcome = place.scan(&source).unwrap();
    let failures = failures.load(Ordering::Relaxed);
    assert!(failures > 6, "{failures}");
    assert_eq!(place.places(&outcome), expected);
    let summary = place.summary(&outcome);
    let size = fs::metadata(place.tree.join("large.txt")).unwrap().len();
    assert_eq!((summary.failed, summary.bytes), (vec![], size));
    let again = source.bytes_read.load(Ordering::Relaxed) - size;
    assert!(again <= failures * 800_000, "{again} bytes again after {failures} failures");
}

/// What had been committed of it used to be deleted.
#[test]
fn what_was_found_before_a_read_that_keeps_failing_stays() {
    let place = large();
    let expected = place.undisturbed();
    let mut source = place.source();
    source.fails_read = Some(Arc::new(|offset| offset > 2 << 20));
    let outcome = place.scan(&source).unwrap();
    assert_eq!(outcome.end, ScanEnd::Finished);
    assert_eq!(place.summary(&outcome).failed, [("kept failing".to_owned(), 1)]);
    let found = place.places(&outcome);
    assert!(found.len() > 25, "{}", found.len());
    assert_eq!(found, expected[..found.len()]);
    let outcome = place.scan(&place.source()).unwrap();
    assert!(place.summary(&outcome).failed.is_empty());
    assert_eq!(place.places(&outcome), expected);
}

/// The wait for the next try ends with the scan, and what was done is kept.
#[test]
fn a_scan_that_stops_while_it_waits_to_read_again_goes_on_next_time() {
    let place = large();
    let stop = Arc::new(AtomicBool::new(false));
    let mut source = place.source();
    source.fails_read = Some({
        let stop = Arc::clone(&stop);
        Arc::new(move |offset| {
            let fails = offset > 2 << 20;
            stop.fetch_or(fails, Ordering::Relaxed);
            fails
        })
    });
    let outcome = place.scan_until(&source, &stop).unwrap();
    assert_eq!(outcome.end, ScanEnd::Interrupted);
    assert!(place.places(&outcome).len() > 25);
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_eq!((second.run, second.end), (outcome.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
    assert!(source.bytes_read.load(Ordering::Relaxed) < 2 << 20, "it goes on where it was");
}

#[test]
fn a_known_file_that_cannot_be_read_now_keeps_what_was_found_in_it() {
    let place = Place::with_files(12);
    let before = place.places(&place.scan(&place.source()).unwrap());
    place.write(&file_name(3), &format!("{}more\n", content(3)));
    let mut source = place.source();
    source.denied = Some(file_name(3));
    let outcome = place.scan(&source).unwrap();
    let summary = place.summary(&outcome);
    assert_eq!(summary.failed, [("permission denied".to_owned(), 1)]);
    assert_eq!(summary.findings as usize, before.len());
    assert_eq!(place.places(&outcome), before);
    fs::remove_file(place.tree.join(file_name(3))).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(place.places(&outcome), place.undisturbed());
}
