//! Who may read the files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gossip_coordination_sqlite::SqliteCoordinator;

use crate::children::{Running, say, wait_for_parent};
use crate::support::{Place, config};

/// The child: opens the database, and closes it when the parent says so.
pub(crate) fn opens_and_waits(database: &Path) {
    let mut coordinator = SqliteCoordinator::open(database, config()).unwrap();
    // The log is there from the first write on.
    let sql = "INSERT INTO pages_rows SELECT ifnull(max(key), 0) + 1, 0 FROM pages_rows";
    coordinator.transaction(|tx| tx.execute(sql, [])).unwrap();
    say("open");
    wait_for_parent();
    drop(coordinator);
}

#[test]
fn the_database_and_its_log_are_their_owners_only_under_any_umask() {
    for umask in ["000", "022", "077", "777"] {
        let place = Place::new();
        let mut child = Running::start_with_umask(umask, "opens-and-waits", &place.db());
        child.expect("open");
        for suffix in ["", "-wal", "-shm"] {
            let path = place.beside(suffix);
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, 0o600, "{} under umask {umask}", path.display());
        }
        child.finish();
    }
}
