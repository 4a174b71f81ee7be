//! A key about half-way between two others.
//!
//! Keys are read as binary fractions: first byte first, the shorter padded with zeros. The
//! midpoint is half of their sum, cut to the longer length. Both keys' common prefix is a prefix
//! of the midpoint too and is copied; what follows it is added and halved from the last byte to the
//! first in one pass, as a sum's low bit is the top bit of the half behind it.
//!
//! Long keys are nearly always text, and text has no top bits: two such bytes never carry into
//! their neighbour, so blocks of them are halved a vector at a time. From the first block that is
//! not text on, 64-bit words with carry do the rest.
//!
//! `tests/it/checks.rs` holds the requirement's five phases, byte by byte; the results are the same.

use gossip_contracts::coordination::MAX_KEY_SIZE;

use super::{KeyBuf, key_successor};

/// A cache line: eight words, four vectors.
const BLOCK: usize = 64;
const WORDS: usize = BLOCK / size_of::<u64>();

/// A key strictly between `a` and `b`, close to the middle; for choosing where to split.
///
/// Falls back to [`key_successor`] of `a` when the middle, cut to the longer key's length, is one
/// of the two. `None` if `a >= b`, if either is longer than a key may be, or if no key of an
/// allowed length lies between; what `out` then holds is unspecified.
///
/// ```
/// use gossip_frontier::{KeyBuf, byte_midpoint};
///
/// let mut out = KeyBuf::new();
/// assert_eq!(byte_midpoint(b"src/a", b"src/y", &mut out), Some(&b"src/m"[..]));
/// assert_eq!(byte_midpoint(b"a", b"b", &mut out), Some(&b"a\0"[..]));
/// assert_eq!(byte_midpoint(b"a", b"a\0", &mut out), None);
/// ```
#[must_use]
pub fn byte_midpoint<'b>(a: &[u8], b: &[u8], out: &'b mut KeyBuf) -> Option<&'b [u8]> {
    if a.len() > MAX_KEY_SIZE || b.len() > MAX_KEY_SIZE {
        return None;
    }
    let shared = common_prefix_len(a, b);
    let (a_tail, b_tail) = (&a[shared..], &b[shared..]);
    let same_number = match (a_tail.first(), b_tail.first()) {
        (Some(x), Some(y)) if x < y => false,
        (None, Some(_)) => b_tail.iter().all(|&byte| byte == 0),
        _ => return None,
    };
    // With `b` the same number as `a`, the middle is `b`; else it is below `b`, and `a` only if
    // `b` is the number that follows it.
    if !same_number {
        let middle = out.overwrite(a.len().max(b.len()));
        halve_sum(a, b, shared, middle);
        // Nearly always the first byte tells.
        if middle[shared..].first() != a_tail.first() || middle[shared..] != *a_tail {
            debug_assert!(a < &*middle && &*middle < b, "{shared} {} {}", a.len(), b.len());
            return Some(out.as_bytes());
        }
    }
    key_successor(a, out).filter(|next| *next < b)
}

fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    // Equality of 32 bytes is two vector compares; the block that differs is read by words.
    let (a_blocks, _) = a.as_chunks::<32>();
    let (b_blocks, _) = b.as_chunks::<32>();
    let mut same = 32 * a_blocks.iter().zip(b_blocks).take_while(|(x, y)| x == y).count();
    let (a_words, _) = a[same..].as_chunks::<8>();
    let (b_words, _) = b[same..].as_chunks::<8>();
    for (x, y) in a_words.iter().zip(b_words) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(x, y)| x == y).count()
}

/// Half of `x + y`, where the first `shared` bytes of both are the same; `out` has the longer one's
/// length.
fn halve_sum(x: &[u8], y: &[u8], shared: usize, out: &mut [u8]) {
    let both = x.len().min(y.len());
    let (out, out_rest) = out.split_at_mut(both);
    // Where one key is padding, the sum is the other key: its bits move one place down.
    if let Some((first, rest)) = out_rest.split_first_mut() {
        let above = if both > 0 { x[both - 1] ^ y[both - 1] } else { 0 };
        let longer = if x.len() > both { &x[both..] } else { &y[both..] };
        *first = (longer[0] >> 1) | (above << 7);
        for (half, pair) in rest.iter_mut().zip(longer.windows(2)) {
            *half = (pair[1] >> 1) | (pair[0] << 7);
        }
    }

    let mut end = both;
    let mut text = true;
    let mut carry = false;
    // A block looks at the byte before it, so the very first bytes are left to the words below.
    // Both may reach into the shared prefix: half of a byte's double is that byte.
    while end > shared.max(BLOCK) {
        let start = end - BLOCK;
        let (x_block, y_block) = (block(x, start), block(y, start));
        let out_block: &mut [u8; BLOCK] = (&mut out[start..end]).try_into().expect("a block");
        if text {
            let (x_above, y_above) = (block(x, start - 1), block(y, start - 1));
            text = halve_text(x_block, y_block, x_above, y_above, out_block);
        }
        if !text {
            carry = halve_block(x_block, y_block, x[start - 1] ^ y[start - 1], carry, out_block);
        }
        end = start;
    }
    if end > shared {
        halve_words(&x[..end], &y[..end], carry, &mut out[..end]);
    } else {
        out[..end].copy_from_slice(&x[..end]);
    }
}

fn block(key: &[u8], start: usize) -> &[u8; BLOCK] {
    key[start..start + BLOCK].try_into().expect("a block")
}

/// Half of a sum that carries nowhere; returns whether that was so, else `out` is to be written
/// anew. `x_above` and `y_above` are the same keys one byte earlier.
fn halve_text(
    x: &[u8; BLOCK],
    y: &[u8; BLOCK],
    x_above: &[u8; BLOCK],
    y_above: &[u8; BLOCK],
    out: &mut [u8; BLOCK],
) -> bool {
    let mut bits = 0;
    for i in 0..BLOCK {
        bits |= x[i] | y[i];
        out[i] = (x[i].wrapping_add(y[i]) >> 1) | (x_above[i].wrapping_add(y_above[i]) << 7);
    }
    bits.is_ascii()
}

/// Half of the sum of one block and the `carry` into it; returns the carry out of it. `above` is
/// the sum of the bytes before the block, of which the low bit counts.
fn halve_block(
    x: &[u8; BLOCK],
    y: &[u8; BLOCK],
    above: u8,
    mut carry: bool,
    out: &mut [u8; BLOCK],
) -> bool {
    let (x, y, out) = (x.as_chunks().0, y.as_chunks().0, out.as_chunks_mut().0);
    let mut sums = [0; WORDS];
    for i in (0..WORDS).rev() {
        (sums[i], carry) = add(&x[i], &y[i], carry);
    }
    for i in 1..WORDS {
        out[i] = half(sums[i - 1], sums[i]);
    }
    out[0] = half(u64::from(above) + u64::from(carry), sums[0]);
    carry
}

/// Half of the sum of two keys' beginnings and the `carry` into them.
fn halve_words(x: &[u8], y: &[u8], mut carry: bool, out: &mut [u8]) {
    let (x_top, x_words) = x.as_rchunks();
    let (y_top, y_words) = y.as_rchunks();
    let (out_top, out_words) = out.as_rchunks_mut();
    // Each word waits for the word above it, whose low bit it needs.
    let mut waiting = 0;
    if let ([.., x_last], [.., y_last]) = (x_words, y_words) {
        (waiting, carry) = add(x_last, y_last, carry);
    }
    for i in (1..out_words.len()).rev() {
        let (sum, carry_out) = add(&x_words[i - 1], &y_words[i - 1], carry);
        out_words[i] = half(sum, waiting);
        (waiting, carry) = (sum, carry_out);
    }
    // At most seven bytes each: their sum fits. Without any it is the carry, which is the bit
    // above the first word.
    let number = |top: &[u8]| top.iter().fold(0, |n, &byte| (n << 8) | u64::from(byte));
    let top = number(x_top) + number(y_top) + u64::from(carry);
    if let Some(first) = out_words.first_mut() {
        *first = half(top, waiting);
    }
    let top = (top >> 1).to_be_bytes();
    out_top.copy_from_slice(&top[top.len() - out_top.len()..]);
}

fn add(x: &[u8; 8], y: &[u8; 8], carry: bool) -> (u64, bool) {
    u64::from_be_bytes(*x).carrying_add(u64::from_be_bytes(*y), carry)
}

/// Half of `sum`, under the low bit of the sum `above` it.
fn half(above: u64, sum: u64) -> [u8; 8] {
    // A rotation, as the two-register shift that `>> 1 | << 63` becomes is slow on AMD.
    ((sum & !1) | (above & 1)).rotate_right(1).to_be_bytes()
}
