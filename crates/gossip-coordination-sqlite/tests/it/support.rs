//! A small world for the tests: a directory, a tenant, a run over numbered keys.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId};
use gossip_coordination::{RunConfig, RunManagement, ShardFilter, ShardSummary};
use gossip_coordination_sqlite::{CallerSchema, SqliteConfig, SqliteCoordinator};
use tempfile::TempDir;

pub(crate) const TENANT: TenantId = TenantId::from_bytes([7; 32]);
pub(crate) const RUN: RunId = RunId::from_raw(1);
pub(crate) const NOW: LogicalTime = LogicalTime::from_raw(1_000_000);

/// One row for each key that was handled; a second one for the same key is an error.
pub(crate) const PAGES: CallerSchema = CallerSchema {
    name: "pages",
    retired: 0,
    steps: &["CREATE TABLE pages_rows(key INTEGER PRIMARY KEY, worker INTEGER NOT NULL) STRICT"],
};

pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("gossip-sqlite-").tempdir().unwrap() }
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.dir.path().join("gossip.db")
    }

    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        self.dir.path().join(format!("gossip.db{suffix}"))
    }

    pub(crate) fn open(&self) -> SqliteCoordinator {
        SqliteCoordinator::open(self.db(), config()).unwrap()
    }
}

pub(crate) fn config() -> SqliteConfig {
    SqliteConfig { caller_schemas: vec![PAGES], ..SqliteConfig::default() }
}

/// Unix milliseconds.
pub(crate) fn clock() -> LogicalTime {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    LogicalTime::from_raw(u64::try_from(millis).unwrap())
}

/// The key whose number is `number`.
pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

pub(crate) fn number(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().expect("eight bytes"))
}

/// A run whose shards cover `keys` numbers each, from 1 on.
pub(crate) fn begin(coordinator: &mut SqliteCoordinator, shards: u64, keys: u64, lease: u64) {
    let bounds: Vec<_> = (0..=shards).map(|shard| key(1 + shard * keys)).collect();
    let inputs: Vec<_> = bounds
        .windows(2)
        .zip(0..)
        .map(|(pair, id)| {
            let range = ShardSpecRef::new(&pair[0], &pair[1], b"");
            InitialShardInput::new(ShardId::from_raw(id), range, CursorUpdate::initial())
        })
        .collect();
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: lease,
        max_shard_retries: u32::MAX,
    };
    let op = OpId::from_raw(u64::MAX);
    coordinator.create_run_with_shards(NOW, TENANT, RUN, config, &inputs, op).unwrap();
}

pub(crate) fn shards(coordinator: &SqliteCoordinator) -> Vec<ShardSummary> {
    let mut listed = Vec::new();
    coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    listed
}

/// The numbers in the caller's table, in order.
pub(crate) fn pages(coordinator: &SqliteCoordinator) -> Vec<u64> {
    let rows = coordinator.read(|tx| {
        let mut statement = tx.prepare("SELECT key FROM pages_rows ORDER BY key")?;
        let rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
        rows.map(|row| row.map(|number| number as u64)).collect::<rusqlite::Result<_>>()
    });
    rows.unwrap()
}

pub(crate) fn assert_sound(coordinator: &SqliteCoordinator) {
    let report = coordinator.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
}

/// How often to repeat: `count`, times what a soak asks for.
pub(crate) fn scaled(count: u64) -> u64 {
    let scale = match std::env::var("GOSSIP_SOAK_SCALE") {
        Ok(scale) => scale.parse().expect("GOSSIP_SOAK_SCALE is an integer"),
        Err(_) => 1,
    };
    count * scale
}

/// A number below `bound`, another one in every run.
pub(crate) fn random_below(bound: u64) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(0u8) % bound
}
