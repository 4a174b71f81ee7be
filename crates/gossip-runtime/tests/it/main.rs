//! Scans of real directories with the real database.

mod archives;
mod cancelled;
mod failures;
mod incremental;
mod inside;
mod interrupted;
mod prune;
mod read_errors;
mod support;
mod together;
