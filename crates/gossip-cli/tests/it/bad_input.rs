//! What is wrong with the world, through the real program: it is named, the exit code says so, the
//! rest is scanned, and once it is mended a scan finds everything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::git::git;
use crate::support::{Place, Ran, finding_lines, token};

/// A tree with a token in each of so many files, all of some size.
fn tokens(files: u64, size: usize) -> Place {
    let place = Place::new();
    for number in 0..files {
        let filler = "some words\n".repeat(size / 11);
        place.write(&format!("{number:03}.env"), format!("{filler}T={}\n", token(number)));
    }
    place
}

#[track_caller]
fn finds_everything(place: &Place, files: usize) {
    let found = place.run("scan TREE --format jsonl").exits(1).jsonl();
    assert_eq!(found.len(), files);
    place.run("doctor").exits(0);
}

/// Root may read everything, so there somebody else scans.
fn as_nobody(place: &Place) -> Command {
    const NOBODY: u32 = 65_534;
    if fs::metadata(&place.tree).is_ok_and(|tree| std::os::unix::fs::MetadataExt::uid(&tree) != 0) {
        return place.command();
    }
    let dir = place.tree.parent().unwrap();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir_all(&place.state).unwrap();
    std::os::unix::fs::chown(&place.state, Some(NOBODY), Some(NOBODY)).unwrap();
    // Its own copy: the way to the original may be closed to it.
    let program = dir.join("gossip");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_gossip"), &program).unwrap();
    }
    let mut command = Command::new(program);
    command.env_clear().env("GOSSIP_STATE_DIR", &place.state).uid(NOBODY).gid(NOBODY);
    command
}

/// A table that does nothing would leave its author thinking that it does.
#[test]
fn a_table_or_field_that_does_nothing_is_refused_with_its_place_and_the_nearest_name() {
    let place = Place::with_a_token();
    let file = place.path("mine.toml");
    for (text, option, part) in [
        ("[scan]\nexclude = [\"x\"]\n", "--rules", ":1:1: `[scan]` is for a configuration"),
        (
            "title = \"x\"\n[scna]\nexclude = []\n",
            "--rules",
            ":2:2: unknown field `scna`; is it `scan`?",
        ),
        ("[scna]\nexclude = []\n", "--config", ":1:2: unknown field `scna`; is it `scan`?"),
        ("[scan]\nexlude = []\n", "--config", ":2:1: unknown field `exlude`, expected"),
        ("[scan]\nexlude = []\n", "--config", "; is it `exclude`?"),
        (
            "exclude = []\n",
            "--config",
            ":1:1: unknown field `exclude`; `exclude` belongs under `[scan]`",
        ),
        ("[[rule]]\nid = \"x\"\n", "--config", ":1:3: unknown field `rule`; is it `rules`?"),
        (
            "[[rules]]\nid = \"x\"\nregx = \"a\"\n",
            "--rules",
            ":3:1: rule `x`: unknown field `regx`; is it `regex`?",
        ),
        (
            "[[rules]]\nid = \"x\"\nregex = \"abc\"\npaths = []\n",
            "--rules",
            "unknown field `paths`; `paths` belongs elsewhere",
        ),
        (
            "[[allowlists]]\nregexs = []\n",
            "--config",
            ":2:1: unknown field `regexs`; is it `regexes`?",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let ran = place.run(&format!("scan TREE {option} {}", file.display())).exits(2).says(part);
        assert!(ran.stderr.contains(&format!("{}:", file.display())), "{ran:?}");
        assert!(!place.state.exists(), "nothing was begun");
    }
}

#[test]
fn what_may_not_be_read_is_counted_and_read_once_it_may() {
    let place = tokens(6, 0);
    place.write("closed/in.env", format!("T={}\n", token(7)));
    let mode = |name: &str, mode| {
        fs::set_permissions(place.tree.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("003.env", 0o000);
    mode("closed", 0o000);
    let scan = || {
        let mut command = as_nobody(&place);
        let output = command.arg("scan").arg(&place.tree).args(["-f", "text"]).output().unwrap();
        Ran::of(output, "scan as nobody")
    };
    let ran = scan().exits(2).says("could not be read: 2 permission denied").says("5 findings");
    assert_eq!(ran.finding_lines().len(), 5, "{ran:?}");
    mode("closed", 0o755);
    mode("003.env", 0o644);
    let ran = scan().exits(1).says("7 findings");
    assert!(!ran.stderr.contains("could not be read"), "{ran:?}");
}

/// Halted in the middle of the first of the files that it has listed, of which one is then taken away.
#[test]
fn files_that_vanish_are_counted_and_the_rest_is_scanned() {
    const FILES: u64 = 60;
    let place = tokens(FILES, 0);
    // A machine that is fast has more to read: it must not be done before it is halted.
    let mut child = (24..30)
        .find_map(|size| {
            place.write("000.env", "some words\n".repeat((1 << size) / 11));
            let mut child = scan_traced(&place);
            signal("STOP", child.id());
            let trace = fs::read_to_string(place.path("trace")).unwrap();
            let first = trace.split(' ').next().unwrap();
            if trace.lines().all(|line| line.starts_with(first)) {
                return Some(child);
            }
            child.kill().unwrap();
            child.wait().unwrap();
            fs::remove_dir_all(&place.state).unwrap();
            fs::remove_file(place.path("trace")).unwrap();
            None
        })
        .expect("it could be halted in time");
    let victim = place.tree.join("001.env");
    let text = fs::read(&victim).unwrap();
    fs::remove_file(&victim).unwrap();
    signal("CONT", child.id());
    let mut stdout = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut stdout).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap(), "scan");
    ran.exits(2).says("could not be read: 1 vanished").says("58 findings");
    assert_eq!(finding_lines(&stdout).len(), 58);
    fs::write(&victim, text).unwrap();
    finds_everything(&place, 59);
}

/// A scan that has begun to read.
fn scan_traced(place: &Place) -> Child {
    let trace = place.path("trace");
    let mut command = place.command();
    command.args(["scan", "-j", "1"]).arg(&place.tree).arg("--read-log").arg(&trace);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while fs::metadata(&trace).map_or(0, |trace| trace.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be halted");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child
}

/// The shell's own: a bare machine has no program of that name.
fn signal(name: &str, pid: u32) {
    let script = format!("kill -{name} {pid}");
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
}

#[test]
fn links_that_lead_in_circles_or_out_are_not_followed() {
    let place = tokens(3, 0);
    fs::create_dir(place.tree.join("dir")).unwrap();
    symlink("..", place.tree.join("dir/up")).unwrap();
    symlink("itself", place.tree.join("dir/itself")).unwrap();
    symlink("/", place.tree.join("out")).unwrap();
    place.run("scan TREE").exits(1).says("not scanned: 3 link").says("6 items").says("3 findings");
    // A target that is a link is what it leads to, and the same target.
    symlink(&place.tree, place.path("link")).unwrap();
    let link = place.path("link");
    place.run(&format!("scan {}", link.display())).exits(1).says("3 findings");
    assert_eq!(place.run("runs --format json").exits(0).json().len(), 2);
    place.run("findings 1").exits(2).says("superseded by run 2");
}

#[test]
fn a_sparse_file_of_ten_gigabytes_is_passed_over() {
    let place = tokens(3, 0);
    let sparse = fs::File::create(place.tree.join("disk.img")).unwrap();
    sparse.set_len(10 << 30).expect("temporary files may be sparse");
    place.run("scan TREE").exits(1).says("not scanned: 1 binary: NUL bytes").says("3 findings");
}

#[test]
fn a_database_that_another_process_keeps_is_named_and_scanned_with_later() {
    let place = tokens(3, 0);
    place.run("scan TREE").exits(1);
    let database = place.state.join("gossip.db");
    let keeper = rusqlite::Connection::open(&database).unwrap();
    keeper.execute_batch("BEGIN IMMEDIATE").unwrap();
    place.write("later.env", format!("T={}\n", token(9)));
    let ran = place.run("scan TREE").exits(2).says("held the database");
    assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{ran:?}");
    keeper.execute_batch("ROLLBACK").unwrap();
    finds_everything(&place, 4);
}

#[test]
fn a_damaged_database_is_named_left_alone_and_can_be_replaced() {
    let place = tokens(3, 0);
    place.run("scan TREE").exits(1);
    let database = place.state.join("gossip.db");
    let whole = fs::read(&database).unwrap();
    for len in [whole.len() / 2, 4096, 100, 50] {
        fs::write(&database, &whole[..len]).unwrap();
        let ran = place.run("scan TREE").exits(2).says("gossip.db");
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        assert_eq!(ran.stdout, "");
        assert!(fs::read(&database).unwrap() == whole[..len], "it was written to");
    }
    fs::write(&database, &whole).unwrap();
    finds_everything(&place, 3);
    fs::remove_file(&database).unwrap();
    finds_everything(&place, 3);
}

/// A file system of its own, which ends with this.
struct SmallDisk<'d>(&'d Path);

impl<'d> SmallDisk<'d> {
    /// `None` for those who may not have one and say that they know, with `GOSSIP_ALLOW_SKIPS`.
    fn mount(at: &'d Path, options: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(at));
        }
        let skip = std::env::var("GOSSIP_ALLOW_SKIPS").is_ok_and(|allow| allow == "1");
        assert!(skip, "a file system of one's own takes root, or GOSSIP_ALLOW_SKIPS=1 to skip");
        eprintln!("skipped: a file system of one's own takes root");
        None
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// What root can have; for everybody else a limit on the size of files stands in, in `commands`.
#[test]
fn a_disk_that_is_full_is_named_and_nothing_is_lost_once_there_is_room() {
    let place = tokens(300, 0);
    fs::create_dir(&place.state).unwrap();
    let Some(_disk) = SmallDisk::mount(&place.state, "size=400k,mode=700") else { return };
    let ran = place.run("scan TREE").exits(2).says("full");
    assert!(ran.stderr.lines().all(|line| line.starts_with("gossip: ")), "{ran:?}");
    assert!(!ran.stderr.contains("bug"), "{ran:?}");
    let mut mount = Command::new("mount");
    mount.args(["-o", "remount,size=64m"]).arg(&place.state);
    assert!(mount.status().unwrap().success());
    finds_everything(&place, 300);
}

#[test]
fn a_target_that_is_no_file_and_rules_that_are_none_are_named_once() {
    let place = tokens(1, 0);
    let one_line = |words: &str, line: &str| {
        let ran = place.run(words).exits(2);
        assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), (line, ""));
    };
    one_line("scan /dev/null", "gossip: /dev/null: neither a directory nor a regular file\n");
    let rules = place.path("bad.toml");
    let shown = rules.display();
    fs::write(&rules, "[[rules]]\nid = \"mine\"\nregex = '''[0-9'''\n").unwrap();
    let fault = "`regex` is not a valid regular expression: unclosed character class";
    one_line(
        &format!("scan TREE --rules {shown}"),
        &format!("gossip: {shown}:3:9: rule `mine`: {fault}\n"),
    );
    assert!(!place.state.exists(), "nothing was begun");
    fs::write(&rules, "[[rules]]\nid = \"mine\"\nregex = '''[0-9]{99}'''\n").unwrap();
    place.run(&format!("scan TREE --rules {shown}")).exits(1).says("1 finding");
}

#[test]
fn credentials_in_the_address_of_a_bucket_are_refused_and_not_repeated() {
    let place = Place::new();
    let ran =
        place.run("scan s3://name:hush@bucket/x").exits(2).says("s3://…: it names credentials");
    assert!(!ran.stderr.contains("hush") && !ran.stderr.contains("name:"), "{ran:?}");
    assert_eq!((ran.stderr.lines().count(), ran.stdout.as_str()), (1, ""), "{ran:?}");
}

#[test]
fn a_revision_that_there_is_not_is_named_in_one_line() {
    let place = Place::with_a_token();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", "first"]);
    for option in ["--since nope", "--branch nope", "--diff nope"] {
        let ran = place.run(&format!("scan {option} TREE")).exits(2);
        let said = "gossip: nope: there is no such revision, or more than one; `git rev-parse nope` says more\n";
        assert_eq!(ran.stderr, said, "{option}");
    }
}
