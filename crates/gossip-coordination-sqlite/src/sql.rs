//! How numbers of ours stand in columns, and transactions.
//!
//! SQLite's integers are signed. Identities are stored bit by bit, so that small ones stay small;
//! times are shifted, so that their order is kept over the whole range.

use gossip_contracts::identity::{LogicalTime, ShardId};
use gossip_coordination::InfraError;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::{At, Steps};

pub(crate) const fn id_to_sql(raw: u64) -> i64 {
    raw.cast_signed()
}

pub(crate) const fn id_from_sql(stored: i64) -> u64 {
    stored.cast_unsigned()
}

pub(crate) const fn shard_from_sql(stored: i64) -> ShardId {
    ShardId::from_raw(id_from_sql(stored))
}

pub(crate) const fn time_to_sql(time: LogicalTime) -> i64 {
    (time.as_raw() ^ (1 << 63)).cast_signed()
}

pub(crate) const fn time_from_sql(stored: i64) -> LogicalTime {
    LogicalTime::from_raw(stored.cast_unsigned() ^ (1 << 63))
}

/// The ids behind `after`, as two ranges of columns in the order of unsigned ids: SQLite takes ids with
/// the top bit set for negative, so they come second. Each with its first and last.
pub(crate) fn ids_behind(after: Option<u64>) -> impl Iterator<Item = (i64, i64)> {
    const HIGH: u64 = 1 << 63;
    let first = after.map_or(Some(0), |after| after.checked_add(1));
    first.into_iter().flat_map(|first| {
        let low = (first < HIGH).then_some((id_to_sql(first), i64::MAX));
        low.into_iter().chain([(id_to_sql(first.max(HIGH)), -1)])
    })
}

/// Runs `f` alone on the database. What it wrote is stored if it succeeds; nothing if it fails or
/// panics.
pub(crate) fn write<T, E: From<InfraError>>(
    conn: &Connection,
    steps: &Steps,
    f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let tx = begin(conn, steps, TransactionBehavior::Immediate)?;
    let value = f(&tx)?;
    tx.commit().at(steps.commit)?;
    Ok(value)
}

/// Runs `f` on one consistent view of the database.
pub(crate) fn read<T, E: From<InfraError>>(
    conn: &Connection,
    steps: &Steps,
    f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let tx = begin(conn, steps, TransactionBehavior::Deferred)?;
    f(&tx)
}

/// Begins a transaction. One inside another is a mistake of the caller, which calls the coordinator
/// from what it runs on it; SQLite's answer to that looks like damage.
fn begin<'c>(
    conn: &'c Connection,
    steps: &Steps,
    behavior: TransactionBehavior,
) -> Result<Transaction<'c>, InfraError> {
    if !conn.is_autocommit() {
        let message = "this coordinator is inside a transaction; call it once that has ended";
        return Err(InfraError::transient(steps.begin, message));
    }
    Transaction::new_unchecked(conn, behavior).at(steps.begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_order_and_ids_their_bits() {
        let times = [0, 1, 1_700_000_000_000, i64::MAX as u64, 1 << 63, u64::MAX];
        let stored = times.map(|raw| time_to_sql(LogicalTime::from_raw(raw)));
        assert!(stored.is_sorted());
        assert_eq!(stored.map(|stored| time_from_sql(stored).as_raw()), times);
        assert_eq!(times.map(|raw| id_from_sql(id_to_sql(raw))), times);
        assert_eq!(id_to_sql(7), 7);
    }

    #[test]
    fn a_listing_goes_on_behind_where_it_stopped() {
        let behind = |after| ids_behind(after).collect::<Vec<_>>();
        let (all_high, high) = ((i64::MIN, -1), 1 << 63);
        assert_eq!(behind(None), [(0, i64::MAX), all_high]);
        assert_eq!(behind(Some(0)), [(1, i64::MAX), all_high]);
        assert_eq!(behind(Some(high - 1)), [all_high]);
        assert_eq!(behind(Some(high)), [(i64::MIN + 1, -1)]);
        assert_eq!(behind(Some(u64::MAX)), []);
    }
}
