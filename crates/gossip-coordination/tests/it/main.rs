//! The conformance suite on the coordinators of this crate, and the suite itself under test.

mod conformance;
