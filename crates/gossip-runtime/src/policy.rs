//! The identity of all that decides what a scan finds: who trusts the ledger compares it.

use gossip_connectors::binary::Detector;
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, PolicyHash};
use gossip_engine::Engine;

/// What a scan with this engine is remembered under: rules, engine, limits and decoding, and what
/// counts as binary. What was scanned under the same need not be scanned again.
#[must_use]
pub fn policy_hash(engine: &Engine) -> PolicyHash {
    PolicyHash::derive(&Policy { engine, detector: Detector })
}

struct Policy<'p, D> {
    engine: &'p Engine,
    detector: D,
}

impl<D: CanonicalBytes> CanonicalBytes for Policy<'_, D> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(self.engine).value(&self.detector);
    }
}

#[cfg(test)]
mod tests {
    use gossip_engine::{Options, RuleSet};

    use super::*;

    #[test]
    fn another_idea_of_what_is_binary_is_another_policy() {
        let engine = &Engine::new(RuleSet::builtin(), Options::default());
        let policy = policy_hash(engine);
        assert_eq!(policy, policy_hash(engine));
        assert_ne!(policy, PolicyHash::derive(&Policy { engine, detector: 2_u32 }));
        assert_ne!(policy, engine.policy_hash());
    }
}
