//! Stopped, resumed, started over.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId, RunId, TenantId, WorkerId};
use gossip_coordination::{RunStatus, WorkerSession};
use gossip_coordination_sqlite::rusqlite::Connection;
use gossip_coordination_sqlite::{SqliteConfig, SqliteCoordinator};
use gossip_runtime::{Admin, Reports, Scan, ScanEnd, ScanError, ScanOptions, ScanStats};

use crate::support::{Place, Watched, content, file_name, stop_at, token};

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
        // Told to stop, workers commit what they have done, all but the item in progress.
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
fn what_was_removed_or_renamed_since_it_was_read_is_not_reported_by_the_scan_that_goes_on() {
    let mut place = Place::with_files(40);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 36), &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    let has = |found: &[(String, u64)], name: &str| found.iter().any(|(key, _)| key == name);
    let before = place.places(&first);
    let path = |number| place.tree.join(file_name(number));
    for number in [0, 15, 30] {
        assert!(has(&before, &file_name(number)), "{before:?}");
    }
    fs::remove_file(path(0)).unwrap();
    fs::rename(path(15), place.tree.join("dir0/another name.txt")).unwrap();
    fs::remove_file(path(30)).unwrap();
    // Files are below that name now.
    fs::create_dir(path(30)).unwrap();
    fs::write(path(30).join("inside.txt"), content(30)).unwrap();
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    let expected = place.undisturbed();
    assert!(has(&expected, "dir0/another name.txt"));
    assert_eq!(place.places(&second), expected);
    let summary = place.summary(&second);
    assert_eq!((summary.items, summary.findings as usize), (39, expected.len()));
    assert!(summary.failed.is_empty(), "{:?}", summary.failed);
}

/// That nobody can look into a directory does not say that its files are gone.
#[test]
fn what_was_found_below_a_directory_that_fails_now_stays_in_the_scan_that_goes_on() {
    let mut place = Place::with_files(40);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 36), &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    let below =
        |found: &[(String, u64)]| found.iter().filter(|(key, _)| key.starts_with("dir1/")).count();
    let expected = below(&place.undisturbed());
    assert_eq!((below(&place.places(&first)), expected > 1), (expected, true));
    let mut source = place.source();
    source.unlistable = Some("dir1");
    let second = place.scan(&source).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.summary(&second).failed, [("unreadable".to_owned(), 1)]);
    assert_eq!(place.places(&second), place.undisturbed());
    // Nor does a whole scan forget them, and once it can be looked into they are as they were.
    let mut source = place.source();
    source.unlistable = Some("dir1");
    assert_eq!(place.places(&place.scan(&source).unwrap()), place.undisturbed());
    assert_eq!(place.places(&place.scan(&place.source()).unwrap()), place.undisturbed());
}

/// The look at what a page passes over used to end at the first thousand if all of those stay.
#[test]
fn what_is_gone_is_forgotten_though_many_files_of_a_directory_that_fails_come_before_it() {
    let mut place = Place::new();
    place.options = ScanOptions { threads: 1, checkpoint_items: 500, ..place.options };
    for number in 0..1_100 {
        place.write(&format!("dir1/{number:04}.txt"), "words\n");
    }
    for number in 0..30 {
        place.write(&format!("dir2/{number:02}.txt"), &content(0));
    }
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 1_120), &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    let has_gone = |outcome| place.places(outcome).iter().any(|(key, _)| key == "dir2/00.txt");
    assert!(has_gone(&first));
    fs::remove_file(place.tree.join("dir2/00.txt")).unwrap();
    let mut source = place.source();
    source.unlistable = Some("dir1");
    let second = place.scan(&source).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert!(!has_gone(&second));
    assert_eq!(place.places(&second).len(), 29);
}

/// It used to be read to its end, however large, while the user waited.
#[test]
fn a_scan_that_is_told_to_stop_does_not_read_the_rest_of_what_a_file_was_before() {
    let mut place = Place::new();
    place.options.threads = 1;
    place.write("a.txt", &content(0));
    place.write("base.txt", &"words\n".repeat(1 << 20));
    let (stop, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut source = place.source();
    source.base = Some("base.txt");
    let (seen, told) = (Arc::clone(&reads), Arc::clone(&stop));
    source.on_read = Some(Arc::new(move |key, _| {
        if key == b"base.txt" {
            seen.fetch_add(1, Ordering::Relaxed);
            told.store(true, Ordering::Relaxed);
        }
    }));
    let outcome = place.scan_until(&source, &stop).unwrap();
    assert_eq!(outcome.end, ScanEnd::Interrupted);
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    let finished = place.scan(&place.source()).unwrap();
    assert_eq!((finished.end, place.places(&finished).len()), (ScanEnd::Finished, 1));
}

/// The file is changed behind the look at everything, and then somebody joins who must not be told
/// that all is well without it.
#[test]
fn what_was_changed_before_another_process_joined_is_not_missed_by_the_last_look() {
    let mut place = Place::with_files(20);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    let first = place.scan_until(&stop_at(&place, &stop, 20), &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    place.write("dir0/a first.txt", &content(0));
    let changed = AtomicBool::new(false);
    let source = Watched::with_hook(&place.tree, |key, _| {
        if key == b"dir0/a first.txt" && !changed.swap(true, Ordering::Relaxed) {
            // Listed already, together with what is being read.
            place.write(&file_name(5), &format!("more\n{}", content(3)));
            let joined = place.scan_until(&place.source(), &AtomicBool::new(true)).unwrap();
            assert_eq!((joined.run, joined.end), (first.run, ScanEnd::Interrupted));
        }
    });
    let second = place.scan(&source).unwrap();
    assert!(changed.load(Ordering::Relaxed));
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn a_look_at_everything_survives_listings_that_fail_in_passing() {
    let place = Place::with_files(40);
    let stop = AtomicBool::new(false);
    place.scan_until(&stop_at(&place, &stop, 20), &stop).unwrap();
    let mut source = place.source();
    source.every_other_listing_fails = true;
    let second = place.scan(&source).unwrap();
    assert_eq!((second.resumed, second.end), (true, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn fresh_reads_everything_again_and_so_does_whoever_goes_on_with_it() {
    let mut place = Place::with_files(20);
    place.scan(&place.source()).unwrap();
    let fresh = ScanOptions { fresh: true, ..place.options.clone() };
    let usual = std::mem::replace(&mut place.options, fresh);
    let source = place.source();
    let whole = place.scan(&source).unwrap();
    assert_eq!((whole.end, source.keys_read().len()), (ScanEnd::Finished, 20));

    let stop = AtomicBool::new(false);
    let source = stop_at(&place, &stop, 10);
    let first = place.scan_until(&source, &stop).unwrap();
    let before = source.keys_read();
    assert_eq!(first.end, ScanEnd::Interrupted);
    place.options = usual;
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    let mut read = [before, source.keys_read()].concat();
    read.sort();
    read.dedup();
    assert_eq!(read.len(), 20);
    assert_eq!(place.places(&second), place.undisturbed());
    let source = place.source();
    place.scan(&source).unwrap();
    assert!(source.keys_read().is_empty(), "the next one trusts what it stored");
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

/// More than may wait in memory.
#[test]
fn very_many_findings_in_a_file_that_appeared_behind_the_cursor_are_found() {
    let mut place = Place::with_files(10);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    place.scan_until(&stop_at(&place, &stop, 10), &stop).unwrap();
    let tokens: String = (0..40_000).map(|seed| format!("{}\n", token(seed))).collect();
    place.write("dir0/a first.txt", &tokens);
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.resumed, second.end), (true, ScanEnd::Finished));
    let found = place.places(&second);
    assert!(found.len() > 40_000, "{}", found.len());
    assert_eq!(place.summary(&second).findings as usize, found.len());
    assert_eq!(found, place.undisturbed());
}

#[test]
fn a_run_that_coordination_never_heard_of_can_be_called_off() {
    let place = Place::with_files(3);
    place.scan(&place.source()).unwrap();
    let database = Connection::open(place.state.database_path()).unwrap();
    // As a process leaves it that dies between the two.
    let begun = "INSERT INTO scan_runs(target, policy, started_ms, nonce)
                 SELECT target, policy, 1, randomblob(16) FROM scan_runs";
    database.execute_batch(begun).unwrap();
    Admin::open(&place.state).unwrap().cancel(RunId::from_raw(2)).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.run, outcome.end), (RunId::from_raw(3), ScanEnd::Finished));
}

/// The last look meets everything once more.
#[test]
fn what_the_run_itself_has_read_is_not_counted_as_unchanged() {
    let place = Place::with_files(20);
    let (stop, go) = (AtomicBool::new(false), AtomicBool::new(false));
    place.scan_until(&stop_at(&place, &stop, 10), &stop).unwrap();
    let (stats, source) = (ScanStats::default(), place.source());
    let Place { state, engine, options, .. } = &place;
    let target = b"the tree";
    let scan = Scan { state, source: &source, target, engine, options, stats: &stats, stop: &go };
    let outcome = scan.run().unwrap();
    assert_eq!((outcome.resumed, outcome.end), (true, ScanEnd::Finished));
    assert_eq!((stats.unchanged(), stats.items() as usize), (0, source.keys_read().len()));
}

/// Committed with the cursor, so that neither what was repeated nor what was thrown away counts.
#[test]
fn the_numbers_of_a_run_that_was_broken_off_are_those_of_what_it_committed() {
    let mut place = Place::with_files(40);
    place.options.threads = 1;
    std::os::unix::fs::symlink("dir0", place.tree.join("a link")).unwrap();
    fs::write(place.tree.join("dir0/a picture"), b"\x89PNG\r\n\x1a\n\0\0\0\r").unwrap();
    let expected = place.summary_elsewhere();
    for nth in [2, 7, 20, 39] {
        let (stop, opened) = (AtomicBool::new(false), AtomicUsize::new(0));
        let state = place.elsewhere();
        let source = Watched::with_hook(&place.tree, |_, _| {
            if opened.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                std::panic::resume_unwind(Box::new("part of the test"));
            }
        });
        let broken = place.scan_in(&state, &source, &stop);
        assert!(matches!(broken, Err(ScanError::WorkerPanicked)));
        let reports = || Reports::open(&state).unwrap();
        let open = reports().run(RunId::from_raw(1)).unwrap();
        let database = Connection::open(state.database_path()).unwrap();
        let committed = "SELECT count(*), ifnull(sum(bytes), 0), count(skipped) FROM scan_ledger";
        let committed: (i64, i64, i64) = database
            .query_row(committed, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .unwrap();
        let skipped: u64 = open.skipped.iter().map(|(_, items)| items).sum();
        assert_eq!(committed, (open.items as i64, open.bytes as i64, skipped as i64));
        assert!((open.items as usize) < nth + 2 && open.items as usize + 5 > nth, "{open:?}");

        let outcome = place.scan_in(&state, &place.source(), &stop).unwrap();
        let ended = reports().run(outcome.run).unwrap();
        assert_eq!((outcome.resumed, ended.items, ended.bytes), (true, 42, expected.bytes));
        assert_eq!((ended.skipped, ended.failed), (expected.skipped.clone(), vec![]));
    }
}

#[test]
fn a_shard_that_another_version_left_is_refused_with_what_to_do() {
    let place = Place::with_files(10);
    let stop = AtomicBool::new(false);
    place.scan_until(&stop_at(&place, &stop, 5), &stop).unwrap();
    let tenant = TenantId::from_bytes(*b"gossip: what this machine scans.");
    let mut coordinator =
        SqliteCoordinator::open(place.state.database_path(), SqliteConfig::default()).unwrap();
    let (run, worker) = (RunId::from_raw(1), WorkerId::from_raw(99));
    let at = LogicalTime::from_raw(2_000_000_000_000);
    let mut session = WorkerSession::claim(&mut coordinator, at, tenant, run, worker).unwrap();
    let key = session.cursor().last_key().unwrap_or(session.spec().start()).to_vec();
    let other = CursorUpdate::new(Some(&key), Some(b"\xffof a later kind"));
    session.checkpoint(at, other, OpId::from_raw(7)).unwrap();
    session.release(at).unwrap();
    let error = place.scan(&place.source()).unwrap_err();
    assert!(matches!(error, ScanError::TokenOfAnotherKind), "{error}");
    assert!(error.to_string().contains("--fresh"), "{error}");
    let shown = || Reports::open(&place.state).unwrap().runs().unwrap().remove(0);
    assert!(shown().is_of_another_version && shown().status == RunStatus::Active);
    Admin::open(&place.state).unwrap().cancel(run).unwrap();
    assert!(!shown().is_of_another_version && shown().status == RunStatus::Cancelled);
    let mut place = place;
    place.options.fresh = true;
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.resumed, outcome.end), (false, ScanEnd::Finished));
}
