//! Secrets inside archives, and scans that are broken off in the middle of one.

use std::fs;
use std::io::{Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gossip_runtime::{Reports, RunSummary, ScanEnd};

use crate::support::{Place, Watched, content, places, token};

/// Nothing is made smaller, so that reads of an archive are as many as those of what is in it.
fn zip_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    let options = options.compression_method(zip::CompressionMethod::Stored);
    for (name, content) in files {
        zip.start_file(name.as_str(), options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn tar_gz_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    let mut tar = tar::Builder::new(gz);
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn small(files: u64) -> Vec<(String, Vec<u8>)> {
    (0..files).map(|number| (format!("in/{number}.env"), content(number).into_bytes())).collect()
}

fn write(place: &Place, name: &str, bytes: &[u8]) {
    fs::write(place.tree.join(name), bytes).unwrap();
}

#[test]
fn what_is_in_archives_is_found_under_its_path_inside() {
    let place = Place::new();
    place.write("plain.env", &content(0));
    write(&place, "a.zip", &zip_of(&small(4)));
    let jar = vec![("lib/b.jar".to_owned(), zip_of(&small(1)))];
    write(&place, "c.tar.gz", &tar_gz_of(&jar));
    let outcome = place.scan(&place.source()).unwrap();
    let mut shown: Vec<_> = place
        .findings(&outcome)
        .iter()
        .map(|found| (String::from_utf8(found.path.clone()).unwrap(), found.line, found.is_inside))
        .collect();
    shown.sort();
    let expected = [
        ("a.zip!in/0.env", 21, true),
        ("a.zip!in/3.env", 21, true),
        ("c.tar.gz!lib/b.jar!in/0.env", 21, true),
        ("plain.env", 21, false),
    ];
    assert_eq!(shown, expected.map(|(path, line, inside)| (path.to_owned(), line, inside)));
    // The same secret in three files is three findings.
    let mut ids: Vec<_> = place.findings(&outcome).iter().map(|f| f.finding.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    let summary = place.summary(&outcome);
    assert_eq!((summary.items, summary.findings), (3, 4));
    assert!(summary.skipped.is_empty() && summary.failed.is_empty(), "{summary:?}");
}

#[test]
fn rules_see_archives_as_directories() {
    let mut place = Place::new();
    let rules = "[[rules]]\nid = \"acme-token\"\nregex = '''\\bacme_[a-z0-9]{24}\\b'''\n\
                 [[rules]]\nid = \"key-store\"\npath = '''(^|/)in/2\\.env$'''\n\
                 [[allowlists]]\npaths = ['''(^|/)in/0\\.env$''']\n";
    let rules = gossip_engine::RuleSet::from_toml("test.toml", rules).unwrap();
    place.engine = gossip_engine::Engine::new(rules, gossip_engine::Options::default());
    write(&place, "a.zip", &zip_of(&small(4)));
    let outcome = place.scan(&place.source()).unwrap();
    let found: Vec<_> = place.findings(&outcome);
    let found: Vec<_> = found.iter().map(|f| (f.rule.as_str(), f.path.as_slice())).collect();
    assert_eq!(
        found,
        [("key-store", &b"a.zip!in/2.env"[..]), ("acme-token", &b"a.zip!in/3.env"[..])]
    );
    assert_eq!(place.summary(&outcome).skipped, [("allowed path".to_owned(), 1)]);
}

/// Not scanned inside, by reason, in a later run that does not read it again as well.
#[test]
fn what_is_not_scanned_inside_is_counted_in_every_run() {
    let place = Place::new();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\r".to_vec();
    let mut files = small(4);
    files.insert(1, ("one.png".to_owned(), png.clone()));
    files.push(("two.png".to_owned(), png));
    write(&place, "a.zip", &zip_of(&files));
    let whole = tar_gz_of(&small(2));
    write(&place, "cut.tar.gz", &whole[..whole.len() / 2]);
    let first = place.scan(&place.source()).unwrap();
    let check = |summary: &RunSummary| {
        assert_eq!(summary.skipped, [("binary: image".to_owned(), 2)]);
        assert_eq!(summary.failed, [("damaged archive".to_owned(), 1)]);
        assert_eq!((summary.items, summary.findings >= 2), (2, true));
    };
    check(&place.summary(&first));
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_eq!(source.keys_read(), ["cut.tar.gz"], "what was damaged is tried again");
    check(&place.summary(&second));
    write(&place, "cut.tar.gz", &whole);
    let third = place.scan(&place.source()).unwrap();
    assert!(place.summary(&third).failed.is_empty());
    assert_eq!(place.places(&third), place.undisturbed());
}

/// Two archives of several checkpoints each, with large files and a broken archive inside, and images
/// between.
fn place_with_archives() -> Place {
    let mut place = Place::new();
    place.options.threads = 1;
    place.options.checkpoint_bytes = 1 << 20;
    // Lives that end before they are where the last one was are tries without progress.
    place.options.max_shard_retries = 100_000;
    let mut files = Vec::new();
    for number in 0..6_u64 {
        let mut text = String::new();
        let size = if number % 3 == 1 { 2_500_000 } else { 200_000 };
        while text.len() < size {
            text.push_str(&"some text\n".repeat(6_000));
            text.push_str(&format!("key = {}\n", token(number * 1_000 + text.len() as u64)));
        }
        files.push((format!("{number}.log"), text.into_bytes()));
        files.push((format!("{number}.png"), b"\x89PNG\r\n\x1a\n\0\0\0\r".to_vec()));
    }
    let cut = |bytes: Vec<u8>| bytes[..bytes.len() * 2 / 3].to_vec();
    files.insert(1, ("cut.tar.gz".to_owned(), cut(tar_gz_of(&files[..2]))));
    write(&place, "a.zip", &zip_of(&files));
    files.remove(1);
    let nested = vec![
        ("first.env".to_owned(), content(0).into_bytes()),
        ("cut.tar.gz".to_owned(), cut(tar_gz_of(&files[..2]))),
        ("in.zip".to_owned(), zip_of(&files[..4])),
        ("last.env".to_owned(), content(3).into_bytes()),
    ];
    write(&place, "b.tar.gz", &tar_gz_of(&nested));
    place.write("c.env", &content(6));
    place
}

/// Stopped, or dead, at each `nth` read.
#[test]
fn a_scan_broken_off_inside_archives_finds_what_an_undisturbed_one_finds() {
    let place = place_with_archives();
    let expected = place.undisturbed();
    let numbers = place.summary_elsewhere();
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(numbers.skipped, [("binary: image".to_owned(), 8)]);
    assert_eq!(numbers.failed, [("damaged archive".to_owned(), 2)]);
    for (nth, panics) in [(5, false), (7, true), (20, true)] {
        let state = place.elsewhere();
        let mut lives = 0;
        let outcome = loop {
            lives += 1;
            assert!(lives < 300, "no progress");
            let stop = Arc::new(AtomicBool::new(false));
            let (flag, reads) = (Arc::clone(&stop), AtomicU64::new(0));
            let mut source = Watched::new(&place.tree);
            // A life that only repeats gets a little further than the one before.
            let nth = nth + 8 * lives;
            source.on_read = Some(Arc::new(move |_, _| {
                if reads.fetch_add(1, Ordering::Relaxed) + 1 == nth {
                    if panics {
                        std::panic::resume_unwind(Box::new("part of the test"));
                    }
                    flag.store(true, Ordering::Relaxed);
                }
            }));
            // A second look is taken by this thread.
            let scan = AssertUnwindSafe(|| place.scan_in(&state, &source, &stop));
            match catch_unwind(scan) {
                Ok(Ok(outcome)) if outcome.end == ScanEnd::Finished => break outcome,
                Ok(Ok(outcome)) => assert_eq!(outcome.end, ScanEnd::Interrupted),
                Ok(Err(error)) => assert!(panics, "{error}"),
                Err(_) => assert!(panics, "only a test's own"),
            }
        };
        assert!(lives > 2, "{lives} lives");
        let reports = Reports::open(&state).unwrap();
        assert_eq!(places(&reports.findings(outcome.run).unwrap()), expected, "at each {nth}");
        let summary = reports.run(outcome.run).unwrap();
        assert_eq!(
            (summary.items, summary.bytes, summary.skipped, summary.failed),
            (numbers.items, numbers.bytes, numbers.skipped.clone(), numbers.failed.clone())
        );
    }
}

/// Inflating is repeated, what was committed is not scanned again.
#[test]
fn a_stop_inside_an_archive_is_gone_on_with_there() {
    let mut place = place_with_archives();
    fs::remove_file(place.tree.join("b.tar.gz")).unwrap();
    place.options.checkpoint_bytes = u64::MAX / 2;
    let whole = place.undisturbed();
    let stop = Arc::new(AtomicBool::new(false));
    let (flag, reads) = (Arc::clone(&stop), AtomicU64::new(0));
    let mut source = Watched::new(&place.tree);
    source.on_read = Some(Arc::new(move |_, _| {
        if reads.fetch_add(1, Ordering::Relaxed) == 20 {
            flag.store(true, Ordering::Relaxed);
        }
    }));
    let first = place.scan_until(&source, &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    let committed = place.places(&first).len();
    assert!(committed > 0 && committed < whole.len(), "{committed} of {}", whole.len());
    let open = place.summary(&first);
    assert_eq!((open.items, open.bytes), (0, 0), "only whole items count");
    let second = place.scan(&place.source()).unwrap();
    assert_eq!((second.run, second.end), (first.run, ScanEnd::Finished));
    assert_eq!(place.places(&second), whole);
}

/// A read that fails in passing says nothing about the file that it was to be of: nothing is committed
/// after it, neither by the checkpoint that is due nor by the one that a stop forces.
#[test]
fn a_read_that_fails_inside_an_archive_and_then_an_end_lose_nothing() {
    for panics in [false, true] {
        let mut place = Place::new();
        place.options.threads = 1;
        place.options.checkpoint_bytes = 1;
        let files: Vec<_> = (0..5_u64)
            .map(|number| {
                let text = format!("{}key = {}\n", "some text\n".repeat(30_000), token(number));
                (format!("{number}.log"), text.into_bytes())
            })
            .collect();
        let zip = zip_of(&files);
        write(&place, "a.zip", &zip);
        let expected = place.undisturbed();
        assert_eq!(expected.len(), 5);
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, has_failed) = (Arc::clone(&stop), AtomicBool::new(false));
        let mut source = place.source();
        source.fails_read = Some(Arc::new(move |offset| {
            if has_failed.load(Ordering::Relaxed) {
                if panics {
                    std::panic::resume_unwind(Box::new("part of the test"));
                }
                return false;
            }
            let fails = (650_000..900_000).contains(&offset);
            if fails {
                has_failed.store(true, Ordering::Relaxed);
                flag.store(!panics, Ordering::Relaxed);
            }
            fails
        }));
        match place.scan_until(&source, &stop) {
            Ok(outcome) => assert_eq!((outcome.end, panics), (ScanEnd::Interrupted, false)),
            Err(error) => assert!(panics, "{error}"),
        }
        let source = place.source();
        let outcome = place.scan(&source).unwrap();
        assert_eq!((outcome.resumed, outcome.end), (true, ScanEnd::Finished));
        assert_eq!(place.places(&outcome), expected);
        assert_eq!(place.summary(&outcome).failed, []);
        // What fails is looked at a second time: here nothing did.
        let read = source.bytes_read.load(Ordering::Relaxed);
        assert!(read < zip.len() as u64 * 3 / 2, "{read} bytes");
    }
}

/// A version may not tell: the clock of a file system ticks slowly, and some sources have none.
#[test]
fn an_archive_that_is_none_any_more_leaves_nothing_behind() {
    let mut place = Place::new();
    place.options.threads = 1;
    place.options.checkpoint_bytes = 1;
    let text = format!("{}key = {}\n", "some text\n".repeat(30_000), token(7)).into_bytes();
    let files: Vec<_> = (0..9).map(|number| (format!("{number}.log"), text.clone())).collect();
    write(&place, "a", &zip_of(&files));
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let mut source = place.source();
    source.version = Some(b"v");
    source.on_read = Some(Arc::new(move |_, offset| {
        if (1_000_000..2_000_000).contains(&offset) {
            flag.store(true, Ordering::Relaxed);
        }
    }));
    let first = place.scan_until(&source, &stop).unwrap();
    assert_eq!(first.end, ScanEnd::Interrupted);
    assert!(!place.places(&first).is_empty());
    write(&place, "a", &text);
    let mut source = place.source();
    source.version = Some(b"v");
    let second = place.scan(&source).unwrap();
    assert_eq!((second.resumed, second.end), (true, ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
}

#[test]
fn an_archive_is_known_for_one_from_reads_that_give_few_bytes() {
    let place = Place::new();
    let mut tar = tar::Builder::new(Vec::new());
    let text = content(0);
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    tar.append_data(&mut header, "in.env", text.as_bytes()).unwrap();
    write(&place, "a.tar", &tar.into_inner().unwrap());
    let mut source = place.source();
    source.read_max = 100;
    let outcome = place.scan(&source).unwrap();
    assert_eq!(place.places(&outcome), place.undisturbed());
    assert_eq!(place.places(&outcome).len(), 1);
}
