//! How many cases property tests run.

use proptest::test_runner::Config;

/// `cases` times `GOSSIP_SOAK_SCALE`, which is 1 unless a soak run sets it.
pub(crate) fn cases(cases: u32) -> Config {
    let scale = std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| {
        scale.parse::<u32>().expect("GOSSIP_SOAK_SCALE is a whole number of times")
    });
    // Failures are shown with their inputs; files beside the sources would be noise.
    Config { cases: cases.saturating_mul(scale), failure_persistence: None, ..Config::default() }
}
