//! What is read again, and what is reported without being read.

use std::fs;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

use gossip_engine::{Engine, Options, RuleSet};
use gossip_runtime::{ReportError, Reports, ScanEnd};

use crate::support::{Place, Watched, content, engine, file_name, token};

#[test]
fn planted_tokens_are_found_where_they_are_and_not_kept() {
    let place = Place::with_files(30);
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.end, outcome.resumed), (ScanEnd::Finished, false));
    let mut expected: Vec<_> = (0..30).step_by(3).map(|number| (file_name(number), 206)).collect();
    expected.sort();
    assert_eq!(place.places(&outcome), expected);
    let findings = place.findings(&outcome);
    assert!(findings.iter().all(|found| found.redacted == "acme_… (29 bytes)"), "{findings:?}");
    assert!(findings.iter().all(|found| (found.line, found.column, found.length) == (21, 7, 29)));
    let summary = place.summary(&outcome);
    assert_eq!((summary.items, summary.findings), (30, 10));
    assert!(summary.failed.is_empty() && summary.skipped.is_empty());
}

#[test]
fn an_unchanged_tree_is_not_read_again_and_its_findings_still_count() {
    let place = Place::with_files(30);
    let first = place.scan(&place.source()).unwrap();
    let before = (place.findings(&first), place.summary(&first));
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_ne!(first.run, second.run);
    assert_eq!(source.keys_read(), Vec::<String>::new());
    assert_eq!(place.findings(&second), before.0);
    // The first run's items are the second's now; its numbers are still its own.
    assert_eq!(place.summary(&first), before.1);
    assert_eq!(place.summary(&second).items, 30);
    match Reports::open(&place.state).unwrap().findings(first.run) {
        Err(ReportError::Superseded { by, .. }) => assert_eq!(by, second.run),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_changed_file_is_read_again_and_its_old_findings_are_gone() {
    let place = Place::with_files(12);
    place.scan(&place.source()).unwrap();
    place.write(&file_name(3), &format!("{} and {}\n", token(100), token(101)));
    place.write(&file_name(6), "nothing any more\n");
    let source = place.source();
    let outcome = place.scan(&source).unwrap();
    assert_eq!(source.keys_read(), [file_name(6), file_name(3)]);
    let places = place.places(&outcome);
    let of = |number| places.iter().filter(|(key, _)| *key == file_name(number)).count();
    assert_eq!((of(0), of(3), of(6), of(9)), (1, 2, 0, 1));
    assert_eq!(places, place.undisturbed());
}

#[test]
fn a_deleted_file_is_not_reported() {
    let place = Place::with_files(12);
    place.scan(&place.source()).unwrap();
    fs::remove_file(place.tree.join(file_name(3))).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(place.summary(&outcome).items, 11);
    assert_eq!(place.places(&outcome), place.undisturbed());
}

#[test]
fn a_file_modified_a_moment_before_it_was_read_is_not_trusted() {
    let place = Place::with_files(4);
    let read = || {
        let mut source = Watched::new(&place.tree);
        source.all_settled = false;
        place.scan(&source).unwrap();
        source.keys_read().len()
    };
    assert_eq!(read(), 4);
    assert_eq!(read(), 4, "it could have changed without a trace");
    sleep(Duration::from_millis(2_200));
    assert_eq!(read(), 4, "what was read too early is read again");
    assert_eq!(read(), 0);
}

#[test]
fn another_policy_reads_everything_again_and_leaves_the_first_alone() {
    let mut place = Place::with_files(12);
    let first = place.scan(&place.source()).unwrap();
    let before = place.findings(&first);
    place.engine = engine("another-id");
    let source = place.source();
    let second = place.scan(&source).unwrap();
    assert_eq!(source.keys_read().len(), 12);
    assert!(place.findings(&second).iter().all(|found| found.rule == "another-id"));
    assert_eq!(place.findings(&first), before);
}

#[test]
fn names_that_are_not_utf8_and_empty_trees_are_scanned() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!((outcome.end, place.summary(&outcome).items), (ScanEnd::Finished, 0));
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(place.tree.join(name), content(0)).unwrap();
    let outcome = place.scan(&place.source()).unwrap();
    assert_eq!(place.findings(&outcome)[0].key, b"caf\xe9.txt");
}

/// Read in vain, it could not be gone on with in its middle either.
#[test]
fn what_the_rules_allow_by_its_path_is_not_read() {
    let mut place = Place::with_files(3);
    let rules = "[[rules]]\nid = \"acme-token\"\nregex = '''\\bacme_[a-z0-9]{24}\\b'''\n\
                 [[allowlists]]\npaths = ['''\\.big$''']\n";
    place.engine = Engine::new(RuleSet::from_toml("test.toml", rules).unwrap(), Options::default());
    place.write("one.big", &content(0).repeat(10_000));
    let source = place.source();
    let outcome = place.scan(&source).unwrap();
    let summary = place.summary(&outcome);
    assert_eq!(summary.skipped, [("allowed path".to_owned(), 1)]);
    assert_eq!((summary.items, summary.findings), (4, 1));
    assert!(source.bytes_read.load(Ordering::Relaxed) < 10_000);
}

#[test]
fn the_newest_run_and_what_the_last_one_covered_are_known() {
    let place = Place::with_files(6);
    let reports = || Reports::open(&place.state).unwrap();
    assert_eq!(reports().newest().unwrap(), None);
    assert_eq!(reports().last_bytes(b"the tree").unwrap(), None);
    place.scan(&place.source()).unwrap();
    fs::remove_file(place.tree.join(file_name(0))).unwrap();
    let second = place.scan(&place.source()).unwrap();
    assert_eq!(reports().newest().unwrap(), Some(second.run));
    let bytes = place.summary(&second).bytes;
    assert!(bytes > 0);
    assert_eq!(reports().last_bytes(b"the tree").unwrap(), Some(bytes));
    assert_eq!(reports().last_bytes(b"another").unwrap(), None);
}
