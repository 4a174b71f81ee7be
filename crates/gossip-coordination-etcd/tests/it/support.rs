//! What several tests need.

/// How often to repeat: `count`, times what a soak asks for.
pub(crate) fn scaled(count: u64) -> u64 {
    let scale = match std::env::var("GOSSIP_SOAK_SCALE") {
        Ok(scale) => scale.parse().expect("GOSSIP_SOAK_SCALE is an integer"),
        Err(_) => 1,
    };
    count * scale
}

/// Dice (splitmix64) whose seed a failure prints, and `GOSSIP_SEED` sets.
pub(crate) struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub(crate) fn from_environment() -> Self {
        use std::hash::{BuildHasher, RandomState};
        let given = std::env::var("GOSSIP_SEED").ok();
        let given = given.map(|seed| seed.parse().expect("GOSSIP_SEED is an integer"));
        Self::new(given.unwrap_or_else(|| RandomState::new().hash_one(0_u8)))
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
