//! Checks that a [`KeyEncoding`] keeps its promises, for the tests of whoever writes one.
//!
//! ```
//! use gossip_frontier::{ManifestRowKey, testing::check_order_preservation};
//!
//! let keys = [(0, 0), (0, u64::MAX), (1, 0)].map(|(id, row)| ManifestRowKey::new(id, row));
//! check_order_preservation(&keys)?;
//! # Ok::<(), gossip_frontier::testing::OrderViolation>(())
//! ```

use core::cmp::Ordering;

use crate::{KeyBuf, KeyEncoding};

/// Checks every pair of `keys`, each with itself too: bytes must compare as the keys do (K1), and
/// so be equal exactly when they are (K2).
///
/// Quadratic, and it keeps every encoding: give it samples, not data.
pub fn check_order_preservation<K: KeyEncoding + Ord>(keys: &[K]) -> Result<(), OrderViolation> {
    let encodings: Vec<Vec<u8>> = keys.iter().map(encode).collect();
    for (left, a) in keys.iter().enumerate() {
        for (right, b) in keys.iter().enumerate() {
            // The left side anew, so that a key whose encoding changes is caught.
            let bytes = encode(a).cmp(&encodings[right]);
            if a.cmp(b) != bytes {
                return Err(OrderViolation { left, right, keys: a.cmp(b), bytes });
            }
        }
    }
    Ok(())
}

/// [`check_order_preservation`] of two keys, for property tests.
///
/// # Panics
/// If their bytes do not compare as they do.
#[track_caller]
pub fn assert_order_preserved<K: KeyEncoding + Ord + Clone>(a: &K, b: &K) {
    if let Err(violation) = check_order_preservation(&[a.clone(), b.clone()]) {
        panic!("{violation}");
    }
}

fn encode(key: &impl KeyEncoding) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    key.encode_into(&mut buf);
    buf.as_bytes().to_vec()
}

/// Two keys whose bytes compare otherwise than they do. Positions only: keys stay out of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("key {left} compares to key {right} as {keys:?}, its bytes as {bytes:?}")]
pub struct OrderViolation {
    /// Position of one key in the sample.
    pub left: usize,
    /// Position of the other.
    pub right: usize,
    /// How the keys compare.
    pub keys: Ordering,
    /// How their encodings compare.
    pub bytes: Ordering,
}
