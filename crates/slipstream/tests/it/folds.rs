//! Folds of buckets on a real server.

mod cable;
mod faults;
mod live;
mod purged;
mod support;
mod vanished;
