//! Rows of numbered manifests as keys.

use super::{KeyBuf, KeyEncoding};

/// One row of one manifest: 16 bytes, both numbers big-endian, manifest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestRowKey {
    // Field order is the order of the key.
    manifest_id: u64,
    row: u64,
}

impl ManifestRowKey {
    /// Every encoding has this length.
    pub const ENCODED_LEN: usize = 16;

    /// The key of `row` in the manifest `manifest_id`.
    #[must_use]
    pub const fn new(manifest_id: u64, row: u64) -> Self {
        Self { manifest_id, row }
    }

    /// The manifest that the row is of.
    #[must_use]
    pub const fn manifest_id(&self) -> u64 {
        self.manifest_id
    }

    /// The row in its manifest.
    #[must_use]
    pub const fn row(&self) -> u64 {
        self.row
    }
}

impl KeyEncoding for ManifestRowKey {
    fn encode_into(&self, buf: &mut KeyBuf) {
        let key = (u128::from(self.manifest_id) << 64) | u128::from(self.row);
        buf.copy_from_slice(&key.to_be_bytes());
    }
}

/// The manifest row that `key` encodes; `None` unless `key` has exactly 16 bytes.
#[must_use]
pub fn decode_manifest_row_key(key: &[u8]) -> Option<ManifestRowKey> {
    let key = u128::from_be_bytes(key.try_into().ok()?);
    Some(ManifestRowKey { manifest_id: (key >> 64) as u64, row: key as u64 })
}
