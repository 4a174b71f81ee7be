use super::*;
use crate::kv::Retention;

const LOG: LogInfo = log(1, 1, 9);
const AT: Position = Position::at(1, 5);

const fn log(incarnation: u64, first: u64, last: u64) -> LogInfo {
    let retention = Retention {
        max_age: None,
        max_bytes: None,
        max_messages: None,
        discards_oldest: false,
        per_message_ttl: false,
        marker_ttl: None,
    };
    LogInfo { incarnation, first, last, retention, subjects: 0, read_at_ms: 0 }
}

fn witness(revision: u64, finding: Finding) -> Witness {
    Witness { revision, finding }
}

fn findings() -> Vec<Finding> {
    let mut all = vec![Finding::Same, Finding::Other, Finding::Gone { key_last: None }];
    all.extend((1..=9).map(|last| Finding::Gone { key_last: Some(last) }));
    all
}

#[test]
fn the_window_is_open_exactly_up_to_the_next_revision() {
    for revision in 0..6 {
        for first in 0..9 {
            let nothing_lost = (revision + 1..first).next().is_none();
            assert_eq!(resume_window_ok(revision, first), nothing_lost, "{revision} {first}");
        }
    }
    assert!(resume_window_ok(u64::MAX, u64::MAX));
}

/// Every position, log and pair of findings in a small world, against the rule as a sentence.
#[test]
fn a_resume_needs_the_same_log_a_whole_window_and_a_witness_in_place() {
    let mut resumed = 0;
    for incarnation in [1, 2] {
        for first in 1..8 {
            for last in 0..8 {
                for one in findings() {
                    for two in findings() {
                        let log = log(incarnation, first, last);
                        let pair = [witness(5, one), witness(3, two)];
                        let sound = incarnation == 1 && first <= 6 && last >= 5;
                        let overwritten = |f| matches!(f, Finding::Gone { key_last: Some(6..) });
                        let expected = match (one, two) {
                            _ if !sound => None,
                            (Finding::Same, _) => Some(5),
                            (one, Finding::Same) if overwritten(one) => Some(3),
                            _ => None,
                        };
                        let answer = resume(AT, &log, &pair, 2);
                        let from = match answer {
                            Resume::From(from) => Some(from),
                            Resume::Expired(_) => None,
                            Resume::NeedNextWitness => panic!("all were looked up"),
                        };
                        assert_eq!(from, expected, "{log:?} {one:?} {two:?}");
                        resumed += u32::from(from.is_some());
                    }
                }
            }
        }
    }
    assert!(resumed > 0);
}

#[test]
fn the_next_witness_is_asked_for_only_while_the_last_one_was_overwritten() {
    for finding in findings() {
        let answer = resume(AT, &LOG, &[witness(5, finding)], 2);
        let inconclusive = matches!(finding, Finding::Gone { key_last: Some(6..) });
        assert_eq!(answer == Resume::NeedNextWitness, inconclusive, "{finding:?}");
    }
    assert_eq!(resume(AT, &LOG, &[], 1), Resume::NeedNextWitness);
}

#[test]
fn each_kind_of_lie_is_named() {
    let expired = |log, findings: &[Witness]| match resume(AT, &log, findings, findings.len()) {
        Resume::Expired(why) => why,
        other => panic!("{other:?}"),
    };
    let same = [witness(5, Finding::Same)];
    assert_eq!(expired(log(2, 1, 9), &same), CursorExpiry::Recreated);
    let ahead = CursorExpiry::AheadOfLog { revision: 5, last: 4 };
    assert_eq!(expired(log(1, 1, 4), &same), ahead);
    let below = CursorExpiry::BelowFloor { revision: 5, first: 7 };
    assert_eq!(expired(log(1, 7, 9), &same), below);
    let disagrees = CursorExpiry::WitnessDisagrees { revision: 5 };
    assert_eq!(expired(LOG, &[witness(5, Finding::Other)]), disagrees);
    let older = witness(5, Finding::Gone { key_last: Some(2) });
    assert_eq!(expired(LOG, &[older]), disagrees);
    let newer = witness(5, Finding::Gone { key_last: Some(8) });
    assert_eq!(expired(LOG, &[newer]), CursorExpiry::Unproven);
    let vanished = witness(5, Finding::Gone { key_last: None });
    let in_place = witness(4, Finding::Same);
    assert_eq!(expired(LOG, &[vanished, in_place]), CursorExpiry::Unproven);
}

#[test]
fn a_cursor_that_names_no_witness_reads_everything_or_is_expired() {
    assert_eq!(resume(AT, &LOG, &[], 0), Resume::From(0));
    assert_eq!(resume(AT, &log(1, 2, 9), &[], 0), Resume::Expired(CursorExpiry::Unproven));
}

/// Every increasing batch over a small range, repetitions below the frontier included.
#[test]
fn the_gap_guard_looks_before_the_first_skipped_revision() {
    for frontier in 0..6u64 {
        for mask in 0u32..1 << 10 {
            let batch: Vec<u64> = (1..=10).filter(|r| mask >> (r - 1) & 1 == 1).collect();
            let highest = batch.last().copied().unwrap_or(0);
            let skipped = (frontier + 1..highest).find(|r| !batch.contains(r));
            assert_eq!(
                before_first_gap(frontier, batch.iter().copied()),
                skipped.map(|skipped| skipped - 1),
                "{frontier} {batch:?}"
            );
        }
    }
}

#[test]
fn the_live_guard_passes_only_the_same_log_with_its_head_and_floor_in_place() {
    for incarnation in [1, 2] {
        for (first, last) in (1..8).flat_map(|first| (0..8).map(move |last| (first, last))) {
            for (before_gap, received) in [(2, 2), (2, 5), (5, 5)] {
                let log = log(incarnation, first, last);
                let passes = incarnation == 1 && first <= before_gap + 1 && last >= received;
                let guard = live_guard(1, before_gap, received, &log);
                assert_eq!(guard == Guard::Pass, passes, "{log:?} {before_gap} {received}");
            }
        }
    }
}

const MARKER: Progress =
    Progress { head: 6, pending: 0, delivered: 4, received: 4, log: log(1, 1, 6) };

#[test]
fn a_marker_moves_only_when_nothing_is_pending_in_flight_or_evicted() {
    for pending in 0..2 {
        for (received, delivered) in [(0, 0), (0, 1), (1, 1), (2, 1)] {
            for first in 1..9 {
                for head in 4..8 {
                    let marker =
                        Progress { head, pending, delivered, received, log: log(1, first, 8) };
                    let expected = if first > 5 {
                        Advance::Trip(CursorExpiry::BelowFloor { revision: 4, first })
                    } else if pending > 0 || received < delivered {
                        Advance::Wait
                    } else {
                        Advance::To(head)
                    };
                    assert_eq!(advance(1, 4, &marker), expected, "{marker:?}");
                }
            }
        }
    }
}

#[test]
fn a_marker_trips_when_the_log_went_back_or_was_made_again() {
    assert_eq!(advance(1, 4, &MARKER), Advance::To(6));
    let ahead = CursorExpiry::AheadOfLog { revision: 4, last: 3 };
    assert_eq!(advance(1, 4, &Progress { head: 3, ..MARKER }), Advance::Trip(ahead));
    let anew = Progress { log: log(2, 1, 6), ..MARKER };
    assert_eq!(advance(1, 4, &anew), Advance::Trip(CursorExpiry::Recreated));
}

#[test]
fn nothing_is_deleted_that_the_log_may_have_evicted() {
    for bits in 0..16u8 {
        let set = |bit: u8| bits >> bit & 1 > 0;
        let retention = Retention {
            max_age: set(0).then_some(Duration::from_secs(1)),
            discards_oldest: set(1),
            max_bytes: set(2).then_some(1),
            max_messages: set(3).then_some(1),
            per_message_ttl: false,
            marker_ttl: None,
        };
        let evicts = set(0) || (set(1) && (set(2) || set(3)));
        assert_eq!(evicts_current_values(&retention), evicts, "{retention:?}");
        for (evicted, first) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
            let log = LogInfo { retention, first, ..LOG };
            let keeps = (evicts || evicted) && first > 1;
            assert_eq!(vanished(evicted, &log) == Vanished::Keep, keeps, "{log:?} {evicted}");
        }
    }
}

#[test]
fn a_key_has_vanished_that_was_not_listed_or_is_below_the_floor() {
    assert!(is_vanished(false, Some(9), 3), "whatever its version");
    assert!(is_vanished(true, Some(2), 3) && !is_vanished(true, Some(3), 3));
    assert!(is_vanished(false, None, 3) && !is_vanished(true, None, 3));
}

#[test]
fn a_listing_counts_if_the_log_is_the_same_and_has_not_gone_back() {
    let began = log(1, 1, 5);
    let marker = |first, last| Progress { log: log(1, first, last), ..MARKER };
    let cut = |floor, revision, head| Ok(Cut { floor, head, revision, since_ms: began.read_at_ms });
    assert_eq!(check_listing(&began, 4, &marker(2, 6)), cut(2, 6, 6), "all was received");
    assert_eq!(check_listing(&began, 4, &marker(9, 8)), cut(9, 8, 8), "nothing is below");
    let under_way = Progress { pending: 1, ..marker(2, 8) };
    assert_eq!(check_listing(&began, 4, &under_way), cut(2, 4, 8));
    let behind = |revision, last| Err(CursorExpiry::AheadOfLog { revision, last });
    assert_eq!(check_listing(&began, 4, &marker(1, 5)), behind(6, 5), "it had gone to 6");
    assert_eq!(check_listing(&began, 9, &marker(1, 8)), behind(9, 8));
    assert_eq!(check_listing(&log(1, 1, 7), 4, &marker(1, 6)), behind(7, 6));
    let anew = Progress { log: log(2, 1, 6), ..MARKER };
    assert_eq!(check_listing(&began, 4, &anew), Err(CursorExpiry::Recreated));
}

#[test]
fn a_resync_does_not_outlast_the_tombstones_of_keys_that_expired_since_it_began() {
    let retention = Retention { marker_ttl: Some(Duration::from_millis(80)), ..LOG.retention };
    let at = |read_at_ms| LogInfo { retention, read_at_ms, ..LOG };
    let marker = |read_at_ms| Progress { log: at(read_at_ms), ..MARKER };
    let listed = check_listing(&at(30), 4, &marker(40)).unwrap();
    let overrun = cut(4, 30, &at(40));
    for cut in [listed, overrun] {
        assert!(cut.claim(LOG.last, &marker(99)).unwrap().is_some());
        let waiting = Progress { pending: 1, ..marker(100) };
        for (position, marker) in [(LOG.last, marker(100)), (4, waiting)] {
            assert_eq!(cut.claim(position, &marker), Err(CursorExpiry::TombstonesExpired));
        }
    }
}

#[test]
fn a_cut_is_read_when_its_end_was_passed_or_nothing_is_left_to_come() {
    let cut = cut(3, 7, &log(1, 5, 8));
    assert_eq!(cut, Cut { floor: 5, head: 8, revision: 4, since_ms: 7 });
    assert_eq!(super::cut(7, 7, &log(1, 5, 8)).revision, 7, "it does not go back");
    let waiting = Progress { head: 8, pending: 1, ..MARKER };
    assert_eq!((cut.claim(7, &waiting), cut.claim(8, &waiting)), (Ok(None), Ok(Some(8))));
    assert_eq!(cut.claim(4, &Progress { pending: 0, ..waiting }), Ok(Some(8)));
    let before = Progress { head: 7, pending: 0, ..waiting };
    assert_eq!(cut.claim(4, &before), Ok(None), "8 may come yet");
    let risen = Progress { log: log(1, 6, 9), ..waiting };
    assert_eq!(cut.claim(9, &risen), Ok(Some(4)), "a tombstone at 5 may be lost");
}

#[test]
fn a_log_with_fewer_keys_than_it_had_was_purged_unless_it_evicts() {
    let fewer = LogInfo { subjects: 4, ..LOG };
    assert!(was_purged(5, &fewer) && !was_purged(4, &fewer) && !was_purged(0, &fewer));
    let retention = Retention { max_age: Some(Duration::from_secs(1)), ..LOG.retention };
    assert!(!was_purged(5, &LogInfo { retention, ..fewer }));
    let at = Position { subjects: 5, ..AT };
    let same = [witness(5, Finding::Same)];
    assert_eq!(resume(at, &fewer, &same, 1), Resume::Expired(CursorExpiry::Purged));
}

#[test]
fn unknown_and_passed_versions_move_nothing() {
    let mut authority = Authority::new(7);
    for version in [None, Some(3), Some(0)] {
        authority.receive(version);
        assert_eq!(authority.apply(), 7);
        assert_eq!(authority.store(true), Stored::At(7));
    }
    authority.receive(Some(9));
    authority.receive(None);
    assert_eq!(authority.apply(), 9);
}

#[test]
fn what_is_applied_and_not_stored_is_read_again() {
    let mut authority = Authority::new(1);
    authority.receive(Some(4));
    authority.apply();
    assert_eq!(authority.resume_at(), 1);
    assert!(matches!(authority.store(false), Stored::RetryAfter(_)));
    assert_eq!(authority.resume_at(), 1);
    assert_eq!(authority.store(true), Stored::At(4));
    assert_eq!(authority.resume_at(), 4);
}

#[test]
fn the_sixteenth_failure_in_a_row_gives_up_and_a_success_starts_the_count_again() {
    let mut authority = Authority::new(0);
    for _ in 1..MAX_STORE_APPLY_FAILURES {
        assert!(matches!(authority.store(false), Stored::RetryAfter(_)));
    }
    assert_eq!(authority.store(true), Stored::At(0));
    for _ in 1..MAX_STORE_APPLY_FAILURES {
        assert!(matches!(authority.store(false), Stored::RetryAfter(_)));
    }
    assert_eq!(authority.store(false), Stored::GiveUp);
}

#[test]
fn waiting_grows_and_is_bounded() {
    let waits: Vec<_> = (0..100).map(backoff).collect();
    assert!(waits.is_sorted());
    assert_eq!(waits[1], BACKOFF_FIRST);
    assert_eq!(waits[99], BACKOFF_LAST);
}

#[test]
fn a_log_that_ends_before_its_known_end_has_gone_back() {
    let same = [witness(5, Finding::Same)];
    for end in 5..12 {
        let expected = match end <= LOG.last {
            true => Resume::From(5),
            false => Resume::Expired(CursorExpiry::AheadOfLog { revision: end, last: LOG.last }),
        };
        assert_eq!(resume(Position { end, ..AT }, &LOG, &same, 1), expected, "{end}");
    }
}

/// It is the time up to which the fold has observed everything that counts, not that of a message.
#[test]
fn tombstones_are_counted_on_for_most_of_their_life() {
    let retention = Retention { marker_ttl: Some(Duration::from_secs(8)), ..LOG.retention };
    let expiring = LogInfo { retention, read_at_ms: 100_000, ..LOG };
    let same = [witness(5, Finding::Same)];
    let observed = |observed_through_ms, log: &LogInfo| {
        resume(Position { observed_through_ms, ..AT }, log, &same, 1)
    };
    let expired = Resume::Expired(CursorExpiry::TombstonesExpired);
    assert_eq!(observed(93_001, &expiring), Resume::From(5));
    assert_eq!(observed(93_000, &expiring), expired);
    assert_eq!(observed(0, &expiring), expired, "nobody knows");
    assert_eq!(observed(0, &LogInfo { read_at_ms: 100_000, ..LOG }), Resume::From(5));
    assert_eq!(
        observed(0, &LogInfo { last: 5, ..expiring }),
        Resume::From(5),
        "nothing was written"
    );
}
