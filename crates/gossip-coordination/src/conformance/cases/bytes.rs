//! Backends whose room for keys, cursors and metadata is limited.

use gossip_contracts::coordination::InitialShardInput;

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::{CheckpointError, CompleteError, RegisterShardsError};

/// Room for a small run and a little more.
const CAPACITY: usize = 1024;

fn small<H: Harness>() -> Option<World<H>> {
    if !H::caps().byte_capacity {
        skip("the backend has no byte capacity");
        return None;
    }
    Some(World::open(&Limits { byte_capacity: Some(CAPACITY), ..Limits::default() }))
}

pub(crate) fn a_cursor_without_room_is_refused<H: Harness>(operation: Operation) {
    let Some(mut w) = small::<H>() else { return };
    w.begin(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    let (key, large, token) = (within(0, "c"), within(0, "d"), vec![b't'; CAPACITY]);
    w.checkpoint(&lease, CursorUpdate::new(Some(&key), Some(b"small")), op).unwrap();
    let (op, cursor) = (w.op(), CursorUpdate::new(Some(&large), Some(&token)));
    // Refused with nothing changed, and under the same id a smaller one goes through.
    match operation {
        Operation::Checkpoint => {
            let refused = w.checkpoint(&lease, cursor, op);
            assert!(matches!(refused, Err(CheckpointError::ResourceExhausted(_))), "{refused:?}");
            assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&large), op), Ok(Executed(())));
        }
        Operation::CheckpointAndRenew => {
            let refused = w.checkpoint_and_renew(&lease, cursor, op);
            assert!(matches!(refused, Err(CheckpointError::ResourceExhausted(_))), "{refused:?}");
            assert!(w.checkpoint_and_renew(&lease, CursorUpdate::at(&large), op).is_ok());
        }
        _ => {
            let refused = w.complete(&lease, cursor, op);
            assert!(matches!(refused, Err(CompleteError::ResourceExhausted(_))), "{refused:?}");
            assert_eq!(w.complete(&lease, CursorUpdate::at(&large), op), Ok(Executed(())));
        }
    }
}

pub(crate) fn a_manifest_without_room_is_refused<H: Harness>() {
    let Some(mut w) = small::<H>() else { return };
    w.create_run().unwrap();
    let (manifest, metadata, op) = (Manifest::of(0..8), vec![b'm'; CAPACITY / 6], w.op());
    let rows: Vec<InitialShardInput<'_>> = manifest
        .rows()
        .into_iter()
        .map(|row| InitialShardInput { spec: row.spec.with_metadata(&metadata), ..row })
        .collect();
    let refused = w.register(&rows, op);
    assert!(matches!(refused, Err(RegisterShardsError::ResourceExhausted { .. })), "{refused:?}");
    // Nothing of it is left: what fits is taken, under the same id.
    assert_eq!(w.register(&rows[..2], op), Ok(Executed(())));
}

/// Room that cursors gave back is used again, however long a run lasts.
pub(crate) fn room_is_given_back<H: Harness>() {
    let Some(mut w) = small::<H>() else { return };
    w.begin(1);
    let lease = w.lease(1, 0);
    for step in 0..200usize {
        let (op, key) = (w.op(), within(0, &format!("{step:04}")));
        let token = vec![b't'; step % 7 * 40];
        let cursor = CursorUpdate::new(Some(&key), Some(&token));
        assert_eq!(w.checkpoint(&lease, cursor, op), Ok(Executed(())), "step {step}");
    }
}
