//! The caller's tables, and what happens to a process that sets them up.

use std::path::Path;
use std::time::Duration;

use gossip_coordination_sqlite::{CallerSchema, OpenError, SqliteConfig, SqliteCoordinator};

use crate::children::{Running, say};
use crate::support::{Place, assert_sound, begin, random_below, scaled};

/// Takes a while, so that there is a middle to be killed in.
const SLOW: CallerSchema = CallerSchema {
    name: "slow",
    retired: 0,
    steps: &[
        "CREATE TABLE slow_rows(key INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT",
        "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < 20000) \
         INSERT INTO slow_rows SELECT n, zeroblob(200) FROM counted; \
         CREATE INDEX slow_rows_by_length ON slow_rows(length(bytes), key)",
        "DELETE FROM slow_rows WHERE key % 2 = 0",
    ],
};

fn with(caller_schemas: &[CallerSchema]) -> SqliteConfig {
    SqliteConfig { caller_schemas: caller_schemas.to_vec(), ..SqliteConfig::default() }
}

/// The child: brings the tables up to date.
pub(crate) fn migrates(database: &Path) {
    say("starts");
    drop(SqliteCoordinator::open(database, with(&[SLOW])).unwrap());
    say("done");
}

#[test]
fn a_migration_that_is_killed_half_way_has_not_begun() {
    let (mut killed, mut survived) = (0, 0);
    for _ in 0..scaled(6) {
        let place = Place::new();
        begin(&mut place.open(), 3, 10, 1000);
        let mut child = Running::start("migrates", &place.db());
        child.expect("starts");
        std::thread::sleep(Duration::from_micros(random_below(200_000)));
        child.kill();
        let done = std::iter::from_fn(|| child.next()).last().is_some();

        let coordinator = place.open();
        assert_sound(&coordinator);
        let tables = coordinator.read(|tx| {
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'slow_*'";
            tx.query_row(sql, [], |row| row.get::<_, i64>(0))
        });
        match tables.unwrap() {
            0 => {
                assert!(!done, "it said that it was done");
                killed += 1;
            }
            2 => survived += 1,
            others => panic!("{others} tables and indexes"),
        }
        drop(coordinator);
        let coordinator = SqliteCoordinator::open(place.db(), with(&[SLOW])).unwrap();
        let rows = coordinator.read(|tx| {
            tx.query_row("SELECT count(*) FROM slow_rows", [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(rows.unwrap(), 10_000);
        assert_sound(&coordinator);
    }
    println!("{killed} killed before the end, {survived} after");
}

/// Found by this test: SQLite may write parts of a large first transaction to the file before its
/// first page, and the file then looked like no database at all.
#[test]
fn a_database_whose_creation_was_killed_is_created_by_the_next() {
    let mut stages = std::collections::BTreeSet::new();
    for _ in 0..scaled(15) {
        let place = Place::new();
        let mut child = Running::start("migrates", &place.db());
        child.expect("starts");
        std::thread::sleep(Duration::from_micros(random_below(20_000)));
        child.kill();
        let exists = |suffix: &str| place.beside(suffix).exists();
        stages.insert(["", "-journal", "-wal"].map(exists));
        assert_sound(&place.open());
    }
    println!("file, journal, log when killed: {stages:?}");
}

#[test]
fn steps_are_carried_out_once_and_in_order() {
    let one = CallerSchema { steps: &SLOW.steps[..1], ..SLOW };
    let place = Place::new();
    for schema in [one, one, SLOW, SLOW] {
        let coordinator = SqliteCoordinator::open(place.db(), with(&[schema])).unwrap();
        let version = coordinator.read(|tx| {
            let sql = "SELECT version FROM coord_components WHERE name = 'slow'";
            tx.query_row(sql, [], |row| row.get::<_, i64>(0))
        });
        assert_eq!(version.unwrap(), schema.steps.len() as i64);
    }
    // The program before last does not know what became of its tables.
    let refused = SqliteCoordinator::open(place.db(), with(&[one])).unwrap_err();
    assert!(
        matches!(refused, OpenError::NewerCallerSchema { found: 3, newest: 1, .. }),
        "{refused:?}"
    );
    // Others are not concerned.
    assert_sound(&place.open());
}

#[test]
fn tables_of_a_retired_version_are_refused_and_left_as_they_are() {
    let place = Place::new();
    let old = CallerSchema { steps: &SLOW.steps[..2], ..SLOW };
    drop(SqliteCoordinator::open(place.db(), with(&[old])).unwrap());
    let now = CallerSchema { retired: 2, steps: &["CREATE TABLE slow_all(x)", "SELECT 1"], ..SLOW };
    for _ in 0..2 {
        let refused = SqliteCoordinator::open(place.db(), with(&[now])).unwrap_err();
        let says = refused.to_string();
        assert!(
            matches!(refused, OpenError::RetiredCallerSchema { found: 2, oldest: 3, .. }),
            "{refused:?}"
        );
        assert!(says.contains("to start over"), "{says}");
    }
    // The version that wrote them still reads them; a new file begins at the newest.
    drop(SqliteCoordinator::open(place.db(), with(&[old])).unwrap());
    let fresh = Place::new();
    let third = CallerSchema { steps: &now.steps[..1], ..now };
    for schema in [third, now, now] {
        drop(SqliteCoordinator::open(fresh.db(), with(&[schema])).unwrap());
    }
}

#[test]
fn a_caller_schema_keeps_to_its_own_tables() {
    for steps in [
        &["CREATE TABLE rows(x) STRICT"] as &[&str],
        &["CREATE TABLE mine_rows(x)", "CREATE INDEX by_x ON mine_rows(x)"],
        &["CREATE TABLE coord_more(x)"],
        &["DROP TABLE coord_runs"],
        &["ALTER TABLE coord_runs ADD COLUMN mine_x"],
        &["CREATE TRIGGER mine_t AFTER UPDATE ON coord_shards BEGIN SELECT 1; END"],
        &["CREATE TABLE mine_rows(x)", "COMMIT"],
        &["CREATE TABLE mine_rows(x)", "no SQL at all"],
    ] {
        let place = Place::new();
        let schema = CallerSchema { name: "mine", retired: 0, steps };
        let refused = SqliteCoordinator::open(place.db(), with(&[schema])).unwrap_err();
        assert!(matches!(refused, OpenError::CallerSchema { .. }), "{steps:?}: {refused:?}");
        let coordinator = place.open();
        assert_sound(&coordinator);
        let left = coordinator.read(|tx| {
            let sql = "SELECT count(*) FROM sqlite_schema WHERE name GLOB 'mine*'";
            tx.query_row(sql, [], |row| row.get::<_, i64>(0))
        });
        // A step that commits keeps what it committed; it is a bug of the program, and found at once.
        assert!(left.unwrap() == 0 || steps.contains(&"COMMIT"), "{steps:?}");
    }
    let place = Place::new();
    for name in ["", "coord", "sqlite", "Mine", "1st", "a_b", "mine-2"] {
        let schema = CallerSchema { name, retired: 0, steps: &["SELECT 1"] };
        let refused = SqliteCoordinator::open(place.db(), with(&[schema])).unwrap_err();
        assert!(matches!(refused, OpenError::CallerSchema { .. }), "{name}: {refused:?}");
    }
    let fine = CallerSchema {
        name: "fine",
        retired: 0,
        steps: &["CREATE TABLE fine_rows(x INTEGER PRIMARY KEY AUTOINCREMENT, y UNIQUE); \
             CREATE INDEX fine_rows_by_y ON fine_rows(y); CREATE VIEW fine_view AS SELECT 1"],
    };
    SqliteCoordinator::open(place.db(), with(&[fine])).unwrap();
}
