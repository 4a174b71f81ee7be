//! A disk that is full.

use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef, plan_split_replace_at_points};
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, CommitError, CoordinationBackend, InfraError, Lease,
    ShardClaiming, SplitError, TransactionalBackend,
};
use gossip_coordination_sqlite::{CallerSchema, SqliteConfig, SqliteCoordinator};

use crate::bad_files::Mounted;
use crate::support::{NOW, Place, RUN, TENANT, assert_sound, begin, key, number, shards};

/// Rows that take up room.
const HEAPS: CallerSchema = CallerSchema {
    name: "heaps",
    retired: 0,
    steps: &["CREATE TABLE heaps_rows(key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT"],
};

fn config() -> SqliteConfig {
    SqliteConfig { caller_schemas: vec![HEAPS], ..SqliteConfig::default() }
}

fn claim(coordinator: &mut SqliteCoordinator) -> Lease {
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap().lease
}

/// Checkpoints with 4 kB each until it fails; the last key that was accepted, and why no more.
fn fill(
    coordinator: &mut SqliteCoordinator,
    lease: &Lease,
    from: u64,
    to: u64,
) -> (u64, Option<CommitError<CheckpointError, rusqlite::Error>>) {
    for at in from..=to {
        let (cursor, op) = (key(at), OpId::from_raw(at));
        let outcome =
            coordinator.checkpoint_with(NOW, TENANT, lease, CursorUpdate::at(&cursor), op, |tx| {
                let sql = "INSERT INTO heaps_rows VALUES (?1, zeroblob(4000))";
                tx.execute(sql, [at as i64]).map(drop)
            });
        if let Err(error) = outcome {
            return (at - 1, Some(error));
        }
    }
    (to, None)
}

#[track_caller]
fn assert_at(coordinator: &SqliteCoordinator, accepted: u64) {
    assert_eq!(shards(coordinator)[0].last_key.as_deref().map(number), Some(accepted));
    let rows = coordinator.read(|tx| {
        tx.query_row("SELECT count(*), max(key) FROM heaps_rows", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
    });
    assert_eq!(rows.unwrap(), (accepted as i64, accepted as i64));
    assert_sound(coordinator);
}

#[test]
fn a_full_disk_refuses_whole_operations_and_loses_none() {
    let place = Place::new();
    let Some(mounted) = Mounted::tmpfs(place.dir.path().join("mount"), "1m") else { return };
    let path = mounted.dir.join("a.db");
    let mut coordinator = SqliteCoordinator::open(&path, config()).unwrap();
    begin(&mut coordinator, 1, 10_000, 60_000);
    let lease = claim(&mut coordinator);
    let (accepted, error) = fill(&mut coordinator, &lease, 1, 1000);
    let error = error.expect("a megabyte is full at some time").to_string();
    assert!(error.contains("full"), "{error}");
    assert!(accepted > 10, "{accepted}");
    assert_at(&coordinator, accepted);

    mounted.remount("size=16m");
    let (accepted, error) = fill(&mut coordinator, &lease, accepted + 1, 1000);
    assert!(error.is_none(), "{error:?}");
    assert_at(&coordinator, accepted);
    drop(coordinator);
    assert_at(&SqliteCoordinator::open(&path, config()).unwrap(), 1000);
}

/// The same by a limit of SQLite's own, which needs no rights.
#[test]
fn a_database_that_may_not_grow_refuses_whole_operations() {
    let place = Place::new();
    let mut coordinator = SqliteCoordinator::open(place.db(), config()).unwrap();
    begin(&mut coordinator, 1, 10_000, 60_000);
    let lease = claim(&mut coordinator);
    let limit = |coordinator: &mut SqliteCoordinator, more: i64| {
        let limited = coordinator.transaction(|tx| {
            let pages: i64 = tx.pragma_query_value(None, "page_count", |row| row.get(0))?;
            tx.query_row(&format!("PRAGMA max_page_count = {}", pages + more), [], |_| Ok(()))
        });
        limited.unwrap();
    };
    limit(&mut coordinator, 10);
    let (accepted, error) = fill(&mut coordinator, &lease, 1, 1000);
    assert!(matches!(error, Some(CommitError::Caller(_))), "{error:?}");
    assert_at(&coordinator, accepted);

    // Our own part: many children do not fit.
    limit(&mut coordinator, 0);
    let points: Vec<_> = (accepted + 1..accepted + 200).map(key).collect();
    let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
    let (start, end) = (key(1), key(10_001));
    let plan = plan_split_replace_at_points(ShardSpecRef::new(&start, &end, b""), &points).unwrap();
    let op = OpId::from_raw(5000);
    let refused = coordinator.split_replace(NOW, TENANT, &lease, &plan, op);
    let Err(SplitError::BackendError(error @ InfraError::Transient { .. })) = refused else {
        panic!("{refused:?}")
    };
    assert_eq!(
        error.to_string(),
        "split_replace.store: the disk is full: free some space and try again"
    );
    assert_at(&coordinator, accepted);
    limit(&mut coordinator, 10_000);
    assert!(coordinator.split_replace(NOW, TENANT, &lease, &plan, op).unwrap().is_executed());
    assert_eq!(shards(&coordinator).len(), 201);
}
