//! The real program, on real files.

mod all_versions;
mod bad_input;
mod buckets;
mod commands;
mod configs;
mod equality;
mod fingerprints;
mod git;
mod history;
mod hook;
mod kill;
mod missed;
mod moved_state;
mod newcomer;
mod options;
mod origins;
mod page;
mod prune;
mod readme;
mod redaction;
mod reports;
mod repositories;
mod sources;
mod support;
mod terminal;
mod versions;
#[path = "../../../gossip-object-store/tests/it/server.rs"]
mod weed;
