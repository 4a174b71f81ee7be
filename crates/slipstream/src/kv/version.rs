//! Versions of entries.

use std::fmt;

/// The version of one entry, opaque to callers: they hand back what they were given.
///
/// Up to ten bytes, held inline. NATS uses eight, a big-endian revision; other stores may use all
/// ten; none at all means that the version is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionToken {
    // Bytes beyond `len` are zero, so that equality and hash see the version only.
    bytes: [u8; VersionToken::MAX_LEN],
    len: u8,
}

/// More bytes than a version has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a version has at most {} bytes, not {len}", VersionToken::MAX_LEN)]
pub struct VersionTooLong {
    len: usize,
}

impl VersionToken {
    /// Longest version in bytes.
    pub const MAX_LEN: usize = 10;

    /// No version. It never moves a cursor.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { bytes: [0; Self::MAX_LEN], len: 0 }
    }

    /// The version of a store that numbers its updates.
    #[must_use]
    pub fn from_u64(revision: u64) -> Self {
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..8].copy_from_slice(&revision.to_be_bytes());
        Self { bytes, len: 8 }
    }

    /// A version as it was stored by [`as_bytes`](Self::as_bytes).
    ///
    /// # Errors
    /// More than ten bytes.
    pub fn from_bytes(version: &[u8]) -> Result<Self, VersionTooLong> {
        if version.len() > Self::MAX_LEN {
            return Err(VersionTooLong { len: version.len() });
        }
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..version.len()].copy_from_slice(version);
        Ok(Self { bytes, len: version.len() as u8 })
    }

    /// The revision, if the version is one.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        let bytes: [u8; 8] = self.as_bytes().try_into().ok()?;
        Some(u64::from_be_bytes(bytes))
    }

    /// The bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Whether there is no version.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for VersionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_u64() {
            Some(revision) => write!(f, "VersionToken({revision})"),
            None => write!(f, "VersionToken({:02x?})", self.as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_version_survives_its_bytes(bytes in prop::collection::vec(any::<u8>(), 0..=10)) {
            let version = VersionToken::from_bytes(&bytes).unwrap();
            prop_assert_eq!(version.as_bytes(), &bytes[..]);
            prop_assert_eq!(version.is_unknown(), bytes.is_empty());
            prop_assert_eq!(version.as_u64().is_some(), bytes.len() == 8);
        }

        #[test]
        fn a_revision_survives(revision: u64) {
            prop_assert_eq!(VersionToken::from_u64(revision).as_u64(), Some(revision));
        }
    }

    #[test]
    fn eleven_bytes_are_no_version() {
        assert_eq!(VersionToken::from_bytes(&[0; 11]), Err(VersionTooLong { len: 11 }));
    }

    #[test]
    fn trailing_zeros_are_part_of_a_version() {
        let short = VersionToken::from_bytes(&[1]).unwrap();
        let long = VersionToken::from_bytes(&[1, 0]).unwrap();
        assert_ne!(short, long);
    }
}
