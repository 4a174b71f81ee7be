//! `watch_applied`, on buckets in memory: every transition of its loop.

mod costs;
mod exports;
mod interrupted;
mod loops;
mod owed;
mod own_entries;
mod repair;
mod silence;
mod slow_store;
mod store_failures;
mod support;
mod tapped;
mod unknown_versions;
