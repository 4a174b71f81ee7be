//! PyPI's upload tokens: `pypi-` and the base64url of a binary macaroon.

use super::Verdict;
use crate::decode::base64;

const FIELD_LOCATION: u8 = 1;
const FIELD_IDENTIFIER: u8 = 2;
const FIELD_SIGNATURE: u8 = 6;

/// Version 2: a location and an identifier, an end mark, caveats, and a signature of 32 bytes.
pub(super) fn verify_pypi(secret: &[u8]) -> Verdict {
    let mut bytes = [0u8; 512];
    let body = secret.strip_prefix(b"pypi-").unwrap_or(secret);
    let body = &body[..body.len().min(680)];
    let len = base64::decode_into(body, &mut bytes);
    let bytes = &bytes[..len];
    let Some((2, rest)) = bytes.split_first().map(|(version, rest)| (*version, rest)) else {
        return Verdict::Impossible;
    };
    let mut packets = Packets(rest);
    match packets.next() {
        Some((FIELD_LOCATION, b"pypi.org" | b"test.pypi.org")) => {}
        _ => return Verdict::Impossible,
    }
    let mut identified = false;
    loop {
        match packets.next() {
            Some((FIELD_IDENTIFIER, _)) => identified = true,
            Some((FIELD_SIGNATURE, signature)) if identified && signature.len() == 32 => {
                return Verdict::Valid;
            }
            Some(_) => {}
            // Cut off by the buffer above, or by whoever wrote it down.
            None => return if body.len() == 680 { Verdict::Unknown } else { Verdict::Invalid },
        }
    }
}

/// Type, length, bytes; an end mark is a type of zero without a length.
struct Packets<'a>(&'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.0.split_first()?;
        if kind == 0 {
            self.0 = rest;
            return Some((0, &[]));
        }
        let (&low, rest) = rest.split_first()?;
        let (len, rest) = if low < 0x80 {
            (usize::from(low), rest)
        } else {
            let (&high, rest) = rest.split_first()?;
            (usize::from(low & 0x7F) | usize::from(high) << 7, rest)
        };
        let bytes = rest.get(..len)?;
        self.0 = &rest[len..];
        Some((kind, bytes))
    }
}
