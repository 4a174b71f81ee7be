//! Where a worker stands inside an item, as the token of its shard's cursor.
//!
//! - T1: a token is committed with everything found up to its mark. Whoever goes on from it finds the
//!   rest, if the item is still the same; if not, the item is read from its start.

use gossip_engine::StreamMark;

const FORMAT: u8 = 1;

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
    pub(crate) fn to_token(&self) -> Vec<u8> {
        let mut token = vec![FORMAT];
        for field in [&self.key, &self.version] {
            let len = u16::try_from(field.len()).expect("keys and versions are short");
            token.extend_from_slice(&len.to_le_bytes());
            token.extend_from_slice(field);
        }
        token.extend_from_slice(&self.opened_at_ms.to_le_bytes());
        token.extend_from_slice(&self.mark.to_bytes());
        token
    }

    /// `None` if the token is none of ours.
    pub(crate) fn from_token(token: &[u8]) -> Option<Self> {
        let (&FORMAT, mut rest) = token.split_first()? else { return None };
        let mut field = || {
            let (len, bytes) = rest.split_first_chunk()?;
            let (field, later) = bytes.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
            rest = later;
            Some(field.to_vec())
        };
        let (key, version) = (field()?, field()?);
        let (opened_at_ms, mark) = rest.split_first_chunk()?;
        let mark = StreamMark::from_bytes(mark.try_into().ok()?)?;
        Some(Self { key, version, opened_at_ms: u64::from_le_bytes(*opened_at_ms), mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_no_part_of_it_or_more_than_it_does() {
        let mark = StreamMark::from_bytes(&[1; StreamMark::SIZE]);
        assert_eq!(mark, None);
        let mut bytes = [0; StreamMark::SIZE];
        (bytes[0], bytes[8], bytes[16]) = (3, 40, 50);
        let mark = StreamMark::from_bytes(&bytes).unwrap();
        let item =
            PartialItem { key: b"k".to_vec(), version: b"ver".to_vec(), opened_at_ms: 7, mark };
        let token = item.to_token();
        assert!(PartialItem::from_token(&token) == Some(item));
        for len in 0..token.len() {
            assert!(PartialItem::from_token(&token[..len]).is_none());
        }
        assert!(PartialItem::from_token(&[&token[..], b"x"].concat()).is_none());
        assert!(PartialItem::from_token(&[&[9], &token[1..]].concat()).is_none());
    }
}
