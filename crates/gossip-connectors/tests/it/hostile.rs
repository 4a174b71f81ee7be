//! Links, pipes, what cannot be read, and what changes while it is looked at.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gossip_connectors::fs::{FsOpenError, FsOptions, FsSource};
use gossip_connectors::many::INNER_KEY_SIZE_MAX;
use gossip_contracts::connector::{Connector, ConnectorError, Page, SkipReason};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use rustix::fs::{FileType, Mode};

use crate::support::{Disk, EVERYTHING, file, list, list_all, listed, read, skipped};

fn not_found(error: &ConnectorError) -> bool {
    matches!(error, ConnectorError::NotFound { .. })
}

fn make_fifo(disk: &Disk, key: &str) {
    rustix::fs::mknodat(rustix::fs::CWD, disk.at(key), FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[test]
fn links_are_reported_and_never_followed() {
    let outside = Disk::new();
    outside.write("secret", "outside");
    let disk = Disk::new();
    disk.write("dir/file", "inside");
    symlink("..", disk.at("dir/loop")).unwrap();
    symlink("self", disk.at("self")).unwrap();
    symlink("nowhere", disk.at("dangling")).unwrap();
    symlink("dir", disk.at("to-dir")).unwrap();
    symlink(outside.path(), disk.at("out")).unwrap();
    symlink(outside.at("secret"), disk.at("out-file")).unwrap();

    let source = disk.source();
    let link = |key| skipped(key, SkipReason::Link);
    assert_eq!(
        list_all(&source),
        [
            link("dangling"),
            file("dir/file"),
            link("dir/loop"),
            link("out"),
            link("out-file"),
            link("self"),
            link("to-dir"),
        ]
    );
    for key in ["dangling", "dir/loop", "self", "out-file", "out/secret", "to-dir/file"] {
        assert!(not_found(&source.open(key.as_bytes()).err().unwrap()), "{key}");
    }
}

#[test]
fn keys_that_no_listing_gives_open_nothing() {
    let disk = Disk::new();
    disk.write("dir/file", "text");
    let source = FsSource::open(disk.at("dir"), FsOptions::default()).unwrap();
    assert_eq!(read(&source, b"file"), b"text");
    let strange: [&[u8]; 9] =
        [b"", b"/", b"./file", b"../dir/file", b"file/", b"/file", b"x//file", b"file\0", b".."];
    for key in strange {
        assert!(not_found(&source.open(key).err().unwrap()), "{key:?}");
    }
    let absolute = disk.at("dir/file").into_os_string().into_encoded_bytes();
    assert!(not_found(&source.open(&absolute).err().unwrap()));
}

#[test]
fn a_root_that_is_a_link_is_resolved_once() {
    let disk = Disk::new();
    disk.write("one/file", "1").write("two/file", "2");
    symlink("one", disk.at("root")).unwrap();
    let source = FsSource::open(disk.at("root"), FsOptions::default()).unwrap();
    fs::remove_file(disk.at("root")).unwrap();
    symlink("two", disk.at("root")).unwrap();
    assert_eq!(list_all(&source), [file("file")]);
    assert_eq!(read(&source, b"file"), b"1");
    assert!(source.root().ends_with("one"));
}

#[test]
fn a_root_that_is_a_file_lists_that_file() {
    let disk = Disk::new();
    disk.write("dir/file", "text").write("dir/other", "");
    symlink("dir/file", disk.at("link")).unwrap();
    for root in ["dir/file", "link"] {
        let source = FsSource::open(disk.at(root), FsOptions::default()).unwrap();
        assert_eq!(list_all(&source), [file("file")]);
        assert_eq!(read(&source, b"file"), b"text");
        assert!(not_found(&source.open(b"other").err().unwrap()));
        assert_eq!(list(&source, EVERYTHING, Some(b"file"), 1).unwrap(), []);
        assert_eq!(list(&source, ShardSpecRef::new(b"g", b"", b""), None, 1).unwrap(), []);
        assert_eq!(list(&source, ShardSpecRef::new(b"", b"file", b""), None, 1).unwrap(), []);
    }
}

#[test]
fn what_cannot_be_a_root_says_so() {
    let disk = Disk::new();
    make_fifo(&disk, "pipe");
    let open = |key| FsSource::open(disk.at(key), FsOptions::default()).unwrap_err();
    let missing = open("nowhere");
    assert!(matches!(missing, FsOpenError::Io { .. }));
    assert!(missing.to_string().contains("nowhere"), "{missing}");
    assert!(matches!(open("pipe"), FsOpenError::NotAFile { .. }));
}

#[test]
fn pipes_sockets_and_devices_do_not_hang_a_scan() {
    let disk = Disk::new();
    disk.write("file", "");
    make_fifo(&disk, "pipe");
    let _listener = UnixListener::bind(disk.at("socket")).unwrap();
    let source = disk.source();
    let special = |key| skipped(key, SkipReason::Special);
    assert_eq!(list_all(&source), [file("file"), special("pipe"), special("socket")]);
    for key in [&b"pipe"[..], b"socket"] {
        assert!(matches!(source.open(key).err().unwrap(), ConnectorError::Permanent { .. }));
    }
    let dev = FsSource::open("/dev", FsOptions::default()).unwrap();
    let null = list_all(&dev).into_iter().find(|(key, _)| key == b"null");
    assert_eq!(null, Some(special("null")));
}

#[test]
fn a_sparse_file_of_ten_gigabytes_is_listed_and_read_at_its_end() {
    const SIZE: u64 = 10 << 30;
    let disk = Disk::new();
    let sparse = fs::File::create(disk.at("sparse")).unwrap();
    if let Err(error) = sparse.set_len(SIZE) {
        println!("not tested: this file system holds no file of {SIZE} bytes: {error}");
        return;
    }
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", SIZE - 3).unwrap();
    let source = disk.source();
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::initial(), 1, &mut page).unwrap();
    assert_eq!(page.get(0).unwrap().size, SIZE);
    let mut reader = source.open(b"sparse").unwrap();
    let mut buf = [1; 10];
    assert_eq!(reader.size(), SIZE);
    assert_eq!(reader.read_at(SIZE - 5, &mut buf).unwrap(), 5);
    assert_eq!(&buf[..5], b"\0\0end");
    assert_eq!(reader.read_at(SIZE, &mut buf).unwrap(), 0);
    assert_eq!(reader.read_at(u64::MAX >> 1, &mut buf).unwrap(), 0);
}

#[test]
fn names_that_are_not_text_are_listed_and_opened() {
    let disk = Disk::new();
    for key in [&b"\xff\xfe/\x80"[..], b"new\nline", b"tab\t/\x7f\x01"] {
        disk.write(key, key);
    }
    let source = disk.source();
    for (key, _) in list_all(&source) {
        assert_eq!(read(&source, &key), key);
    }
    assert_eq!(list_all(&source).len(), 3);
}

/// Runs tests of this binary once more, as nobody: no mode keeps root out.
fn run_as_nobody(tests: &[&str]) {
    const NOBODY: u32 = 65_534;
    let program = std::env::current_exe().unwrap();
    let again = Command::new(program)
        .args(tests)
        .current_dir("/")
        .env("TMPDIR", "/tmp")
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    match again {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            let complained = String::from_utf8_lossy(&output.stderr);
            let passed = output.status.success() && !said.contains(" 0 passed");
            assert!(passed, "{said}{complained}");
        }
        Err(error) => println!("not tested: this is root, and nobody may not run it: {error}"),
    }
}

#[test]
fn the_suite_passes_whoever_runs_it() {
    if rustix::process::geteuid().is_root() {
        run_as_nobody(&["conformance::items::"]);
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_goes_on() {
    if rustix::process::geteuid().is_root() {
        let this = "hostile::what_cannot_be_read_is_reported_and_the_rest_goes_on";
        return run_as_nobody(&["--exact", this]);
    }
    let disk = Disk::new();
    disk.write("a/blind/file", "").write("a/shut/file", "").write("a/z", "").write("b", "");
    let set_mode = |key: &str, mode| {
        fs::set_permissions(disk.at(key), fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("a/blind", 0o400);
    set_mode("a/shut", 0o000);
    set_mode("b", 0o000);
    let source = disk.source();
    let denied = |key: &str| skipped(key, SkipReason::PermissionDenied);
    let expected = [denied("a/blind/file"), denied("a/shut/"), file("a/z"), file("b")];
    for page_size in 1..5 {
        assert_eq!(list(&source, EVERYTHING, None, page_size).unwrap(), expected);
    }
    let error = source.open(b"b").err().unwrap();
    assert!(matches!(error, ConnectorError::PermissionDenied { .. }), "{error}");

    // A listing that starts inside of it reports it there, once.
    for page_size in 1..5 {
        let from_inside = list(&source, EVERYTHING, Some(b"a/shut/f"), page_size).unwrap();
        assert_eq!(from_inside, [denied("a/shut/f\0"), file("a/z"), file("b")]);
    }
    let until_there = ShardSpecRef::new(b"a/shut/f", b"a/shut/f\0", b"");
    assert_eq!(list(&source, until_there, None, 9).unwrap(), []);

    // So does one that finds it shut when it comes back.
    set_mode("a/shut", 0o700);
    disk.write("a/shut/g", "");
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::at(b"a/shut/"), 1, &mut page).unwrap();
    assert!(page.iter().map(listed).eq([file("a/shut/file")]));
    set_mode("a/shut", 0o000);
    let rest = list(&source, EVERYTHING, Some(b"a/shut/file"), 1).unwrap();
    assert_eq!(rest, [denied("a/shut/file\0"), file("a/z"), file("b")]);

    // A root that is shut is an error, not an empty listing.
    let shut = FsSource::open(disk.at("a/shut"), FsOptions::default()).unwrap_err();
    assert!(shut.to_string().to_lowercase().contains("permission denied"), "{shut}");
    set_mode("a/shut", 0o700);
    set_mode("a/blind", 0o700);
}

#[test]
fn what_vanishes_between_listing_and_opening_is_not_found() {
    let disk = Disk::new();
    disk.write("dir/a", "").write("dir/b", "").write("e", "");
    let source = disk.source();
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::initial(), 1, &mut page).unwrap();
    assert!(page.iter().map(listed).eq([file("dir/a")]));
    fs::remove_dir_all(disk.at("dir")).unwrap();
    assert!(not_found(&source.open(b"dir/a").err().unwrap()));
    // A file where the directory was.
    disk.write("dir", "now a file");
    assert!(not_found(&source.open(b"dir/a").err().unwrap()));
    source.list(EVERYTHING, CursorUpdate::at(b"dir/a"), 9, &mut page).unwrap();
    assert!(page.iter().map(listed).eq([file("e")]));
}

#[test]
fn a_root_that_is_removed_is_not_an_empty_one() {
    let disk = Disk::new();
    disk.write("root/file", "");
    disk.write("root/z", "");
    let source = FsSource::open(disk.at("root"), FsOptions::default()).unwrap();
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::initial(), 1, &mut page).unwrap();
    fs::remove_dir_all(disk.at("root")).unwrap();
    assert!(not_found(&list(&source, EVERYTHING, None, 1).unwrap_err()));
    assert!(not_found(&list(&source, EVERYTHING, Some(b"file"), 1).unwrap_err()));
}

#[test]
fn a_file_that_appears_ahead_of_the_cursor_is_listed() {
    let disk = Disk::new();
    disk.write("a", "").write("b/c", "").write("b/m", "").write("d", "");
    let source = disk.source();
    let mut page = Page::new();
    source.list(EVERYTHING, CursorUpdate::initial(), 2, &mut page).unwrap();
    assert!(page.iter().map(listed).eq([file("a"), file("b/c")]));
    disk.write("b/e", "").write("c", "");
    fs::remove_file(disk.at("b/m")).unwrap();
    source.list(EVERYTHING, CursorUpdate::at(b"b/c"), 9, &mut page).unwrap();
    assert!(page.iter().map(listed).eq([file("b/e"), file("c"), file("d")]));
}

#[test]
fn what_has_no_key_is_reported_under_its_directory() {
    let disk = Disk::new();
    let name = [b'n'; 250];
    let mut key = Vec::new();
    let mut at = rustix::fs::open(disk.path(), OPEN_DIR, Mode::empty()).unwrap();
    while key.len() + name.len() < INNER_KEY_SIZE_MAX {
        rustix::fs::mkdirat(&at, &name[..], Mode::RWXU).unwrap();
        at = rustix::fs::openat(&at, &name[..], OPEN_DIR, Mode::empty()).unwrap();
        key.extend_from_slice(&name);
        key.push(b'/');
    }
    let room = INNER_KEY_SIZE_MAX - key.len();
    let create = |len: usize| {
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        rustix::fs::openat(&at, &name[..len], flags, Mode::RWXU).unwrap();
    };
    create(room + 1);
    create(room + 2);
    create(room);
    // A directory's key is one longer than its name.
    rustix::fs::mkdirat(&at, &[b'm'; 250][..room], Mode::RWXU).unwrap();
    let source = disk.source();
    let longest = [&key[..], &name[..room]].concat();
    let expected = [skipped(&key, SkipReason::KeyTooLong), file(&longest)];
    assert_eq!(list_all(&source), expected);
    assert_eq!(list(&source, EVERYTHING, None, 1).unwrap(), expected);
    assert_eq!(read(&source, &longest), b"");
}

const OPEN_DIR: rustix::fs::OFlags =
    rustix::fs::OFlags::RDONLY.union(rustix::fs::OFlags::DIRECTORY);

#[test]
fn a_directory_that_is_swapped_for_a_link_never_leads_outside() {
    let outside = Disk::new();
    outside.write("file", "outside").write("only-outside", "outside");
    let disk = Disk::new();
    disk.write("dir/file", "inside").write("z", "inside");
    symlink(outside.path(), disk.at("link")).unwrap();
    let source = disk.source();
    let done = AtomicBool::new(false);
    let (mut inside, mut gone) = (0_u32, 0_u32);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::rename(disk.at("dir"), disk.at("aside")).unwrap();
                fs::rename(disk.at("link"), disk.at("dir")).unwrap();
                fs::rename(disk.at("dir"), disk.at("link")).unwrap();
                fs::rename(disk.at("aside"), disk.at("dir")).unwrap();
            }
        });
        let mut rounds = 0;
        // Both outcomes must have been seen, or nothing was raced.
        while (rounds < 3000 || inside == 0 || gone == 0) && rounds < 1_000_000 {
            rounds += 1;
            match source.open(b"dir/file") {
                Ok(mut reader) => {
                    let mut buf = [0; 16];
                    let len = reader.read_at(0, &mut buf).unwrap();
                    assert_eq!(&buf[..len], b"inside");
                    inside += 1;
                }
                Err(error) if not_found(&error) => gone += 1,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            if rounds % 16 == 0 {
                let keys = list_all(&source);
                assert!(keys.iter().all(|(key, _)| !key.ends_with(b"only-outside")));
                assert!(keys.contains(&file("z")));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    println!("opened inside {inside} times, found it gone {gone} times");
    assert!(inside > 0 && gone > 0, "inside {inside}, gone {gone}");
}
