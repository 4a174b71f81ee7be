//! Simulates coordination: one seed fixes workers, faults, clocks and the order of everything.
//!
//! A backend implements [`SimulatedBackend`] to be simulated; [`Memory`], [`Sqlite`] and
//! [`Etcd`] do. `docs/verification.md` is the guide.
//!
//! ```
//! use gossip_simulator::{Memory, Options, run_seed};
//!
//! let report = run_seed::<Memory>(7, &Options::default());
//! assert_eq!(report.violation, None);
//! assert_eq!(report.hash, run_seed::<Memory>(7, &Options::default()).hash);
//! ```

mod admin;
mod answer_kinds;
mod begin;
mod etcd;
mod keys;
mod misuse;
mod op;
mod oracles;
mod perform;
mod port;
mod random;
pub mod reference;
mod show;
mod shrink;
mod simulated;
mod sqlite;
mod swarm;
#[cfg(test)]
mod testing;
mod trace;
mod wire;
mod worker;
mod world;

pub use answer_kinds::AnswerKinds;
pub use etcd::Etcd;
pub use op::{
    Acquired, Answer, Bytes, Effect, Operation, OwnedCursor, OwnedRange, OwnedShardInput, Refusal,
    RunView,
};
pub use oracles::Violation;
pub use perform::perform;
pub use shrink::{Shrunk, shrink};
pub use simulated::{
    Applicant, BackendLimits, Disturbed, Effective, Memory, Overtaken, Rival, SimulatedBackend,
    StoreFault,
};
pub use sqlite::Sqlite;
pub use swarm::{Ingredient, Swarm};
pub use wire::Failures;
pub use world::{OPERATIONS, Options, Report, run_seed};
