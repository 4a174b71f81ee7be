//! Where a worker stands inside an item, as a part of its shard's token.
//!
//! - T1: a token is committed with everything found up to its mark. Whoever goes on from it finds the
//!   rest, if the item is still the same; if not, the item is read from its start.

use gossip_engine::StreamMark;

use crate::shard_token::{put_field, take, take_field};

/// An item that was left in the middle: what was found up to its mark is committed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PartialItem {
    pub(crate) key: Vec<u8>,
    /// What was read is of this version.
    pub(crate) version: Vec<u8>,
    /// When the first byte of it was read: a version is trusted or not by that.
    pub(crate) opened_at_ms: u64,
    pub(crate) mark: StreamMark,
}

impl PartialItem {
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        put_field(bytes, &self.key);
        put_field(bytes, &self.version);
        bytes.extend_from_slice(&self.opened_at_ms.to_le_bytes());
        bytes.extend_from_slice(&self.mark.to_bytes());
    }

    /// Takes one off the front.
    pub(crate) fn decode(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            key: take_field(rest)?,
            version: take_field(rest)?,
            opened_at_ms: u64::from_le_bytes(take(rest)?),
            mark: StreamMark::from_bytes(&take(rest)?)?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> PartialItem {
        let mut bytes = [0; StreamMark::SIZE];
        (bytes[0], bytes[8], bytes[16]) = (3, 40, 50);
        let mark = StreamMark::from_bytes(&bytes).unwrap();
        PartialItem { key: b"k".to_vec(), version: b"ver".to_vec(), opened_at_ms: 7, mark }
    }

    #[test]
    fn a_mark_of_no_object_is_refused() {
        assert_eq!(StreamMark::from_bytes(&[1; StreamMark::SIZE]), None);
        let mut bytes = Vec::new();
        example().encode(&mut bytes);
        let mark = bytes.len() - StreamMark::SIZE;
        bytes[mark..].fill(1);
        assert!(PartialItem::decode(&mut &bytes[..]).is_none());
    }
}
