//! Scratch for metadata, and for a whole shard.

use gossip_contracts::coordination::MAX_METADATA_SIZE;
use gossip_stdx::FixedBuf;

use crate::KeyBuf;

/// A reusable buffer that holds one encoded hint or metadata envelope.
pub type MetadataBuf = FixedBuf<MAX_METADATA_SIZE>;

/// Everything that building one shard needs: both boundaries and the metadata.
///
/// A shard built with it borrows it, so the next one cannot be built before that is done with.
#[derive(Debug, Default)]
pub struct ShardSpecScratch {
    pub(super) start: KeyBuf,
    pub(super) end: KeyBuf,
    pub(super) metadata: MetadataBuf,
}

impl ShardSpecScratch {
    /// Empty scratch.
    #[must_use]
    pub const fn new() -> Self {
        Self { start: KeyBuf::new(), end: KeyBuf::new(), metadata: MetadataBuf::new() }
    }
}
