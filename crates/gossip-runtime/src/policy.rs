//! The identity of all that decides what is found: who trusts the ledger compares it.

use gossip_archive::Limits;
use gossip_contracts::connector::Classifier;
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, PolicyHash};
use gossip_engine::Engine;

use crate::archive_item::LIMITS;

/// What a scan with this engine of a source with this classifier is remembered under: rules, engine,
/// limits and decoding, and what counts as binary. What was scanned under the same need not be
/// scanned again.
#[must_use]
pub fn policy_hash(engine: &Engine, classifier: &dyn Classifier) -> PolicyHash {
    PolicyHash::derive(&Policy { engine, classifier })
}

/// Raised when this crate reads the same items in another way, or stores what became of them or where
/// it stands in another form: runs and ledgers of before are then another policy's.
const RUNTIME_VERSION: u32 = 3;

struct Policy<'p> {
    engine: &'p Engine,
    classifier: &'p dyn Classifier,
}

impl CanonicalBytes for Policy<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&RUNTIME_VERSION).value(self.engine).value(self.classifier);
        let Limits { bytes, ratio, ratio_from, files, layers, memory } = LIMITS;
        hasher.value(&gossip_archive::VERSION).value(&layers);
        for limit in [bytes, ratio, ratio_from, files, memory as u64] {
            hasher.value(&limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use gossip_connectors::content::HeadClassifier;
    use gossip_contracts::connector::ContentKind;
    use gossip_engine::{Options, RuleSet};

    use super::*;

    struct Another;

    impl Classifier for Another {
        fn kind(&self, _: &[u8], _: &[u8]) -> ContentKind {
            ContentKind::Text
        }
    }

    impl CanonicalBytes for Another {
        fn feed(&self, hasher: &mut CanonicalHasher) {
            hasher.value(&2_u32);
        }
    }

    #[test]
    fn another_idea_of_what_is_binary_is_another_policy() {
        let engine = &Engine::new(RuleSet::builtin(), Options::default());
        let policy = policy_hash(engine, &HeadClassifier);
        assert_eq!(policy, policy_hash(engine, &HeadClassifier));
        assert_ne!(policy, policy_hash(engine, &Another));
        assert_ne!(policy, engine.policy_hash());
    }
}
