//! What the cases have in common: targets, listings, and places to start and stop.

use super::harness::{Harness, Item};
use crate::connector::{Connector, Page, SkipReason};
use crate::coordination::{CursorUpdate, ShardSpecRef};

pub(super) const EVERYTHING: ShardSpecRef<'static> = ShardSpecRef::new(b"", b"", b"");

/// More than any buffer that a connector is likely to read at once.
const LARGE: usize = 200_000;

/// The harness's keys, ascending.
pub(super) fn keys<H: Harness>() -> Vec<Vec<u8>> {
    let mut keys = H::keys();
    keys.sort();
    keys.dedup();
    assert!(keys.len() >= 8, "a harness has at least eight keys; this has {}", keys.len());
    keys
}

/// Whether a case has to be left out because what a connector lists is fixed; says so.
pub(super) fn is_fixed<H: Harness>() -> bool {
    if H::IS_FIXED {
        println!("left out: what a connector lists was decided when it was made");
    }
    H::IS_FIXED
}

/// Bytes of the item at `place`: none, few, or many, and no two alike.
pub(super) fn content(place: usize) -> Vec<u8> {
    let len = [0, 1, 37, 4096, LARGE][place % 5];
    (0..len).map(|at| (at * 31 + place * 7 + at / 256) as u8).collect()
}

/// An item for every key.
pub(super) fn items<H: Harness>() -> Vec<Item> {
    let item = |(place, key)| match content(place) {
        content if content.is_empty() && !H::EMPTY_ITEMS => {
            Item { key, content: vec![7; place + 2] }
        }
        content => Item { key, content },
    };
    keys::<H>().into_iter().enumerate().map(item).collect()
}

/// A target with an item for every key, and those keys.
pub(super) fn full<H: Harness>() -> (H, Vec<Vec<u8>>) {
    (H::build(&items::<H>()), keys::<H>())
}

/// A target with small items only, for cases that do not read them.
pub(super) fn small<H: Harness>() -> (H, Vec<Vec<u8>>) {
    let keys = keys::<H>();
    let item = |key: &Vec<u8>| Item { key: key.clone(), content: b"x".to_vec() };
    (H::build(&keys.iter().map(item).collect::<Vec<_>>()), keys)
}

/// An entry that was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) key: Vec<u8>,
    pub(super) version: Vec<u8>,
    pub(super) size: u64,
    pub(super) skip: Option<SkipReason>,
}

/// The listing of `range` behind `after`, in pages of `page_size`, each from the last key of the
/// one before.
pub(super) fn list(
    connector: &impl Connector,
    range: ShardSpecRef<'_>,
    after: Option<&[u8]>,
    page_size: usize,
) -> Vec<Listed> {
    let mut pages = Pages::new(range, after, page_size);
    while pages.next(connector, false) {}
    pages.all
}

/// A listing in progress.
pub(super) struct Pages<'a> {
    range: ShardSpecRef<'a>,
    after: Option<Vec<u8>>,
    token: Option<Vec<u8>>,
    page_size: usize,
    page: Page,
    empty_pages: usize,
    pub(super) all: Vec<Listed>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(range: ShardSpecRef<'a>, after: Option<&[u8]>, page_size: usize) -> Self {
        Self {
            range,
            after: after.map(<[u8]>::to_vec),
            token: None,
            page_size,
            page: Page::new(),
            empty_pages: 0,
            all: Vec::new(),
        }
    }

    /// Lists the next page, and says whether there may be more.
    pub(super) fn next(&mut self, connector: &impl Connector, with_token: bool) -> bool {
        let token = self.token.as_deref().filter(|_| with_token);
        let cursor = CursorUpdate::new(self.after.as_deref(), token);
        let listed = connector.list(self.range, cursor, self.page_size, &mut self.page);
        listed.unwrap_or_else(|error| panic!("a listing failed: {error}"));
        self.check_page();
        for entry in self.page.iter() {
            self.all.push(Listed {
                key: entry.key.to_vec(),
                version: entry.version.to_vec(),
                size: entry.size,
                skip: entry.skip,
            });
        }
        if let Some(last) = self.page.iter().last() {
            self.after = Some(last.key.to_vec());
        }
        self.token = self.page.token().map(<[u8]>::to_vec);
        !self.page.is_last()
    }

    /// Whether the last page came with a token.
    pub(super) const fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// What holds of every page (K1).
    fn check_page(&mut self) {
        let page = &self.page;
        let (len, max) = (page.len(), self.page_size);
        assert!(len <= max, "K1: a page of {len} entries where {max} were asked for");
        let mut last = self.after.as_deref();
        for entry in page.iter() {
            let key = entry.key;
            assert!(last.is_none_or(|last| last < key), "K1: {key:?} follows {last:?}");
            assert!(self.range.contains(key), "K1: {key:?} is outside {:?}", self.range);
            last = Some(key);
        }
        self.empty_pages =
            if page.is_empty() && !page.is_last() { self.empty_pages + 1 } else { 0 };
        assert!(self.empty_pages < 1000, "a listing gives one empty page after the other");
    }
}

/// Checks that a listing gave these keys.
#[track_caller]
pub(super) fn assert_keys<'k>(
    entries: &[Listed],
    expected: impl IntoIterator<Item = &'k Vec<u8>>,
    what: impl core::fmt::Debug,
) {
    let expected: Vec<&[u8]> = expected.into_iter().map(|key| &**key).collect();
    let listed: Vec<&[u8]> = entries.iter().map(|entry| &*entry.key).collect();
    assert_eq!(listed, expected, "K1: keys listed, and keys there are; asked: {what:?}");
}

/// Places where a listing may start or stop: every key, what is just before and just behind it,
/// the directories on its way, and both ends.
pub(super) fn places(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut places = vec![b"\0".to_vec(), vec![0xff; 8]];
    for key in keys {
        places.push(key.clone());
        places.push([key, &b"\0"[..]].concat());
        places.push([key, &b"/"[..]].concat());
        places.extend(key.split_last().map(|(_, front)| front.to_vec()));
        let slashes = key.iter().enumerate().filter(|&(_, &byte)| byte == b'/');
        places.extend(slashes.map(|(at, _)| key[..=at].to_vec()));
    }
    places.retain(|place| !place.is_empty());
    places.sort();
    places.dedup();
    places
}
