//! What the unit tests of this crate share.

pub(crate) mod arbitrary;

use proptest::test_runner::Config;

/// A property's configuration: `cases` times the environment's `GOSSIP_SOAK_SCALE`.
pub(crate) fn cases(cases: u32) -> Config {
    let scale = match std::env::var("GOSSIP_SOAK_SCALE") {
        Ok(scale) => scale.parse().expect("GOSSIP_SOAK_SCALE is an integer"),
        Err(_) => 1,
    };
    Config { cases: cases * scale, ..Config::default() }
}
