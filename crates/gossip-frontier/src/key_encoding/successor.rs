//! The next key, and the next key outside a prefix.

use gossip_contracts::coordination::MAX_KEY_SIZE;

use super::KeyBuf;

/// The smallest key behind every key that begins with `prefix`.
///
/// Drops trailing `0xFF` bytes, then adds one to the last byte that is left. `None` if nothing is
/// left (an empty or all-`0xFF` prefix bounds no range above) or if `prefix` is longer than a key
/// may be; `buf` is then unchanged.
///
/// ```
/// use gossip_frontier::{KeyBuf, prefix_successor};
///
/// let mut buf = KeyBuf::new();
/// assert_eq!(prefix_successor(b"src/", &mut buf), Some(&b"src0"[..]));
/// assert_eq!(prefix_successor(b"a\xff\xff", &mut buf), Some(&b"b"[..]));
/// assert_eq!(prefix_successor(b"\xff", &mut buf), None);
/// ```
#[must_use]
pub fn prefix_successor<'b>(prefix: &[u8], buf: &'b mut KeyBuf) -> Option<&'b [u8]> {
    if prefix.len() > MAX_KEY_SIZE {
        return None;
    }
    let (last, head) = without_trailing_ff(prefix).split_last()?;
    let out = buf.overwrite(head.len() + 1);
    out[..head.len()].copy_from_slice(head);
    out[head.len()] = last + 1;
    Some(out)
}

/// The smallest key behind `key`.
///
/// That is `key` with a zero byte added; a key of `MAX_KEY_SIZE` bytes cannot grow, so there it is
/// [`prefix_successor`]. `None` if that has none, or if `key` is longer than a key may be.
///
/// ```
/// use gossip_frontier::{KeyBuf, key_successor};
///
/// let mut buf = KeyBuf::new();
/// assert_eq!(key_successor(b"a", &mut buf), Some(&b"a\0"[..]));
/// ```
#[must_use]
pub fn key_successor<'b>(key: &[u8], buf: &'b mut KeyBuf) -> Option<&'b [u8]> {
    if key.len() >= MAX_KEY_SIZE {
        return prefix_successor(key, buf);
    }
    let out = buf.overwrite(key.len() + 1);
    out[..key.len()].copy_from_slice(key);
    out[key.len()] = 0;
    Some(out)
}

/// Whether `key` is `prefix_successor(prefix)`, without writing it anywhere.
pub(crate) fn is_prefix_successor(prefix: &[u8], key: &[u8]) -> bool {
    match (without_trailing_ff(prefix).split_last(), key.split_last()) {
        (Some((prefix_last, prefix_head)), Some((key_last, key_head))) => {
            prefix_last + 1 == *key_last && prefix_head == key_head
        }
        _ => false,
    }
}

/// Steps of 32 bytes, then of 8: an all-`0xFF` tail costs about what copying it would.
fn without_trailing_ff(key: &[u8]) -> &[u8] {
    let (_, blocks) = key.as_rchunks::<32>();
    let mut end = key.len();
    end -= 32 * blocks.iter().rev().take_while(|block| **block == [0xff; 32]).count();
    let (_, words) = key[..end].as_rchunks::<8>();
    for word in words.iter().rev() {
        // Little-endian, the last byte is on top.
        let trailing = u64::from_le_bytes(*word).leading_ones() as usize / 8;
        end -= trailing;
        if trailing < 8 {
            return &key[..end];
        }
    }
    end -= key[..end].iter().rev().take_while(|byte| **byte == 0xff).count();
    &key[..end]
}
