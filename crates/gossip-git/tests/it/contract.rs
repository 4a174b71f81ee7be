//! The connector's contract (K1 to K5), over a planned repository.

use gossip_contracts::connector::{Connector, ConnectorError, Page};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_frontier::{ShardHint, decode_metadata};
use gossip_git::GitSource;

use crate::support::{Repo, begin, keys};

fn source(repo: &mut Repo) -> GitSource {
    for number in 0..12_u32 {
        repo.write(&format!("{number}"), number.to_string().repeat(1 + 40 * number as usize));
    }
    repo.commit("all");
    repo.git(&["gc", "-q"]);
    repo.planned()
}

fn list(
    source: &GitSource,
    range: ShardSpecRef<'_>,
    cursor: Option<&[u8]>,
    size: usize,
) -> Vec<Vec<u8>> {
    let (mut page, mut listed) = (Page::new(), Vec::new());
    let mut last = cursor.map(<[u8]>::to_vec);
    loop {
        source.list(range, CursorUpdate::new(last.as_deref(), None), size, &mut page).unwrap();
        assert!(page.len() <= size);
        listed.extend(page.iter().map(|entry| entry.key.to_vec()));
        if page.is_last() {
            return listed;
        }
        last = listed.last().cloned().or(last);
    }
}

#[test]
fn any_range_cursor_and_page_size_lists_what_lies_there() {
    let mut repo = Repo::new();
    let source = source(&mut repo);
    let all: Vec<Vec<u8>> = keys(&source).into_iter().map(|(key, ..)| key).collect();
    assert_eq!(all.len(), 13);
    let behind = |key: &Vec<u8>| [key, &b"\0"[..]].concat();
    let mut places: Vec<Vec<u8>> = all.iter().cloned().chain(all.iter().map(behind)).collect();
    places.extend([vec![0], vec![0xff; 20], all[3][..15].to_vec()]);
    places.sort();
    for start in places.iter().chain([&Vec::new()]) {
        for end in places.iter().filter(|end| *end > start).chain([&Vec::new()]) {
            let range = ShardSpecRef::new(start, end, b"");
            for cursor in [None, Some(&places[7]), Some(start)] {
                let cursor = cursor.map(Vec::as_slice).filter(|cursor| !cursor.is_empty());
                let is_there = |key: &&Vec<u8>| {
                    range.contains(key) && cursor.is_none_or(|cursor| key.as_slice() > cursor)
                };
                let expected: Vec<_> = all.iter().filter(is_there).cloned().collect();
                assert_eq!(
                    list(&source, range, cursor, 5),
                    expected,
                    "{start:?} {end:?} {cursor:?}"
                );
            }
        }
    }
    assert_eq!(list(&source, source.key_range(), None, 1), all, "K5");
}

#[test]
fn split_points_lie_inside_and_share_the_bytes() {
    let mut repo = Repo::new();
    let source = source(&mut repo);
    let all = keys(&source);
    for want in [0, 1, 3, 100] {
        let points =
            source.split_points(source.key_range(), CursorUpdate::initial(), want).unwrap();
        assert!(points.len() <= want && points.is_sorted_by(|a, b| a < b));
        assert!(
            points.iter().all(|point| **point > *all[0].0 && source.key_range().contains(point))
        );
        assert!(want == 0 || !points.is_empty());
    }
    let cursor = CursorUpdate::at(&all[all.len() - 2].0);
    assert_eq!(source.split_points(source.key_range(), cursor, 3).unwrap().len(), 0);
}

#[test]
fn reads_may_start_anywhere_and_end_at_the_end() {
    let mut repo = Repo::new();
    let source = source(&mut repo);
    for (key, version, size) in keys(&source) {
        let mut reader = source.open(&key).unwrap();
        assert_eq!((reader.size(), reader.version()), (size, &version[..]));
        assert_eq!(reader.version_now().unwrap(), version);
        assert!(source.is_settled(&version, 0));
        let mut whole = vec![0; size as usize];
        assert_eq!(reader.read_at(0, &mut whole).unwrap() as u64, size);
        for offset in [size, size + 1, u64::MAX] {
            assert_eq!(reader.read_at(offset, &mut [0; 9]), Ok(0));
        }
        let middle = size / 2;
        let mut rest = vec![0; size as usize];
        let len = reader.read_at(middle, &mut rest).unwrap();
        assert_eq!(rest[..len], whole[middle as usize..]);
    }
    assert!(!source.is_settled(b"", u64::MAX));
}

#[test]
fn what_is_no_row_of_this_manifest_is_not_found() {
    let mut repo = Repo::new();
    let source = source(&mut repo);
    let all = keys(&source);
    let mut of_another = all[0].0.clone();
    of_another[7] ^= 1;
    let mut behind = all[all.len() - 1].0.clone();
    behind[15] += 1;
    for key in [b"hush/hush".to_vec(), Vec::new(), of_another, behind] {
        let error = source.open(&key).err().unwrap();
        assert_eq!(error, ConnectorError::NotFound { operation: "open" });
    }
}

#[test]
fn shards_carry_their_rows_and_the_hash_and_others_are_refused() {
    let mut repo = Repo::new();
    let source = source(&mut repo);
    let range = source.key_range();
    let metadata = decode_metadata(range).unwrap();
    assert_eq!(metadata.hint, ShardHint::Manifest { manifest_id: 1, start_row: 0, end_row: 13 });
    assert_eq!(metadata.connector_extra.len(), 32);
    let mut other = range.metadata().to_vec();
    *other.last_mut().unwrap() ^= 1;
    let other = ShardSpecRef::new(range.start(), range.end(), &other);
    let mut page = Page::new();
    let refused = source.list(other, CursorUpdate::initial(), 10, &mut page);
    assert!(matches!(refused, Err(ConnectorError::Permanent { .. })));
}

#[test]
fn an_empty_repository_lists_nothing() {
    let repo = Repo::new();
    let source = repo.planned();
    assert!(keys(&source).is_empty());
    let range = source.key_range();
    assert!(!range.start().is_empty() && !range.end().is_empty() && range.start() < range.end());
}

#[test]
fn large_objects_are_read_piece_by_piece() {
    let mut repo = Repo::new();
    let pieces = (0..5_000).map(|piece| format!("{piece:0>4096}"));
    let content = pieces.collect::<String>().into_bytes();
    repo.write("large", &content);
    repo.commit("large");
    for way in ["loose", "packed"] {
        if way == "packed" {
            repo.git(&["gc", "-q"]);
        }
        let source = repo.source();
        begin(&source, if way == "packed" { 2 } else { 1 }).unwrap();
        let (key, ..) = keys(&source).into_iter().max_by_key(|(.., size)| *size).unwrap();
        let mut reader = source.open(&key).unwrap();
        assert_eq!(reader.size(), content.len() as u64);
        let mut buf = vec![0; 300_000];
        for offset in [0, 300_000, 15 << 20, 5, content.len() - 10] {
            let len = reader.read_at(offset as u64, &mut buf).unwrap();
            assert!(len > 0 && buf[..len] == content[offset..offset + len], "{way} at {offset}");
        }
    }
}
