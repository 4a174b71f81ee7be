//! One suite for every backend: implement [`Harness`], write one line, and get a test per case.
//!
//! ```text
//! gossip_coordination::conformance_suite!(MyHarness);
//! ```
//!
//! Every call that a case makes is audited, whatever the case itself asks: a refusal or a replay
//! changes no byte and emits nothing, an execution touches only the records that it may and emits
//! exactly its event, listing and progress agree with the records, and no record moves in a
//! direction in which records do not move. `docs/conformance.md` is the guide for whoever adds a
//! backend.
//!
//! The cases say which cells of the [matrix](MATRIX) of operations and answers they cover, and a
//! case fails when it has not seen what it claims.

mod attempt;
mod audit;
mod calls;
mod cases;
mod dump;
mod harness;
mod list;
mod matrix;
mod runner;
pub mod transactional;
mod world;

pub use dump::Dump;
pub use harness::{Caps, Harness, Limits};
pub use list::CASES;
pub use matrix::{Aspect, Cell, MATRIX, Operation, Row, out_of_reach};
pub use runner::{Case, Covers, assert_all_emitted, run_case};

/// Emits one `#[test]` for each case of the suite, in a module for each family, for the
/// [`Harness`](crate::conformance::Harness) named. Put it into a module of its own.
#[macro_export]
macro_rules! conformance_suite {
    ($harness:ty) => {
        /// What the suite is run against.
        type ConformanceSubject = $harness;

        #[test]
        fn every_case_of_the_suite_is_a_test() {
            $crate::conformance::assert_all_emitted(module_path!());
        }

        $crate::for_each_case! { [$crate::__emit_conformance_tests] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __emit_conformance_tests {
    ($(
        $family:ident { $($name:ident $(= $body:ident($($arg:expr),*))? => $covers:tt)* }
    )*) => {$(
        mod $family {
            $(
                #[test]
                fn $name() {
                    $crate::conformance::run_case::<super::ConformanceSubject>(
                        stringify!($family),
                        stringify!($name),
                    );
                }
            )*
        }
    )*};
}

/// The guide's example is a program; it runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/conformance.md")]
struct Guide;
