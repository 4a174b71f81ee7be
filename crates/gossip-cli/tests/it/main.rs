//! The real program, on real files.

mod bad_input;
mod commands;
mod kill;
mod redaction;
mod sources;
mod support;
mod terminal;
