//! Where a watch goes on.

use std::fmt;

use bytes::Bytes;

use crate::log_cursor::LogCursor;

/// A position in a bucket's log, opaque to everyone but the backend that minted it.
///
/// A fold keeps the cursor beside the data that it covers and hands it to the next watch, which
/// proves that the log still is the one the cursor came from, or answers
/// [`CursorExpired`](crate::KvError::CursorExpired).
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct WatchCursor(Bytes);

/// More bytes than a cursor has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor has at most {} bytes, not {len}", WatchCursor::MAX_LEN)]
pub struct CursorTooLong {
    len: usize,
}

impl WatchCursor {
    /// Longest cursor in bytes: formats store its length in one.
    pub const MAX_LEN: usize = 255;

    /// No position: a watch from here lists everything first.
    #[must_use]
    pub const fn none() -> Self {
        Self(Bytes::new())
    }

    /// Whether this is [`none`](Self::none).
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The revision that it stands for, if its backend numbers updates. For people to look at: a
    /// watch wants the cursor.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        LogCursor::decode(self).ok().map(|cursor| cursor.position.revision)
    }

    /// A cursor as it was stored by [`as_bytes`](Self::as_bytes). What the bytes say is looked at
    /// when a watch starts from them.
    ///
    /// # Errors
    /// More than 255 bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, CursorTooLong> {
        let bytes = bytes.into();
        if bytes.len() > Self::MAX_LEN {
            return Err(CursorTooLong { len: bytes.len() });
        }
        Ok(Self(bytes))
    }
}

impl fmt::Debug for WatchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A cursor may name keys.
        write!(f, "WatchCursor({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_255_bytes_is_the_longest() {
        assert_eq!(WatchCursor::from_bytes(vec![7; 255]).unwrap().as_bytes(), [7; 255]);
        assert_eq!(WatchCursor::from_bytes(vec![7; 256]), Err(CursorTooLong { len: 256 }));
    }

    #[test]
    fn no_bytes_are_no_position() {
        assert!(WatchCursor::from_bytes(Vec::new()).unwrap().is_none());
        assert!(WatchCursor::none().is_none());
        assert!(!WatchCursor::from_bytes(vec![0]).unwrap().is_none());
    }
}
