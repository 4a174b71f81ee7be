//! The embedded coordinator on real files, with real processes that are really killed.

mod allocations;
mod bad_files;
mod busy;
mod caller_schema;
mod children;
mod commit;
mod conformance;
mod differential;
mod durability;
mod fixtures;
mod full;
mod kill;
mod modes;
mod processes;
mod runs;
mod slots;
mod support;
mod verify;
