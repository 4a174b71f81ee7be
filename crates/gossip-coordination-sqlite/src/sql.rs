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

/// Runs `f` alone on the database. What it wrote is stored if it succeeds; nothing if it fails or
/// panics.
pub(crate) fn write<T, E: From<InfraError>>(
    conn: &Connection,
    steps: &Steps,
    f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate).at(steps.begin)?;
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
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Deferred).at(steps.begin)?;
    f(&tx)
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
}
