//! Folds on disk.

mod append_log;
