//! .
pub(crate) fn claims_and_waits(_: &std::path::Path) {}
