//! Deltas: an object as instructions over its base.
//!
//! Two sizes (of the base and of the result), then instructions: a byte with its high bit set copies a
//! range of the base, any other but zero inserts so many of the bytes that follow it.

use super::ObjectError;

/// The sizes that a delta begins with.
pub(crate) struct DeltaHead {
    pub(crate) base_len: u64,
    pub(crate) result_len: u64,
    /// Where the instructions begin.
    pub(crate) len: usize,
}

/// No more bytes than this are needed to know the sizes.
pub(crate) const HEAD_MAX: usize = 20;

const BAD_HEAD: ObjectError = ObjectError::Corrupt("the sizes of a delta");
const BAD_BODY: ObjectError = ObjectError::Corrupt("the instructions of a delta");

/// Reads the sizes.
pub(crate) fn head(delta: &[u8]) -> Result<DeltaHead, ObjectError> {
    let (base_len, base_end) = size(delta)?;
    let (result_len, result_end) = size(&delta[base_end..])?;
    Ok(DeltaHead { base_len, result_len, len: base_end + result_end })
}

/// Seven bits a byte, the lowest first.
fn size(bytes: &[u8]) -> Result<(u64, usize), ObjectError> {
    let mut value = 0_u64;
    for (at, &byte) in bytes.iter().take(HEAD_MAX / 2).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * at as u32);
        if shifted >> (7 * at as u32) != bits {
            return Err(BAD_HEAD);
        }
        value |= shifted;
        if byte & 0x80 == 0 {
            return Ok((value, at + 1));
        }
    }
    Err(BAD_HEAD)
}

/// Makes an object of at most `max` bytes from its base.
pub(crate) fn apply(base: &[u8], delta: &[u8], max: u64) -> Result<Vec<u8>, ObjectError> {
    let head = head(delta)?;
    if head.base_len != base.len() as u64 {
        return Err(BAD_HEAD);
    }
    if head.result_len > max {
        return Err(ObjectError::TooLarge { size: head.result_len });
    }
    let len = head.result_len as usize;
    let mut result = Vec::new();
    result.try_reserve_exact(len).map_err(|_| ObjectError::TooLarge { size: head.result_len })?;
    let mut rest = &delta[head.len..];
    while let Some((&op, after)) = rest.split_first() {
        let (piece, next) = if op & 0x80 != 0 {
            let (from, count, next) = copy_operands(op, after)?;
            let piece = from.checked_add(count).and_then(|to| base.get(from..to));
            (piece.ok_or(BAD_BODY)?, next)
        } else if op == 0 {
            return Err(BAD_BODY);
        } else {
            after.split_at_checked(usize::from(op)).ok_or(BAD_BODY)?
        };
        // Never more than was reserved, whatever the instructions say.
        if piece.len() > len - result.len() {
            return Err(BAD_BODY);
        }
        result.extend_from_slice(piece);
        rest = next;
    }
    if result.len() == len { Ok(result) } else { Err(BAD_BODY) }
}

/// Offset and length of a copy: the low four bits of the instruction say which bytes of the offset
/// follow, the next three which bytes of the length.
fn copy_operands(op: u8, mut bytes: &[u8]) -> Result<(usize, usize, &[u8]), ObjectError> {
    let mut operand = |present: u8, count: u32| -> Result<usize, ObjectError> {
        let mut value = 0;
        for at in 0..count {
            if present & (1 << at) != 0 {
                let (&byte, rest) = bytes.split_first().ok_or(BAD_BODY)?;
                value |= usize::from(byte) << (8 * at);
                bytes = rest;
            }
        }
        Ok(value)
    };
    let from = operand(op & 0x0f, 4)?;
    let count = operand((op >> 4) & 0x07, 3)?;
    Ok((from, if count == 0 { 0x1_0000 } else { count }, bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn copies_and_inserts_make_the_result() {
        // 11 bytes to 9: copy 5 from 0, insert "XY", copy 2 from 9.
        let delta = [11, 9, 0x90, 5, 2, b'X', b'Y', 0x91, 9, 2];
        assert_eq!(apply(b"hello world", &delta, 100).unwrap(), b"helloXYld");
    }

    #[test]
    fn a_copy_without_a_length_is_of_64_kib() {
        let base = vec![7; 0x1_0000];
        let delta = [0x80, 0x80, 0x04, 0x80, 0x80, 0x04, 0x80];
        assert_eq!(apply(&base, &delta, 1 << 20).unwrap(), base);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases: [&[u8]; 9] = [
            &[],
            &[11],
            &[10, 1, 1, b'x'],             // another base
            &[11, 2, 1, b'x'],             // too short
            &[11, 1, 2, b'x', b'y'],       // too long
            &[11, 3, 3, b'x'],             // cut short
            &[11, 1, 0],                   // no such instruction
            &[11, 5, 0x91, 9, 5],          // behind the base
            &[11, 5, 0x9f, 255, 255, 255], // operands are missing
        ];
        for delta in cases {
            assert!(matches!(apply(b"hello world", delta, 100), Err(ObjectError::Corrupt(_))));
        }
        let large = [11, 0xff, 0xff, 0xff, 0x7f];
        assert!(matches!(apply(b"hello world", &large, 100), Err(ObjectError::TooLarge { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_make_a_result_or_an_error(base in prop::collection::vec(any::<u8>(), 0..40),
                                              delta in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(result) = apply(&base, &delta, 4096) {
                prop_assert!(result.len() <= 4096);
            }
        }
    }
}
