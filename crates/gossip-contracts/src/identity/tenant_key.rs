//! The key under which a tenant's secrets are hashed.

use core::fmt;

use constant_time_eq::constant_time_eq_32;
use zeroize::Zeroize;

use super::canonical::{CanonicalHasher, Domain};

/// 32 secret bytes. Compared in constant time, zeroed on drop, never shown.
#[derive(Clone)]
pub struct TenantSecretKey(Box<[u8; 32]>);

impl TenantSecretKey {
    /// Takes the bytes into memory that is zeroed on drop. The caller's copy is the caller's.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Box::new(bytes))
    }

    /// A key for hashes of another kind, which tell nothing about those under this one.
    #[must_use]
    pub fn derive(&self, domain: &Domain) -> Self {
        Self::from_bytes(CanonicalHasher::new(domain).raw(&*self.0).finish())
    }

    /// The bytes. For keying a hash; never for showing or storing in the clear.
    #[must_use]
    pub fn expose_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PartialEq for TenantSecretKey {
    fn eq(&self, other: &Self) -> bool {
        constant_time_eq_32(&self.0, &other.0)
    }
}

impl Eq for TenantSecretKey {}

impl Drop for TenantSecretKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for TenantSecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantSecretKey(<redacted>)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_by_value_and_debug_shows_no_byte() {
        let a = TenantSecretKey::from_bytes([0x41; 32]);
        assert_eq!(a, a.clone());
        assert_ne!(a, TenantSecretKey::from_bytes([0x42; 32]));
        let shown = format!("{a:?}");
        assert!(!shown.contains("41") && !shown.contains("65") && !shown.contains('A'));
    }
}
