//! .
pub(crate) fn opens_and_waits(_: &std::path::Path) {}
