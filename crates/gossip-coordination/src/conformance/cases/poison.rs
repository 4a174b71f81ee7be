//! A shard that keeps killing its workers is parked before it kills them all.

use super::prelude::*;
use crate::error::{AcquireError, ClaimError};

/// Acquires and loses a shard so many times.
fn crash<H: Harness>(w: &mut World<H>, shard: u64, times: u32) {
    for _ in 0..times {
        let lease = w.lease(1, shard);
        w.expire(&lease);
    }
}

#[track_caller]
fn assert_poisoned<H: Harness>(w: &mut World<H>, shard: u64) {
    let status = ShardStatus::Parked;
    let refused = Err(AcquireError::ShardTerminal { shard: w.key(id(shard)), status });
    assert_eq!(w.acquire(1, id(shard)), refused);
    let state = w.shard(id(shard)).state;
    assert_eq!((state.status, state.park_reason), (status, Some(ParkReason::Poisoned)));
}

pub(crate) fn a_shard_tried_too_often_is_parked_as_poisoned<H: Harness>() {
    let w = &mut World::<H>::new(1);
    crash(w, 0, RETRIES);
    assert_poisoned(w, 0);
    // From then on it is parked like any other.
    assert_poisoned(w, 0);
}

pub(crate) fn one_try_means_one_try<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.config.max_shard_retries = 1;
    w.begin(1);
    crash(w, 0, 1);
    assert_poisoned(w, 0);
}

pub(crate) fn acquiring_ones_own_shard_again_counts<H: Harness>() {
    let w = &mut World::<H>::new(1);
    for _ in 0..RETRIES {
        w.lease(1, 0);
    }
    assert_poisoned(w, 0);
}

pub(crate) fn progress_starts_the_count_anew<H: Harness>() {
    let w = &mut World::<H>::new(1);
    for tail in ["a", "b", "c"] {
        crash(w, 0, RETRIES - 1);
        let (lease, op) = (w.lease(1, 0), w.op());
        w.checkpoint(&lease, CursorUpdate::at(&within(0, tail)), op).unwrap();
        w.expire(&lease);
        assert_eq!(w.shard(id(0)).state.acquires_since_progress, 0);
    }
    crash(w, 0, RETRIES);
    assert_poisoned(w, 0);
}

pub(crate) fn a_checkpoint_at_the_same_place_is_no_progress<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (at, token) = (within(0, "a"), Some(&b"token"[..]));
    for _ in 0..=RETRIES {
        let (lease, op) = (w.lease(1, 0), w.op());
        w.checkpoint(&lease, CursorUpdate::new(Some(&at), token), op).unwrap();
        w.expire(&lease);
    }
    assert_poisoned(w, 0);
}

pub(crate) fn a_new_token_at_the_same_key_is_progress<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let at = within(0, "a");
    for round in 0..3 * RETRIES {
        let (lease, op) = (w.lease(1, 0), w.op());
        let token = round.to_le_bytes();
        w.checkpoint(&lease, CursorUpdate::new(Some(&at), Some(&token)), op).unwrap();
        w.expire(&lease);
        assert_eq!(w.shard(id(0)).state.acquires_since_progress, 0);
    }
}

pub(crate) fn a_released_shard_has_killed_nobody<H: Harness>() {
    let w = &mut World::<H>::new(1);
    crash(w, 0, RETRIES - 1);
    for _ in 0..3 * RETRIES {
        let lease = w.lease(1, 0);
        w.release(&lease).unwrap();
    }
    assert_eq!(w.shard(id(0)).state.acquires_since_progress, RETRIES - 1);
    crash(w, 0, 1);
    assert_poisoned(w, 0);
}

pub(crate) fn renewing_is_no_progress<H: Harness>() {
    let w = &mut World::<H>::new(1);
    for _ in 0..RETRIES {
        let lease = w.lease(1, 0);
        w.tick(1);
        let deadline = w.renew(&lease).unwrap().new_deadline;
        w.now = H::caps().free_from(deadline);
    }
    assert_poisoned(w, 0);
}

pub(crate) fn an_unparked_shard_gets_all_its_tries_again<H: Harness>() {
    let w = &mut World::<H>::new(1);
    crash(w, 0, RETRIES);
    assert_poisoned(w, 0);
    let op = w.op();
    w.unpark(id(0), op).unwrap();
    crash(w, 0, RETRIES);
    assert_poisoned(w, 0);
}

pub(crate) fn a_claim_parks_what_is_poisoned_and_goes_on<H: Harness>() {
    let w = &mut World::<H>::new(3);
    crash(w, 0, RETRIES);
    crash(w, 1, RETRIES);
    assert_eq!(w.claim(2).unwrap().lease.shard(), id(2));
    // However the backend chooses, nobody is ever given a poisoned shard.
    assert!(matches!(w.claim(3), Err(ClaimError::NoneAvailable { earliest_deadline: Some(_) })));
    assert_eq!(w.progress().unwrap().parked, 2);
}

pub(crate) fn a_claim_among_poisoned_shards_only_finds_nothing<H: Harness>() {
    let w = &mut World::<H>::new(2);
    crash(w, 0, RETRIES);
    crash(w, 1, RETRIES);
    assert_eq!(w.claim(2), Err(ClaimError::NoneAvailable { earliest_deadline: None }));
    assert_eq!(w.progress().unwrap().parked, 2);
}

/// A claim that says that nothing is free while something is would idle a worker for nothing.
pub(crate) fn a_claim_finds_the_free_shard_behind_many_poisoned_ones<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.config.max_shard_retries = 1;
    w.audited = false;
    w.begin(51);
    for shard in 0..50 {
        w.lease(1, shard);
    }
    w.tick(LEASE + H::caps().takeover_delay);
    assert_eq!(w.claim(2).unwrap().lease.shard(), id(50));
    w.audited = true;
    assert!(w.claim(3).is_err());
}
