//! Folds on disk.
