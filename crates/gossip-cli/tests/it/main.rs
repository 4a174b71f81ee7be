//! The real program, on real files.

mod bad_input;
mod commands;
mod kill;
mod redaction;
mod support;
mod terminal;
