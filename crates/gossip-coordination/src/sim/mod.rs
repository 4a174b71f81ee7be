//! The deterministic simulator: one seed fixes workers, faults, clocks and the order of everything.
//!
//! `docs/verification.md` is the guide.

mod op;
mod perform;
pub mod reference;

pub use op::{
    Acquired, Answer, Bytes, Effect, Operation, OwnedCursor, OwnedRange, OwnedShardInput, Refusal,
    RunView,
};
pub use perform::perform;
