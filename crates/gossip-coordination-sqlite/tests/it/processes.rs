//! .
pub(crate) fn works(_: &std::path::Path) {}
