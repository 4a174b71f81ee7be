//! What the options leave out.

use std::fs;
use std::os::unix::fs::symlink;

use gossip_connectors::fs::{FsOptions, FsSource};
use gossip_contracts::connector::SkipReason::{Ignored, Link, NestedHistory, OtherFileSystem};
use gossip_contracts::connector::{Connector, Page};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};

use crate::support::{Disk, EVERYTHING, Listed, file, list, list_all, skipped};

fn gitignore(disk: &Disk) -> FsSource {
    let mut options = FsOptions::default();
    options.gitignore = true;
    disk.source_with(options)
}

fn without_rules(source: &FsSource) -> Vec<Listed> {
    let mut all = list_all(source);
    all.retain(|(key, _)| !key.ends_with(b".gitignore"));
    all
}

#[test]
fn gits_rules_decide_on_request() {
    let disk = Disk::new();
    disk.write(".gitignore", b"*.log\n/build/\n!keep.log\n# comment\nbad[\r\nlink\n\xff\xfe\n")
        .write("a.log", "")
        .write("build/deep/file", "")
        .write("keep.log", "")
        .write("sub/.gitignore", "!b.log\nlocal\r\n")
        .write("sub/b.log", "")
        .write("sub/build/file", "")
        .write("sub/c.log", "")
        .write("sub/local", "")
        .write("z\n.log/file", "");
    symlink("a.log", disk.at("link")).unwrap();
    let expected = [
        skipped("a.log", Ignored),
        skipped("build/", Ignored),
        file("keep.log"),
        skipped("link", Ignored),
        file("sub/b.log"),
        file("sub/build/file"),
        skipped("sub/c.log", Ignored),
        skipped("sub/local", Ignored),
        skipped("z\n.log/", Ignored),
    ];
    assert_eq!(without_rules(&gitignore(&disk)), expected);
    // Without asking, rules are files like others.
    assert!(list_all(&disk.source()).iter().all(|(_, skip)| matches!(skip, None | Some(Link))));
    assert_eq!(list_all(&disk.source()).len(), 11);
}

#[test]
fn an_ignored_directory_is_reported_by_the_range_that_holds_its_key() {
    let disk = Disk::new();
    disk.write(".gitignore", "target/").write("target/a", "").write("target/z", "").write("u", "");
    let source = gitignore(&disk);
    let all = list_all(&source);
    assert_eq!(all, [file(".gitignore"), skipped("target/", Ignored), file("u")]);
    for page_size in 1..4 {
        assert_eq!(list(&source, EVERYTHING, None, page_size).unwrap(), all);
    }
    let inside = ShardSpecRef::new(b"target/m", b"", b"");
    assert_eq!(list(&source, inside, None, 9).unwrap(), [file("u")]);
    assert_eq!(list(&source, EVERYTHING, Some(b"target/"), 9).unwrap(), [file("u")]);
}

#[test]
fn rules_that_change_between_pages_hold_from_then_on() {
    let disk = Disk::new();
    disk.write(".gitignore", "b").write("a/.gitignore", "").write("b", "").write("c", "");
    let source = gitignore(&disk);
    assert_eq!(list(&source, EVERYTHING, None, 2).unwrap().len(), 4);
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::initial(), 1, &mut page).unwrap();
    disk.write(".gitignore", "c and not b\nc");
    let rest = list(&source, EVERYTHING, Some(b".gitignore"), 9).unwrap();
    assert_eq!(rest, [file("a/.gitignore"), file("b"), skipped("c", Ignored)]);
}

#[test]
fn a_list_of_rules_behind_a_link_is_not_obeyed() {
    let disk = Disk::new();
    disk.write("rules", "secret").write("secret", "");
    symlink("rules", disk.at(".gitignore")).unwrap();
    assert_eq!(without_rules(&gitignore(&disk)), [file("rules"), file("secret")]);
}

#[test]
fn git_directories_are_listed_but_for_their_objects() {
    let disk = Disk::new();
    disk.write(".gitignore", "*")
        .write(".git/config", "")
        .write(".git/objects/ab/cdef", "")
        .write("sub/.git/HEAD", "")
        .write("sub/.git/objects/pack/p", "")
        .write("sub/objects/file", "");
    let expected = [
        file(".git/config"),
        skipped(".git/objects/", Ignored),
        file(".gitignore"),
        file("sub/.git/HEAD"),
        skipped("sub/.git/objects/", NestedHistory),
        file("sub/objects/file"),
    ];
    assert_eq!(list_all(&disk.source()), expected);
    let mut options = FsOptions::default();
    options.git_objects = true;
    let all = list_all(&disk.source_with(options));
    assert!(all.iter().all(|(_, skip)| skip.is_none()) && all.len() == 6);

    // Rules of the work tree say nothing about `.git`.
    fs::remove_dir_all(disk.at("sub")).unwrap();
    let listed = list_all(&gitignore(&disk));
    assert_eq!(
        listed,
        [file(".git/config"), skipped(".git/objects/", Ignored), skipped(".gitignore", Ignored)]
    );
}

#[test]
fn one_file_system_stays_on_it() {
    let mut options = FsOptions::default();
    options.one_file_system = true;
    let source = FsSource::open("/", options).unwrap();
    let proc = ShardSpecRef::new(b"proc/", b"proc0", b"");
    let root = rustix::fs::stat("/").unwrap().st_dev;
    match rustix::fs::stat("/proc") {
        Ok(stat) if stat.st_dev != root => {}
        _ => return println!("not tested: /proc is no file system of its own here"),
    }
    let other = skipped("proc/", OtherFileSystem);
    assert_eq!(list(&source, proc, None, 9).unwrap(), [other]);
}
