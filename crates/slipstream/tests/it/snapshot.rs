//! Folds on disk.

pub(crate) mod append_log;
mod disk;
mod fjall;
mod locks;
