//! The suite on the coordinators of this crate, and the suite itself under test.

mod coverage;
mod doors;
mod held;
mod losing;
mod memory;
mod mischief;
mod shared;
mod through_async;
