//! .
pub(crate) fn checkpoints_for_ever(_: &std::path::Path) {}
