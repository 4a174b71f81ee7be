//! What the builder promises, always by comparing what it holds before and after.

mod add;
mod build;
mod split;

use gossip_contracts::coordination::{Cursor, ShardArena, ShardSpec};
use gossip_contracts::identity::ShardId;

use super::{PreallocShardBuilder, PreallocShardBuilderError};

fn arena() -> ShardArena {
    ShardArena::with_capacity(16, 64 * 1024)
}

fn id(raw: u64) -> ShardId {
    ShardId::from_raw(raw)
}

/// Everything that a caller could notice a change in.
#[derive(Debug, PartialEq, Eq)]
struct State {
    entries: Vec<(ShardSpec, Cursor)>,
    next_id: ShardId,
    arena_len: usize,
    arena_bytes: usize,
}

fn state<const CAP: usize>(builder: &PreallocShardBuilder<'_, CAP>) -> State {
    let entries = (builder.entries.iter())
        .map(|entry| {
            let spec = builder.arena.get(entry.handle).expect("a live handle");
            (ShardSpec::new(spec).unwrap(), Cursor::new(entry.cursor).unwrap())
        })
        .collect();
    State {
        entries,
        next_id: builder.next_id(),
        arena_len: builder.arena().len(),
        arena_bytes: builder.arena().live_bytes(),
    }
}

/// Runs `add`, which must fail with `expected` and leave builder and arena as they were.
#[track_caller]
fn refused<'a, T: core::fmt::Debug + PartialEq, const CAP: usize>(
    builder: &mut PreallocShardBuilder<'a, CAP>,
    expected: PreallocShardBuilderError,
    add: impl FnOnce(&mut PreallocShardBuilder<'a, CAP>) -> Result<T, PreallocShardBuilderError>,
) {
    let before = state(builder);
    assert_eq!(add(builder), Err(expected));
    assert_eq!(state(builder), before);
}

/// As [`refused`], for an arena without room, whose numbers are its own affair.
#[track_caller]
fn refused_for_room<'a, T: core::fmt::Debug, const CAP: usize>(
    builder: &mut PreallocShardBuilder<'a, CAP>,
    add: impl FnOnce(&mut PreallocShardBuilder<'a, CAP>) -> Result<T, PreallocShardBuilderError>,
) {
    let before = state(builder);
    let error = add(builder).unwrap_err();
    assert!(matches!(error, PreallocShardBuilderError::SlabFull(_)), "{error:?}");
    assert_eq!(state(builder), before);
}
