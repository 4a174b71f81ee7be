//! Stopped or broken off in the middle of large items.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use gossip_coordination_sqlite::rusqlite::Connection;
use gossip_engine::{Engine, Options, RuleSet};
use gossip_runtime::{ScanEnd, ScanOptions, ScanOutcome};

use crate::support::{Place, Watched, token};

const INTERVAL: u64 = 1 << 20;
const SIZE: usize = 3 << 20;

/// Tokens all along: across the ends of what is judged at once, and of what is read at once.
fn large(seed: u64) -> String {
    let mut text = String::new();
    while text.len() < SIZE {
        text.push_str(&"some text\n".repeat(6_000));
        text.push_str(&format!("key = {}\n", token(seed * 1_000 + text.len() as u64)));
    }
    text
}

fn place(files: u64) -> Place {
    let mut place = Place::new();
    place.options.checkpoint_bytes = INTERVAL;
    for number in 0..files {
        place.write(&format!("large{number}.txt"), &large(number));
    }
    place
}

/// Scans until it has ended, each time stopped at the `nth` read. What was read in each life.
fn scan_in_lives(place: &Place, nth: u64, panics: bool) -> (ScanOutcome, Vec<u64>) {
    let mut lives = Vec::new();
    loop {
        let stop = Arc::new(AtomicBool::new(false));
        let reads = AtomicU64::new(0);
        let mut source = Watched::new(&place.tree);
        let flag = Arc::clone(&stop);
        source.on_read = Some(Arc::new(move |_, _| {
            if reads.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                if panics {
                    // Without a word: while a panic prints its trace, the other worker reads on.
                    std::panic::resume_unwind(Box::new("part of the test"));
                }
                flag.store(true, Ordering::Relaxed);
            }
        }));
        let outcome = place.scan_until(&source, &stop);
        lives.push(source.bytes_read.load(Ordering::Relaxed));
        match outcome {
            Ok(outcome) if outcome.end == ScanEnd::Finished => return (outcome, lives),
            Ok(outcome) => assert_eq!(outcome.end, ScanEnd::Interrupted),
            Err(error) => assert!(panics, "{error}"),
        }
        assert!(lives.len() < 200, "no progress");
    }
}

#[test]
fn a_stop_in_the_middle_of_an_item_repeats_little_of_it() {
    for nth in [3, 5, 9, 13] {
        let mut place = place(2);
        place.options.threads = 1;
        let expected = place.undisturbed();
        assert!(expected.len() > 90, "{}", expected.len());
        let (outcome, lives) = scan_in_lives(&place, nth, false);
        assert_eq!(place.places(&outcome), expected, "stopped at each read {nth}");
        assert_eq!(place.summary(&outcome).findings as usize, expected.len());
        assert_eq!(place.summary(&outcome).bytes, 2 * large(0).len() as u64);
        // Each life but the last goes on within a segment and its surroundings of where it stopped.
        let read: u64 = lives.iter().sum();
        let again = read - 2 * large(0).len() as u64;
        assert!(again <= (lives.len() as u64 - 1) * 800_000, "{again} in {} lives", lives.len());
    }
}

#[test]
fn a_worker_that_dies_in_the_middle_of_an_item_repeats_one_interval_at_most() {
    let place = place(5);
    let expected = place.undisturbed();
    let (outcome, lives) = scan_in_lives(&place, 11, true);
    assert!(lives.len() > 4, "{lives:?}");
    assert_eq!(place.places(&outcome), expected);
    let read: u64 = lives.iter().sum();
    let again = read - 5 * large(0).len() as u64;
    let bound = (lives.len() as u64 - 1) * place.options.threads as u64 * INTERVAL;
    assert!(again <= bound, "{again} of {bound} in {} lives", lives.len());
}

/// One large item, stopped behind its second MiB.
fn stopped_inside() -> (Place, ScanOutcome) {
    stopped_inside_of(None)
}

fn stopped_inside_of(version: Option<&'static [u8]>) -> (Place, ScanOutcome) {
    let mut place = place(1);
    place.options.threads = 1;
    let stop = Arc::new(AtomicBool::new(false));
    let mut source = Watched::new(&place.tree);
    source.version = version;
    let flag = Arc::clone(&stop);
    source.on_read = Some(Arc::new(move |_, offset| {
        if offset > 2 << 20 {
            flag.store(true, Ordering::Relaxed);
        }
    }));
    let outcome = place.scan_until(&source, &stop).unwrap();
    assert_eq!(outcome.end, ScanEnd::Interrupted);
    (place, outcome)
}

#[test]
fn an_item_that_changed_since_its_first_part_was_stored_is_read_from_its_start() {
    let (place, first) = stopped_inside();
    assert!(place.places(&first).len() > 20, "its first part is stored");
    place.write("large0.txt", &format!("changed\n{}", token(5)));
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), [("large0.txt".to_owned(), 8)]);
}

/// As of a store without entity tags: nobody can say that it is the same.
#[test]
fn an_item_without_a_version_is_read_from_its_start() {
    let (place, first) = stopped_inside_of(Some(b""));
    let text = large(0);
    place.write("large0.txt", &text.replacen("some text\n", &format!("{}\n", token(5)), 1));
    let mut source = place.source();
    source.version = Some(b"");
    let second = place.scan(&source).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn an_item_that_is_gone_since_its_first_part_was_stored_is_forgotten() {
    let (place, _) = stopped_inside();
    std::fs::remove_file(place.tree.join("large0.txt")).unwrap();
    let second = place.scan(&place.source()).unwrap();
    assert_eq!(second.end, ScanEnd::Finished);
    assert_eq!(place.places(&second), []);
    let summary = place.summary(&second);
    assert_eq!((summary.items, summary.failed), (0, vec![]));
}

/// Each time it is begun anew something of it is committed, which is no progress.
#[test]
fn an_item_that_changes_and_kills_its_worker_each_time_is_parked() {
    let mut place = place(1);
    place.options = ScanOptions { threads: 1, max_shard_retries: 3, ..place.options };
    place.write("z.txt", &token(1));
    let mut lives = 0;
    let end = loop {
        lives += 1;
        assert!(lives < 20, "it goes on for ever");
        place.write("large0.txt", &format!("{lives:>lives$}\n{}", large(lives as u64)));
        let mut source = Watched::new(&place.tree);
        source.on_read = Some(Arc::new(|_, offset| {
            if offset > 2 << 20 {
                std::panic::resume_unwind(Box::new("part of the test"));
            }
        }));
        if let Ok(outcome) = place.scan(&source) {
            break outcome.end;
        }
    };
    assert_eq!(end, ScanEnd::Parked { shards: 1 });
    assert!(
        lives > place.options.max_shard_retries as usize,
        "changes alone are forgiven: {lives}"
    );
}

/// A scan that ends every night, and a log that grows every day. Once the log is closed, the next scans get
/// through it however short they are.
#[test]
fn an_item_that_changed_often_between_scans_that_were_stopped_is_gone_on_with() {
    let mut place = place(1);
    place.options = ScanOptions { threads: 1, max_shard_retries: 3, ..place.options };
    let stopped_behind = |place: &Place, read: u64| {
        let stop = Arc::new(AtomicBool::new(false));
        let mut source = Watched::new(&place.tree);
        let (flag, first) = (Arc::clone(&stop), AtomicU64::new(u64::MAX));
        source.on_read = Some(Arc::new(move |_, offset| {
            first.fetch_min(offset, Ordering::Relaxed);
            if offset > first.load(Ordering::Relaxed) + read {
                flag.store(true, Ordering::Relaxed);
            }
        }));
        place.scan_until(&source, &stop).unwrap().end
    };
    for night in 1..=5 {
        place.write("large0.txt", &format!("{night:>night$}\n{}", large(night as u64)));
        assert_eq!(stopped_behind(&place, 1 << 20), ScanEnd::Interrupted);
    }
    let nights = (1..20).find(|_| stopped_behind(&place, 1 << 20) == ScanEnd::Finished);
    assert!(nights.is_some_and(|nights| nights > 1), "{nights:?}");
}

/// Neither the time nor the bytes for a checkpoint have come: only the renewal can tell.
#[test]
fn a_worker_whose_renewal_is_refused_in_the_middle_of_an_item_reads_and_stores_no_more_of_it() {
    let mut place = place(1);
    place.options = ScanOptions {
        threads: 1,
        checkpoint_bytes: u64::MAX / 2,
        checkpoint_ms: u64::MAX / 2,
        lease_ms: 300,
        ..place.options
    };
    let place = Arc::new(place);
    let expected = place.undisturbed();
    let other = Arc::new(Mutex::new(None));
    let mut source = Watched::new(&place.tree);
    source.on_read = Some({
        let (place, other) = (Arc::clone(&place), Arc::clone(&other));
        Arc::new(move |_, offset| {
            let mut other = other.lock().unwrap();
            if offset > 1 << 20 && other.is_none() {
                // The lease runs out, and somebody else takes the shard to its end.
                std::thread::sleep(Duration::from_millis(400));
                *other = Some(place.scan(&place.source()).unwrap());
            }
        })
    });
    let outcome = place.scan(&source).unwrap();
    let other = other.lock().unwrap().expect("it was taken");
    assert_eq!((other.run, other.end), (outcome.run, ScanEnd::Finished));
    assert_eq!(outcome.end, ScanEnd::Finished);
    // Up to the read during which it was lost; the end is not there.
    let read = source.bytes_read.load(Ordering::Relaxed);
    assert!(read < 2 << 20, "{read}");
    assert_eq!(place.places(&outcome), expected);
    assert_eq!(place.summary(&outcome).findings as usize, expected.len());
}

/// The other worker has nothing to do, and helps.
#[test]
fn a_large_item_is_read_by_all_threads_and_found_in_as_by_one() {
    let mut place = Place::new();
    place.options.checkpoint_bytes = INTERVAL;
    let text: String = (0..6).map(large).collect();
    place.write("large.txt", &text);
    place.options.threads = 1;
    let expected = place.undisturbed();
    assert!(expected.len() > 300, "{}", expected.len());
    place.options.threads = 4;
    let threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
    let mut source = Watched::new(&place.tree);
    source.on_read = Some({
        let threads = Arc::clone(&threads);
        Arc::new(move |_, _| {
            threads.lock().unwrap().insert(std::thread::current().id());
            // Others get to have nothing to do.
            std::thread::sleep(Duration::from_millis(5));
        })
    });
    let outcome = place.scan(&source).unwrap();
    assert_eq!(place.places(&outcome), expected);
    let summary = place.summary(&outcome);
    assert_eq!((summary.items, summary.bytes), (1, text.len() as u64));
    assert_eq!(summary.findings as usize, expected.len());
    let threads = threads.lock().unwrap().len();
    assert!(threads > 2, "{threads} threads read");
    // Positions are counted through.
    let state = place.elsewhere();
    let stop = AtomicBool::new(false);
    place.options.threads = 1;
    let alone = place.scan_in(&state, &place.source(), &stop).unwrap();
    let alone = gossip_runtime::Reports::open(&state).unwrap().findings(alone.run).unwrap();
    let line = |found: &gossip_runtime::ReportedFinding| (found.line, found.column);
    assert!(place.findings(&outcome).iter().map(line).eq(alone.iter().map(line)));
}

#[test]
fn a_large_item_whose_readers_die_again_and_again_is_found_in_as_ever() {
    let mut place = Place::new();
    place.options = ScanOptions { threads: 3, checkpoint_bytes: INTERVAL, ..place.options };
    place.write("large.txt", &(0..4).map(large).collect::<String>());
    let expected = place.undisturbed();
    // Enough reads for the first of the parts that are read at once to be done.
    for (nth, panics) in [(26, true), (34, true), (30, false)] {
        std::fs::remove_dir_all(place.state.path()).unwrap();
        place.state = gossip_runtime::StateDir::open(place.state.path()).unwrap();
        let (outcome, lives) = scan_in_lives(&place, nth, panics);
        assert!(lives.len() > 2, "{lives:?}");
        assert_eq!(place.places(&outcome), expected);
        assert_eq!(place.summary(&outcome).findings as usize, expected.len());
    }
}

/// One thread of several hangs in a read for longer than a lease, so that nothing can be committed.
#[test]
fn a_lease_goes_on_while_threads_that_read_one_item_wait_for_the_source() {
    let mut place = Place::new();
    place.options =
        ScanOptions { threads: 3, checkpoint_bytes: INTERVAL, lease_ms: 1_500, ..place.options };
    place.write("large.txt", &(0..2).map(large).collect::<String>());
    let database = place.state.database_path();
    let holder = move || -> Option<i64> {
        let query = "SELECT owner FROM coord_shards WHERE owner IS NOT NULL";
        Connection::open(&database).unwrap().query_row(query, [], |row| row.get(0)).ok()
    };
    let (first, holders) = (OnceLock::new(), Arc::new(OnceLock::new()));
    let mut source = Watched::new(&place.tree);
    source.on_read = Some({
        let holders = Arc::clone(&holders);
        Arc::new(move |_, _| {
            let thread = std::thread::current().id();
            if *first.get_or_init(|| thread) != thread {
                holders.get_or_init(|| {
                    let before = holder();
                    std::thread::sleep(Duration::from_millis(2_000));
                    (before, holder())
                });
            }
            // Others get to have nothing to do.
            std::thread::sleep(Duration::from_millis(5));
        })
    });
    let outcome = place.scan(&source).unwrap();
    assert_eq!(outcome.end, ScanEnd::Finished);
    assert!(place.findings(&outcome).len() > 100);
    let (before, after) = *holders.get().expect("somebody helped");
    assert!(before.is_some() && before == after, "{before:?} had it, now {after:?}");
}

/// A thread that begins in the middle of a line cannot know the columns of what is in it.
#[test]
fn what_must_stand_in_the_same_columns_is_found_by_several_threads_as_by_one() {
    let mut place = Place::new();
    let rules = "[[rules]]\nid = \"beside\"\nregex = '''\\bbeside_[0-9]{4}\\b'''\nskipReport = true\n\
                 [[rules]]\nid = \"token\"\nregex = '''\\bacme_[a-z0-9]{24}\\b'''\n\
                 [[rules.required]]\nid = \"beside\"\nwithinColumns = 50\n";
    place.engine = Engine::new(RuleSet::from_toml("test.toml", rules).unwrap(), Options::default());
    place.options = ScanOptions { threads: 1, checkpoint_bytes: INTERVAL, ..place.options };
    // Each pair in columns of its own: the other of it stands three lines, and a segment, further on.
    let column = |pair: usize| 60_000 + 100 * pair;
    let mut text = String::new();
    for line in 0..60_usize {
        let start = text.len();
        if let Some(pair) = line.checked_sub(3) {
            text.extend(std::iter::repeat_n(' ', column(pair)));
            text += &token(pair as u64);
        }
        text.extend(std::iter::repeat_n(' ', start + column(line) - text.len()));
        text += &format!("beside_{line:04}{}\n", " ".repeat(30_000));
    }
    place.write("large.txt", &text);
    let expected = place.undisturbed();
    assert!(expected.len() > 40, "{}", expected.len());
    place.options.threads = 4;
    let mut source = Watched::new(&place.tree);
    // Others get to have nothing to do.
    source.on_read = Some(Arc::new(|_, _| std::thread::sleep(Duration::from_millis(5))));
    let outcome = place.scan(&source).unwrap();
    assert_eq!(place.places(&outcome), expected);
}

/// Each thread opens it for itself, and finds another version. It used to fail, and nothing was found in it.
#[test]
fn a_large_item_that_is_being_written_to_is_found_in_as_by_one_thread() {
    let mut place = Place::new();
    place.options = ScanOptions { threads: 1, checkpoint_bytes: INTERVAL, ..place.options };
    place.write("large.txt", &(0..6).map(large).collect::<String>());
    let expected = place.undisturbed();
    for replaced in [false, true] {
        place.options = ScanOptions { threads: 4, fresh: true, ..place.options };
        let path = place.tree.join("large.txt");
        let mut source = Watched::new(&place.tree);
        source.on_read = Some(Arc::new(move |_, offset| {
            if offset > 0 && replaced {
                std::fs::remove_file(&path).ok();
            } else if offset > 0 {
                use std::io::Write;
                let mut log = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
                log.write_all(b"one more line\n").unwrap();
            }
            // Others get to have nothing to do.
            std::thread::sleep(Duration::from_millis(5));
        }));
        let outcome = place.scan(&source).unwrap();
        assert!(place.summary(&outcome).failed.is_empty(), "{:?}", place.summary(&outcome));
        assert_eq!(place.places(&outcome), expected, "replaced: {replaced}");
    }
}
