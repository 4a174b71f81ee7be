//! What a shard's cursor knows beside its key, as the cursor's token.
//!
//! - T2: the counts of a token are those of the items up to the cursor's key, each counted once: they
//!   are absolute values that are committed with the key. Summed over all shards but those that were
//!   split into others they are the run's.
//!
//! - T3: of two tokens of a shard the later is the greater in byte order, also while the key stays
//!   (coordination's C1).
//!
//! - T4: an item that was left in the middle and begun anew, as it had changed, as often as a shard may be
//!   tried has no more progress committed before its end: one that changes and kills its worker each
//!   time is then parked by coordination, which sees no progress.
//!
//! The layout: a format byte, the step as a big-endian number, which makes T3, a byte of flags, the
//! counts, then each part whose flag is set, in the order of flags. A flag that is not known is refused,
//! so that a later part (the page of findings that a fleet's token names) gets a flag of its own and
//! nobody overlooks it.

use gossip_contracts::coordination::MAX_TOKEN_SIZE;

use crate::partial_item::PartialItem;
use crate::totals::Counts;

/// Format 1 was an item in progress and nothing else; format 2 had no step.
const FORMAT: u8 = 3;
const FORMAT_WITHOUT_STEP: u8 = 2;
const HAS_PARTIAL: u8 = 1;
const HAS_LISTING: u8 = 2;
const HAS_RESTARTS: u8 = 4;

/// What a shard's cursor knows beside its key.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ShardToken {
    /// Commits of the shard up to this one (T3).
    pub(crate) step: u64,
    /// T2.
    pub(crate) counts: Counts,
    /// The item after the cursor's key, if it was left in the middle.
    pub(crate) partial: Option<PartialItem>,
    /// The source's own token: of the page in which the cursor's key lies, or that ended with it.
    pub(crate) listing: Option<Vec<u8>>,
    /// How often the item that was left in the middle was begun anew (T4).
    pub(crate) restarts: u32,
}

impl ShardToken {
    /// As a cursor's token. A listing token for which there is no room is left out: it only saves
    /// time.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.step.to_be_bytes());
        let flags = bytes.len();
        bytes.push(0);
        self.counts.encode(&mut bytes);
        if let Some(partial) = &self.partial {
            bytes[flags] |= HAS_PARTIAL;
            partial.encode(&mut bytes);
        }
        let has_restarts = self.restarts > 0;
        let room = MAX_TOKEN_SIZE - 2 - if has_restarts { size_of::<u32>() } else { 0 };
        if let Some(listing) = &self.listing
            && bytes.len() + listing.len() <= room
        {
            bytes[flags] |= HAS_LISTING;
            put_field(&mut bytes, listing);
        }
        if has_restarts {
            bytes[flags] |= HAS_RESTARTS;
            bytes.extend_from_slice(&self.restarts.to_le_bytes());
        }
        bytes
    }

    /// `None` if the token is none of ours.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let step = match take(&mut rest)? {
            [FORMAT] => u64::from_be_bytes(take(&mut rest)?),
            [FORMAT_WITHOUT_STEP] => 0,
            _ => return None,
        };
        let [flags] = take(&mut rest)?;
        if flags & !(HAS_PARTIAL | HAS_LISTING | HAS_RESTARTS) != 0 {
            return None;
        }
        let has = |flag| flags & flag != 0;
        let counts = Counts::decode(&mut rest)?;
        let partial = has(HAS_PARTIAL).then(|| PartialItem::decode(&mut rest));
        let listing = has(HAS_LISTING).then(|| take_field(&mut rest));
        let (partial, listing) = (transpose(partial)?, transpose(listing)?);
        let restarts = match has(HAS_RESTARTS) {
            true => u32::from_le_bytes(take(&mut rest)?),
            false => 0,
        };
        let token = Self { step, counts, partial, listing, restarts };
        rest.is_empty().then_some(token)
    }
}

/// A part that is there must be whole.
fn transpose<T>(part: Option<Option<T>>) -> Option<Option<T>> {
    match part {
        None => Some(None),
        Some(part) => part.map(Some),
    }
}

/// Appends bytes and how many they are.
pub(crate) fn put_field(bytes: &mut Vec<u8>, field: &[u8]) {
    let len = u16::try_from(field.len()).expect("keys, versions and tokens are short");
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.extend_from_slice(field);
}

/// Takes what [`put_field`] wrote off the front.
pub(crate) fn take_field(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let len = u16::from_le_bytes(take(rest)?);
    let (field, later) = rest.split_at_checked(usize::from(len))?;
    *rest = later;
    Some(field.to_vec())
}

/// Takes so many bytes off the front.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (front, later) = rest.split_first_chunk()?;
    *rest = later;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partial_item::tests::{example, inside};
    use crate::reason::Reason;
    use crate::totals::Reasons;

    fn token() -> ShardToken {
        let mut counts = Counts::default();
        let none = Reasons::default();
        counts.add_item(10, None, &none);
        counts.add_item(5, Some(Reason::Image), &none);
        counts.add_item(0, Some(Reason::Vanished), &none);
        ShardToken {
            step: 0x0102,
            counts,
            partial: Some(example()),
            listing: Some(b"page 7".to_vec()),
            restarts: 0,
        }
    }

    #[test]
    fn a_token_reads_back_with_and_without_each_part() {
        let mut whole = token();
        reads_back_in_parts(&whole);
        whole.partial = Some(inside());
        reads_back_in_parts(&whole);
        whole.restarts = 0x0102;
        reads_back_in_parts(&whole);
    }

    fn reads_back_in_parts(whole: &ShardToken) {
        for (partial, listing) in [(true, true), (true, false), (false, true), (false, false)] {
            let token = ShardToken {
                partial: whole.partial.clone().filter(|_| partial),
                listing: whole.listing.clone().filter(|_| listing),
                ..whole.clone()
            };
            let bytes = token.to_bytes();
            assert!(ShardToken::from_bytes(&bytes) == Some(token));
            for len in 0..bytes.len() {
                assert!(ShardToken::from_bytes(&bytes[..len]).is_none(), "{len} bytes of it");
            }
            assert!(ShardToken::from_bytes(&[&bytes[..], b"x"].concat()).is_none());
        }
    }

    #[test]
    fn tokens_of_another_format_or_with_parts_that_nobody_knows_are_refused() {
        let bytes = token().to_bytes();
        assert!(ShardToken::from_bytes(&[&[1], &bytes[1..]].concat()).is_none());
        for flag in 3..8 {
            let mut bytes = bytes.clone();
            bytes[9] |= 1 << flag;
            assert!(ShardToken::from_bytes(&bytes).is_none(), "flag {flag}");
        }
    }

    #[test]
    fn a_listing_token_that_does_not_fit_is_left_out_and_the_rest_stays() {
        let mut token = token();
        let without = ShardToken { listing: None, ..token.clone() };
        let room = MAX_TOKEN_SIZE - without.to_bytes().len() - 2;
        token.listing = Some(vec![7; room]);
        assert_eq!(token.to_bytes().len(), MAX_TOKEN_SIZE);
        token.listing = Some(vec![7; room + 1]);
        assert!(ShardToken::from_bytes(&token.to_bytes()) == Some(without.clone()));
        let (restarts, listing) = (1, Some(vec![7; room]));
        let token = ShardToken { restarts, listing, ..token };
        let without = ShardToken { restarts, ..without };
        assert!(ShardToken::from_bytes(&token.to_bytes()) == Some(without));
    }

    /// Tokens are stored: what is here must be read for as long as its format is.
    #[test]
    fn the_layout_is_pinned() {
        let token = ShardToken { partial: None, ..token() };
        let after_step = [
            &[2][..],
            &3_u64.to_le_bytes(),
            &15_u64.to_le_bytes(),
            &[2, 7],
            &1_u64.to_le_bytes(),
            &[66],
            &1_u64.to_le_bytes(),
            &[6, 0],
            b"page 7",
        ]
        .concat();
        let expected = [&[3, 0, 0, 0, 0, 0, 0, 1, 2][..], &after_step].concat();
        assert_eq!(token.to_bytes(), expected);
        // What a version without steps stored goes on at the first.
        let without_step = [&[2][..], &after_step].concat();
        assert!(ShardToken::from_bytes(&without_step) == Some(ShardToken { step: 0, ..token }));
    }

    /// T3: whatever else changes.
    #[test]
    fn a_later_token_is_greater_in_byte_order() {
        let rich = token();
        let poor =
            ShardToken { counts: Counts::default(), partial: None, listing: None, ..token() };
        for (step, next) in [(0, 1), (255, 256), (u64::MAX - 1, u64::MAX)] {
            for (before, after) in [(&rich, &poor), (&poor, &rich)] {
                let before = ShardToken { step, ..before.clone() }.to_bytes();
                let after = ShardToken { step: next, ..after.clone() }.to_bytes();
                assert!(before < after, "{step} and {next}");
            }
        }
        let of_format_2 = [&[2], &rich.to_bytes()[9..]].concat();
        assert!(of_format_2 < ShardToken { step: 0, ..poor }.to_bytes());
    }
}
