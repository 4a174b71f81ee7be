//! Successors and midpoint against their long forms.
#![no_main]

#[allow(dead_code, reason = "each target calls its own check")]
#[path = "../../crates/gossip-frontier/tests/it/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let (a, b) = checks::two_keys(data);
    checks::check_key_arithmetic(&a, &b);
});
