//! Every hashing domain of the project. A context string is for ever: a changed meaning gets a new
//! version and a new constant.

use super::canonical::Domain;

/// Parameters of an idempotent coordination operation.
pub static OP_PAYLOAD_V1: Domain = Domain::new("gossip coordination op-payload v1");
/// Shard ids derived by a split.
pub static SPLIT_ID_V1: Domain = Domain::new("gossip coordination split-id v1");
/// [`ItemId`](super::ItemId).
pub static ITEM_ID_V1: Domain = Domain::new("gossip identity item-id v1");
/// [`ObjectVersionId`](super::ObjectVersionId).
pub static OBJECT_VERSION_ID_V1: Domain = Domain::new("gossip identity object-version-id v1");
/// [`RuleFingerprint`](super::RuleFingerprint).
pub static RULE_FINGERPRINT_V1: Domain = Domain::new("gossip identity rule-fingerprint v1");
/// [`PolicyHash`](super::PolicyHash).
pub static POLICY_HASH_V1: Domain = Domain::new("gossip identity policy-hash v1");
/// [`FindingId`](super::FindingId).
pub static FINDING_ID_V1: Domain = Domain::new("gossip identity finding-id v1");
/// [`OccurrenceId`](super::OccurrenceId).
pub static OCCURRENCE_ID_V1: Domain = Domain::new("gossip identity occurrence-id v1");
/// What a report calls a finding on every machine.
pub static FINDING_FINGERPRINT_V2: Domain = Domain::new("gossip report finding-fingerprint v2");
/// All that a proof of a scan says.
pub static SCAN_PROOF_V1: Domain = Domain::new("gossip report scan-proof v1");
/// The key under which piped bytes are hashed, from the tenant's.
pub static PIPED_BYTES_KEY_V1: Domain = Domain::new("gossip identity piped-bytes-key v1");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    static ALL_DOMAINS: [&Domain; 11] = [
        &OP_PAYLOAD_V1,
        &SPLIT_ID_V1,
        &ITEM_ID_V1,
        &OBJECT_VERSION_ID_V1,
        &RULE_FINGERPRINT_V1,
        &POLICY_HASH_V1,
        &FINDING_ID_V1,
        &OCCURRENCE_ID_V1,
        &FINDING_FINGERPRINT_V2,
        &SCAN_PROOF_V1,
        &PIPED_BYTES_KEY_V1,
    ];

    #[test]
    fn every_domain_is_listed_once_and_contexts_are_unique() {
        let contexts: BTreeSet<_> = ALL_DOMAINS.iter().map(|domain| domain.context()).collect();
        assert_eq!(contexts.len(), ALL_DOMAINS.len());
        let declared = include_str!("domains.rs")
            .lines()
            .filter(|line| line.starts_with("pub static") && line.contains(": Domain ="))
            .count();
        assert_eq!(declared, ALL_DOMAINS.len());
    }
}
