//! What a backend's author implements.

use gossip_contracts::identity::LogicalTime;

use super::dump::Dump;
use crate::claim::CoordinationFacade;
use crate::events::EventCollector;
use crate::lease::Takeover;

/// A backend under test. One value lives as long as one case, owns what the backend needs (a
/// directory, a key prefix), and cleans up when it is dropped.
pub trait Harness: Sized {
    /// The backend, or a handle to it.
    type Backend: CoordinationFacade + Send;

    /// How many of very many shards the suite claims, one after the other.
    const CLAIMS_AMONG_MANY: u64 = 2_000;

    /// What the backend can do. The suite tests at and above these.
    fn caps() -> Caps;

    /// A fresh and empty backend with these limits. What [`Caps`] rules out is never asked for.
    fn open(limits: &Limits) -> Self;

    /// The coordinator under test.
    fn backend(&mut self) -> &mut Self::Backend;

    /// Closes the backend and opens it again on the same data, as after a crash. Called only where
    /// [`Caps::durable`] says that this can be.
    fn reopen(&mut self) {}

    /// A second handle to the same data, as another process would have, where there can be one.
    fn connect(&mut self) -> Option<Self::Backend> {
        None
    }

    /// Runs `f` and puts the events of what it does into `collector`.
    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self::Backend) -> R,
    ) -> R;

    /// All that is stored: every record of every tenant as it stands, and with
    /// [`Dump::add_raw`] whatever else must not change when an operation is refused.
    fn dump(&mut self) -> Dump;

    /// Panics unless the backend's own indexes and counts agree with its records.
    fn assert_consistent(&mut self) {}
}

/// What a backend can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Most children of one split; at most
    /// [`MAX_SPLIT_CHILDREN`](gossip_contracts::coordination::MAX_SPLIT_CHILDREN).
    pub max_split_children: usize,
    /// Most bytes of keys and metadata in the ranges of one split; `usize::MAX` where there is no such
    /// cap.
    pub max_split_bytes: usize,
    /// Most shards of one registration; at most
    /// [`MAX_INITIAL_SHARDS`](gossip_contracts::coordination::MAX_INITIAL_SHARDS).
    pub max_initial_shards: usize,
    /// How long after a deadline another worker may take the shard, in milliseconds. Zero, unless
    /// the backend allows for clocks that differ.
    pub takeover_delay: u64,
    /// Whether it enforces the ceilings of [`Limits`].
    pub shard_ceilings: bool,
    /// Whether it enforces [`Limits::claim_cooldown`].
    pub claim_cooldown: bool,
    /// Whether it enforces [`Limits::byte_capacity`].
    pub byte_capacity: bool,
    /// Whether all that was answered survives [`Harness::reopen`].
    pub durable: bool,
}

impl Caps {
    /// When another worker may take a shard whose lease ends at `deadline`.
    pub(super) fn free_from(&self, deadline: LogicalTime) -> LogicalTime {
        let skew_allowance = self.takeover_delay;
        Takeover { holder_is_gone: false, skew_allowance }.free_from(deadline)
    }
}

/// With what a backend is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Shards that one tenant may have.
    pub shards_per_tenant: usize,
    /// Shards that all tenants together may have.
    pub shards_total: usize,
    /// How long a worker whose claim found nothing must wait before it claims again, in
    /// milliseconds. Zero: not at all.
    pub claim_cooldown: u64,
    /// Bytes for keys, cursors and metadata of all shards together; `None` for plenty.
    pub byte_capacity: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shards_per_tenant: 100_000,
            shards_total: 1_000_000,
            claim_cooldown: 0,
            byte_capacity: None,
        }
    }
}
