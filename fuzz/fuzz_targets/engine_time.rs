//! Arbitrary bytes over and over, up to a megabyte: no input makes that take long.
#![no_main]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gossip_engine::{Engine, Options, RuleSet, Scratch};

const BYTES: usize = 1 << 20;
/// A second as it is built for users; instrumented code is an order of magnitude slower.
const LONGEST: Duration = Duration::from_secs(10);

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| Engine::new(RuleSet::builtin(), Options::default()));
    if data.is_empty() {
        return;
    }
    let text: Vec<u8> = data.iter().copied().cycle().take(BYTES).collect();
    let started = Instant::now();
    engine.scan(&mut Scratch::new(), &text, Some(b"any/config.yml"), &mut |_| {});
    assert!(started.elapsed() < LONGEST, "{:?} for a megabyte", started.elapsed());
});
