//! Scans a source as a run of leased shards: claim, list, scan, commit, checkpoint.
//!
//! What a scan found, what it read and how far it came are committed together, so a scan that is
//! killed at any moment goes on where it stopped when it is started again, and reports what it
//! would have reported.
//!
//! Nothing here knows what a file is; that is the source's business, and what a secret looks like
//! is the engine's.

mod admin;
mod batch;
mod clock;
mod item;
mod options;
mod plan;
mod report;
mod scan;
mod state;
mod stats;
mod store;
mod text;
mod worker;

pub use admin::Admin;
pub use options::ScanOptions;
pub use report::{ReportError, ReportedFinding, Reports, RunSummary};
pub use scan::{Scan, ScanEnd, ScanError, ScanOutcome};
pub use state::{StateDir, StateError};
pub use stats::ScanStats;
