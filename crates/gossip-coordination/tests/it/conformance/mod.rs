//! The suite on the coordinators of this crate, and the suite itself under test.

mod coverage;
pub(crate) mod delegate;
mod held;
mod losing;
mod memory;
mod mutants;
mod narrow;
mod shared;
mod through_async;
