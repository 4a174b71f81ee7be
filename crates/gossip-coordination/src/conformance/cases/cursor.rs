//! What a cursor may and may not do, in a checkpoint and in a completion.

use gossip_contracts::coordination::{MAX_KEY_SIZE, MAX_TOKEN_SIZE};
use gossip_contracts::identity::OpId;

use super::prelude::*;
use crate::conformance::attempt::widen;
use crate::error::{CoordError, CursorOutOfBoundsDetail, IdempotentOutcome};
use crate::lease::Lease;

#[track_caller]
fn advance<H: Harness>(
    w: &mut World<H>,
    operation: Operation,
    lease: &Lease,
    cursor: CursorUpdate<'_>,
) -> Result<IdempotentOutcome<()>, CoordError> {
    let op = w.op();
    match operation {
        Operation::Checkpoint => w.checkpoint(lease, cursor, op).map_err(widen),
        Operation::CheckpointAndRenew => {
            let outcome = w.checkpoint_and_renew(lease, cursor, op);
            outcome.map(|outcome| outcome.map(drop)).map_err(widen)
        }
        Operation::Complete => w.complete(lease, cursor, op).map_err(widen),
        other => unreachable!("{other:?} moves no cursor"),
    }
}

fn out_of_bounds(last_key: usize) -> CoordError {
    let detail = CursorOutOfBoundsDetail { last_key, spec_start: 6, spec_end: 6 };
    CoordError::CursorOutOfBounds(detail)
}

/// A world whose shard 1 is held and stands at the given key.
fn at<H: Harness>(tail: Option<&str>) -> (World<H>, Lease) {
    let mut w = World::<H>::new(3);
    let lease = w.lease(1, 1);
    if let Some(tail) = tail {
        let (key, op) = (within(1, tail), w.op());
        w.checkpoint(&lease, CursorUpdate::at(&key), op).unwrap();
    }
    (w, lease)
}

pub(crate) fn missing_key<H: Harness>(operation: Operation) {
    for stands in [None, Some("c")] {
        let (w, lease) = &mut at::<H>(stands);
        for cursor in [CursorUpdate::initial(), CursorUpdate::new(None, Some(b"token"))] {
            let refused = Err(CoordError::CheckpointMissingKey);
            assert_eq!(advance(w, operation, lease, cursor), refused);
        }
    }
}

pub(crate) fn regression<H: Harness>(operation: Operation) {
    let (w, lease) = &mut at::<H>(Some("cc"));
    for tail in ["ca", "c", "b", ""] {
        let key = within(1, tail);
        let refused = CoordError::CursorRegression { old_key: Some(9), new_key: Some(key.len()) };
        assert_eq!(advance(w, operation, lease, CursorUpdate::at(&key)), Err(refused));
    }
}

/// While the key stays a token counts up: what an earlier checkpoint said, whose operation the op-log
/// has forgotten, is refused.
pub(crate) fn token_regression<H: Harness>(operation: Operation) {
    let (w, lease) = &mut at::<H>(None);
    let key = within(1, "c");
    let with = |token| CursorUpdate::new(Some(&key), token);
    for token in [None, Some(&b""[..]), Some(b"1"), Some(b"19"), Some(b"2")] {
        assert_eq!(advance(w, Operation::Checkpoint, lease, with(token)), Ok(Executed(())));
    }
    for token in [None, Some(&b""[..]), Some(b"1"), Some(b"19999")] {
        let refused = CoordError::CursorRegression { old_key: Some(8), new_key: Some(8) };
        assert_eq!(advance(w, operation, lease, with(token)), Err(refused));
        assert_eq!(w.shard(id(1)).cursor.as_update(), with(Some(b"2")));
    }
    // At a greater key it may be any.
    let next = within(1, "ca");
    let cursor = CursorUpdate::new(Some(&next), Some(b"1"));
    assert_eq!(advance(w, operation, lease, cursor), Ok(Executed(())));
}

pub(crate) fn staying_and_advancing<H: Harness>(operation: Operation) {
    for (stands, tail) in [(None, "a"), (Some("a"), "a"), (Some("a"), "aa"), (Some("a"), "b")] {
        let (w, lease) = &mut at::<H>(stands);
        let key = within(1, tail);
        assert_eq!(advance(w, operation, lease, CursorUpdate::at(&key)), Ok(Executed(())));
        assert_eq!(w.shard(id(1)).cursor.as_update(), CursorUpdate::at(&key));
    }
}

pub(crate) fn bounds<H: Harness>(operation: Operation) {
    let (w, lease) = &mut at::<H>(None);
    // Before the range, nothing at all, its end, and behind its end.
    for key in [within(0, "z"), vec![], start(2), within(2, "a")] {
        let refused = Err(out_of_bounds(key.len()));
        assert_eq!(advance(w, operation, lease, CursorUpdate::at(&key)), refused);
    }
    // The start is inside, and so is the last key before the end.
    assert_eq!(
        advance(w, Operation::Checkpoint, lease, CursorUpdate::at(&start(1))),
        Ok(Executed(()))
    );
    let last = [&start(1)[..], &[0xff; 9]].concat();
    assert_eq!(advance(w, operation, lease, CursorUpdate::at(&last)), Ok(Executed(())));
}

pub(crate) fn sizes<H: Harness>(operation: Operation) {
    let (w, lease) = &mut at::<H>(None);
    let long = "k".repeat(MAX_KEY_SIZE);
    let key = within(1, &long[..MAX_KEY_SIZE - 7]);
    let token = vec![b't'; MAX_TOKEN_SIZE + 1];
    let refused = CoordError::CursorKeyTooLarge { size: MAX_KEY_SIZE + 1, max: MAX_KEY_SIZE };
    let longer = within(1, &long[..MAX_KEY_SIZE - 6]);
    assert_eq!(advance(w, operation, lease, CursorUpdate::at(&longer)), Err(refused));
    let refused = CoordError::CursorTokenTooLarge { size: MAX_TOKEN_SIZE + 1, max: MAX_TOKEN_SIZE };
    let cursor = CursorUpdate::new(Some(&key), Some(&token));
    assert_eq!(advance(w, operation, lease, cursor), Err(refused));
    let cursor = CursorUpdate::new(Some(&key), Some(&token[1..]));
    assert_eq!(advance(w, operation, lease, cursor), Ok(Executed(())));
    w.reopen();
    assert_eq!(w.shard(id(1)).cursor.as_update(), cursor);
}

/// Each cursor is wrong in every later way too; the answer names the first.
pub(crate) fn order_of_checks<H: Harness>(operation: Operation) {
    let (w, lease) = &mut at::<H>(Some("c"));
    let (long, token) = (vec![b'0'; MAX_KEY_SIZE + 1], vec![b't'; MAX_TOKEN_SIZE + 1]);
    let below = within(0, "a");
    for (cursor, refused) in [
        (CursorUpdate::new(None, Some(&token)), CoordError::CheckpointMissingKey),
        (
            CursorUpdate::new(Some(&long), Some(&token)),
            CoordError::CursorKeyTooLarge { size: MAX_KEY_SIZE + 1, max: MAX_KEY_SIZE },
        ),
        (
            CursorUpdate::new(Some(&below), Some(&token)),
            CoordError::CursorTokenTooLarge { size: MAX_TOKEN_SIZE + 1, max: MAX_TOKEN_SIZE },
        ),
        (
            CursorUpdate::at(&below),
            CoordError::CursorRegression { old_key: Some(8), new_key: Some(8) },
        ),
        (CursorUpdate::at(&start(2)), out_of_bounds(6)),
    ] {
        assert_eq!(advance(w, operation, lease, cursor), Err(refused));
    }
    // And the lease is checked before the cursor.
    w.now = lease.deadline();
    let expired = CoordError::LeaseExpired { deadline: lease.deadline(), now: w.now };
    assert_eq!(advance(w, operation, lease, CursorUpdate::initial()), Err(expired));
}

pub(crate) fn a_checkpoint_replaces_key_and_token<H: Harness>() {
    let (w, lease) = &mut at::<H>(None);
    let keys = [within(1, "a"), within(1, "b"), within(1, "c"), within(1, "d")];
    let tokens: [Option<&[u8]>; 4] = [Some(b"long token"), Some(b""), None, Some(b"t")];
    for (key, token) in keys.iter().zip(tokens) {
        let cursor = CursorUpdate::new(Some(key), token);
        assert_eq!(advance(w, Operation::Checkpoint, lease, cursor), Ok(Executed(())));
        let record = w.shard(id(1));
        assert_eq!(record.cursor.as_update(), cursor);
        assert_eq!(record.state.status, ShardStatus::Active);
    }
}

pub(crate) fn a_carried_over_cursor_is_where_work_starts<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.create_run().unwrap();
    let (from, until, key, op) = (start(1), start(2), within(1, "k"), w.op());
    let cursor = CursorUpdate::new(Some(&key), Some(b"token"));
    let range = ShardSpecRef::new(&from, &until, b"");
    let row = gossip_contracts::coordination::InitialShardInput::new(id(1), range, cursor);
    w.register(&[row], op).unwrap();
    let acquired = w.acquire(1, id(1)).unwrap();
    assert_eq!(acquired.state.cursor.as_update(), cursor);
    let back = within(1, "a");
    let refused = CoordError::CursorRegression { old_key: Some(8), new_key: Some(8) };
    let lease = &acquired.lease;
    assert_eq!(advance(w, Operation::Checkpoint, lease, CursorUpdate::at(&back)), Err(refused));
}

pub(crate) fn a_cursor_goes_on_under_the_next_lease<H: Harness>() {
    let (w, lease) = &mut at::<H>(Some("m"));
    w.expire(lease);
    let next = w.lease(2, 1);
    let back = within(1, "l");
    let refused = CoordError::CursorRegression { old_key: Some(8), new_key: Some(8) };
    assert_eq!(advance(w, Operation::Checkpoint, &next, CursorUpdate::at(&back)), Err(refused));
    let on = within(1, "n");
    assert_eq!(w.checkpoint(&next, CursorUpdate::at(&on), OpId::from_raw(999)), Ok(Executed(())));
}
