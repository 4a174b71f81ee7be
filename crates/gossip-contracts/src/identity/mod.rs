//! Who and what: numbered identities, content-derived identities, and the one way to hash them.
//!
//! Numbered identities ([`RunId`], [`ShardId`], …) are chosen by somebody. Content-derived ones
//! ([`FindingId`], [`SecretHash`], …) follow from what they name, so that two scans of the same
//! bytes agree without talking to each other. Everything that is hashed and kept goes through
//! [`CanonicalHasher`] under a [`Domain`] of its own.

mod canonical;
mod digests;
mod domains;
mod ids;
mod tenant_key;

pub use canonical::{CanonicalBytes, CanonicalHasher, Domain};
pub use digests::{
    FindingId, ItemId, ObjectVersionId, OccurrenceId, PolicyHash, RuleFingerprint, RunResult,
    SecretHash, TenantId,
};
pub use domains::{
    FINDING_FINGERPRINT_V2, FINDING_ID_V1, ITEM_ID_V1, OBJECT_VERSION_ID_V1, OCCURRENCE_ID_V1,
    OP_PAYLOAD_V1, PIPED_BYTES_KEY_V1, POLICY_HASH_V1, RULE_FINGERPRINT_V1, SCAN_PROOF_V1,
    SPLIT_ID_V1,
};
pub use ids::{FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey, WorkerId};
pub use tenant_key::TenantSecretKey;
