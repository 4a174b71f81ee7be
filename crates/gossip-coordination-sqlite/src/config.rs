//! How a database is used.

use std::time::Duration;

use gossip_coordination::{DEFAULT_MAX_SHARDS_PER_TENANT, DEFAULT_MAX_TOTAL_SHARDS, ShardLimits};

use crate::caller_schema::CallerSchema;

/// What a commit survives. A killed process loses nothing either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure may undo the last commits, all of them and what they belong to together:
    /// work is repeated, never skipped.
    #[default]
    Normal,
    /// A commit survives a power failure. Every commit waits for the disk.
    Full,
    /// A power failure may ruin the database. For what can be begun again: simulations, tests.
    Off,
}

/// How a database is used. `SqliteConfig::default()` suits one machine's scans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteConfig {
    /// What a commit survives.
    pub durability: Durability,
    /// How long an operation waits while others hold the database.
    pub busy_timeout: Duration,
    /// Ceilings on the number of shards.
    pub limits: ShardLimits,
    /// The caller's own tables in the same database.
    pub caller_schemas: Vec<CallerSchema>,
}

impl Default for SqliteConfig {
    fn default() -> Self {
        Self {
            durability: Durability::Normal,
            busy_timeout: Duration::from_secs(10),
            limits: ShardLimits {
                per_tenant: DEFAULT_MAX_SHARDS_PER_TENANT,
                global: DEFAULT_MAX_TOTAL_SHARDS,
            },
            caller_schemas: Vec::new(),
        }
    }
}
