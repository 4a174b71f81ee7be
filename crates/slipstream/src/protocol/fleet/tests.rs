use proptest::prelude::*;

use super::*;

fn rank(epoch: u64, incarnation: u64, revision: u64) -> Rank {
    Rank { epoch, incarnation, revision }
}

fn at(rank: Rank) -> PointerState {
    PointerState::Present { rank: Some(rank) }
}

const fn offer(verdict: Verdict) -> Offer {
    Offer { verdict, may_be_incomplete: false }
}

const HOLDS: Offer = offer(Verdict::Holds);

const CORRUPT: PointerState = PointerState::Present { rank: None };

#[test]
fn a_pointer_moves_to_what_is_as_new_or_newer() {
    let pointer = at(rank(1, 5, 100));
    let publish = |candidate| may_publish(&pointer, None, candidate, HOLDS, Some(HOLDS));
    for newer in [rank(1, 5, 100), rank(1, 5, 101), rank(1, 6, 1), rank(2, 1, 1)] {
        assert_eq!(publish(newer), Publish::Allowed, "{newer:?}");
    }
    for older in [rank(1, 5, 99), rank(1, 4, 1000), rank(0, 6, 1000)] {
        assert_eq!(publish(older), Publish::SupersededByNewer, "{older:?}");
    }
}

/// What it was is told by the payloads: the one that it named is among them.
#[test]
fn a_pointer_that_is_lost_is_replaced_by_the_newest_payload_only() {
    let candidate = rank(1, 5, 100);
    for lost in [PointerState::Absent, CORRUPT] {
        let publish = |newest| may_publish(&lost, newest, candidate, HOLDS, None);
        assert_eq!(publish(Some(candidate)), Publish::Allowed);
        for newer in [rank(1, 5, 101), rank(1, 6, 1), rank(2, 1, 1)] {
            assert_eq!(publish(Some(newer)), Publish::SupersededByNewer, "{newer:?}");
        }
        for left in [None, Some(rank(1, 5, 99))] {
            assert_eq!(publish(left), Publish::SupersededByNewer, "its own was deleted");
        }
    }
}

#[test]
fn a_pointer_of_a_newer_program_is_replaced_by_nothing() {
    let candidate = rank(9, 9, 9);
    for verdict in [Verdict::Holds, Verdict::Expired, Verdict::Dead] {
        let (newer, offer) = (PointerState::Newer, offer(verdict));
        let publish = may_publish(&newer, Some(candidate), candidate, offer, None);
        assert_eq!(publish, Publish::SupersededByNewer);
        assert_eq!(next_epoch(&PointerState::Newer, verdict, Some(4)), None);
    }
}

#[test]
fn what_nobody_could_begin_with_is_not_published() {
    for pointer in [PointerState::Absent, CORRUPT, at(rank(0, 5, 1))] {
        for verdict in [Verdict::Expired, Verdict::Dead] {
            let candidate = rank(0, 5, 2);
            let publish = may_publish(&pointer, Some(candidate), candidate, offer(verdict), None);
            assert_eq!(publish, Publish::OfNoUse);
        }
    }
}

#[test]
fn an_incomplete_artifact_does_not_replace_a_complete_one_that_nodes_can_begin_with() {
    let (pointer, candidate) = (at(rank(0, 5, 1)), rank(0, 5, 2));
    let incomplete = Offer { may_be_incomplete: true, ..HOLDS };
    let publish = |offer, replaced| may_publish(&pointer, None, candidate, offer, replaced);
    assert_eq!(publish(incomplete, Some(HOLDS)), Publish::LessComplete);
    assert_eq!(publish(HOLDS, Some(HOLDS)), Publish::Allowed);
    assert_eq!(publish(HOLDS, Some(incomplete)), Publish::Allowed);
    assert_eq!(publish(incomplete, Some(incomplete)), Publish::Allowed);
    for verdict in [Verdict::Expired, Verdict::Dead] {
        assert_eq!(publish(incomplete, Some(offer(verdict))), Publish::Allowed, "{verdict:?}");
    }
    assert_eq!(publish(incomplete, None), Publish::Allowed, "there is none");
}

#[test]
fn a_pointer_to_a_dead_log_is_replaced_by_whatever_is_uploaded_later() {
    let dead = at(rank(3, 9, 1000));
    let epoch = next_epoch(&dead, Verdict::Dead, None).unwrap();
    // Rolled back, or made again by a server whose clock went back.
    for candidate in [rank(epoch, 9, 10), rank(epoch, 2, 1)] {
        let replaced = Some(offer(Verdict::Dead));
        assert_eq!(may_publish(&dead, None, candidate, HOLDS, replaced), Publish::Allowed);
    }
    let before = next_epoch(&dead, Verdict::Holds, None).unwrap();
    let uploaded_before = may_publish(&dead, None, rank(before, 9, 10), HOLDS, None);
    assert_eq!(uploaded_before, Publish::SupersededByNewer, "it may have been deleted since");
    assert_eq!(next_epoch(&dead, Verdict::Expired, Some(7)), Some(3));
}

#[test]
fn without_a_pointer_the_payloads_tell_the_epoch() {
    for lost in [PointerState::Absent, CORRUPT] {
        assert_eq!(next_epoch(&lost, Verdict::Expired, None), Some(0));
        assert_eq!(next_epoch(&lost, Verdict::Expired, Some(4)), Some(5));
        assert_eq!(next_epoch(&lost, Verdict::Expired, Some(u64::MAX)), None, "there is no next");
    }
}

#[test]
fn only_a_log_that_is_gone_is_dead() {
    use CursorExpiry::{AheadOfLog, BelowFloor, Purged, Recreated, Unproven, WitnessDisagrees};
    let gone = [Recreated, AheadOfLog { revision: 9, last: 8 }, WitnessDisagrees { revision: 9 }];
    for why in gone {
        assert_eq!(verdict(Resume::Expired(why)), Verdict::Dead, "{why:?}");
    }
    for why in [BelowFloor { revision: 9, first: 20 }, Unproven, Purged] {
        assert_eq!(verdict(Resume::Expired(why)), Verdict::Expired, "{why:?}");
    }
    assert_eq!(verdict(Resume::From(9)), Verdict::Holds);
}

fn any_rank() -> impl Strategy<Value = Rank> {
    (0..3u64, 0..3u64, 0..3u64).prop_map(|(epoch, incarnation, revision)| Rank {
        epoch,
        incarnation,
        revision,
    })
}

proptest! {
    /// P8: whatever may be deleted is refused from then on, wherever the pointer goes (P7), and also
    /// when it is lost: the payload that it named stays.
    #[test]
    fn nothing_that_may_be_deleted_is_published(
        payload in any_rank(),
        pointer in any_rank(),
        later in any_rank(),
    ) {
        let moved = may_publish(&at(pointer), None, later, HOLDS, None) == Publish::Allowed;
        if payload_prunable(Some(payload), pointer, false, true) {
            for now in [pointer].into_iter().chain(moved.then_some(later)) {
                for state in [at(now), PointerState::Absent, CORRUPT] {
                    let publish = may_publish(&state, Some(now), payload, HOLDS, None);
                    prop_assert_eq!(publish, Publish::SupersededByNewer);
                }
            }
        }
        prop_assert!(!payload_prunable(Some(payload), pointer, true, true), "the target stays");
        prop_assert!(!payload_prunable(Some(payload), pointer, false, false), "a new one stays");
        prop_assert!(!payload_prunable(None, pointer, false, true), "an unknown one stays");
    }
}
