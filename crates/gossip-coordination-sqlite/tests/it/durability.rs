//! How much a commit survives is SQLite's to keep; that it is asked for is ours.

use gossip_coordination_sqlite::{Durability, SqliteConfig, SqliteCoordinator};

use crate::support::Place;

#[test]
fn the_durability_asked_for_is_the_one_that_the_connection_has() {
    for (durability, synchronous) in
        [(Durability::Off, 0), (Durability::Normal, 1), (Durability::Full, 2)]
    {
        let place = Place::new();
        let config = SqliteConfig { durability, ..SqliteConfig::default() };
        let coordinator = SqliteCoordinator::open(place.db(), config).unwrap();
        let found = coordinator
            .read(|tx| tx.pragma_query_value(None, "synchronous", |row| row.get::<_, i64>(0)));
        assert_eq!(found.unwrap(), synchronous, "{durability:?}");
    }
}
