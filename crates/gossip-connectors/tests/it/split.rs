//! Cutting a range into parts of about the same number of files.

use gossip_connectors::fs::FsSource;
use gossip_contracts::connector::Connector;
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};

use crate::support::{Disk, EVERYTHING, list};

/// How many files each part of `range` holds when it is cut into `parts`, behind `after`.
fn parts(source: &FsSource, range: ShardSpecRef<'_>, after: &[u8], parts: usize) -> Vec<usize> {
    let cursor = CursorUpdate::new((!after.is_empty()).then_some(after), None);
    let points = source.split_points(range, cursor, parts - 1).unwrap();
    let keys = list(source, range, cursor.last_key(), 1000).unwrap();
    let mut counts = vec![0; points.len() + 1];
    for (key, _) in keys {
        counts[points.partition_point(|point| **point <= *key)] += 1;
    }
    println!("{counts:?}");
    counts
}

fn is_even(counts: &[usize], wanted: usize) -> bool {
    let mean = counts.iter().sum::<usize>() / wanted;
    counts.len() == wanted && counts.iter().all(|count| (mean / 2..=mean * 2).contains(count))
}

#[test]
fn one_large_directory_is_cut_by_a_sample_of_its_names() {
    let disk = Disk::fast();
    disk.write_empty((0..5000).map(|i| format!("dir/{i}")));
    let source = disk.source();
    assert!(is_even(&parts(&source, EVERYTHING, b"", 8), 8));
    assert!(is_even(&parts(&source, EVERYTHING, b"dir/5", 8), 8));
    let middle = ShardSpecRef::new(b"dir/3", b"dir/7", b"");
    assert!(is_even(&parts(&source, middle, b"", 4), 4));
}

#[test]
fn many_directories_are_cut_between_and_inside_them() {
    let disk = Disk::fast();
    for i in 0..60 {
        disk.write_empty((0..20).map(|j| format!("a/{i}/b/{j}")));
    }
    let source = disk.source();
    for wanted in [2, 3, 7, 16] {
        assert!(is_even(&parts(&source, EVERYTHING, b"", wanted), wanted));
    }
    assert!(is_even(&parts(&source, EVERYTHING, b"a/30/b/1", 4), 4));
}

#[test]
fn more_directories_than_are_read_are_still_cut() {
    let disk = Disk::fast();
    for i in 0..400 {
        disk.write_empty((0..3).map(|j| format!("{i}/{j}")));
    }
    assert!(is_even(&parts(&disk.source(), EVERYTHING, b"", 8), 8));
}

#[test]
fn where_there_is_nothing_to_cut_there_are_no_points() {
    let disk = Disk::fast();
    let source = disk.source();
    assert_eq!(parts(&source, EVERYTHING, b"", 8), [0]);
    disk.write("a", "");
    assert_eq!(parts(&source, EVERYTHING, b"", 8), [1]);
    disk.write("b", "");
    assert_eq!(parts(&source, EVERYTHING, b"", 8), [1, 1]);
    assert_eq!(parts(&source, EVERYTHING, b"a", 8), [1]);
    assert_eq!(parts(&source, ShardSpecRef::new(b"b", b"", b""), b"", 8), [1]);
    assert_eq!(parts(&source, EVERYTHING, b"", 1), [2]);
}
