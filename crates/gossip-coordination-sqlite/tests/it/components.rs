//! .
pub(crate) fn migrates(_: &std::path::Path) {}
