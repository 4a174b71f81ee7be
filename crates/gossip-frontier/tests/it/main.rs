//! Tests through the public API: goldens, the long way of every function, allocations, and that
//! each numbered invariant of the requirements has its test.

mod allocations;
mod checks;
mod decode;
mod golden;
mod key_arithmetic;
mod names;
#[path = "../../src/test_support.rs"]
mod test_support;
mod third_party;
