//! Append logs out of arbitrary bytes.
#![no_main]

#[allow(dead_code, reason = "each target calls its own check")]
#[path = "../../crates/slipstream/tests/it/snapshot/append_log/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_log(data));
