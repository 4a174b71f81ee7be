//! What somebody meets who types the first thing that comes to mind.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Place, Ran, token};

fn paths(ran: &Ran) -> Vec<String> {
    ran.jsonl().iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_program_alone_teaches_with_examples() {
    let place = Place::new();
    let ran = place.run("").exits(2);
    assert!(ran.stderr.contains("Examples:\n  gossip scan "), "{ran:?}");
    place.run("scan --help").exits(0).prints("gossip scan --staged .");
    place.run("findings --help").exits(0).prints("gossip findings --new-since 2");
}

#[test]
fn a_scan_of_nothing_in_particular_is_of_the_current_directory() {
    let place = Place::with_a_token();
    let ran = place.run("scan -f jsonl").exits(1);
    assert_eq!(paths(&ran), ["config/app.env"]);
    assert_eq!(paths(&place.run("scan . -f jsonl").exits(1)), ["config/app.env"]);
    place.run("runs").exits(0).prints(&place.tree.canonicalize().unwrap().display().to_string());
}

#[test]
fn pipes_are_scanned_by_whatever_name() {
    let place = Place::new();
    let text = format!("T={}\n", token(1));
    let mut child = place
        .command()
        .args(["scan", "/dev/stdin", "-f", "jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let ran = Ran::of(child.wait_with_output().unwrap(), "scan /dev/stdin").exits(1);
    assert_eq!(paths(&ran), ["stdin"]);

    let pipe = place.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, text).unwrap()
    });
    let ran = place.run(&format!("scan {} -f jsonl", pipe.display())).exits(1);
    writer.join().unwrap();
    assert_eq!(paths(&ran), [pipe.display().to_string()]);
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let place = Place::with_a_token();
    for (words, part) in [
        ("scan https://example.com/x.git", "https://example.com/x.git: an address; `git clone` it"),
        ("scan git@example.com:x.git", "`git clone` it, and scan the clone"),
        ("scan . --state-dir notes.txt/state", "--state-dir DIR names another place"),
        ("findings --state-dir notes.txt", "--state-dir DIR names another place"),
    ] {
        let ran = place.run(words).exits(2).says(part);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
    // Before anything is scanned.
    for option in ["-o", "--proof"] {
        place
            .run(&format!("scan . {option} no/such/file.json"))
            .exits(2)
            .says("no/such/file.json: its directory does not exist");
        place.run(&format!("scan . {option} config")).exits(2).says("config: this is a directory");
    }
    place.run("runs").exits(0).says("there are no runs yet");
    // A file system on which nothing can be written.
    if fs::create_dir("/proc/gossip").is_err() {
        place.run("scan . --state-dir /proc/gossip").exits(2).says("it must be writable");
    }
}
