use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::page::PAGE_ENTRIES;
use super::*;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Vec<u8>)>;

impl Tree {
    /// T1 to T3, G1 and G2, and that every entry is found where it is.
    fn assert_invariants(&self) {
        assert_eq!(self.fences.get(0), Some(&b""[..]), "T1");
        assert_eq!(self.fences.len(), self.branches.len());
        let mut entries = 0;
        let mut last_key: Option<&[u8]> = None;
        let pages = self.branches.iter().map(|branch| branch.pages.len()).sum::<usize>();
        for (nth, branch) in self.branches.iter().enumerate() {
            assert_eq!(self.fences.get(nth), branch.fences.get(0));
            assert_eq!(branch.fences.len(), branch.pages.len());
            for (nth, page) in branch.pages.iter().enumerate() {
                let low = branch.fences.get(nth).unwrap();
                assert!(last_key.is_none_or(|key| key < low), "T2: a key beyond its fence");
                assert!(page.len() > 0 || pages == 1, "T3");
                for (index, &at) in page.addresses().iter().enumerate() {
                    let key = self.key(at);
                    assert!(low <= key, "T2: a key below its fence");
                    assert!(last_key.is_none_or(|last| last < key), "G1");
                    assert_eq!(page.find(&self.arena, key), Ok(index), "G2");
                    assert!(std::ptr::eq(self.page(self.locate(key)), &**page));
                    last_key = Some(key);
                }
                entries += page.len();
            }
        }
        assert_eq!(entries, self.entries);
        self.arena.assert_invariants();
    }

    fn put_one(&mut self, key: &[u8], version: &[u8], value: &[u8]) -> Option<(usize, usize)> {
        let found = self.find_all(std::iter::once(key));
        self.put(&found, 0, &Entry { key, version, value })
    }

    fn remove_one(&mut self, key: &[u8]) -> Option<(usize, usize)> {
        let found = self.find_all(std::iter::once(key));
        self.remove(&found, 0, key)
    }
}

fn contents(view: &View) -> Model {
    let mut model = Model::new();
    for entry in view.entries() {
        let value = (entry.version.to_vec(), entry.value.to_vec());
        assert!(model.insert(entry.key.to_vec(), value).is_none());
    }
    model
}

fn with_prefix(model: &Model, prefix: &[u8]) -> Model {
    let entries = model.iter().filter(|(key, _)| key.starts_with(prefix));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Key, and lengths of version and value; a delete without.
type Change = (Vec<u8>, Option<(usize, usize)>);

#[derive(Clone, Debug)]
enum Step {
    Batch(Vec<Change>),
    /// Somebody notes everything now and reads it at the end.
    Note,
}

fn keys() -> impl Strategy<Value = Vec<u8>> {
    // Keys that share much, are prefixes of one another, and end in zero bytes.
    let bytes = prop::sample::select(vec![0u8, 1, b'a', b'b', 255]);
    let letters = prop::sample::select(vec![b'a', b'b']);
    prop_oneof![
        4 => prop::collection::vec(bytes, 0..6),
        1 => prop::collection::vec(letters, 8..14),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![8 => 1usize..400, 1 => 60_000usize..70_000];
    let change = prop_oneof![
        5 => (keys(), 0usize..=10, value).prop_map(|(key, version, value)| (key, Some((version, value)))),
        2 => keys().prop_map(|key| (key, None)),
    ];
    let step = prop_oneof![
        9 => prop::collection::vec(change, 0..40).prop_map(Step::Batch),
        1 => Just(Step::Note),
    ];
    prop::collection::vec(step, 1..30)
}

proptest! {
    #[test]
    fn a_tree_is_an_ordered_map_and_what_was_noted_does_not_change(
        steps in steps(),
        prefix in keys(),
    ) {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        let mut noted = Vec::new();
        for (step, number) in steps.into_iter().zip(0u8..) {
            match step {
                Step::Batch(changes) => {
                    let count = changes.len();
                    let found = tree.find_all(changes.iter().map(|(key, _)| &key[..]));
                    for (nth, (key, change)) in changes.into_iter().enumerate() {
                        let (old, expected) = match change {
                            Some((version, value)) => {
                                let (version, value) = (vec![number; version], vec![number; value]);
                                let entry = Entry { key: &key, version: &version, value: &value };
                                let old = tree.put(&found, nth, &entry);
                                (old, model.insert(key, (version, value)))
                            }
                            None => (tree.remove(&found, nth, &key), model.remove(&key)),
                        };
                        let expected = expected.map(|(version, value)| (version.len(), value.len()));
                        prop_assert_eq!(old, expected);
                    }
                    tree.tidy(count);
                }
                Step::Note => noted.push((tree.view(b""), tree.view(&prefix), model.clone())),
            }
            tree.assert_invariants();
        }
        noted.push((tree.view(b""), tree.view(&prefix), model.clone()));
        for (all, some, model) in noted {
            prop_assert_eq!(contents(&some), with_prefix(&model, &prefix));
            prop_assert_eq!(contents(&all), model);
        }
        for (key, (version, value)) in &model {
            prop_assert_eq!(tree.get(key), Some(Entry { key, version, value }));
        }
        prop_assert_eq!(tree.get(&prefix).is_some(), model.contains_key(&prefix));
    }
}

/// Numbers below `n` in an order that jumps.
fn scattered(n: u64) -> impl Iterator<Item = u64> {
    (0..n).map(move |i| (i * 7919) % n)
}

#[test]
fn many_branches_are_filled_and_emptied_in_any_order() {
    const N: u64 = 66_001;
    type Order = fn(u64) -> Box<dyn Iterator<Item = u64>>;
    let orders: [Order; 3] =
        [|n| Box::new(0..n), |n| Box::new((0..n).rev()), |n| Box::new(scattered(n))];
    for (fill, empty) in [(1, 2), (2, 0)] {
        let (mut tree, mut model) = (Tree::new(), Model::new());
        for i in orders[fill](N) {
            let key = format!("k.{i:08}").into_bytes();
            tree.put_one(&key, b"v", &[1]);
            model.insert(key, (b"v".to_vec(), vec![1]));
        }
        assert!(tree.branches.len() > 2, "{} branches", tree.branches.len());
        tree.assert_invariants();
        assert_eq!(contents(&tree.view(b"k.0001")), with_prefix(&model, b"k.0001"));
        for (count, i) in orders[empty](N).enumerate() {
            let key = format!("k.{i:08}").into_bytes();
            assert!(tree.remove_one(&key).is_some() && model.remove(&key).is_some());
            if count % 30_000 == 0 {
                tree.assert_invariants();
                assert_eq!(contents(&tree.view(b"")), model);
            }
        }
        assert_eq!((tree.entries, tree.branches.len()), (0, 1));
        tree.assert_invariants();
    }
}

#[test]
fn ascending_keys_leave_full_pages() {
    let mut tree = Tree::new();
    for i in 0..20_000 {
        tree.put_one(format!("k.{i:08}").as_bytes(), b"12345678", &[1; 100]);
    }
    assert_eq!(tree.pages(b"").len(), 20_000usize.div_ceil(PAGE_ENTRIES));
}

#[test]
fn dead_bytes_stay_below_a_third_whatever_is_deleted_or_resized() {
    let mut tree = Tree::new();
    let key = |i: u64| format!("{i:08}").into_bytes();
    for i in 0..20_000 {
        tree.put_one(&key(i), b"", &[1; 100]);
    }
    let full = tree.arena.bytes();
    for i in scattered(20_000).filter(|i| i % 20 != 0) {
        tree.remove_one(&key(i));
        tree.tidy(1);
    }
    tree.assert_invariants();
    // A tenth, a third of it, and one segment that is not worth it.
    assert!(
        tree.arena.bytes() < full / 20 * 3 / 2 + 2 * 64 * 1024,
        "{} of {full}",
        tree.arena.bytes()
    );
    for round in 0..10 {
        for i in scattered(20_000).filter(|i| i % 20 == 0) {
            tree.put_one(&key(i), b"", &vec![2; 100 + (i as usize * 7 + round * 13) % 50]);
            tree.tidy(1);
        }
    }
    tree.assert_invariants();
    assert!(tree.arena.bytes() < full / 10 + 2 * 64 * 1024, "{} of {full}", tree.arena.bytes());
}
