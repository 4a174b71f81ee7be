//! Files and databases that misbehave.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gossip_coordination_sqlite::rusqlite::Connection;
use gossip_engine::{Engine, Options, RuleSet};
use gossip_runtime::{Admin, ReportError, Reports, ScanEnd, ScanError, ScanOutcome};

use crate::support::{Place, Watched, content, file_name};

#[test]
fn a_file_that_vanishes_is_reported_and_the_rest_is_scanned() {
    let place = Place::with_files(30);
    let victim = file_name(4);
    let source = Watched::with_hook(&place.tree, |key, _| {
        if key == victim.as_bytes() {
            fs::remove_file(place.tree.join(&victim)).unwrap();
        }
    });
    let outcome = place.scan(&source).unwrap();
    assert_eq!(outcome.end, ScanEnd::Finished);
    let summary = place.summary(&outcome);
    assert_eq!(summary.failed, [("vanished".to_owned(), 1)]);
    assert_eq!((summary.items, summary.findings), (30, 10));
}

#[test]
fn a_file_that_cannot_be_read_is_reported_and_tried_again_next_time() {
    let place = Place::with_files(12);
    let path = place.tree.join(file_name(3));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    if fs::read(&path).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    let outcome = place.scan(&place.source()).unwrap();
    let summary = place.summary(&outcome);
    assert_eq!(summary.failed, [("permission denied".to_owned(), 1)]);
    assert_eq!((summary.items, summary.findings), (12, 3));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert!(place.summary(&outcome).failed.is_empty());
    assert_eq!(place.places(&outcome), place.undisturbed());
}

#[test]
fn links_are_counted_and_never_followed() {
    let place = Place::with_files(6);
    symlink("..", place.tree.join("dir1/loop")).unwrap();
    symlink("loop", place.tree.join("dir1/self")).unwrap();
    symlink("/", place.tree.join("outside")).unwrap();
    symlink(file_name(0), place.tree.join("again.txt")).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    let summary = place.summary(&outcome);
    assert_eq!(summary.skipped, [("link".to_owned(), 4)]);
    assert_eq!((outcome.end, summary.items, summary.findings), (ScanEnd::Finished, 10, 2));
}

#[test]
fn binary_files_are_skipped_with_a_count_and_utf16_is_not_binary() {
    let place = Place::new();
    fs::write(
        place.tree.join("program"),
        [&b"\x7fELF\0\0\0\0"[..], content(0).as_bytes()].concat(),
    )
    .unwrap();
    let utf16: Vec<u8> = content(3).encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(place.tree.join("utf16.txt"), utf16).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(place.summary(&outcome).skipped, [("binary: executable".to_owned(), 1)]);
    assert_eq!(place.places(&outcome), [("utf16.txt".to_owned(), 412)]);
}

/// Not "interrupted": what a worker failed of, while the others stop in order.
#[test]
fn a_database_that_fails_is_what_the_caller_hears() {
    let place = Place::with_files(60);
    let dropped = AtomicBool::new(false);
    let source = Watched::with_hook(&place.tree, |_, _| {
        if !dropped.swap(true, Ordering::Relaxed) {
            let database = Connection::open(place.state.database_path()).unwrap();
            database.execute_batch("DROP TABLE scan_occurrences").unwrap();
        }
    });
    let stop = AtomicBool::new(false);
    let error = place.scan_until(&source, &stop).unwrap_err();
    assert!(matches!(error, ScanError::Storage(_)), "{error}");
    assert!(error.to_string().contains("scan_occurrences"), "{error}");
    assert!(!stop.load(Ordering::Relaxed), "the caller's flag is the caller's");
}

/// It used to be called a run that is initializing, with no shards.
#[test]
fn a_damaged_record_is_reported_as_such_and_not_as_zeros() {
    let place = Place::with_files(6);
    let outcome = place.scan(&place.source()).unwrap();
    let database = Connection::open(place.state.database_path()).unwrap();
    let damage = "UPDATE coord_run_records SET record = zeroblob(length(record))";
    assert_eq!(database.execute(damage, []).unwrap(), 1);
    let reports = Reports::open(&place.state).unwrap();
    for error in [reports.run(outcome.run).unwrap_err(), reports.runs().unwrap_err()] {
        assert!(matches!(error, ReportError::Storage(_)), "{error}");
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}

/// It used to be called damage.
#[test]
fn options_that_no_run_can_have_are_refused_by_their_name() {
    let mut place = Place::with_files(6);
    place.options.lease_ms = 0;
    let error = place.scan(&place.source()).unwrap_err();
    assert!(matches!(error, ScanError::NotCreated(_)), "{error}");
    assert!(error.to_string().contains("lease"), "{error}");
    place.options.lease_ms = 30_000;
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(outcome.end, ScanEnd::Finished);
}

/// Nothing was released with the tables of earlier versions.
#[test]
fn a_database_of_an_older_version_is_refused_with_what_to_do() {
    let place = Place::with_files(3);
    place.scan(&place.source()).unwrap();
    let database = Connection::open(place.state.database_path()).unwrap();
    let age = "UPDATE coord_components SET version = 3 WHERE name = 'scan'";
    assert_eq!(database.execute(age, []).unwrap(), 1);
    let error = place.scan(&place.source()).unwrap_err().to_string();
    assert!(error.contains("version 3") && error.contains("to start over"), "{error}");
    // Whoever moves more loses the key under which findings are recognised.
    for word in ["gossip.db,", "gossip.db-wal", "gossip.db-shm", "leave all other files"] {
        assert!(error.contains(word), "{error}");
    }
}

/// The shard used to be parked, and the user had to unpark it.
#[test]
fn a_listing_that_fails_in_passing_while_the_scan_stops_parks_nothing() {
    let mut place = Place::with_files(30);
    place.options.threads = 1;
    let stop = AtomicBool::new(false);
    let mut source = place.source();
    source.every_other_listing_fails = true;
    source.stop_at_failed_listing = Some(&stop);
    let outcome = place.scan_until(&source, &stop).unwrap();
    assert_eq!(outcome.end, ScanEnd::Interrupted);
    assert_eq!(place.summary(&outcome).progress.parked, 0);
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.resumed, outcome.end), (true, ScanEnd::Finished));
    assert_eq!(place.places(&outcome), place.undisturbed());
}

/// A rule may want a file for its name, whatever is in it.
#[test]
fn a_rule_for_paths_finds_binary_files() {
    let mut place = Place::new();
    let rules = "[[rules]]\nid = \"key-store\"\npath = '''\\.jks$'''\n";
    place.engine = Engine::new(RuleSet::from_toml("t.toml", rules).unwrap(), Options::default());
    fs::write(place.tree.join("a.jks"), b"\xfe\xed\xfe\xed\0\0\0\x02\0\0\0\x01").unwrap();
    fs::write(place.tree.join("b.bin"), b"\0\0\0\0").unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(place.places(&outcome), [("a.jks".to_owned(), 0)]);
    assert_eq!(place.summary(&outcome).skipped, [("binary: NUL bytes".to_owned(), 2)]);
}

#[test]
fn a_worker_that_panics_is_reported_and_the_scan_goes_on_next_time() {
    let place = Place::with_files(30);
    let source = Watched::with_hook(&place.tree, |key, _| {
        assert_ne!(key, file_name(7).as_bytes(), "this panic is part of the test");
    });
    let error = place.scan(&source).unwrap_err();
    assert!(matches!(error, ScanError::WorkerPanicked), "{error}");
    // At once, though the dead worker's lease has not run out.
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.resumed, outcome.end), (true, ScanEnd::Finished));
    assert_eq!(place.places(&outcome), place.undisturbed());
}

/// The other has plenty left to do, and would wait for the dead one's shard afterwards.
#[test]
fn the_other_workers_stop_when_one_fails() {
    let place = Place::with_files(400);
    let (panicked, after) = (AtomicBool::new(false), AtomicUsize::new(0));
    let source = Watched::with_hook(&place.tree, |_, _| {
        if !panicked.swap(true, Ordering::SeqCst) {
            panic!("this panic is part of the test");
        }
        after.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(10));
    });
    let error = place.scan(&source).unwrap_err();
    assert!(matches!(error, ScanError::WorkerPanicked), "{error}");
    let after = after.load(Ordering::SeqCst);
    assert!(after < 200, "{after} of 400 items were read after the failure");
    let source = place.source();
    let outcome = place.scan(&source).unwrap();
    assert_eq!((outcome.resumed, outcome.end), (true, ScanEnd::Finished));
    // What it had done when it stopped is committed, all but the item in progress.
    let left = source.keys_read().len();
    assert!(left == 400 - after || left == 401 - after, "{left} were left after {after}");
    assert_eq!(place.places(&outcome), place.undisturbed());
}

#[test]
fn ten_gigabytes_of_nothing_are_not_read() {
    let place = Place::with_files(3);
    let sparse = fs::File::create(place.tree.join("sparse.img")).unwrap();
    if sparse.set_len(10 << 30).is_err() {
        eprintln!("skipped: no sparse files here");
        return;
    }
    let outcome = place.scan(&place.source()).unwrap();
    let summary = place.summary(&outcome);
    assert_eq!(summary.skipped, [("binary: NUL bytes".to_owned(), 1)]);
    assert_eq!((outcome.end, summary.items, summary.findings), (ScanEnd::Finished, 4, 1));
}

#[test]
fn what_cannot_be_listed_is_parked_and_the_rest_is_scanned() {
    let place = Place::with_files(60);
    let mut source = place.source();
    source.broken_from = Some(b"dir4/");
    let first = place.scan(&source).unwrap();
    let ScanEnd::Parked { shards } = first.end else { panic!("{first:?}") };
    let places = place.places(&first);
    assert!(places.iter().any(|(key, _)| key.starts_with("dir0")), "{places:?}");
    assert!(places.iter().all(|(key, _)| !key.starts_with("dir4")), "{places:?}");
    assert_eq!(place.scan(&place.source()).unwrap(), ScanOutcome { resumed: true, ..first });
    assert_eq!(Admin::open(&place.state).unwrap().unpark(first.run).unwrap() as u64, shards);
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn a_database_that_another_process_holds_is_waited_for() {
    let place = Place::with_files(30);
    place.scan(&place.source()).unwrap();
    let holder = Connection::open(place.state.database_path()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::scope(|scope| {
        let scan = scope.spawn(|| place.scan(&place.source()).unwrap());
        std::thread::sleep(Duration::from_millis(700));
        assert!(!scan.is_finished());
        holder.execute_batch("COMMIT").unwrap();
        assert_eq!(scan.join().unwrap().end, ScanEnd::Finished);
    });
}

/// Shards of ended runs stay; a machine that has scanned for years can still scan.
#[test]
fn the_shards_of_many_earlier_runs_do_not_stop_the_next() {
    let place = Place::with_files(3);
    place.scan(&place.source()).unwrap();
    let database = Connection::open(place.state.database_path()).unwrap();
    let years = "UPDATE coord_totals SET shards = shards + 1000000000;
                 UPDATE coord_tenants SET shards = shards + 1000000000;";
    database.execute_batch(years).unwrap();
    assert_eq!(place.scan(&place.source()).unwrap().end, ScanEnd::Finished);
}
