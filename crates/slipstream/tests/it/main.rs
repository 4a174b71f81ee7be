//! What users of the crate can rely on, seen from outside.

mod snapshot;
