//! The source against repositories that `git` made.

mod conformance;
mod contract;
mod damage;
mod history;
mod incremental;
mod support;
