//! The append log.

mod bytes;
mod checks;
mod compaction;
mod conformance;
pub(crate) mod format_1;
mod full;
mod golden;
pub(crate) mod support;
mod writer;
