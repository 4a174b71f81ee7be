//! Manifests and payloads of artifacts out of arbitrary bytes.
#![no_main]

#[path = "../../crates/slipstream/tests/it/artifacts/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::check_artifact(data));
