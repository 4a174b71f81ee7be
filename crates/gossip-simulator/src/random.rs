//! The simulator's dice: xoshiro256++, seeded through splitmix64. Ours, so that a seed means the
//! same for ever, whatever a crate's next version draws.

#[derive(Clone, Debug)]
pub(super) struct Random([u64; 4]);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        Self([0; 4].map(|_: u64| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        }))
    }

    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        drawn
    }

    /// A number below `bound`, which is not zero.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub(super) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `permille` of a thousand draws.
    pub(super) fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.below(1000) < u64::from(permille)
    }

    pub(super) fn pick<'p, T>(&mut self, from: &'p [T]) -> &'p T {
        &from[self.index(from.len())]
    }

    /// A position in `weights`, in proportion to them; `None` when all are zero.
    pub(super) fn weighted(&mut self, weights: &[u32]) -> Option<usize> {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        if total == 0 {
            return None;
        }
        let mut drawn = self.below(total);
        weights.iter().position(|&weight| {
            let hit = drawn < u64::from(weight);
            drawn = drawn.saturating_sub(u64::from(weight));
            hit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut random = Random::new(7);
        let drawn = [0; 3].map(|_: u64| random.next());
        assert_eq!(drawn, PINNED);
    }

    const PINNED: [u64; 3] =
        [1_021_219_803_524_665_661, 3_174_977_118_032_272_916, 13_236_943_193_235_544_178];

    #[test]
    fn draws_keep_their_bounds_and_follow_their_weights() {
        let mut random = Random::new(1);
        let mut hits = [0u32; 3];
        for _ in 0..3000 {
            assert!(random.below(3) < 3);
            assert!((5..=6).contains(&random.between(5, 6)));
            hits[random.weighted(&[1, 0, 2]).unwrap()] += 1;
        }
        assert!(hits[0] > 800 && hits[1] == 0 && hits[2] > 1700, "{hits:?}");
        assert_eq!(random.weighted(&[0, 0]), None);
        assert!(!random.chance(0) && random.chance(1000));
    }
}
