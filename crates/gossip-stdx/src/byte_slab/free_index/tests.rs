use super::super::block::{Block, GRANULE};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn add(blocks: &mut BlockTable, granules: u32) -> u32 {
    let state = State::Vacant { next: NONE };
    blocks.add(Block { offset: 0, size: granules * GRANULE, before: NONE, after: NONE, state })
}

/// Depth of the deepest block, after checking F1, F2 and F3 for the class.
fn check_class(index: &FreeIndex, blocks: &BlockTable, class: usize) -> u32 {
    let root = index.roots[class];
    assert_eq!(index.occupied[class / 64] >> (class % 64) & 1 == 1, root != NONE, "F2");
    let mut deepest = 0;
    let mut pending = vec![(root, NONE, Vec::new())];
    while let Some((node, parent, path)) = pending.pop() {
        if node == NONE {
            continue;
        }
        let own = Class::of(blocks[node].granules());
        assert_eq!(own.index, class, "F1");
        assert_eq!(blocks[node].links().parent, parent);
        for (depth, &side) in path.iter().enumerate() {
            if own.is_list() {
                assert_eq!(side, NEXT);
            } else {
                let turn = own.turn(blocks[node].granules(), node, depth as u32);
                assert_eq!(turn, side, "F3");
            }
        }
        deepest = deepest.max(path.len() as u32);
        for side in [0, 1] {
            let path = path.iter().copied().chain([side]).collect();
            pending.push((blocks[node].links().child[side], node, path));
        }
    }
    deepest
}

/// Sizes around class boundaries, where mistakes would be.
fn any_granules() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 1u32..40,
        4 => 32u32..600,
        2 => (5u32..GRANULES_BITS, -2i64..3).prop_map(|(bits, near)| {
            ((1i64 << bits) + near).clamp(1, (1 << GRANULES_BITS) - 1) as u32
        }),
        1 => 1u32..1 << GRANULES_BITS,
    ]
}

#[test]
fn classes_are_in_size_order_and_fill_the_table() {
    let sizes = (1..4_095).chain((12..GRANULES_BITS).flat_map(|bits| {
        (0..16u32).flat_map(move |sub| {
            let floor = (16 + sub) << (bits - 4);
            [floor - 1, floor, floor + 1]
        })
    }));
    let mut previous = (0, 0);
    for size in sizes {
        let class = Class::of(size);
        assert!(class.index >= previous.1, "{size} after {}", previous.0);
        assert!(class.index - previous.1 <= 1, "{size} after {}", previous.0);
        previous = (size, class.index);
    }
    assert_eq!(Class::of((1 << GRANULES_BITS) - 1).index, CLASSES - 1);
}

#[test]
fn depth_stays_logarithmic_for_equal_and_for_adversarial_sizes() {
    const BLOCKS: u32 = 1 << 12;
    let sizes: [fn(u32) -> u32; 3] =
        [|_| 1 << 20, |i| (1 << 20) + i, |i| (1 << 20) + (1 << (i % 16))];
    for size in sizes {
        let mut blocks = BlockTable::with_limit(BLOCKS as usize);
        let mut index = FreeIndex::new();
        for i in 0..BLOCKS {
            let block = add(&mut blocks, size(i));
            index.insert(&mut blocks, block);
        }
        let class = Class::of(1 << 20);
        let deepest = check_class(&index, &blocks, class.index);
        assert!(deepest <= class.size_bits + BLOCKS.ilog2(), "depth {deepest}");
    }
}

proptest! {
    #![proptest_config(crate::soak::cases(256))]

    #[test]
    fn agrees_with_an_ordered_set(
        ops in prop::collection::vec((any_granules(), any::<usize>(), 0u8..5), 1..300),
    ) {
        let mut blocks = BlockTable::with_limit(ops.len());
        let mut index = FreeIndex::new();
        let mut model = BTreeSet::new();
        for (granules, pick, op) in ops {
            let mut touched = granules;
            if op < 3 || model.is_empty() {
                let block = add(&mut blocks, granules);
                index.insert(&mut blocks, block);
                model.insert((granules, block));
            } else {
                let &(size, block) = model.iter().nth(pick % model.len()).unwrap();
                model.remove(&(size, block));
                index.remove(&mut blocks, block);
                blocks.remove(block);
                touched = size;
            }
            check_class(&index, &blocks, Class::of(touched).index);
            let largest = model.last().map_or(0, |&(size, _)| size);
            prop_assert_eq!(index.largest(&blocks), largest);
            for wanted in [granules, touched, touched + 1] {
                let fit = index.best_fit(&blocks, wanted).map(|block| blocks[block].granules());
                let expected = model.range((wanted, 0)..).next().map(|&(size, _)| size);
                prop_assert_eq!(fit, expected, "for {}", wanted);
            }
        }
    }
}
