//! The deterministic simulator: one seed fixes workers, faults, clocks and the order of everything.
//!
//! `docs/verification.md` is the guide.

mod admin;
mod begin;
mod keys;
mod mischief;
mod op;
mod oracles;
mod perform;
mod port;
mod random;
pub mod reference;
mod seen;
mod show;
mod shrink;
mod subject;
mod swarm;
#[cfg(test)]
mod testing;
mod trace;
mod wire;
mod worker;
mod world;

pub use op::{
    Acquired, Answer, Bytes, Effect, Operation, OwnedCursor, OwnedRange, OwnedShardInput, Refusal,
    RunView,
};
pub use oracles::Violation;
pub use perform::perform;
pub use seen::Seen;
pub use shrink::{Shrunk, shrink};
pub use subject::{
    Applicant, Disturbed, Memory, Overtaken, Rival, StoreFault, Subject, SubjectLimits,
};
pub use swarm::{Ingredient, Swarm};
pub use wire::Failures;
pub use world::{OPERATIONS, Options, Report, run_seed};
