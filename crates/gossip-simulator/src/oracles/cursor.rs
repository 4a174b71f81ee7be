//! S4: a cursor is where it was left, moves forward only, and stays inside its shard. At the same key
//! its token moves forward only.

use gossip_coordination::ShardRecordView;

use super::ledger::{Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Operation};

const S4: &str = "S4 cursor";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
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
            let old = &shard.cursor;
            let forward = match old.last_key.as_deref() {
                Some(key) if key == new => old.token.as_deref() <= cursor.token.as_deref(),
                Some(key) => key < new,
                None => true,
            };
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

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
    demand(record.cursor == shard.cursor.as_update(), S4, || {
        format!("{}: another cursor is stored than {:?}", shard.key, shard.cursor)
    })?;
    let inside = record.cursor.last_key().is_none_or(|key| record.spec.contains(key));
    demand(inside, S4, || format!("{}: the stored cursor lies outside", shard.key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OwnedCursor;
    use crate::oracles::testing::*;

    #[test]
    fn a_cursor_that_moves_back_or_out_is_noticed() {
        let ledger = Ledger::example();
        let held = lease(1, 2, 100);
        for item in [3, 9] {
            assert_eq!(judged(check, &ledger, &checkpoint(held, item, 9), &done()), Ok(()));
        }
        for item in [2, 10] {
            assert_fires(judged(check, &ledger, &checkpoint(held, item, 9), &done()), "S4");
            assert_fires(judged(check, &ledger, &complete(held, item, 9), &done()), "S4");
        }
        let (tenant, cursor) = (tenant(1), OwnedCursor::default());
        let nowhere =
            Operation::Checkpoint { tenant, lease: held, cursor, renews: false, op_id: op(9) };
        assert_fires(judged(check, &ledger, &nowhere, &done()), "S4");
    }

    #[test]
    fn a_token_that_moves_back_at_its_key_is_noticed() {
        let mut ledger = Ledger::example();
        let held = lease(1, 2, 100);
        let with = |token: Option<&[u8]>| OwnedCursor { token: token.map(Into::into), ..cursor(3) };
        let to = |cursor| {
            let tenant = tenant(1);
            Operation::Checkpoint { tenant, lease: held, cursor, renews: false, op_id: op(9) }
        };
        ledger.saw(&to(with(Some(b"5"))), &done());
        for token in [&b"5"[..], b"50", b"6"] {
            assert_eq!(judged(check, &ledger, &to(with(Some(token))), &done()), Ok(()));
        }
        for token in [None, Some(&b""[..]), Some(b"49")] {
            assert_fires(judged(check, &ledger, &to(with(token)), &done()), "S4");
        }
    }

    #[test]
    fn a_cursor_that_is_restored_elsewhere_is_noticed() {
        let ledger = Ledger::example();
        for elsewhere in [OwnedCursor::default(), cursor(2), cursor(4)] {
            let answer = acquired(lease(1, 3, 100), elsewhere);
            assert_fires(judged(check, &ledger, &acquire(1), &answer), "S4");
        }
    }
}
