//! The metadata envelope: a hint for everyone, and bytes for the connector alone.

use core::fmt;

use gossip_contracts::coordination::{IntoShardSpecRef, MAX_METADATA_SIZE};

use super::buf::MetadataBuf;
use super::error::{ShardEncodeError, ShardMetadataDecodeError};
use super::wire::ShardHint;

const LENGTH_LEN: usize = size_of::<u32>();

/// A shard's metadata: hint length (u32, big-endian), hint, connector bytes to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ShardMetadata<'a> {
    /// What kind of range the shard covers.
    pub hint: ShardHint<'a>,
    /// The connector's own bytes, passed through as they are.
    pub connector_extra: &'a [u8],
}

impl<'a> ShardMetadata<'a> {
    /// A hint with connector bytes.
    #[must_use]
    pub const fn new(hint: ShardHint<'a>, connector_extra: &'a [u8]) -> Self {
        Self { hint, connector_extra }
    }

    /// Metadata that is a hint and nothing else.
    #[must_use]
    pub const fn from_hint(hint: ShardHint<'a>) -> Self {
        Self::new(hint, &[])
    }

    /// Length of the encoding, or why there is none.
    pub fn encoded_len(&self) -> Result<usize, ShardEncodeError> {
        Ok(self.layout()?.1)
    }

    /// Writes the encoding into `buf`; on error `buf` is unchanged.
    pub fn encode_into<'b>(&self, buf: &'b mut MetadataBuf) -> Result<&'b [u8], ShardEncodeError> {
        let (hint_len, size) = self.layout()?;
        let out = buf.overwrite(size);
        let (length, rest) = out.split_at_mut(LENGTH_LEN);
        let (hint, extra) = rest.split_at_mut(hint_len);
        length.copy_from_slice(&(hint_len as u32).to_be_bytes());
        self.hint.write(hint);
        extra.copy_from_slice(self.connector_extra);
        Ok(out)
    }

    /// Length of the hint and of the whole.
    fn layout(&self) -> Result<(usize, usize), ShardEncodeError> {
        let hint_len = self.hint.encoded_len()?;
        let size = LENGTH_LEN + hint_len + self.connector_extra.len();
        if size > MAX_METADATA_SIZE {
            return Err(ShardEncodeError::MetadataTooLarge { size, max: MAX_METADATA_SIZE });
        }
        Ok((hint_len, size))
    }

    /// Reads an envelope. Empty metadata reads as a plain range without connector bytes.
    pub fn decode(metadata: &'a [u8]) -> Result<Self, ShardMetadataDecodeError> {
        if metadata.is_empty() {
            return Ok(Self::from_hint(ShardHint::Range));
        }
        if metadata.len() > MAX_METADATA_SIZE {
            return Err(ShardMetadataDecodeError::ENVELOPE);
        }
        let (hint_len, rest) =
            metadata.split_first_chunk().ok_or(ShardMetadataDecodeError::ENVELOPE)?;
        let hint_len = u32::from_be_bytes(*hint_len) as usize;
        let (hint, connector_extra) =
            rest.split_at_checked(hint_len).ok_or(ShardMetadataDecodeError::ENVELOPE)?;
        let (hint, consumed) = ShardHint::decode(hint)
            .map_err(|error| ShardMetadataDecodeError { hint_error: Some(error) })?;
        if consumed != hint_len {
            return Err(ShardMetadataDecodeError::ENVELOPE);
        }
        Ok(Self { hint, connector_extra })
    }
}

/// Shows lengths in place of prefixes and connector bytes.
impl fmt::Debug for ShardMetadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardMetadata")
            .field("hint", &self.hint)
            .field("connector_extra", &format_args!("[{} bytes]", self.connector_extra.len()))
            .finish()
    }
}

/// The metadata of a shard.
pub fn decode_metadata<'a>(
    spec: impl IntoShardSpecRef<'a>,
) -> Result<ShardMetadata<'a>, ShardMetadataDecodeError> {
    ShardMetadata::decode(spec.into_shard_spec_ref().metadata())
}

/// The hint of a shard. The whole envelope must be good.
pub fn decode_hint<'a>(
    spec: impl IntoShardSpecRef<'a>,
) -> Result<ShardHint<'a>, ShardMetadataDecodeError> {
    Ok(decode_metadata(spec)?.hint)
}

/// The connector's bytes of a shard. The whole envelope must be good.
pub fn decode_connector_extra<'a>(
    spec: impl IntoShardSpecRef<'a>,
) -> Result<&'a [u8], ShardMetadataDecodeError> {
    Ok(decode_metadata(spec)?.connector_extra)
}
