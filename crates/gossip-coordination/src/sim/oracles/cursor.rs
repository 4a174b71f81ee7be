//! S4: a cursor is where it was left, moves forward only, and stays inside its shard.

use super::ledger::{Ledger, Shard};
use super::{Observation, Verdict, demand};
use crate::record::ShardRecordView;
use crate::sim::op::{Answer, Operation};

const S4: &str = "S4 cursor";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
    let key = shard.key;
    match (seen.operation, seen.answer) {
        (
            Operation::Checkpoint { cursor, .. } | Operation::Complete { cursor, .. },
            Answer::Executed(_),
        ) => {
            let Some(new) = cursor.last_key.as_deref() else {
                return demand(false, S4, || format!("{key}: a cursor without a key was taken"));
            };
            let forward = shard.cursor.last_key.as_deref().is_none_or(|old| old <= new);
            demand(forward, S4, || format!("{key}: {:?} moved back to {new:?}", shard.cursor))?;
            demand(shard.range.as_ref().contains(new), S4, || {
                format!("{key}: {new:?} lies outside {:?}", shard.range)
            })
        }
        (_, Answer::Acquired(acquired)) => demand(acquired.cursor == shard.cursor, S4, || {
            format!("{key} was left at {:?} and restored at {:?}", shard.cursor, acquired.cursor)
        }),
        _ => Ok(()),
    }
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> Verdict {
    demand(record.cursor == shard.cursor.as_update(), S4, || {
        format!("{}: another cursor is stored than {:?}", shard.key, shard.cursor)
    })?;
    let inside = record.cursor.last_key().is_none_or(|key| record.spec.contains(key));
    demand(inside, S4, || format!("{}: the stored cursor lies outside", shard.key))
}
