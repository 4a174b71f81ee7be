use super::*;
use proptest::prelude::*;

const CAPACITY: u32 = 4096 + 9;

fn stamp() -> NonZeroU64 {
    NonZeroU64::MIN
}

/// Checks B1, B2 and B3 and the byte counts; returns the sizes of the free blocks.
fn check(map: &BlockMap) -> Vec<u32> {
    let mut free = Vec::new();
    let mut live_bytes = 0;
    let mut end = map.frontier;
    let mut after = NONE;
    let mut after_free = false;
    let mut index = map.last;
    while index != NONE {
        let block = &map.blocks[index];
        assert!(block.size > 0);
        assert_eq!(block.offset + block.size, end, "B1");
        assert_eq!(block.after, after, "B1");
        assert!(block.size.is_multiple_of(GRANULE) || index == map.last, "B3");
        if block.is_free() {
            assert!(after != NONE, "B2");
            assert!(!after_free, "B2");
            free.push(block.size);
        } else {
            live_bytes += block.size;
        }
        after_free = block.is_free();
        end = block.offset;
        after = index;
        index = block.before;
    }
    assert_eq!(end, 0, "B1");
    assert_eq!(map.live_bytes(), live_bytes);
    assert_eq!(map.free_bytes(), free.iter().sum::<u32>());
    assert_eq!(map.largest(), map.untouched_bytes().max(free.iter().copied().max().unwrap_or(0)));
    free
}

proptest! {
    #![proptest_config(crate::soak::cases(256))]

    #[test]
    fn placement_is_best_fit_and_refuses_only_when_nothing_fits(
        ops in prop::collection::vec((0u32..700, any::<usize>(), 0u8..8), 1..400),
    ) {
        let mut map = BlockMap::new(CAPACITY, ops.len());
        let mut live = Vec::new();
        let mut free = Vec::new();
        for (len, pick, op) in ops {
            match op {
                0..4 => {
                    let fit = free.iter().copied().filter(|&size| size >= len).min();
                    let untouched = map.untouched_bytes();
                    let placed = map.acquire(stamp(), len);
                    prop_assert_eq!(placed.is_some(), fit.is_some() || untouched >= len);
                    live.extend(placed);
                    let after = check(&map);
                    if let Some(fit) = fit && len > 0 {
                        let size = len.next_multiple_of(GRANULE);
                        prop_assert_eq!(map.untouched_bytes(), untouched, "a free block fitted");
                        // The chosen block lost exactly the record's size.
                        let mut expected = free.clone();
                        let at = expected.iter().position(|&size| size == fit).unwrap();
                        expected.swap_remove(at);
                        expected.extend((fit > size).then(|| fit - size));
                        expected.sort_unstable();
                        let mut actual = after;
                        actual.sort_unstable();
                        prop_assert_eq!(actual, expected);
                    }
                }
                4..7 if !live.is_empty() => {
                    map.release(live.swap_remove(pick % live.len()));
                }
                _ if !live.is_empty() => {
                    let index = live[pick % live.len()];
                    let before = map.blocks[index].size;
                    let reused = map.reuse(index, stamp(), len);
                    prop_assert_eq!(reused, len <= before && (len > 0 || before == 0));
                    let size = map.blocks[index].size;
                    prop_assert!(!reused || size < 2 * len.next_multiple_of(GRANULE) + GRANULE);
                }
                _ => {}
            }
            free = check(&map);
        }
        for index in live {
            map.release(index);
        }
        prop_assert_eq!(check(&map), Vec::<u32>::new());
        prop_assert_eq!(map.untouched_bytes(), CAPACITY);
    }
}

#[test]
fn the_last_block_may_end_off_the_grid() {
    let mut map = BlockMap::new(100, 2);
    let first = map.acquire(stamp(), 1).unwrap();
    let last = map.acquire(stamp(), 84).unwrap();
    assert_eq!((map.blocks[first].size, map.blocks[last].size), (16, 84));
    assert_eq!(map.untouched_bytes(), 0);
    assert!(map.reuse(last, stamp(), 20));
    assert_eq!((map.blocks[last].size, map.untouched_bytes()), (32, 52));
    check(&map);
}

#[test]
fn a_record_may_fill_the_largest_map() {
    let mut map = BlockMap::new(u32::MAX, 2);
    let whole = map.acquire(stamp(), u32::MAX).unwrap();
    assert_eq!(map.largest(), 0);
    map.release(whole);
    let rest = map.acquire(stamp(), u32::MAX - 16).unwrap();
    assert_eq!(map.acquire(stamp(), 16), None);
    assert!(map.acquire(stamp(), 15).is_some());
    map.release(rest);
    assert_eq!(check(&map), [u32::MAX - 15]);
    assert_eq!(map.acquire(stamp(), u32::MAX), None);
}
