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
    retired: 10,
    steps: &["
        CREATE TABLE scan_runs(
            run INTEGER PRIMARY KEY AUTOINCREMENT,
            target BLOB NOT NULL,
            policy BLOB NOT NULL,
            started_ms INTEGER NOT NULL,
            ended_ms INTEGER,
            cancelled INTEGER NOT NULL DEFAULT 0,
            resumed INTEGER NOT NULL DEFAULT 0,
            fresh INTEGER NOT NULL DEFAULT 0,
            nonce BLOB NOT NULL
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
            inside BLOB,
            path BLOB,
            other_paths BLOB,
            more_paths INTEGER NOT NULL,
            unread BLOB,
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
            end_line INTEGER NOT NULL,
            end_column INTEGER NOT NULL,
            path BLOB,
            inner BLOB,
            description TEXT NOT NULL,
            reason TEXT NOT NULL,
            before TEXT NOT NULL,
            after TEXT NOT NULL,
            silenced INTEGER NOT NULL,
            commit_id TEXT,
            author TEXT,
            date_ms INTEGER,
            commit_order INTEGER,
            PRIMARY KEY(scope, key, occurrence)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE scan_seen(
            finding BLOB NOT NULL,
            inner BLOB NOT NULL,
            copy INTEGER NOT NULL,
            run INTEGER NOT NULL,
            PRIMARY KEY(finding, inner, copy)
        ) STRICT, WITHOUT ROWID;
    "],
};

/// The scope that a run belongs to, in SQL, with the run as its first parameter.
macro_rules! scope_of_run {
    () => {
        "(SELECT scope FROM scan_scopes JOIN scan_runs USING (target, policy) WHERE run = ?1)"
    };
}
pub(crate) use scope_of_run;
