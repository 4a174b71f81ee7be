//! Content-derived identities: 32 bytes that follow from what they name.

use core::fmt;

use super::canonical::{CanonicalBytes, CanonicalHasher};
use super::domains::{
    FINDING_ID_V1, ITEM_ID_V1, OBJECT_VERSION_ID_V1, OCCURRENCE_ID_V1, POLICY_HASH_V1,
    RULE_FINGERPRINT_V1,
};
use super::tenant_key::TenantSecretKey;

macro_rules! digest {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The identity with these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// All of its bytes, as they are stored and compared.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        /// The first four bytes: enough to tell values apart in a log.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "("))?;
                write_hex(f, &self.0[..4])?;
                f.write_str("…)")
            }
        }

        /// All bytes in hexadecimal.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl CanonicalBytes for $name {
            fn feed(&self, hasher: &mut CanonicalHasher) {
                self.0.feed(hasher);
            }
        }
    };
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

digest! {
    /// An organisation. Nothing of one tenant is visible to another.
    TenantId
}
digest! {
    /// What a scan looked for and how: rules, engine, limits, decoding.
    PolicyHash
}
digest! {
    /// A thing that is scanned, whatever its current content: a path, an object key, a blob.
    ItemId
}
digest! {
    /// One state of an item.
    ObjectVersionId
}
digest! {
    /// A rule as it is written; changes when the rule does.
    RuleFingerprint
}
digest! {
    /// A secret, seen through its tenant's key: equal inside a tenant, unrelated across tenants.
    SecretHash
}
digest! {
    /// A secret in an item, found by a rule. The same wherever and whenever it is found again.
    FindingId
}
digest! {
    /// A finding at a place in one version of its item.
    OccurrenceId
}

digest! {
    /// What a run came to: the root of a tree over what was scanned, say. Whoever completes the run
    /// gives it its meaning.
    RunResult
}

impl PolicyHash {
    /// The hash of a policy's canonical bytes.
    #[must_use]
    pub fn derive(policy: &(impl CanonicalBytes + ?Sized)) -> Self {
        Self(POLICY_HASH_V1.hash(policy))
    }
}

impl ItemId {
    /// The item that `source` (a connector's name for what it reads) calls `key`.
    #[must_use]
    pub fn derive(source: &[u8], key: &[u8]) -> Self {
        Self(CanonicalHasher::new(&ITEM_ID_V1).value(source).value(key).finish())
    }
}

impl ObjectVersionId {
    /// The state of `item` that its connector calls `version`.
    #[must_use]
    pub fn derive(item: ItemId, version: &[u8]) -> Self {
        Self(CanonicalHasher::new(&OBJECT_VERSION_ID_V1).value(&item).value(version).finish())
    }
}

impl RuleFingerprint {
    /// The hash of a rule's canonical bytes.
    #[must_use]
    pub fn derive(rule: &(impl CanonicalBytes + ?Sized)) -> Self {
        Self(RULE_FINGERPRINT_V1.hash(rule))
    }
}

impl SecretHash {
    /// BLAKE3 of the secret, keyed with the tenant's key.
    #[must_use]
    pub fn derive(key: &TenantSecretKey, secret: &[u8]) -> Self {
        Self(*blake3::keyed_hash(key.expose_bytes(), secret).as_bytes())
    }
}

impl FindingId {
    /// The finding of `secret` in `item` by `rule`.
    #[must_use]
    pub fn derive(
        tenant: TenantId,
        item: ItemId,
        rule: RuleFingerprint,
        secret: SecretHash,
    ) -> Self {
        Self(
            CanonicalHasher::new(&FINDING_ID_V1)
                .value(&tenant)
                .value(&item)
                .value(&rule)
                .value(&secret)
                .finish(),
        )
    }
}

impl OccurrenceId {
    /// The `finding` at `offset` over `length` bytes of one version.
    #[must_use]
    pub fn derive(finding: FindingId, version: ObjectVersionId, offset: u64, length: u64) -> Self {
        Self(
            CanonicalHasher::new(&OCCURRENCE_ID_V1)
                .value(&finding)
                .value(&version)
                .value(&offset)
                .value(&length)
                .finish(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(fill: u8) -> TenantSecretKey {
        TenantSecretKey::from_bytes([fill; 32])
    }

    /// Persisted identities: a changed line here breaks every store in the field.
    #[test]
    fn golden_values() {
        let tenant = TenantId::from_bytes([1; 32]);
        let item = ItemId::derive(b"fs", b"src/main.rs");
        let version = ObjectVersionId::derive(item, b"v1");
        let rule = RuleFingerprint::derive("rule");
        let secret = SecretHash::derive(&key(7), b"not a secret");
        let finding = FindingId::derive(tenant, item, rule, secret);
        let shown = [
            PolicyHash::derive("policy").to_string(),
            item.to_string(),
            version.to_string(),
            rule.to_string(),
            secret.to_string(),
            finding.to_string(),
            OccurrenceId::derive(finding, version, 10, 20).to_string(),
        ]
        .join("\n");
        assert_eq!(shown, include_str!("../../tests/golden/identities.txt").trim_end());
    }

    #[test]
    fn the_same_secret_is_unrelated_across_tenants() {
        assert_eq!(SecretHash::derive(&key(1), b"s"), SecretHash::derive(&key(1), b"s"));
        assert_ne!(SecretHash::derive(&key(1), b"s"), SecretHash::derive(&key(2), b"s"));
    }

    #[test]
    fn every_field_of_a_finding_and_an_occurrence_counts() {
        let t = |n| TenantId::from_bytes([n; 32]);
        let i = |n| ItemId::from_bytes([n; 32]);
        let r = |n| RuleFingerprint::from_bytes([n; 32]);
        let s = |n| SecretHash::from_bytes([n; 32]);
        let base = FindingId::derive(t(0), i(0), r(0), s(0));
        for other in [
            FindingId::derive(t(1), i(0), r(0), s(0)),
            FindingId::derive(t(0), i(1), r(0), s(0)),
            FindingId::derive(t(0), i(0), r(1), s(0)),
            FindingId::derive(t(0), i(0), r(0), s(1)),
        ] {
            assert_ne!(base, other);
        }
        let v = |n| ObjectVersionId::from_bytes([n; 32]);
        let place = OccurrenceId::derive(base, v(0), 0, 1);
        for other in [
            OccurrenceId::derive(base, v(1), 0, 1),
            OccurrenceId::derive(base, v(0), 1, 1),
            OccurrenceId::derive(base, v(0), 0, 2),
        ] {
            assert_ne!(place, other);
        }
    }

    #[test]
    fn debug_is_short_and_display_is_whole() {
        let id = ItemId::from_bytes([0xab; 32]);
        assert_eq!(format!("{id:?}"), "ItemId(abababab…)");
        assert_eq!(id.to_string(), "ab".repeat(32));
    }
}
