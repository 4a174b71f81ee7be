//! Rule files out of arbitrary bytes.
#![no_main]

#[allow(dead_code, reason = "each target calls its own check")]
#[path = "../../crates/gossip-engine/tests/it/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_rules_toml(data));
