//! The runtime's own tables, in the coordinator's database.
//!
//! - D3: no byte of a secret is stored: a keyed hash, and the public prefix of its format.

use gossip_coordination_sqlite::CallerSchema;

/// The tables: [`runs`](crate::runs), [`totals`](crate::totals), [`ledger`](crate::ledger) and
/// [`findings`](crate::findings).
///
/// Ledger and occurrences are in key order, as a worker writes: a checkpoint then touches the few
/// pages at its place, where rows under a hash touched as many pages as they were. No index follows
/// `run` for the same reason: who counts a run's items walks its scope.
pub(crate) const SCHEMA: CallerSchema = CallerSchema {
    name: "scan",
    retired: 3,
    steps: &[
        "
        CREATE TABLE scan_runs(
            run INTEGER PRIMARY KEY AUTOINCREMENT,
            target BLOB NOT NULL,
            policy BLOB NOT NULL,
            started_ms INTEGER NOT NULL,
            ended_ms INTEGER,
            resumed INTEGER NOT NULL DEFAULT 0,
            fresh INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX scan_runs_open ON scan_runs(target, policy) WHERE ended_ms IS NULL;

        CREATE TABLE scan_totals(
            run INTEGER NOT NULL,
            what TEXT NOT NULL,
            reason TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY(run, what, reason)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE scan_scopes(
            scope INTEGER PRIMARY KEY,
            target BLOB NOT NULL,
            policy BLOB NOT NULL,
            UNIQUE(target, policy)
        ) STRICT;

        CREATE TABLE scan_ledger(
            scope INTEGER NOT NULL,
            key BLOB NOT NULL,
            version BLOB NOT NULL,
            bytes INTEGER NOT NULL,
            skipped TEXT,
            failed TEXT,
            run INTEGER NOT NULL,
            PRIMARY KEY(scope, key)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE scan_occurrences(
            scope INTEGER NOT NULL,
            key BLOB NOT NULL,
            occurrence BLOB NOT NULL,
            finding BLOB NOT NULL,
            secret BLOB NOT NULL,
            rule TEXT NOT NULL,
            fingerprint BLOB NOT NULL,
            severity TEXT NOT NULL,
            confidence TEXT NOT NULL,
            redacted TEXT NOT NULL,
            start INTEGER NOT NULL,
            length INTEGER NOT NULL,
            line INTEGER NOT NULL,
            column INTEGER NOT NULL,
            PRIMARY KEY(scope, key, occurrence)
        ) STRICT, WITHOUT ROWID;
        ",
        "ALTER TABLE scan_occurrences ADD COLUMN path BLOB;
        ALTER TABLE scan_occurrences ADD COLUMN inner BLOB;
        ALTER TABLE scan_ledger ADD COLUMN inside BLOB;",
        // What a report says of a finding beyond its place, and in which run it was first seen. What
        // an older engine found is without; the newer is another policy, and reads everything again.
        "
        ALTER TABLE scan_occurrences ADD COLUMN end_line INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE scan_occurrences ADD COLUMN end_column INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE scan_occurrences ADD COLUMN description TEXT NOT NULL DEFAULT '';
        ALTER TABLE scan_occurrences ADD COLUMN reason TEXT NOT NULL DEFAULT '';
        ALTER TABLE scan_occurrences ADD COLUMN before TEXT NOT NULL DEFAULT '';
        ALTER TABLE scan_occurrences ADD COLUMN after TEXT NOT NULL DEFAULT '';
        ALTER TABLE scan_occurrences ADD COLUMN silenced INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE scan_occurrences ADD COLUMN commit_id TEXT;
        ALTER TABLE scan_occurrences ADD COLUMN author TEXT;
        ALTER TABLE scan_occurrences ADD COLUMN date_ms INTEGER;
        ALTER TABLE scan_occurrences ADD COLUMN other_paths BLOB;

        CREATE TABLE scan_seen(
            finding BLOB PRIMARY KEY,
            run INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        INSERT INTO scan_seen
            SELECT finding, min(run) FROM scan_occurrences JOIN scan_ledger USING (scope, key)
            GROUP BY finding;
        ",
        // What is not scanned is named, also where that is not its key.
        "ALTER TABLE scan_ledger ADD COLUMN path BLOB;",
    ],
};

/// The scope that a run belongs to, in SQL, with the run as its first parameter.
macro_rules! scope_of_run {
    () => {
        "(SELECT scope FROM scan_scopes JOIN scan_runs USING (target, policy) WHERE run = ?1)"
    };
}
pub(crate) use scope_of_run;
