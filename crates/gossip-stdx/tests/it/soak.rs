use proptest::test_runner::Config;

/// `GOSSIP_SOAK_SCALE` multiplies the number of random cases, for long runs.
pub(crate) fn cases(cases: u32) -> Config {
    let scale = std::env::var("GOSSIP_SOAK_SCALE")
        .map_or(1, |scale| scale.parse().expect("GOSSIP_SOAK_SCALE is a whole number"));
    Config { cases: cases.saturating_mul(scale), ..Config::default() }
}
