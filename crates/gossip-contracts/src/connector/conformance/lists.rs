//! Listings: order, completeness, cursors, ranges, pages (K1, K2).

use super::harness::{Harness, Item};
use super::probe::{
    EVERYTHING, Pages, assert_keys, full, is_fixed, items, keys, list, places, small,
};
use crate::connector::{Connector, Page, PageEntry};
use crate::coordination::{CursorUpdate, ShardSpecRef};

pub(super) fn every_key_is_listed_once_in_byte_order<H: Harness>() {
    let (target, keys) = full::<H>();
    let listed = list(&target.connect(), EVERYTHING, None, 1000);
    assert_keys(&listed, &keys, "everything");
    assert!(listed.iter().all(|entry| entry.skip.is_none()), "an item is skipped: {listed:?}");
}

pub(super) fn an_empty_target_lists_nothing_and_says_so<H: Harness>() {
    let target = H::build(&[]);
    assert_keys(&list(&target.connect(), EVERYTHING, None, 10), [], "everything");
}

pub(super) fn every_key_lies_in_the_key_range<H: Harness>() {
    let (target, keys) = full::<H>();
    let connector = target.connect();
    let range = connector.key_range();
    assert!(!range.start().is_empty() && !range.end().is_empty(), "K5: {range:?} is not bounded");
    assert_keys(&list(&connector, range, None, 1000), &keys, "the key range");
}

pub(super) fn any_page_size_gives_the_same_listing<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    for page_size in (1..=keys.len() + 1).chain([10_000]) {
        assert_keys(&list(&connector, EVERYTHING, None, page_size), &keys, page_size);
    }
}

pub(super) fn listing_from_any_cursor_gives_what_follows<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    for place in places(&keys) {
        for page_size in [1, 3, 1000] {
            let listed = list(&connector, EVERYTHING, Some(&place), page_size);
            let expected = keys.iter().filter(|key| **key > place);
            assert_keys(&listed, expected, (&place, page_size));
        }
    }
}

pub(super) fn listing_a_range_gives_what_is_in_it<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let mut places = places(&keys);
    places.insert(0, Vec::new());
    // All pairs are many; every place meets every third one.
    for (at, start) in places.iter().enumerate() {
        for end in places.iter().skip(at % 3).step_by(3).chain([&Vec::new()]) {
            if !end.is_empty() && start >= end {
                continue;
            }
            let range = ShardSpecRef::new(start, end, b"");
            let listed = list(&connector, range, None, 1 + at % 7);
            assert_keys(&listed, keys.iter().filter(|key| range.contains(key)), (start, end));
        }
    }
}

pub(super) fn a_cursor_inside_a_range_and_one_before_it<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let (start, end) = (&keys[keys.len() / 4], &keys[keys.len() * 3 / 4]);
    let range = ShardSpecRef::new(start, end, b"");
    for cursor in places(&keys).iter().filter(|place| *place < end) {
        let listed = list(&connector, range, Some(cursor), 2);
        let expected = keys.iter().filter(|key| range.contains(key) && *key > cursor);
        assert_keys(&listed, expected, (start, end, cursor));
    }
}

pub(super) fn a_page_is_replaced_not_continued<H: Harness>() {
    let (target, keys) = small::<H>();
    let mut page = Page::new();
    page.push(PageEntry { key: b"left over", version: b"", size: 0, skip: None });
    page.finish(true, Some(b"left over".to_vec()));
    let connector = target.connect();
    connector.list(EVERYTHING, CursorUpdate::initial(), 2, &mut page).expect("a listing");
    assert!(page.iter().all(|entry| keys.iter().any(|key| entry.key == *key)));
    assert!(!page.is_last() && page.token() != Some(b"left over"), "{page:?}");
}

pub(super) fn tokens_lead_where_keys_lead<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let mut tokens = 0;
    for page_size in [1, 2, 5] {
        let mut pages = Pages::new(EVERYTHING, None, page_size);
        while pages.next(&connector, true) {
            tokens += usize::from(pages.has_token());
        }
        assert_keys(&pages.all, &keys, page_size);
    }
    let declared = connector.capabilities().resume_tokens;
    assert!(!declared || tokens > 0, "resume tokens are declared, and no page had one");
}

pub(super) fn another_connector_goes_on_where_one_stopped<H: Harness>() {
    let (target, keys) = small::<H>();
    let mut pages = Pages::new(EVERYTHING, None, 3);
    while pages.next(&target.connect(), false) {}
    assert_keys(&pages.all, &keys, "K2: a connector for each page");
}

pub(super) fn listings_in_turns_do_not_disturb_each_other<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let middle = &keys[keys.len() / 2];
    let upper = ShardSpecRef::new(middle, b"", b"");
    // Two of the whole, so that both stand at equal cursors, and one of a part.
    let mut turns = [
        (Pages::new(EVERYTHING, None, 2), true),
        (Pages::new(EVERYTHING, None, 2), true),
        (Pages::new(upper, None, 1), true),
    ];
    while turns.iter().any(|(_, goes_on)| *goes_on) {
        for (pages, goes_on) in turns.iter_mut().filter(|(_, goes_on)| *goes_on) {
            *goes_on = pages.next(&connector, false);
        }
    }
    assert_keys(&turns[0].0.all, &keys, "K2: in turns");
    assert_keys(&turns[1].0.all, &keys, "K2: in turns");
    assert_keys(&turns[2].0.all, keys.iter().filter(|key| *key >= middle), "K2: in turns");
}

pub(super) fn threads_list_at_once<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    std::thread::scope(|scope| {
        for page_size in 1..=4 {
            let (connector, keys) = (&connector, &keys);
            scope.spawn(move || {
                for _ in 0..5 {
                    assert_keys(&list(connector, EVERYTHING, None, page_size), keys, page_size);
                }
            });
        }
    });
}

pub(super) fn what_is_removed_is_no_longer_listed<H: Harness>() {
    if is_fixed::<H>() {
        return;
    }
    let (mut target, mut keys) = small::<H>();
    for at in [keys.len() - 1, keys.len() / 2, 0] {
        target.remove(&keys[at]);
        keys.remove(at);
        assert_keys(&list(&target.connect(), EVERYTHING, None, 4), &keys, "after a removal");
    }
}

pub(super) fn what_appears_ahead_of_the_cursor_is_listed<H: Harness>() {
    if is_fixed::<H>() {
        return;
    }
    let keys = keys::<H>();
    // Every second key is there from the start; the one behind each page appears before the next.
    let item = |key: &Vec<u8>| Item { key: key.clone(), content: b"x".to_vec() };
    let items: Vec<_> = keys.iter().step_by(2).map(item).collect();
    let mut target = H::build(&items);
    let mut expected: Vec<_> = keys.iter().step_by(2).collect();
    let connector = target.connect();
    let mut pages = Pages::new(EVERYTHING, None, 1);
    while pages.next(&connector, false) {
        let Some(last) = pages.all.last() else { continue };
        let at = keys.iter().position(|key| *key == last.key).expect("only keys are listed");
        if at % 2 == 0 && at + 1 < keys.len() {
            target.put(&keys[at + 1], b"new");
            expected.push(&keys[at + 1]);
        }
    }
    expected.sort();
    expected.dedup();
    assert_keys(&pages.all, expected, "a key that exists throughout a call");
}

pub(super) fn sizes_are_listed<H: Harness>() {
    let items = items::<H>();
    let listed = list(&H::build(&items).connect(), EVERYTHING, None, 7);
    for (entry, item) in listed.iter().zip(items) {
        assert_eq!(entry.size, item.content.len() as u64, "the size of {:?}", entry.key);
    }
}
