//! Typed keys as bytes, and arithmetic on the bytes.
//!
//! - K1: a smaller key encodes to smaller bytes.
//! - K2: equal keys encode to equal bytes, every time.
//! - K3: a key that arithmetic returns has at most [`MAX_KEY_SIZE`] bytes.
//!
//! K1 and K2 are promises of each [`KeyEncoding`]; [`testing`](crate::testing) checks them. What a
//! range means to a coordinator, and how it is stored, is left to `gossip-contracts`.
//!
//! [`MAX_KEY_SIZE`]: gossip_contracts::coordination::MAX_KEY_SIZE

mod buf;
mod family;
mod manifest_row;
mod midpoint;
mod object;
mod path;
mod spec;
mod successor;
#[cfg(test)]
mod tests;

pub use buf::KeyBuf;
pub use family::FamilyKey;
pub use manifest_row::{ManifestRowKey, decode_manifest_row_key};
pub use midpoint::byte_midpoint;
pub use object::{ObjectKey, ObjectKeyError, decode_object_key};
pub use path::{KeyInputError, PathKey, RawPathKey};
pub use spec::{
    PrefixShardError, ShardIntoError, shard_spec_from_keys_into, shard_spec_from_keys_ref,
    shard_spec_from_manifest_range_into, shard_spec_from_manifest_range_ref,
    shard_spec_from_prefix_into, shard_spec_from_prefix_ref,
};
pub use successor::{key_successor, prefix_successor};

pub(crate) use spec::{check_prefix_size, checked, keep};
pub(crate) use successor::is_prefix_successor;

/// A connector's key that can be written as bytes without losing its order.
///
/// Cursors, range membership and splits all compare bytes. An encoding that breaks either promise
/// makes them skip or repeat keys without any error, so check it with
/// [`testing::check_order_preservation`](crate::testing::check_order_preservation).
///
/// - Order: `a < b` implies that `a`'s bytes are before `b`'s bytes.
/// - Canonical: equal keys, and one key asked twice, give the same bytes.
///
/// ```
/// use gossip_frontier::{KeyBuf, KeyEncoding};
///
/// /// A day, newest first.
/// struct NewestFirst(u32);
///
/// impl KeyEncoding for NewestFirst {
///     fn encode_into(&self, buf: &mut KeyBuf) {
///         buf.copy_from_slice(&(!self.0).to_be_bytes());
///     }
/// }
///
/// let mut buf = KeyBuf::new();
/// NewestFirst(1).encode_into(&mut buf);
/// assert_eq!(buf.as_bytes(), [0xff, 0xff, 0xff, 0xfe]);
/// ```
pub trait KeyEncoding: Sized {
    /// Replaces the content of `buf` with the whole encoding of this key.
    ///
    /// At most [`KeyBuf::CAPACITY`] bytes. The byte beyond `MAX_KEY_SIZE` is room to be refused
    /// in: shard constructors answer such a key with a typed error.
    fn encode_into(&self, buf: &mut KeyBuf);
}
