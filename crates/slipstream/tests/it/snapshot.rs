//! Folds on disk.

mod append_log;
mod disk;
mod fjall;
mod locks;
