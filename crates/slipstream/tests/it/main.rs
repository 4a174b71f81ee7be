//! The crate's tests from outside.

mod applied;
mod models;
