//! The rules of the protocol, pure: facts in, decisions out. Production code and models call the
//! same functions.

mod position;
mod resume;

pub use self::position::{LogPosition, RecentWitnesses, Witness};
pub use self::resume::{ResumeStep, WitnessFinding, resume_step, resume_window_ok};
