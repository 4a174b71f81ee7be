//! .
pub(crate) fn holds(_: &std::path::Path) {}
