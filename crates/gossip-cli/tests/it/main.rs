//! The real program, on real files.

mod commands;
mod kill;
mod redaction;
mod support;
mod terminal;
