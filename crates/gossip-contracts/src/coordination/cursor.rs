//! Cursors: how far into a shard the work has come.
//!
//! - C1: a cursor never moves back: once a last key is set, the next is greater, or it is the same and
//!   the token is not less. Tokens compare as bytes, and no token comes before any.
//! - C2: a last key lies inside its shard's range.
//!
//! This file states the predicates; the protocol decides when to ask them.

use core::fmt;

use super::limits::{MAX_KEY_SIZE, MAX_TOKEN_SIZE};
use super::shard_spec::ShardSpecRef;
use crate::identity::{CanonicalBytes, CanonicalHasher};

/// When advancing a cursor counts as committed progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CursorSemantics {
    /// Everything up to the cursor is processed and its results are durable.
    Completed = 0,
    /// Everything up to the cursor is durably handed on, not necessarily processed.
    Dispatched = 1,
}

impl CursorSemantics {
    /// The variant stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Completed),
            1 => Some(Self::Dispatched),
            _ => None,
        }
    }
}

/// A borrowed cursor: the last key handled, and the caller's own resume token.
///
/// At a greater key a token may be any bytes. One that changes while its key stays says how far into
/// the next item the work has come, or to which page without items, and must count up in byte order
/// (C1): begin it with a big-endian number that grows with every checkpoint. A delayed duplicate of an
/// earlier checkpoint, which the op-log has forgotten, is recognised by that and refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CursorUpdate<'a> {
    last_key: Option<&'a [u8]>,
    token: Option<&'a [u8]>,
}

impl<'a> CursorUpdate<'a> {
    /// A cursor at `last_key` with the connector's `token`.
    #[must_use]
    pub const fn new(last_key: Option<&'a [u8]>, token: Option<&'a [u8]>) -> Self {
        Self { last_key, token }
    }

    /// The cursor of a shard on which nothing has been done.
    #[must_use]
    pub const fn initial() -> Self {
        Self { last_key: None, token: None }
    }

    /// A cursor at `last_key` without a token.
    #[must_use]
    pub const fn at(last_key: &'a [u8]) -> Self {
        Self { last_key: Some(last_key), token: None }
    }

    /// The last key that was handled.
    #[must_use]
    pub const fn last_key(&self) -> Option<&'a [u8]> {
        self.last_key
    }

    /// The connector's resume token.
    #[must_use]
    pub const fn token(&self) -> Option<&'a [u8]> {
        self.token
    }

    /// Whether nothing has been done yet.
    #[must_use]
    pub const fn is_initial(&self) -> bool {
        self.last_key.is_none() && self.token.is_none()
    }

    /// C1: whether a shard at `self` may move to `next`. Staying is allowed, also at "nothing yet".
    #[must_use]
    pub fn may_advance_to(&self, next: &CursorUpdate<'_>) -> bool {
        self.last_key.is_none() || (self.last_key, self.token) <= (next.last_key, next.token)
    }

    /// C2: whether the last key, if there is one, lies in `spec`.
    #[must_use]
    pub fn is_within(&self, spec: ShardSpecRef<'_>) -> bool {
        self.last_key.is_none_or(|key| spec.contains(key))
    }

    /// Checks, in this order: key size, token size.
    pub fn validate_sizes(&self) -> Result<(), CursorInputError> {
        if let Some(size) = self.last_key.map(<[u8]>::len)
            && size > MAX_KEY_SIZE
        {
            return Err(CursorInputError::KeyTooLarge { size, max: MAX_KEY_SIZE });
        }
        if let Some(size) = self.token.map(<[u8]>::len)
            && size > MAX_TOKEN_SIZE
        {
            return Err(CursorInputError::TokenTooLarge { size, max: MAX_TOKEN_SIZE });
        }
        Ok(())
    }
}

/// Shows lengths: keys may name private files, tokens may carry credentials.
impl fmt::Debug for CursorUpdate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Length(Option<usize>);
        impl fmt::Debug for Length {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    Some(len) => write!(f, "Some([{len} bytes])"),
                    None => f.write_str("None"),
                }
            }
        }
        f.debug_struct("CursorUpdate")
            .field("last_key", &Length(self.last_key.map(<[u8]>::len)))
            .field("token", &Length(self.token.map(<[u8]>::len)))
            .finish()
    }
}

impl CanonicalBytes for CursorUpdate<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        self.last_key.feed(hasher);
        self.token.feed(hasher);
    }
}

/// A cursor that outlives what it was read from.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Cursor {
    last_key: Option<Box<[u8]>>,
    token: Option<Box<[u8]>>,
}

impl Cursor {
    /// The cursor of a shard on which nothing has been done.
    #[must_use]
    pub const fn initial() -> Self {
        Self { last_key: None, token: None }
    }

    /// Copies a borrowed cursor whose sizes are within the limits.
    pub fn new(update: CursorUpdate<'_>) -> Result<Self, CursorInputError> {
        update.validate_sizes()?;
        Ok(Self { last_key: update.last_key.map(Into::into), token: update.token.map(Into::into) })
    }

    /// The cursor as a borrowed view.
    #[must_use]
    pub fn as_update(&self) -> CursorUpdate<'_> {
        CursorUpdate { last_key: self.last_key.as_deref(), token: self.token.as_deref() }
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_update().fmt(f)
    }
}

/// Why bytes do not make a cursor. Sizes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum CursorInputError {
    /// The last key is longer than a key may be.
    #[error("the cursor key has {size} bytes; at most {max} are allowed")]
    KeyTooLarge { size: usize, max: usize },
    /// The resume token is longer than allowed.
    #[error("the cursor token has {size} bytes; at most {max} are allowed")]
    TokenTooLarge { size: usize, max: usize },
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::identity::ITEM_ID_V1;

    #[test]
    fn monotonicity_follows_the_table() {
        let none = CursorUpdate::initial();
        let a = CursorUpdate::at(b"a");
        let b = CursorUpdate::at(b"b");
        assert!(none.may_advance_to(&none));
        assert!(none.may_advance_to(&a));
        assert!(a.may_advance_to(&b));
        assert!(a.may_advance_to(&a));
        assert!(!a.may_advance_to(&none));
        assert!(!b.may_advance_to(&a));
    }

    #[test]
    fn a_token_counts_up_while_its_key_stays() {
        let at = |key: &'static str, token: Option<&'static str>| {
            CursorUpdate::new(Some(key.as_bytes()), token.map(str::as_bytes))
        };
        let ascending = [
            at("a", None),
            at("a", Some("")),
            at("a", Some("9")),
            at("a", Some("91")),
            at("a\0", None),
            at("b", Some("1")),
        ];
        for (i, old) in ascending.iter().enumerate() {
            for (j, new) in ascending.iter().enumerate() {
                assert_eq!(old.may_advance_to(new), i <= j, "{i} to {j}");
            }
        }
        // A token without a key stands nowhere: a manifest may carry one.
        assert!(CursorUpdate::new(None, Some(b"9")).may_advance_to(&at("a", Some("1"))));
    }

    #[test]
    fn a_cursor_without_a_key_is_within_any_range() {
        let spec = ShardSpecRef::new(b"b", b"d", b"");
        assert!(CursorUpdate::initial().is_within(spec));
        assert!(CursorUpdate::at(b"b").is_within(spec));
        assert!(!CursorUpdate::at(b"a").is_within(spec));
        assert!(!CursorUpdate::at(b"d").is_within(spec));
    }

    #[test]
    fn sizes_at_the_limit_pass_and_above_it_fail_with_their_own_error() {
        let key = vec![1; MAX_KEY_SIZE + 1];
        let token = vec![1; MAX_TOKEN_SIZE + 1];
        assert!(Cursor::new(CursorUpdate::new(Some(&key[1..]), Some(&token[1..]))).is_ok());
        assert_eq!(
            Cursor::new(CursorUpdate::new(Some(&key), Some(&token))),
            Err(CursorInputError::KeyTooLarge { size: 4097, max: 4096 })
        );
        assert_eq!(
            Cursor::new(CursorUpdate::new(Some(&key[1..]), Some(&token))),
            Err(CursorInputError::TokenTooLarge { size: 16_385, max: 16_384 })
        );
    }

    #[test]
    fn debug_shows_no_key_or_token_byte() {
        let cursor = Cursor::new(CursorUpdate::new(Some(b"hush"), Some(b"hush"))).unwrap();
        for shown in [format!("{cursor:?}"), format!("{:?}", cursor.as_update())] {
            assert!(!shown.contains("hush") && shown.contains("Some([4 bytes])"), "{shown}");
        }
    }

    #[test]
    fn a_cursor_with_a_key_or_a_token_is_not_initial() {
        assert!(CursorUpdate::initial().is_initial() && Cursor::initial().as_update().is_initial());
        assert!(!CursorUpdate::at(b"").is_initial());
        assert!(!CursorUpdate::new(None, Some(b"")).is_initial());
    }

    #[test]
    fn cursors_that_differ_hash_to_different_values() {
        let hash = |cursor| CanonicalHasher::new(&ITEM_ID_V1).value(&cursor).finish();
        let cursors = [
            CursorUpdate::initial(),
            CursorUpdate::at(b""),
            CursorUpdate::at(b"a"),
            CursorUpdate::new(Some(b""), Some(b"a")),
            CursorUpdate::new(None, Some(b"a")),
        ];
        let hashes: HashSet<_> = cursors.map(hash).into_iter().collect();
        assert_eq!(hashes.len(), cursors.len());
    }

    #[test]
    fn semantics_discriminants_are_stable() {
        for raw in 0..=u8::MAX {
            assert_eq!(CursorSemantics::from_raw(raw).map(|s| s as u8), (raw < 2).then_some(raw));
        }
    }
}
