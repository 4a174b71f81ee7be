//! Split points.

use super::harness::Harness;
use super::probe::{EVERYTHING, assert_keys, list, places, small};
use crate::connector::Connector;
use crate::coordination::{CursorUpdate, MAX_KEY_SIZE, ShardSpecRef};

fn split(
    connector: &impl Connector,
    range: ShardSpecRef<'_>,
    cursor: Option<&[u8]>,
    want: usize,
) -> Vec<Box<[u8]>> {
    let cursor = CursorUpdate::new(cursor, None);
    let points = connector.split_points(range, cursor, want);
    points.unwrap_or_else(|error| panic!("split points: {error}"))
}

pub(super) fn points_are_ascending_inside_and_behind_the_cursor<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let places = places(&keys);
    for (at, start) in places.iter().enumerate() {
        let end = places.get(at + places.len() / 2).map_or(&b""[..], Vec::as_slice);
        let range = ShardSpecRef::new(start, end, b"");
        for cursor in [None, Some(start), places.get(at + 5)] {
            let cursor = cursor.map(Vec::as_slice).filter(|cursor| range.contains(cursor));
            for want in [0, 1, 3, 100] {
                let points = split(&connector, range, cursor, want);
                let asked = (start, end, cursor, want);
                assert!(points.len() <= want, "{} points; asked {asked:?}", points.len());
                assert!(points.is_sorted_by(|a, b| a < b), "{points:?} ascend; asked {asked:?}");
                for point in &points {
                    let is_inside = **point > **start && range.contains(point);
                    assert!(is_inside, "{point:?} is strictly inside; asked {asked:?}");
                    let is_ahead = cursor.is_none_or(|cursor| **point > *cursor);
                    assert!(is_ahead, "{point:?} is behind the cursor; asked {asked:?}");
                    assert!(point.len() <= MAX_KEY_SIZE, "a point is a key");
                }
            }
        }
    }
}

pub(super) fn the_parts_together_are_the_whole<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    for want in [1, 2, 5, 50] {
        let points = split(&connector, EVERYTHING, None, want);
        let mut all = Vec::new();
        let mut start: &[u8] = b"";
        for end in points.iter().map(|point| &**point).chain([&b""[..]]) {
            all.extend(list(&connector, ShardSpecRef::new(start, end, b""), None, 2));
            start = end;
        }
        assert_keys(&all, &keys, want);
    }
}

pub(super) fn a_source_that_declares_points_finds_some<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    if !connector.capabilities().split_points {
        return println!("left out: the source declares no split points");
    }
    let points = split(&connector, EVERYTHING, None, 3);
    assert!(!points.is_empty(), "no point among {} keys", keys.len());
    let parts = points.len() + 1;
    let before = keys.iter().filter(|key| key[..] < *points[0]).count();
    assert!(before > 0 && before < keys.len(), "{parts} parts, and {before} keys in the first");
}
