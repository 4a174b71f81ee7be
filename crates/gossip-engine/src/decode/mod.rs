//! Encodings that hide secrets from a plain scan, and the way back from decoded to original bytes.
//!
//! - D1: a decoder reads at most [`MAX_ENCODED_RUN_LEN`](crate::limits::MAX_ENCODED_RUN_LEN) bytes
//!   of a run (UTF-16: what the segment sees).
//! - D2: the span of a decoded byte is the smallest run of encoded bytes that determines it.

pub(crate) mod base64;
pub(crate) mod escapes;
pub(crate) mod hex;
pub(crate) mod utf16;

use std::ops::Range;

/// How a finding was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// As it is.
    #[default]
    Plain,
    /// UTF-16, either byte order.
    Utf16,
    /// `%41`.
    Percent,
    /// Base64, standard or URL-safe.
    Base64,
    /// `\x41` and `\u0041`.
    Escaped,
    /// Two hexadecimal digits a byte.
    Hex,
}

impl Encoding {
    /// For reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Utf16 => "utf-16",
            Self::Percent => "percent",
            Self::Base64 => "base64",
            Self::Escaped => "escaped",
            Self::Hex => "hex",
        }
    }
}

/// Where decoded bytes came from.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Each decoded byte from two bytes, from `start` on.
    Pairs { start: usize },
    /// One unbroken base64 run from `start` on.
    Base64 { start: usize },
    /// Base64 of several lines: the place of every digit.
    Base64Lines(Vec<u32>),
    /// One start per decoded byte, and the end of the last.
    Table(Vec<u32>),
}

impl Origin {
    /// The encoded bytes of decoded bytes `span`, which is not empty.
    pub(crate) fn encoded(&self, span: Range<usize>) -> Range<usize> {
        debug_assert!(!span.is_empty());
        match self {
            Self::Pairs { start } => start + span.start * 2..start + span.end * 2,
            Self::Base64 { start } => {
                start + span.start * 4 / 3..start + (span.end * 4).div_ceil(3)
            }
            Self::Base64Lines(places) => {
                let last = (span.end * 4).div_ceil(3) - 1;
                places[span.start * 4 / 3] as usize..places[last] as usize + 1
            }
            Self::Table(starts) => starts[span.start] as usize..starts[span.end] as usize,
        }
    }
}

/// One layer's buffers, kept from run to run. No `Debug`: what was decoded may hold secrets.
#[derive(Default)]
pub(crate) struct Decoded {
    pub(crate) text: Vec<u8>,
    /// Reused by [`Origin::Table`] and [`Origin::Base64Lines`].
    pub(crate) starts: Vec<u32>,
}
