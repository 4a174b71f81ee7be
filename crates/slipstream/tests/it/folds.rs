//! Folds of buckets on a real server.

mod cable;
mod faults;
mod live;
mod support;
mod vanished;
