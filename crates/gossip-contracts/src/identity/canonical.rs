//! One byte form for everything that is hashed, and the hasher that takes it.
//!
//! Integers are little-endian; byte strings carry their length as a u32; fixed arrays stand as they
//! are; an `Option` is a 0, or a 1 and the value. So no two different values of one type share a
//! byte form, and adjacent fields cannot run into each other.

use std::sync::OnceLock;

use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};

/// One use of hashing. Values hashed under different domains never collide by construction.
#[derive(Debug)]
pub struct Domain {
    context: &'static str,
    /// Deriving the key from the context costs as much as hashing a short value; do it once.
    key: OnceLock<ContextKey>,
}

impl Domain {
    pub(super) const fn new(context: &'static str) -> Self {
        Self { context, key: OnceLock::new() }
    }

    /// The BLAKE3 derive-key context.
    #[must_use]
    pub const fn context(&self) -> &'static str {
        self.context
    }

    fn key(&self) -> &ContextKey {
        self.key.get_or_init(|| hash_derive_key_context(self.context))
    }

    /// Hashes one value.
    #[must_use]
    pub fn hash(&self, value: &(impl CanonicalBytes + ?Sized)) -> [u8; 32] {
        let mut hasher = CanonicalHasher::new(self);
        value.feed(&mut hasher);
        hasher.finish()
    }
}

/// BLAKE3 in derive-key mode, fed with canonical bytes.
pub struct CanonicalHasher {
    inner: Hasher,
}

impl CanonicalHasher {
    /// A hasher for `domain`.
    #[must_use]
    pub fn new(domain: &Domain) -> Self {
        Self { inner: Hasher::new_from_context_key(domain.key()) }
    }

    /// Forgets what it was fed and starts over in the same domain.
    pub fn reset(&mut self) -> &mut Self {
        self.inner.reset();
        self
    }

    /// Bytes as they are. For values whose length is fixed by their type.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.inner.update(bytes);
        self
    }

    /// One value in its canonical form.
    pub fn value(&mut self, value: &(impl CanonicalBytes + ?Sized)) -> &mut Self {
        value.feed(self);
        self
    }

    /// The 32-byte digest.
    #[must_use]
    pub fn finish(&self) -> [u8; 32] {
        *self.inner.finalize().as_bytes()
    }

    /// The first eight bytes of the digest, little-endian.
    #[must_use]
    pub fn finish_u64(&self) -> u64 {
        let digest = self.finish();
        u64::from_le_bytes(*digest.first_chunk().expect("a digest has 32 bytes"))
    }
}

/// A value with one canonical byte form.
pub trait CanonicalBytes {
    /// Feeds the canonical form to `hasher`.
    fn feed(&self, hasher: &mut CanonicalHasher);
}

macro_rules! canonical_integer {
    ($($int:ty),*) => {$(
        impl CanonicalBytes for $int {
            fn feed(&self, hasher: &mut CanonicalHasher) {
                hasher.raw(&self.to_le_bytes());
            }
        }
    )*};
}
canonical_integer!(u8, u16, u32, u64);

/// # Panics
/// If the string is 4 GiB or longer; every limit of this project is far below.
impl CanonicalBytes for [u8] {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        let len = u32::try_from(self.len()).expect("a hashed byte string is shorter than 4 GiB");
        hasher.value(&len).raw(self);
    }
}

impl CanonicalBytes for str {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        self.as_bytes().feed(hasher);
    }
}

impl<const N: usize> CanonicalBytes for [u8; N] {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.raw(self);
    }
}

impl<T: CanonicalBytes> CanonicalBytes for Option<T> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        match self {
            None => hasher.value(&0u8),
            Some(value) => hasher.value(&1u8).value(value),
        };
    }
}

impl<T: CanonicalBytes + ?Sized> CanonicalBytes for &T {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        (**self).feed(hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TEST_DOMAIN: Domain = Domain::new("gossip test canonical v1");

    /// The reference: BLAKE3's own derive-key mode over the written-out byte form.
    fn reference(bytes: &[u8]) -> [u8; 32] {
        blake3::derive_key("gossip test canonical v1", bytes)
    }

    #[test]
    fn the_byte_form_is_the_documented_one() {
        assert_eq!(TEST_DOMAIN.hash(&0x0102_0304u32), reference(&[4, 3, 2, 1]));
        assert_eq!(TEST_DOMAIN.hash(&7u64), reference(&[7, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(TEST_DOMAIN.hash(&b"ab"[..]), reference(&[2, 0, 0, 0, b'a', b'b']));
        assert_eq!(TEST_DOMAIN.hash("ab"), reference(&[2, 0, 0, 0, b'a', b'b']));
        assert_eq!(TEST_DOMAIN.hash(&[9u8, 8, 7]), reference(&[9, 8, 7]));
        assert_eq!(TEST_DOMAIN.hash(&None::<u16>), reference(&[0]));
        assert_eq!(TEST_DOMAIN.hash(&Some(5u16)), reference(&[1, 5, 0]));
    }

    #[test]
    fn adjacent_strings_do_not_run_into_each_other() {
        let hash =
            |a: &[u8], b: &[u8]| CanonicalHasher::new(&TEST_DOMAIN).value(a).value(b).finish();
        assert_ne!(hash(b"ab", b"c"), hash(b"a", b"bc"));
    }

    #[test]
    fn the_short_digest_is_the_start_of_the_long_one() {
        let mut hasher = CanonicalHasher::new(&TEST_DOMAIN);
        hasher.value(&1u64);
        assert_eq!(hasher.finish_u64().to_le_bytes(), hasher.finish()[..8]);
    }
}
