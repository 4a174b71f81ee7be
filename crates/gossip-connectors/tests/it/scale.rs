//! Many files in one directory.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use gossip_contracts::connector::{Connector, Page};
use gossip_contracts::coordination::CursorUpdate;

use crate::support::{Disk, EVERYTHING, list};

/// Lists a directory of `len` files in pages of 100, and returns the time that it took.
fn page_through(len: usize) -> Duration {
    let disk = Disk::fast();
    for i in 0..len {
        File::create(disk.at(format!("{:08x}", i.wrapping_mul(2_654_435_761)))).unwrap();
    }
    let source = disk.source();
    let started = Instant::now();
    let listed = list(&source, EVERYTHING, None, 100).unwrap();
    let took = started.elapsed();
    assert_eq!(listed.len(), len);
    assert!(listed.is_sorted_by(|a, b| a.0 < b.0));
    took
}

/// No time is asserted: machines are noisy. That cost stays linear is held by the counts of directory
/// reads below; this prints what it came to.
#[test]
fn a_hundred_thousand_files_in_one_directory_are_paged_in_order() {
    let (few, many) = (page_through(10_000), page_through(100_000));
    println!(
        "100 at a time: 10 000 files in {few:.0?}, 100 000 in {many:.0?}: {:.1} times as long",
        many.as_secs_f64() / few.as_secs_f64()
    );
}

#[test]
fn pages_of_one_directory_share_its_names() {
    let disk = Disk::fast();
    disk.write_empty((0..500).map(|i| format!("{i}")));
    let source = disk.source();
    assert_eq!(list(&source, EVERYTHING, None, 3).unwrap().len(), 500);
    // Twice, if two seconds went by: what was young when it was read is read once more.
    assert!(source.directories_read() <= 2, "{} reads", source.directories_read());
}

#[test]
fn every_directory_of_a_tree_is_read_once() {
    let disk = Disk::fast();
    disk.write_empty((0..200).map(|i| format!("{}/{}/{i}", i % 5, i % 20)));
    let source = disk.source();
    assert_eq!(list(&source, EVERYTHING, None, 7).unwrap().len(), 200);
    let directories = 1 + 5 + 20;
    let reads = source.directories_read();
    assert!((directories..=2 * directories).contains(&reads), "{reads} reads");
}

#[test]
fn a_page_does_not_look_at_what_comes_before_its_cursor() {
    let disk = Disk::fast();
    disk.write_empty((0..100).map(|i| format!("{i:02}/{}/file", i % 2)));
    let source = disk.source();
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::at(b"98/0/a"), 1, &mut page).unwrap();
    assert_eq!(page.get(0).unwrap().key, b"98/0/file");
    // The root, and two on the way to the cursor.
    assert_eq!(source.directories_read(), 3);
}

#[test]
fn split_points_of_a_large_tree_read_part_of_it() {
    let disk = Disk::fast();
    disk.write_empty((0..400).map(|i| format!("{i}/file")));
    let source = disk.source();
    assert_eq!(source.split_points(EVERYTHING, CursorUpdate::initial(), 4).unwrap().len(), 4);
    assert!(source.directories_read() <= 256, "{} reads", source.directories_read());
}

#[test]
fn a_large_directory_that_changes_all_the_time_is_read_a_bounded_number_of_times() {
    let disk = Disk::fast();
    disk.write_empty((0..5000).map(|i| format!("{i:04}")));
    let source = disk.source();
    let (mut page, mut last, mut listed) = (Page::new(), Vec::new(), 0);
    loop {
        let cursor = CursorUpdate::new((!last.is_empty()).then_some(&last[..]), None);
        source.list(EVERYTHING, cursor, 50, &mut page).unwrap();
        listed += page.len();
        if page.is_last() {
            break;
        }
        last = page.iter().last().unwrap().key.to_vec();
        // Behind the cursor: what is listed stays the same.
        disk.write("#", "");
        fs::remove_file(disk.at("#")).unwrap();
    }
    assert_eq!(listed, 5000);
    // 100 pages.
    assert!(source.directories_read() <= 20, "{} reads", source.directories_read());
}
