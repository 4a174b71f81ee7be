//! G1 to G3: what checkpoints, completions and halts write.

use super::*;
use crate::payload;

fn request(lease: Lease, op: Op<'_>) -> Request<'_> {
    Request { tenant: TENANT, lease, op, op_id: operation(5) }
}

#[test]
fn a_checkpoint_writes_cursor_tries_and_log() {
    let (mut world, lease) = World::leased();
    world.now = at(1_050);
    let cursor = CursorUpdate::new(Some(b"k"), Some(b"token"));
    let hash = payload::checkpoint(cursor);
    let expected = ShardUpdate {
        cursor: Some(cursor),
        log: Some(logged(operation(5), OpKind::Checkpoint, hash, at(1_050))),
        ..of_state(ShardState { acquires_since_progress: 0, ..world.shard.state })
    };
    let request = request(lease, Op::Checkpoint(cursor));
    assert_eq!(world.perform(&request), Ok(Answer::execute(expected)));
    assert_eq!(world.shard.cursor.as_update(), cursor);
    assert_eq!(world.shard.op_log.len(), 1);
}

#[test]
fn a_completion_writes_the_last_cursor_and_gives_the_lease_up() {
    let (mut world, lease) = World::leased();
    let cursor = CursorUpdate::new(Some(b"s"), None);
    let state = ShardState {
        status: ShardStatus::Done,
        lease: None,
        acquires_since_progress: 0,
        ..world.shard.state
    };
    let expected = ShardUpdate {
        cursor: Some(cursor),
        log: Some(logged(operation(5), OpKind::Complete, payload::complete(cursor), START)),
        ..of_state(state)
    };
    let request = request(lease, Op::Complete(cursor));
    assert_eq!(world.perform(&request), Ok(Answer::execute(expected)));
    assert_eq!(world.shard.state.fence, fence(2));
}

/// A completion that moved the cursor used to leave the count of tries as it was, so that listings
/// showed a done shard with acquires since its cursor last moved.
#[test]
fn tries_count_from_where_a_completion_moved_the_cursor() {
    for (key, tries) in [(&b"k"[..], 2), (b"s", 0)] {
        let (mut world, lease) = World::leased();
        world.checkpoint(lease, b"k", operation(1));
        world.state().acquires_since_progress = 2;
        let request = request(lease, Op::Complete(CursorUpdate::at(key)));
        world.perform(&request).unwrap();
        assert_eq!(world.shard.state.acquires_since_progress, tries);
    }
}

/// A worker that goes on inside one large item moves the token only; killed again and again, it was
/// taken for one that its input kills.
#[test]
fn tries_count_from_where_the_token_moved() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    for (number, token, tries) in [(2, Some(&b"t"[..]), 0), (3, Some(b"t"), 2), (4, Some(b"u"), 0)]
    {
        world.state().acquires_since_progress = 2;
        let cursor = CursorUpdate::new(Some(b"k"), token);
        let request =
            Request { op_id: operation(number), ..request(lease, Op::Checkpoint(cursor)) };
        world.perform(&request).unwrap();
        assert_eq!(world.shard.state.acquires_since_progress, tries);
    }
}

/// Two tokens in turn at one key were progress each time, so that a shard that kills its workers was
/// never parked; and a delayed checkpoint that the op-log had forgotten set the token back.
#[test]
fn a_token_does_not_go_back_while_its_key_stays() {
    let (mut world, lease) = World::leased();
    let at = |token| CursorUpdate::new(Some(b"k"), Some(token));
    let to = |number, token| Request {
        op_id: operation(number),
        ..request(lease, Op::Checkpoint(at(token)))
    };
    world.execute(&to(1, b"a"));
    for number in 2..20 {
        world.execute(&to(number, b"b"));
    }
    world.state().acquires_since_progress = 2;
    // The first again: its entry is gone from the log.
    let again = to(1, b"a");
    let refused = world.perform(&again);
    let regression = CoordError::CursorRegression { old_key: Some(1), new_key: Some(1) };
    assert_eq!(refused, Err(regression));
    assert_eq!(world.shard.cursor.as_update(), at(b"b"));
    assert_eq!(world.shard.state.acquires_since_progress, 2);
}

#[test]
fn a_halt_writes_its_reason_and_gives_the_lease_up() {
    for raw in 0..5 {
        let reason = ParkReason::from_raw(raw).unwrap();
        let (mut world, lease) = World::leased();
        world.checkpoint(lease, b"k", operation(1));
        let state = ShardState {
            status: ShardStatus::Parked,
            park_reason: Some(reason),
            lease: None,
            ..world.shard.state
        };
        let expected = ShardUpdate {
            log: Some(logged(operation(5), OpKind::Park, payload::park(reason), START)),
            ..of_state(state)
        };
        let request = request(lease, Op::Park(reason));
        assert_eq!(world.perform(&request), Ok(Answer::execute(expected)));
        assert_eq!(world.shard.cursor.as_update().last_key(), Some(&b"k"[..]));
    }
}

/// Keys at both ends of the range, staying, and moving by the smallest step.
#[test]
fn a_cursor_may_stand_anywhere_in_the_range_and_stay_there() {
    let (mut world, lease) = World::leased();
    for (id, key) in [&b"d"[..], b"d", b"d\0", b"s\xff\xff", b"s\xff\xff\0"].iter().enumerate() {
        world.checkpoint(lease, key, operation(id as u64));
        assert_eq!(world.shard.cursor.as_update().last_key(), Some(*key));
    }
    // A shard that had nothing in it completes at its start key.
    let (mut empty, lease) = World::leased();
    empty.execute(&request(lease, Op::Complete(CursorUpdate::at(b"d"))));
}

/// A token without a key can only come from a manifest; the first checkpoint replaces it.
#[test]
fn a_checkpoint_replaces_the_token_or_drops_it() {
    let (mut world, lease) = World::leased();
    let first = CursorUpdate::new(Some(b"k"), Some(b"page 2"));
    world.execute(&request(lease, Op::Checkpoint(first)));
    world.checkpoint(lease, b"l", operation(6));
    assert_eq!(world.shard.cursor.as_update(), CursorUpdate::at(b"l"));
}
