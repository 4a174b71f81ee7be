//! The simulator's key space: numbered items, each with a key that sorts by its number, so that
//! "which items does this range hold" has an exact answer.

use super::op::OwnedRange;

const PREFIX: u8 = b'k';

/// The key of an item.
pub(super) fn key(item: u32) -> [u8; 3] {
    let [high, low] = u16::try_from(item).expect("a run has fewer than 2^16 items").to_be_bytes();
    [PREFIX, high, low]
}

/// A key behind that of `item` and before that of the next: a cut need not fall on an item.
pub(super) fn behind(item: u32, suffix: u8) -> [u8; 4] {
    let [prefix, high, low] = key(item);
    [prefix, high, low, suffix]
}

/// The first item at or behind a key.
pub(super) fn first_item_from(key: &[u8]) -> u32 {
    match *key {
        [] => 0,
        [PREFIX, high, low, ref rest @ ..] => {
            u32::from(u16::from_be_bytes([high, low])) + u32::from(!rest.is_empty())
        }
        _ => panic!("not a key of the simulator: {key:?}"),
    }
}

/// The items of a bounded range: from the first up to and without the second.
pub(super) fn items(range: &OwnedRange) -> (u32, u32) {
    (first_item_from(&range.start), first_item_from(&range.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Bytes;

    #[test]
    fn items_are_those_whose_keys_lie_in_the_range() {
        let points = [key(3).to_vec(), behind(3, 0).to_vec(), behind(3, 9).to_vec()];
        let ends = [key(7).to_vec(), behind(7, 0).to_vec()];
        for start in &points {
            for end in &ends {
                let (start, end) = (start[..].into(), end[..].into());
                let range = OwnedRange { start, end, metadata: Bytes::new() };
                let inside: Vec<u32> =
                    (0..20).filter(|&item| range.as_ref().contains(&key(item))).collect();
                let (first, last) = items(&range);
                assert_eq!((first..last).collect::<Vec<_>>(), inside);
            }
        }
        assert!(key(255) < key(256) && key(1).as_slice() < behind(1, 0).as_slice());
    }
}
