//! What reaches a terminal, or a pipe whose reader has gone.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{Place, Ran, token};

#[test]
fn names_do_not_command_the_terminal() {
    let place = Place::new();
    let names: [&[u8]; 4] =
        [b"\x1b[31mred\nline.env", "\u{202e}vne.env".as_bytes(), b"bad\xff.env", b"plain.env"];
    for name in names {
        fs::write(place.tree.join(OsStr::from_bytes(name)), format!("T={}\n", token(1))).unwrap();
    }
    let ran = place.run("scan TREE").exits(1);
    let shown: Vec<&str> =
        ran.finding_lines().iter().map(|line| line.split(":1:3: ").next().unwrap()).collect();
    let expected = ["\\u{1b}[31mred\\nline.env", "bad\\xff.env", "plain.env", "\\u{202e}vne.env"];
    assert_eq!(shown, expected);
    let json = place.run("findings --format json").exits(1).json();
    assert_eq!(json[0]["path"], "\u{1b}[31mred\nline.env");
    assert_eq!(json[1]["path_hex"], "626164ff2e656e76");

    let missing = place.path("\u{1b}]0;title\u{7}");
    let output = place.command().arg("scan").arg(&missing).output().unwrap();
    let ran = Ran::of(output, "scan").exits(2).says("\\u{1b}]0;title\\u{7}: ");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    // A target that is not UTF-8 can be told from its JSON.
    let target = place.path("tree").join(OsStr::from_bytes(b"dir\xff"));
    fs::create_dir(&target).unwrap();
    assert!(place.command().arg("scan").arg(&target).status().unwrap().success());
    let runs = place.run("runs --format json").exits(0).json();
    assert!(runs[1]["target_hex"].as_str().unwrap().ends_with("646972ff"), "{runs:?}");
    assert!(runs[0].get("target_hex").is_none());
}

#[test]
fn logs_that_nobody_reads_on_a_terminal_have_no_colours() {
    let place = Place::with_a_token();
    let ran = place.run("-vv scan TREE").exits(1).says("DEBUG");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
}

#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let place = Place::with_a_token();
    for words in [&["scan"][..], &["-vv", "scan"], &["-vv", "scan", "--format", "json"]] {
        let mut command = place.command();
        command.args(words).arg(&place.tree).stdout(Stdio::piped());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stderr(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn a_reader_that_has_had_enough_hears_nothing_more() {
    let place = Place::new();
    for number in 0..2_000 {
        place.write(&format!("{number}.env"), format!("T={}\n", token(number)));
    }
    let whole = place.run("scan TREE").exits(1).stdout;
    assert!(whole.len() > 100_000, "more than a pipe holds: {}", whole.len());
    for format in ["text", "json", "jsonl"] {
        let mut command = place.command();
        command.args(["findings", "--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{format}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
    let ran = place.run("findings").exits(1);
    assert_eq!(ran.stdout, whole);
}

/// `script` gives the program a terminal, and records what comes to it.
#[test]
fn a_terminal_shows_how_far_a_scan_is_while_it_runs_and_nothing_of_it_after() {
    let place = Place::with_a_token();
    for number in 0..64 {
        place.write(&format!("many/{number}.txt"), "some words of a file\n".repeat(20_000));
    }
    let shown = |options: &str| {
        let program = env!("CARGO_BIN_EXE_gossip");
        let line = format!("{program} scan --fresh {options} {}", place.tree.display());
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("GOSSIP_STATE_DIR", &place.state);
        let output = command.env("TERM", "xterm").env("COLUMNS", "200").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let mut line = shown("");
    // An optimised program may be through before it draws a line: then it has more to read.
    for copies in [0..4, 4..16, 16..64, 64..256] {
        if line.contains(" shards, ") {
            break;
        }
        for (copy, number) in copies.flat_map(|copy| (0..64).map(move |number| (copy, number))) {
            let [from, to] = ["", &format!("{copy}-")]
                .map(|copy| place.tree.join(format!("many/{copy}{number}.txt")));
            fs::hard_link(from, to).unwrap();
        }
        line = shown("");
    }
    assert!(line.contains(" shards, ") && line.contains("items (0 unchanged), "), "{line:?}");
    assert!(line.contains("/s, "), "{line:?}");
    // The line is cleared before what is said in the end.
    let (_, end) = line.rsplit_once("\u{1b}[2K").unwrap_or_else(|| panic!("{line:?}"));
    assert!(end.contains(" items (0 unchanged), ") && !end.contains(" shards, "), "{end:?}");
    for option in ["--no-progress", "-q"] {
        assert!(!shown(option).contains(" shards, "), "{option}");
    }
}
