//! Several kinds of keys in one key space.

use gossip_contracts::coordination::MAX_KEY_SIZE;

use super::{KeyBuf, KeyEncoding, KeyInputError};

/// A key behind a byte that says of which kind it is: all keys of one family lie together, and a
/// family is the prefix shard `[family]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyKey<K> {
    // Field order is the order of the key.
    family: u8,
    inner: K,
}

impl<K: KeyEncoding> FamilyKey<K> {
    /// The key `inner` in `family`. Refuses an inner key that leaves no room for the family byte,
    /// which takes one encoding into `scratch` to know.
    pub fn try_new(family: u8, inner: K, scratch: &mut KeyBuf) -> Result<Self, KeyInputError> {
        inner.encode_into(scratch);
        let size = 1 + scratch.len();
        if size > MAX_KEY_SIZE {
            return Err(KeyInputError::TooLarge { size, max: MAX_KEY_SIZE });
        }
        Ok(Self { family, inner })
    }

    /// The byte that keeps this family apart from others.
    #[must_use]
    pub const fn family(&self) -> u8 {
        self.family
    }

    /// The key in its family.
    #[must_use]
    pub const fn inner(&self) -> &K {
        &self.inner
    }
}

impl<K: KeyEncoding> KeyEncoding for FamilyKey<K> {
    fn encode_into(&self, buf: &mut KeyBuf) {
        self.inner.encode_into(buf);
        buf.prepend(&[self.family]);
    }
}
