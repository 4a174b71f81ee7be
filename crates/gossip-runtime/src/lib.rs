//! Scans a source as a run of leased shards: claim, list, scan, commit, checkpoint.
//!
//! What a scan found, what it read and how far it came are committed together, so a scan that is
//! killed at any moment goes on where it stopped when it is started again, and reports what it
//! would have reported.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use gossip_connectors::fs::{FsOptions, FsSource};
//! use gossip_engine::{Engine, Options, RuleSet};
//! use gossip_runtime::{Reports, Scan, ScanEnd, ScanOptions, ScanStats, StateDir};
//!
//! # let dir = tempfile::tempdir()?;
//! # let (tree, state) = (dir.path().join("tree"), dir.path().join("state"));
//! std::fs::create_dir(&tree)?;
//! std::fs::write(tree.join("deploy.sh"), "export TOKEN=acme_q8zr2lmt\n")?;
//!
//! let rules = RuleSet::from_toml("mine.toml", r#"
//!     [[rules]]
//!     id = "acme-token"
//!     regex = '''\bacme_[a-z0-9]{8}\b'''
//! "#)?;
//! let state = StateDir::open(state)?;
//! let stop = AtomicBool::new(false);
//! let scan = Scan {
//!     state: &state,
//!     source: &FsSource::open(&tree, FsOptions::default())?,
//!     target: tree.as_os_str().as_encoded_bytes(),
//!     engine: &Engine::new(rules, Options::default()),
//!     options: &ScanOptions { threads: 2, ..ScanOptions::default() },
//!     stats: &ScanStats::default(),
//!     stop: &stop,
//! };
//! let outcome = scan.run()?;
//! assert_eq!(outcome.end, ScanEnd::Finished);
//!
//! let findings = Reports::open(&state)?.findings(outcome.run)?;
//! assert_eq!(findings.len(), 1);
//! assert_eq!((findings[0].key.as_slice(), findings[0].line), (&b"deploy.sh"[..], 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Nothing here knows what a file is; that is the source's business, and what a secret looks like
//! is the engine's.

mod admin;
mod archive_item;
mod base;
mod batch;
mod clock;
mod crew;
mod findings;
mod fingerprint;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod item;
mod ledger;
mod missed;
mod options;
mod partial_item;
mod plan;
mod policy;
mod prune;
mod reason;
mod report;
mod reported;
mod runs;
mod scan;
mod scan_loop;
mod schema;
mod second_look;
mod shard_token;
mod shard_work;
mod state;
mod stats;
mod totals;
mod transaction;
mod worker;

pub use admin::Admin;
pub use findings::Silence;
pub use fingerprint::Fingerprints;
pub use ledger::ReportedItem;
pub use missed::Missed;
pub use options::ScanOptions;
pub use policy::policy_hash;
pub use prune::Pruning;
pub use report::{ReportError, Reports, RunSummary};
pub use reported::{OldestVersion, ReportedFinding, Verdict, Versions};
pub use scan::{Scan, ScanEnd, ScanError, ScanOutcome};
pub use state::{StateDir, StateError};
pub use stats::ScanStats;
