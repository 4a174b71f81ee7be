//! Listings against sorted keys, on random trees with names that are hard to order.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use gossip_connectors::fs::FsOptions;
use gossip_contracts::connector::{Connector, Page, SkipReason};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::support::{Disk, EVERYTHING, Listed, cases, list, listed};

/// Prefixes of each other, bytes on both sides of `/`, and bytes that are no text.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let nasty: Vec<Vec<u8>> = vec![
        b"a".to_vec(),
        b"a-".to_vec(),
        b"a.".to_vec(),
        b"a0".to_vec(),
        b"ab".to_vec(),
        b"a\n".to_vec(),
        b"a \x01".to_vec(),
        b"-".to_vec(),
        b".-".to_vec(),
        b"...".to_vec(),
        b"0".to_vec(),
        b"\x01".to_vec(),
        b"\xff".to_vec(),
        b"\xff\xfe\x80".to_vec(),
        "ä".as_bytes().to_vec(),
        b"A".to_vec(),
        vec![b'n'; 255],
        [vec![b'n'; 254], vec![b'.']].concat(),
    ];
    let random = vec(any::<u8>().prop_filter("no NUL, no slash", |b| !b"\0/".contains(b)), 1..4)
        .prop_filter("not a way", |name| name != b"." && name != b"..");
    prop_oneof![5 => select(nasty), 1 => random]
}

#[derive(Clone, Copy, Debug)]
enum Made {
    File,
    Link,
    EmptyDir,
}

type Plan = Vec<(Vec<Vec<u8>>, Made)>;

fn plan() -> impl Strategy<Value = Plan> {
    let made = prop_oneof![6 => Just(Made::File), 1 => Just(Made::Link), 1 => Just(Made::EmptyDir)];
    vec((vec(name(), 1..5), made), 0..40)
}

/// Makes what can be made of a plan, and returns what a listing must give.
fn build(disk: &Disk, plan: &Plan) -> BTreeMap<Vec<u8>, Option<SkipReason>> {
    let mut expected = BTreeMap::new();
    for (names, made) in plan {
        let key = names.join(&b'/');
        let path = disk.at(&key);
        // What is in the way of an earlier part of the plan is left out.
        if fs::create_dir_all(path.parent().unwrap()).is_err() || path.symlink_metadata().is_ok() {
            continue;
        }
        match made {
            Made::File => {
                fs::write(&path, &key).unwrap();
                expected.insert(key, None);
            }
            Made::Link => {
                symlink("nowhere", &path).unwrap();
                expected.insert(key, Some(SkipReason::Link));
            }
            Made::EmptyDir => fs::create_dir(&path).unwrap(),
        }
    }
    expected
}

/// A key of the tree, or one near it, or any.
fn near(keys: &[Vec<u8>], (at, change, bytes): &(Index, u8, Vec<u8>)) -> Vec<u8> {
    if keys.is_empty() {
        return bytes.clone();
    }
    let mut key = at.get(keys).clone();
    match change % 5 {
        0 => {}
        1 => key.truncate(at.index(key.len() + 1)),
        2 => key.extend_from_slice(bytes),
        3 => *key.last_mut().unwrap() = key.last().unwrap().wrapping_add(1),
        _ => key.clone_from(bytes),
    }
    key
}

type Near = (Index, u8, Vec<u8>);

fn spot() -> impl Strategy<Value = Near> {
    (any::<Index>(), any::<u8>(), vec(any::<u8>(), 0..3))
}

/// With a small one, the names of directories are read in parts, and those of directories on the
/// way are dropped and read again.
fn with_window(size: usize) -> FsOptions {
    let mut options = FsOptions::default();
    options.window_size = size;
    options
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_range_from_any_cursor_in_any_pages_is_the_sorted_keys(
        plan in plan(),
        window_size in prop_oneof![Just(16 << 20), 1..2000_usize],
        queries in vec((spot(), spot(), proptest::option::of(spot()), 1..20_usize), 1..12),
    ) {
        let disk = Disk::fast();
        let expected = build(&disk, &plan);
        let keys: Vec<_> = expected.keys().cloned().collect();
        let source = disk.source_with(with_window(window_size));
        let whole: Vec<Listed> = expected.clone().into_iter().collect();
        prop_assert_eq!(&list(&source, EVERYTHING, None, 7)?, &whole);

        for (start, end, cursor, page_size) in &queries {
            let (start, end) = (near(&keys, start), near(&keys, end));
            let cursor = cursor.as_ref().map(|spot| near(&keys, spot));
            let range = ShardSpecRef::new(&start, &end, b"");
            let wanted: Vec<_> = whole
                .iter()
                .filter(|(key, _)| range.contains(key))
                .filter(|(key, _)| cursor.as_ref().is_none_or(|cursor| key > cursor))
                .cloned()
                .collect();
            let found = list(&source, range, cursor.as_deref(), *page_size)?;
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn what_came_before_a_page_does_not_matter(
        plan in plan(),
        window_size in prop_oneof![Just(16 << 20), 1..2000_usize],
        steps in vec((any::<Index>(), 1..4_usize), 1..30),
    ) {
        let disk = Disk::fast();
        let whole: Vec<Listed> = build(&disk, &plan).into_iter().collect();
        let source = disk.source_with(with_window(window_size));
        let mut page = Page::new();
        // Jumps about: some pages follow the one before, most do not.
        let mut next = 0;
        for (jump, page_size) in &steps {
            if page_size % 2 == 0 {
                next = jump.index(whole.len() + 1);
            }
            let last = next.checked_sub(1).map(|before| whole[before].0.as_slice());
            source.list(EVERYTHING, CursorUpdate::new(last, None), *page_size, &mut page)?;
            let until = whole.len().min(next + page_size);
            prop_assert!(page.iter().map(listed).eq(whole[next..until].iter().cloned()));
            next = until;
        }
    }
}
