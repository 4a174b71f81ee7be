//! What the suite of the contract does not ask: shards with hints, how work is cut, large objects.

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
        assert!(!reader.reads_anywhere(), "going back begins at the start");
        let mut buf = vec![0; 300_000];
        for offset in [0, 300_000, 15 << 20, 5, content.len() - 10] {
            let len = reader.read_at(offset as u64, &mut buf).unwrap();
            assert!(len > 0 && buf[..len] == content[offset..offset + len], "{way} at {offset}");
        }
    }
}
