//! Where a worker stands inside an item, as a part of its shard's token.
//!
//! - T1: a token is committed with everything found up to its mark. Whoever goes on from it finds the
//!   rest, if the item is still the same; if not, the item is read from its start.

use gossip_engine::StreamMark;

use crate::shard_token::{put_field, take, take_field};
use crate::totals::Reasons;

/// An item that was left in the middle: what was found up to its mark is committed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PartialItem {
    pub(crate) key: Vec<u8>,
    /// What was read is of this version.
    pub(crate) version: Vec<u8>,
    /// When the first byte of it was read: a version is trusted or not by that.
    pub(crate) opened_at_ms: u64,
    pub(crate) at: PartialAt,
}

/// Where in an item.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum PartialAt {
    /// In its bytes.
    Mark(StreamMark),
    /// Among the files of an archive.
    Inside(Inside),
}

/// How far an archive is scanned.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    /// Files that are done.
    pub(crate) done: u64,
    /// Why some of those were not scanned.
    pub(crate) not_scanned: Reasons,
    /// Where in the next.
    pub(crate) mark: Option<StreamMark>,
}

const AT_MARK: u8 = 1;
const INSIDE: u8 = 2;
const INSIDE_AT_MARK: u8 = 3;

impl PartialItem {
    /// Whether more of the item is done than before. What is done of another version, or of one without a
    /// name, is not more.
    pub(crate) fn is_further(&self, before: Option<&Self>) -> bool {
        before.is_none_or(|before| {
            !self.version.is_empty() && self.version == before.version && self != before
        })
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        put_field(bytes, &self.key);
        put_field(bytes, &self.version);
        bytes.extend_from_slice(&self.opened_at_ms.to_le_bytes());
        match &self.at {
            PartialAt::Mark(mark) => {
                bytes.push(AT_MARK);
                bytes.extend_from_slice(&mark.to_bytes());
            }
            PartialAt::Inside(Inside { done, not_scanned, mark }) => {
                bytes.push(if mark.is_some() { INSIDE_AT_MARK } else { INSIDE });
                bytes.extend_from_slice(&done.to_le_bytes());
                not_scanned.encode(bytes);
                bytes.extend(mark.iter().flat_map(StreamMark::to_bytes));
            }
        }
    }

    /// Takes one off the front.
    pub(crate) fn decode(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            key: take_field(rest)?,
            version: take_field(rest)?,
            opened_at_ms: u64::from_le_bytes(take(rest)?),
            at: PartialAt::decode(rest)?,
        })
    }
}

impl PartialAt {
    fn decode(rest: &mut &[u8]) -> Option<Self> {
        let [kind] = take(rest)?;
        if kind == AT_MARK {
            return Some(Self::Mark(StreamMark::from_bytes(&take(rest)?)?));
        }
        let done = u64::from_le_bytes(take(rest)?);
        let not_scanned = Reasons::decode(rest)?;
        let mark = match kind {
            INSIDE => None,
            INSIDE_AT_MARK => Some(StreamMark::from_bytes(&take(rest)?)?),
            _ => return None,
        };
        Some(Self::Inside(Inside { done, not_scanned, mark }))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::reason::Reason;

    pub(crate) fn example() -> PartialItem {
        let mut bytes = [0; StreamMark::SIZE];
        (bytes[0], bytes[8], bytes[16]) = (3, 40, 50);
        let at = PartialAt::Mark(StreamMark::from_bytes(&bytes).unwrap());
        PartialItem { key: b"k".to_vec(), version: b"ver".to_vec(), opened_at_ms: 7, at }
    }

    pub(crate) fn inside() -> PartialItem {
        let mut not_scanned = Reasons::default();
        not_scanned.add(Reason::Image, 2);
        let mark = StreamMark::from_bytes(&[0; StreamMark::SIZE]);
        let at = PartialAt::Inside(Inside { done: 9, not_scanned, mark });
        PartialItem { at, ..example() }
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
