//! The suite of the contract, on two directories as one source.

use gossip_connectors::content::HeadClassifier;
use gossip_connectors::many::{Many, Part, Shown};
use gossip_contracts::connector::conformance::{Harness, Item, sample_paths};
use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};

use crate::conformance::Directory;

/// The first directory has number 0, the second 1.
struct Two([Directory; 2]);

fn split(key: &[u8]) -> (usize, &[u8]) {
    let (number, inner) = key.split_at(2);
    (usize::from(number[1]), inner)
}

fn key(number: u8, inner: &[u8]) -> Vec<u8> {
    [&[0, number], inner].concat()
}

impl Harness for Two {
    type Connector = Many;

    fn build(items: &[Item]) -> Self {
        let of = |wanted: usize| {
            let items: Vec<Item> = items
                .iter()
                .filter(|item| split(&item.key).0 == wanted)
                .map(|item| Item { key: split(&item.key).1.to_vec(), ..item.clone() })
                .collect();
            Directory::build(&items)
        };
        Self([of(0), of(1)])
    }

    fn connect(&self) -> Many {
        let part = |directory: &Directory| Part {
            source: Box::new(directory.connect()),
            shown: Shown::Below(b"above/".to_vec()),
        };
        Many::new(self.0.iter().map(part).collect())
    }

    fn put(&mut self, key: &[u8], content: &[u8]) {
        let (number, inner) = split(key);
        self.0[number].put(inner, content);
    }

    fn remove(&mut self, key: &[u8]) {
        let (number, inner) = split(key);
        self.0[number].remove(inner);
    }

    fn entice(&mut self, secret: &[u8]) -> Vec<Vec<u8>> {
        let keys = self.0[1].entice(secret);
        keys.iter().flat_map(|inner| [key(0, inner), key(1, inner)]).collect()
    }

    fn keys() -> Vec<Vec<u8>> {
        let paths = sample_paths();
        let number = |at: usize| u8::from(at.is_multiple_of(2));
        paths.iter().enumerate().map(|(at, path)| key(number(at), path)).collect()
    }
}

gossip_contracts::connector_conformance_suite!(Two);

#[test]
fn reports_call_an_item_by_what_is_above_it_and_its_path() {
    let two = Two::build(&[Item { key: key(1, b"a/b"), content: b"x".to_vec() }]);
    let reader = two.connect().open(&key(1, b"a/b")).unwrap();
    assert_eq!(reader.path(), Some(&b"above/a/b"[..]));
    assert!(two.connect().open(&key(0, b"a/b")).is_err());
    assert!(two.connect().open(&key(2, b"a/b")).is_err());
}

/// However they are cut, and wherever the cuts are listed again from.
#[test]
fn ranges_that_begin_and_end_between_sources_lose_nothing() {
    let items = Two::keys().into_iter().map(|key| Item { key, content: Vec::new() });
    let items: Vec<Item> = items.collect();
    let two = Two::build(&items);
    let source = two.connect();
    let everything = source.key_range();
    for want in 0..9 {
        let points = source.split_points(everything, CursorUpdate::initial(), want).unwrap();
        assert!(points.len() <= want && points.is_sorted());
        assert!(want == 0 || points.iter().any(|point| **point == [0, 1]), "{want}");
        let mut bounds = vec![everything.start()];
        bounds.extend(points.iter().map(|point| &**point));
        bounds.push(everything.end());
        let (mut page, mut listed) = (Page::new(), 0);
        for pair in bounds.windows(2) {
            let range = ShardSpecRef::new(pair[0], pair[1], b"");
            source.list(range, CursorUpdate::initial(), 1000, &mut page).unwrap();
            listed += page.len();
        }
        assert_eq!(listed, items.len());
    }
}

/// A source that cannot be listed.
struct Failing;

impl Connector for Failing {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume_tokens: false,
            range_reads: true,
            split_points: false,
            versions: true,
        }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(b"", b"", b"")
    }

    fn classifier(&self) -> &dyn Classifier {
        &HeadClassifier
    }

    fn list(
        &self,
        _: ShardSpecRef<'_>,
        _: CursorUpdate<'_>,
        _: usize,
        _: &mut Page,
    ) -> Result<(), ConnectorError> {
        Err(ConnectorError::PermissionDenied { operation: "list" })
    }

    fn open(&self, _: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        Err(ConnectorError::PermissionDenied { operation: "open" })
    }

    fn is_settled(&self, _: &[u8], _: u64) -> bool {
        false
    }

    fn split_points(
        &self,
        _: ShardSpecRef<'_>,
        _: CursorUpdate<'_>,
        _: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        Ok(Vec::new())
    }
}

/// What a source lists is not lost because the next one fails: the error comes with the page after.
#[test]
fn an_error_of_a_source_comes_after_what_those_before_it_list() {
    let items = [b"a", b"b"].map(|key| Item { key: key.to_vec(), content: Vec::new() });
    let directory = Directory::build(&items);
    let sources: [Box<dyn Connector>; 2] = [Box::new(directory.connect()), Box::new(Failing)];
    let part = |source| Part { source, shown: Shown::Below(Vec::new()) };
    let source = Many::new(sources.into_iter().map(part).collect());
    let (range, mut page) = (source.key_range(), Page::new());
    for max in [2, 10] {
        source.list(range, CursorUpdate::initial(), max, &mut page).unwrap();
        let keys: Vec<_> = page.iter().map(|entry| entry.key.to_vec()).collect();
        assert_eq!((keys, page.is_last()), (vec![key(0, b"a"), key(0, b"b")], false), "{max}");
    }
    let reached = key(0, b"b");
    let cursor = CursorUpdate::new(Some(&reached), None);
    source.list(range, cursor, 10, &mut page).unwrap_err();
    assert!(page.is_empty());
}
