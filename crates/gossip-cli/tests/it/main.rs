//! The real program, on real files.

mod bad_input;
mod buckets;
mod commands;
mod git;
mod kill;
mod redaction;
mod sources;
mod support;
mod terminal;
#[path = "../../../gossip-object-store/tests/it/server.rs"]
mod weed;
