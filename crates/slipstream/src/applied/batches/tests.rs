use std::time::Duration;

use super::*;
use crate::applied::BatchConfig;
use crate::kv::{KvEntry, Retention, VersionToken, WatchScope};
use crate::protocol::Position;

const CONFIG: BatchConfig =
    BatchConfig { window: Duration::ZERO, max: 2, max_bytes: 1000, channel_capacity: 2 };

fn cursor(revision: u64) -> LogCursor {
    LogCursor::new(Position::at(1, revision), &WatchScope::All)
}

fn batches(position: u64) -> Batches {
    Batches::resumed(&log(1, position), &cursor(position))
}

fn deleted(revision: u64) -> KvUpdate {
    KvUpdate::Delete { key: "k".into(), version: VersionToken::from_u64(revision) }
}

/// Gathers and closes one batch.
fn gather(batches: &mut Batches, revisions: &[u64]) {
    let mut open = OpenBatch::new(CONFIG);
    open.room().0.extend(revisions.iter().copied().map(deleted));
    open.gathered(revisions.len(), 1, 0);
    batches.add(open.close(|| cursor(revisions[revisions.len() - 1])).unwrap());
}

fn ready(batches: &mut Batches) -> Vec<u64> {
    let batches = std::iter::from_fn(|| batches.next_ready());
    batches.map(|batch| batch.cursor.position.revision).collect()
}

fn log(first: u64, last: u64) -> LogInfo {
    let retention = Retention::default();
    LogInfo { incarnation: 1, first, last, retention, subjects: 0, read_at_ms: 0 }
}

#[test]
fn batches_without_gaps_wait_for_nothing() {
    let mut batches = batches(4);
    gather(&mut batches, &[5, 6]);
    gather(&mut batches, &[7]);
    assert!(!batches.ask());
    assert_eq!(ready(&mut batches), [6, 7]);
}

#[test]
fn a_batch_with_a_gap_holds_up_those_after_it_until_the_floor_is_read() {
    let mut batches = batches(4);
    gather(&mut batches, &[5, 7]);
    gather(&mut batches, &[8]);
    assert!(ready(&mut batches).is_empty());
    assert!(batches.ask() && !batches.ask(), "one reading at a time");
    assert_eq!(batches.on_floor(&log(6, 9)), Ok(()));
    assert_eq!(ready(&mut batches), [7, 8]);
}

/// A reading that began before a batch was received says nothing about it.
#[test]
fn a_reading_serves_only_what_was_there_when_it_began() {
    let mut batches = batches(4);
    gather(&mut batches, &[6]);
    assert!(batches.ask());
    gather(&mut batches, &[7, 9]);
    assert_eq!(batches.on_floor(&log(1, 9)), Ok(()));
    assert_eq!(ready(&mut batches), [6]);
    assert!(batches.ask());
    let below = CursorExpiry::BelowFloor { revision: 7, first: 9 };
    assert_eq!(batches.on_floor(&log(9, 9)), Err(below));
    assert!(ready(&mut batches).is_empty());
}

#[test]
fn the_floor_is_compared_with_the_first_gap_of_all_that_wait() {
    let mut batches = batches(4);
    gather(&mut batches, &[5, 7]);
    gather(&mut batches, &[20]);
    assert!(batches.ask());
    assert_eq!(batches.before_gap().revision, 5);
    let below = CursorExpiry::BelowFloor { revision: 5, first: 7 };
    assert_eq!(batches.on_floor(&log(7, 20)), Err(below));
}

#[test]
fn in_a_resync_nothing_waits_for_the_floor() {
    let mut batches = batches(4);
    gather(&mut batches, &[9]);
    assert!(batches.ask() && ready(&mut batches).is_empty());
    batches.unguard();
    gather(&mut batches, &[20, 30]);
    assert_eq!(ready(&mut batches), [9, 30]);
    assert_eq!(batches.on_floor(&log(30, 30)), Ok(()), "an answer that comes late");
    batches.guard_from(25, 0);
    gather(&mut batches, &[31]);
    assert!(ready(&mut batches).is_empty() && batches.ask(), "26 to 30 were not looked at");
}

#[test]
fn a_gap_that_does_not_matter_is_passed() {
    let mut batches = batches(4);
    gather(&mut batches, &[9]);
    assert!(batches.ask());
    assert!(batches.on_floor(&log(9, 9)).is_err());
    batches.pass_gap(8, &log(9, 9));
    assert_eq!(ready(&mut batches), [9]);
}

#[test]
fn a_cursor_says_what_is_known_of_the_log() {
    let mut batches = batches(4);
    gather(&mut batches, &[7]);
    assert!(batches.ask());
    assert_eq!(batches.on_floor(&log(1, 12)), Ok(()));
    batches.known.subjects = 3;
    batches.known.evicted = true;
    let cursor = batches.next_ready().unwrap().cursor;
    assert_eq!(cursor.position, Position { end: 12, subjects: 3, ..Position::at(1, 7) });
    assert!(cursor.evicted);
}

#[test]
fn a_gap_that_is_older_than_the_tombstones_of_expired_keys_is_not_passed() {
    let read = |read_at_ms| {
        let marker_ttl = Some(Duration::from_millis(800));
        let retention = Retention { marker_ttl, ..Retention::default() };
        LogInfo { retention, read_at_ms, ..log(1, 9) }
    };
    let mut batches = batches(1);
    let gather = |batches: &mut Batches, revision, stored_at_ms: u64| {
        let mut open = OpenBatch::new(CONFIG);
        open.room().0.push(deleted(revision));
        open.gathered(1, stored_at_ms * 1_000_000, 0);
        batches.add(open.close(|| cursor(revision)).unwrap());
    };
    gather(&mut batches, 2, 1000);
    gather(&mut batches, 4, 1100);
    assert!(batches.ask());
    assert_eq!(batches.on_floor(&read(1699)), Ok(()));
    gather(&mut batches, 6, 1200);
    assert!(batches.ask());
    assert_eq!(batches.on_floor(&read(1800)), Err(CursorExpiry::TombstonesExpired), "since 1100");
    assert!(!batches.has_all_tombstones(&read(1900)) && batches.has_all_tombstones(&read(1899)));
}

#[test]
fn passing_needs_the_floor_unless_it_was_read() {
    let mut batches = batches(4);
    batches.pass(cursor(9), true, false);
    assert_eq!(ready(&mut batches), [9]);
    batches.pass(cursor(9), true, false);
    assert!(ready(&mut batches).is_empty(), "nothing has moved");
    batches.pass(cursor(11), false, true);
    assert!(ready(&mut batches).is_empty() && batches.ask());
    assert_eq!(batches.on_floor(&log(10, 11)), Ok(()));
    assert_eq!(ready(&mut batches), [11]);
}

#[test]
fn a_batch_is_full_at_a_number_of_updates_or_bytes() {
    let put = |revision, len| {
        let (key, version) = ("k".into(), VersionToken::from_u64(revision));
        KvUpdate::Put(KvEntry { key, value: vec![0; len].into(), version })
    };
    let mut open = OpenBatch::new(CONFIG);
    open.room().0.push(put(1, 998));
    assert!(!open.gathered(1, 1, 0));
    open.room().0.push(put(2, 1));
    assert!(open.gathered(1, 1, 0), "two updates");
    assert_eq!(open.close(|| cursor(2)).unwrap().updates.len(), 2);
    assert!(open.is_empty() && open.close(|| cursor(2)).is_none());
    open.room().0.push(put(3, 999));
    assert!(open.gathered(1, 1, 0), "1000 bytes");
}

#[test]
fn reading_ahead_ends_at_a_number_of_batches() {
    let mut batches = batches(0);
    for at in 1..READ_AHEAD_BATCHES as u64 {
        gather(&mut batches, &[at * 10]);
    }
    assert!(batches.has_room());
    gather(&mut batches, &[READ_AHEAD_BATCHES as u64 * 10]);
    assert!(!batches.has_room());
}
