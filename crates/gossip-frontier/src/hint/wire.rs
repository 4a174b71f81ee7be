//! The hint and its bytes.

use core::fmt;

use gossip_contracts::coordination::MAX_METADATA_SIZE;

use super::buf::MetadataBuf;
use super::error::{ShardEncodeError, ShardHintDecodeError};

const TAG_RANGE: u8 = 0x00;
const TAG_PREFIX: u8 = 0x01;
const TAG_MANIFEST: u8 = 0x02;

const PREFIX_HEADER_LEN: usize = 1 + size_of::<u32>();
const MANIFEST_LEN: usize = 1 + 3 * size_of::<u64>();
const MAX_PREFIX_LEN: usize = u32::MAX as usize;

/// What kind of range a shard covers. All numbers on the wire are big-endian.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ShardHint<'a> {
    /// Keys between two boundaries, nothing more to say: `00`.
    Range,
    /// All keys that begin with a prefix: `01`, length (u32), prefix.
    Prefix {
        /// What every key of the shard begins with.
        prefix: &'a [u8],
    },
    /// Rows `[start_row, end_row)` of a manifest: `02` and three u64.
    Manifest {
        /// The manifest whose rows the shard covers.
        manifest_id: u64,
        /// First row.
        start_row: u64,
        /// First row behind the last; always above `start_row` on the wire.
        end_row: u64,
    },
}

impl<'a> ShardHint<'a> {
    /// Length of the encoding, or why there is none.
    pub fn encoded_len(&self) -> Result<usize, ShardEncodeError> {
        match *self {
            Self::Range => Ok(1),
            Self::Prefix { prefix } => prefix_frame_len(prefix.len()),
            Self::Manifest { start_row, end_row, .. } if start_row >= end_row => {
                Err(ShardEncodeError::InvertedManifestRows { start_row, end_row })
            }
            Self::Manifest { .. } => Ok(MANIFEST_LEN),
        }
    }

    /// Writes the encoding into `buf`; on error `buf` is unchanged.
    pub fn encode_into<'b>(&self, buf: &'b mut MetadataBuf) -> Result<&'b [u8], ShardEncodeError> {
        let out = buf.overwrite(self.encoded_len()?);
        self.write(out);
        Ok(out)
    }

    /// Fills `out`, which has the length that [`ShardHint::encoded_len`] gave.
    pub(super) fn write(&self, out: &mut [u8]) {
        match *self {
            Self::Range => out[0] = TAG_RANGE,
            Self::Prefix { prefix } => {
                let (header, rest) = out.split_at_mut(PREFIX_HEADER_LEN);
                header[0] = TAG_PREFIX;
                header[1..].copy_from_slice(&(prefix.len() as u32).to_be_bytes());
                rest.copy_from_slice(prefix);
            }
            Self::Manifest { manifest_id, start_row, end_row } => {
                out[0] = TAG_MANIFEST;
                out[1..9].copy_from_slice(&manifest_id.to_be_bytes());
                out[9..17].copy_from_slice(&start_row.to_be_bytes());
                out[17..25].copy_from_slice(&end_row.to_be_bytes());
            }
        }
    }

    /// The hint with which `data` begins, and how many bytes it takes; what follows is not ours.
    ///
    /// No hint reaches beyond `MAX_METADATA_SIZE` bytes, as none of that length can be encoded:
    /// `data` counts as cut there.
    pub fn decode(data: &'a [u8]) -> Result<(Self, usize), ShardHintDecodeError> {
        let data = &data[..data.len().min(MAX_METADATA_SIZE)];
        match data.first() {
            None => Err(ShardHintDecodeError::EmptyData),
            Some(&TAG_RANGE) => Ok((Self::Range, 1)),
            Some(&TAG_PREFIX) => decode_prefix(data),
            Some(&TAG_MANIFEST) => decode_manifest(data),
            Some(&tag) => Err(ShardHintDecodeError::UnknownTag(tag)),
        }
    }
}

fn prefix_frame_len(prefix_len: usize) -> Result<usize, ShardEncodeError> {
    if prefix_len > MAX_PREFIX_LEN {
        return Err(ShardEncodeError::PrefixTooLarge { size: prefix_len, max: MAX_PREFIX_LEN });
    }
    let size = PREFIX_HEADER_LEN + prefix_len;
    if size > MAX_METADATA_SIZE {
        return Err(ShardEncodeError::HintTooLarge { size, max: MAX_METADATA_SIZE });
    }
    Ok(size)
}

fn decode_prefix(data: &[u8]) -> Result<(ShardHint<'_>, usize), ShardHintDecodeError> {
    let truncated =
        |expected_min| ShardHintDecodeError::TruncatedPrefix { expected_min, actual: data.len() };
    let (header, rest) =
        data.split_first_chunk::<PREFIX_HEADER_LEN>().ok_or(truncated(PREFIX_HEADER_LEN))?;
    let [_, len @ ..] = *header;
    let len = u32::from_be_bytes(len) as usize;
    let prefix = rest.get(..len).ok_or(truncated(PREFIX_HEADER_LEN.saturating_add(len)))?;
    Ok((ShardHint::Prefix { prefix }, PREFIX_HEADER_LEN + len))
}

fn decode_manifest(data: &[u8]) -> Result<(ShardHint<'_>, usize), ShardHintDecodeError> {
    let frame =
        data.first_chunk::<MANIFEST_LEN>().ok_or(ShardHintDecodeError::TruncatedManifest {
            expected_min: MANIFEST_LEN,
            actual: data.len(),
        })?;
    let (numbers, _) = frame[1..].as_chunks::<8>();
    let [manifest_id, start_row, end_row] = [0, 1, 2].map(|i| u64::from_be_bytes(numbers[i]));
    if start_row >= end_row {
        return Err(ShardHintDecodeError::InvertedManifestRows { start_row, end_row });
    }
    Ok((ShardHint::Manifest { manifest_id, start_row, end_row }, MANIFEST_LEN))
}

/// Shows a prefix as its length: prefixes may name private files.
impl fmt::Debug for ShardHint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range => f.write_str("Range"),
            Self::Prefix { prefix } => f
                .debug_struct("Prefix")
                .field("prefix", &format_args!("[{} bytes]", prefix.len()))
                .finish(),
            Self::Manifest { manifest_id, start_row, end_row } => f
                .debug_struct("Manifest")
                .field("manifest_id", manifest_id)
                .field("start_row", start_row)
                .field("end_row", end_row)
                .finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // By length alone, as the real thing takes 4 GiB.
    #[test]
    fn a_prefix_beyond_its_length_field_is_refused_before_any_other_limit() {
        assert_eq!(
            prefix_frame_len(MAX_PREFIX_LEN + 1),
            Err(ShardEncodeError::PrefixTooLarge { size: 1 << 32, max: (1 << 32) - 1 })
        );
        assert_eq!(
            prefix_frame_len(MAX_PREFIX_LEN),
            Err(ShardEncodeError::HintTooLarge {
                size: MAX_PREFIX_LEN + 5,
                max: MAX_METADATA_SIZE
            })
        );
        assert_eq!(prefix_frame_len(MAX_METADATA_SIZE - 5), Ok(MAX_METADATA_SIZE));
    }
}
