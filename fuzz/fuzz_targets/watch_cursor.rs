//! Watches from cursors out of arbitrary bytes.
#![no_main]

#[path = "../../crates/slipstream/tests/it/cursors/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_cursor(data));
