//! Keys, shared with the message that they arrived in.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

/// The name of an entry: UTF-8, cheap to clone.
///
/// A key from a watch or a listing owns the buffer that its message arrived in. Its `Debug` shows a
/// length only; the text comes out through [`as_str`](Key::as_str).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Bytes);

/// Bytes that are no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key must be UTF-8; these {len} bytes are not, from byte {valid_up_to} on")]
pub struct InvalidKey {
    len: usize,
    valid_up_to: usize,
}

impl Key {
    /// The key as the bucket spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when the key was made")
    }

    /// The text as bytes; dearer than nothing only in [`as_str`](Self::as_str).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, shared with what the server sent.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text; no bucket accepts such a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Key {
    /// Of bytes that hold a text; they are not looked at again.
    pub(crate) fn of_text(bytes: Bytes) -> Self {
        debug_assert!(std::str::from_utf8(&bytes).is_ok(), "a key must be UTF-8");
        Self(bytes)
    }
}

impl TryFrom<Bytes> for Key {
    type Error = InvalidKey;

    fn try_from(bytes: Bytes) -> Result<Self, InvalidKey> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(error) => Err(InvalidKey { len: bytes.len(), valid_up_to: error.valid_up_to() }),
        }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

// A map of keys answers to `&str`: same order, same hash.
impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialEq<str> for Key {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Key {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_no_key() {
        let error = Key::try_from(Bytes::from_static(b"ab\xff")).unwrap_err();
        assert_eq!(error, InvalidKey { len: 3, valid_up_to: 2 });
    }

    #[test]
    fn maps_of_keys_answer_to_text() {
        let hashed = HashMap::from([(Key::from("a.b"), 1)]);
        let ordered = BTreeMap::from([(Key::from("a.b"), 1)]);
        assert_eq!(hashed.get("a.b"), Some(&1));
        assert_eq!(ordered.get("a.b"), Some(&1));
    }

    #[test]
    fn debug_shows_no_text() {
        assert_eq!(format!("{:?}", Key::from("tenant.secret")), "Key(13 bytes)");
    }
}
