//! Folds on disk.

mod append_log;
mod fjall;
