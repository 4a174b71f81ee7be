//! The ledger, and with it runs, findings and totals: one transaction touches them all.

use gossip_contracts::identity::{
    FindingId, OccurrenceId, PolicyHash, RuleFingerprint, SecretHash,
};

use super::*;
use crate::runs::{RunEnd, cancel_run, finish_run, join_run, open_run, scope};
use crate::schema::SCHEMA;
use crate::totals::Totals;

fn database() -> rusqlite::Connection {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    SCHEMA.steps.iter().for_each(|step| database.execute_batch(step).unwrap());
    database
}

fn row(key: &str, occurrences: usize) -> ItemRow {
    let occurrence = |number| OccurrenceRow {
        occurrence: OccurrenceId::from_bytes([number as u8 + 1; 32]),
        finding: FindingId::from_bytes([9; 32]),
        path: None,
        inner: None,
        secret: SecretHash::from_bytes([9; 32]),
        rule: "r".to_owned(),
        fingerprint: RuleFingerprint::from_bytes([9; 32]),
        description: "d".to_owned(),
        severity: "high".to_owned(),
        confidence: "high".to_owned(),
        reason: "format",
        redacted: "…".to_owned(),
        start: 1,
        length: 2,
        line: 3,
        column: 4,
        end_line: 3,
        end_column: 6,
        before: "a = ".to_owned(),
        after: ";".to_owned(),
        silenced: None,
        provenance: None,
    };
    ItemRow {
        unread: None,
        key: key.as_bytes().to_vec(),
        path: None,
        version: b"v".to_vec(),
        is_settled: true,
        bytes: 10,
        skipped: None,
        failed: None,
        provenance: None,
        inside: Reasons::default(),
        occurrences: (0..occurrences).map(occurrence).collect(),
        keeps_found: false,
    }
}

fn count(tx: &Transaction<'_>, table: &str) -> i64 {
    tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn what_a_finished_run_did_not_meet_is_forgotten_in_its_scope_alone() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let open = |target: &[u8]| {
        let scope = scope(&tx, target, policy).unwrap();
        let (run, _) = open_run(&tx, target, policy, 5, false).unwrap();
        (scope, run)
    };
    let (other_scope, other_run) = open(b"other");
    row("gone", 1).put(&tx, other_scope, other_run).unwrap();
    let (scope, first) = open(b"target");
    row("gone", 2).put(&tx, scope, first).unwrap();
    row("there", 1).put(&tx, scope, first).unwrap();
    finish_run(&tx, first, 6, &[]).unwrap();
    assert_eq!((count(&tx, "scan_ledger"), count(&tx, "scan_occurrences")), (3, 4));

    let (_, second) = open(b"target");
    keep_item(&tx, scope, b"there", second).unwrap();
    finish_run(&tx, second, 7, &[]).unwrap();
    assert_eq!((count(&tx, "scan_ledger"), count(&tx, "scan_occurrences")), (2, 2));
    assert_eq!(Totals::kept(&tx, first).unwrap().findings, 3);
    assert_eq!(Totals::kept(&tx, second).unwrap().findings, 1);
    assert_eq!(Totals::count(&tx, other_run).unwrap().findings, 1);
}

/// Who finds the end written down must not forget: another run may have begun since.
#[test]
fn only_who_writes_the_end_down_forgets_what_was_not_met() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let open = || open_run(&tx, b"target", policy, 5, false).unwrap().0;
    let scope = scope(&tx, b"target", policy).unwrap();
    let rows = || tx.query_row("SELECT count(*) FROM scan_ledger", [], |row| row.get(0));
    let first = open();
    row("k", 0).put(&tx, scope, first).unwrap();
    assert!(join_run(&tx, first).unwrap());
    finish_run(&tx, first, 6, &[]).unwrap();
    assert!(!join_run(&tx, first).unwrap(), "nobody joins a run that has ended");
    let second = open();
    assert_eq!(cancel_run(&tx, second, 7).unwrap(), RunEnd::Cancelled);
    finish_run(&tx, second, 8, &[]).unwrap();
    assert_eq!(rows(), Ok(1_i64));
    finish_run(&tx, open(), 9, &[]).unwrap();
    assert_eq!(rows(), Ok(0));
}

#[test]
fn what_a_page_passes_over_is_what_lies_between_its_entries_and_no_further() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let other = scope(&tx, b"other", policy).unwrap();
    let scope = scope(&tx, b"target", policy).unwrap();
    for (scope, keys) in [(scope, "abcdefgh"), (other, "ceg")] {
        for key in keys.bytes() {
            let sql = "INSERT INTO scan_ledger(scope, key, version, bytes, run, more_paths)
                       VALUES (?1, ?2, x'00', 0, 1, 0)";
            tx.execute(sql, (scope.0, [key])).unwrap();
        }
    }
    let unlisted = |after: &str, keys: &str, is_last| {
        let mut page = Page::new();
        for key in keys.bytes() {
            page.push(PageEntry { key: &[key], version: b"", size: 0, skip: None });
        }
        page.finish(is_last, None);
        let keys = find_unlisted(&tx, scope, after.as_bytes(), &page, b"~").unwrap();
        String::from_utf8(keys.concat()).unwrap()
    };
    assert_eq!(unlisted("\0", "bd", false), "ac");
    assert_eq!(unlisted("d", "fg", false), "e");
    assert_eq!(unlisted("d", "fz", true), "egh");
    assert_eq!(unlisted("d", "efgh", true), "");
    assert_eq!(unlisted("b", "", true), "cdefgh");
    assert_eq!(unlisted("b", "", false), "");
    forget_item(&tx, scope, b"e").unwrap();
    assert_eq!(unlisted("d", "", true), "fgh");
}

/// D9. What it found would otherwise be forgotten when the newer run finishes.
#[test]
fn an_item_of_a_newer_run_does_not_go_back_to_an_older_one() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let scope = scope(&tx, b"target", policy).unwrap();
    let open = || open_run(&tx, b"target", policy, 5, false).unwrap().0;
    let first = open();
    cancel_run(&tx, first, 6).unwrap();
    let second = open();
    row("item", 2).put(&tx, scope, second).unwrap();
    let refused = |written| matches!(written, Err(Unwritten::Superseded));
    assert!(refused(keep_item(&tx, scope, b"item", first)));
    assert!(refused(row("item", 0).put(&tx, scope, first)));
    assert!(refused(row("item", 0).put_partial(&tx, scope, first, 1)));
    assert!(refused(runs::check_open(&tx, first)));
    finish_run(&tx, second, 7, &[]).unwrap();
    assert_eq!((count(&tx, "scan_ledger"), count(&tx, "scan_occurrences")), (1, 2));
    assert_eq!(cancel_run(&tx, second, 8).unwrap(), RunEnd::Finished);
}

/// D2. It would otherwise be taken for gone.
#[test]
fn what_is_below_a_directory_that_cannot_be_listed_still_counts() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let scope = scope(&tx, b"target", policy).unwrap();
    let open = || open_run(&tx, b"target", policy, 5, false).unwrap().0;
    let first = open();
    for key in ["dir-a", "dir/a", "dir/b/c", "dirs/a"] {
        row(key, 1).put(&tx, scope, first).unwrap();
    }
    finish_run(&tx, first, 6, &[]).unwrap();
    let second = open();
    let mut dir = ItemRow::new(b"dir");
    dir.failed = Some(Reason::PermissionDenied);
    dir.put(&tx, scope, second).unwrap();
    finish_run(&tx, second, 7, &[]).unwrap();
    let mut keys = Vec::new();
    let Ok(()) = each_item_since(&tx, second, |item| {
        keys.push(String::from_utf8(item.key).unwrap());
        Ok::<_, std::convert::Infallible>(())
    })
    .unwrap();
    assert_eq!(keys, ["dir", "dir/a", "dir/b/c"]);
    assert_eq!(Totals::kept(&tx, second).unwrap().findings, 2);
}

/// N2. A run with two of them could neither finish nor be called off.
#[test]
fn a_run_ends_however_large_its_items_say_they_are() {
    let mut database = database();
    let tx = database.transaction().unwrap();
    let policy = PolicyHash::from_bytes([1; 32]);
    let scope = scope(&tx, b"target", policy).unwrap();
    let open = || open_run(&tx, b"target", policy, 5, false).unwrap().0;
    let write = |run, sizes: [u64; 3]| {
        for (key, bytes) in ["a", "b", "c"].into_iter().zip(sizes) {
            ItemRow { bytes, ..row(key, 0) }.put(&tx, scope, run).unwrap();
        }
    };
    let first = open();
    write(first, [5 << 60, 5 << 60, u64::MAX]);
    finish_run(&tx, first, 6, &[]).unwrap();
    let kept = Totals::kept(&tx, first).unwrap();
    assert_eq!((kept.items, kept.bytes), (3, i64::MAX as u64));
    let second = open();
    write(second, [5 << 60, 7, (1 << 32) - 1]);
    assert_eq!(cancel_run(&tx, second, 7).unwrap(), RunEnd::Cancelled);
    assert_eq!(Totals::kept(&tx, second).unwrap().bytes, (5 << 60) + 7 + (1 << 32) - 1);
    let mut counts = crate::totals::Counts::default();
    for _ in 0..3 {
        counts.add_item(u64::MAX, None, &Reasons::default());
        counts.add(&counts.clone());
    }
    let covered = Totals::of(&tx, open(), &counts).unwrap();
    assert_eq!((covered.items, covered.bytes), (14, u64::MAX));
}
