//! How much fits into one transaction.

use crate::keyspace::Listed;

/// Most operations of a split besides two for each child: the parent's record, its old and its new
/// place, its owner and its worker's entry, and two totals.
const SPLIT_OPS: usize = 7;
/// Most children of a split whatever the configuration: with the server's default of 128 operations.
pub(crate) const SPLIT_CHILDREN_MAX: usize = largest_split(128);
/// Most bytes of keys and metadata in one split. The server takes requests of 1.5 MiB; the largest
/// parent's record has 54 KiB, and the keys of the largest split less than 80.
pub(crate) const SPLIT_BYTES_MAX: usize = 1_400_000;
const _: () = assert!(SPLIT_BYTES_MAX + (54 + 80) * 1024 < 1_572_864);

/// The largest split that fits into a transaction of so many operations.
pub(crate) const fn largest_split(txn_ops_max: usize) -> usize {
    txn_ops_max.saturating_sub(SPLIT_OPS) / 2
}

/// Most operations of a step of a registration besides two for each shard: the run's record, its
/// gate, its entries among the runs and the open ones, and two totals.
const REGISTER_OPS: usize = 6;
/// Most bytes of ranges and cursors in one step of a registration.
pub(crate) const REGISTER_BYTES_MAX: usize = 1_000_000;
/// What a step's other bytes are less than: two keys and the rest of a record for each shard.
const STEP_ROW_BYTES: usize = 2 * 256 + 512;
const _: () = assert!(REGISTER_BYTES_MAX + largest_step(usize::MAX) * STEP_ROW_BYTES < 1_572_864);

/// Larger steps would gain nothing, and pass the size of a request.
const STEP_OPS_MAX: usize = 128;

const fn step_ops(txn_ops_max: usize) -> usize {
    let ops = if txn_ops_max < STEP_OPS_MAX { txn_ops_max } else { STEP_OPS_MAX };
    ops.saturating_sub(REGISTER_OPS)
}

/// The most shards of one step in a transaction of so many operations.
pub(crate) const fn largest_step(txn_ops_max: usize) -> usize {
    step_ops(txn_ops_max) / 2
}

/// The most shards that one step deletes: record and owner of each, and its key in every list.
pub(crate) const fn largest_deletion(txn_ops_max: usize) -> usize {
    step_ops(txn_ops_max) / (2 + Listed::ALL.len())
}
const _: () = assert!(largest_deletion(TXN_OPS_MIN) > 0);

/// Entries of one page: of the largest records there are, 3.5 MiB.
pub(crate) const PAGE: usize = 64;

/// Entries of an index that one claim looks at.
pub(crate) const CLAIM_PAGE: usize = 32;

/// The fewest operations that a cluster must take in one transaction: a page of runs is as many, and
/// a claim that looks for shards without owners asks two things about each.
pub(crate) const TXN_OPS_MIN: usize = 64;
const _: () = assert!(TXN_OPS_MIN >= PAGE && TXN_OPS_MIN >= 2 * CLAIM_PAGE);
