//! What can be scanned besides one directory.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::git::git;
use crate::support::{Place, Ran, token, zip_of};

fn scan(place: &Place, words: &[&str], input: Option<&[u8]>) -> Ran {
    let mut command = place.command();
    command.args(["scan", "--format", "json"]).args(words);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    if let Some(input) = input {
        child.stdin.take().unwrap().write_all(input).unwrap();
    }
    Ran::of(child.wait_with_output().unwrap(), &words.join(" "))
}

fn paths(ran: &Ran) -> Vec<String> {
    ran.json().iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

fn runs(place: &Place) -> Vec<Value> {
    place.run("runs --format json").exits(0).json()
}

#[test]
fn several_paths_are_scanned_in_one_run_and_what_is_named_twice_once() {
    let place = Place::new();
    for (name, seed) in [("a/one.env", 1), ("a/in/two.env", 2), ("b/three.env", 3), ("c.env", 4)] {
        place.write(name, format!("T={}\n", token(seed)));
    }
    let path = |name: &str| place.tree.join(name).display().to_string();
    let words = [path("b"), path("a"), path("c.env"), path("a/in"), path("b")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ran = scan(&place, &words, None).exits(1);
    // As seen from the tree, where it runs.
    let expected = ["a/in/two.env", "a/one.env", "b/three.env", "c.env"];
    let mut found = paths(&ran);
    found.sort();
    assert_eq!(found, expected);
    // In another order it is the same, and nothing has changed.
    let again = scan(&place, &[words[2], words[1], words[0]], None).exits(1);
    assert_eq!(again.json(), ran.json());
    let runs = runs(&place);
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[1]["items"], &runs[1]["findings"]), (&4.into(), &4.into()));
    place.run("findings 1").exits(2).says("superseded by run 2");
    let missing = path("missing");
    scan(&place, &[words[0], &missing], None).exits(2).says("missing");
}

/// A run has one configuration, and that of one directory says nothing of another.
#[test]
fn paths_with_different_configurations_are_not_scanned_in_one_run() {
    let place = Place::new();
    for name in ["a/one.env", "b/two.env"] {
        place.write(name, format!("T={}\n", token(1)));
    }
    place.write("a/gossip.toml", "[allowlist]\npaths = ['one']\n");
    let (a, b) = (place.tree.join("a"), place.tree.join("b"));
    let paths = [a.to_str().unwrap(), b.to_str().unwrap()];
    let refused = scan(&place, &paths, None).exits(2).says("different configurations");
    let refused = refused.says("a/gossip.toml, none").says("--config FILE");
    assert_eq!(refused.stdout, "");
    assert!(runs(&place).is_empty(), "nothing was scanned");
    let with = |words: &[&str]| scan(&place, &[words, &paths].concat(), None);
    assert_eq!(with(&["--no-local-config"]).exits(1).json().len(), 2);
    let config = a.join("gossip.toml");
    assert_eq!(with(&["--config", config.to_str().unwrap()]).exits(1).json().len(), 1);
    place.write("b/gossip.toml", "");
    with(&[]).exits(2).says("b/gossip.toml");
    // One that is found from both holds for both.
    fs::remove_file(place.tree.join("b/gossip.toml")).unwrap();
    fs::rename(&config, place.tree.join("gossip.toml")).unwrap();
    fs::create_dir(place.tree.join(".git")).unwrap();
    assert_eq!(with(&[]).exits(1).json().len(), 1);
}

#[test]
fn standard_input_is_scanned_and_the_same_again_is_not_read_again() {
    let place = Place::new();
    let text = format!("some\nlines\nT={}\n", token(1));
    let ran = scan(&place, &["-"], Some(text.as_bytes())).exits(1);
    let found = &ran.json()[0];
    assert_eq!((&found["path"], &found["line"]), (&"stdin".into(), &3.into()));
    assert_eq!(scan(&place, &["-"], Some(text.as_bytes())).exits(1).json(), ran.json());
    // Another input is another target: nothing of the first is lost or shown.
    let other = scan(&place, &["-"], Some(b"nothing in here\n")).exits(0);
    assert!(other.json().is_empty());
    place.run("findings 2").exits(1);
    scan(&place, &["-"], Some(b"")).exits(0);
    // Beside a directory.
    place.write("x.env", format!("T={}\n", token(2)));
    let tree = place.tree.display().to_string();
    let both = scan(&place, &["-", &tree], Some(text.as_bytes())).exits(1);
    let mut found = paths(&both);
    found.sort();
    assert_eq!(found, ["stdin", "x.env"]);
}

#[test]
fn standard_input_is_read_behind_other_pipes_too() {
    let place = Place::new();
    let fifo = fifo(&place, b"clean\n".to_vec());
    let text = format!("T={}\n", token(1));
    let ran = scan(&place, &[&fifo, "-", "-", &fifo], Some(text.as_bytes())).exits(1);
    assert_eq!(paths(&ran), ["stdin"]);
    assert_eq!(runs(&place)[0]["items"], 2, "each once");
}

/// A named pipe that somebody writes this to, once.
fn fifo(place: &Place, content: Vec<u8>) -> String {
    let path = place.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let to = path.clone();
    std::thread::spawn(move || fs::write(to, content));
    path.display().to_string()
}

/// The second run used to find standard input at its end, and to wait at the named pipe for ever.
#[test]
fn what_was_piped_is_reported_though_references_move_during_the_scan() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    for number in 0..200 {
        place.write(&format!("{number}.txt"), format!("{number} {}\n", "words ".repeat(20_000)));
    }
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", "first"]);
    let fifo = fifo(&place, format!("F={}\n", token(2)).into_bytes());
    let trace = place.path("trace");
    let mut command = place.command();
    command.args(["scan", "-j1", "--no-progress", "--format", "json", "--read-log"]).arg(&trace);
    command.args([".", &fifo, "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    writeln!(child.stdin.take().unwrap(), "S={}", token(1)).unwrap();
    while fs::metadata(&trace).map_or(0, |trace| trace.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before anything was read");
        std::thread::sleep(Duration::from_millis(1));
    }
    let signal = |name: &str| {
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    };
    signal("-STOP");
    place.write("late.env", format!("L={}\n", token(3)));
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", "second"]);
    git(&place.tree, &["rm", "-q", "late.env"]);
    git(&place.tree, &["commit", "-q", "-m", "third"]);
    signal("-CONT");
    let deadline = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            crate::kill::kill(&mut child);
            panic!("it waits for a pipe");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let ran = Ran::of(child.wait_with_output().unwrap(), "scan . FIFO -").exits(1);
    let ran = ran.says("the target has changed since run 1 began");
    let mut found = paths(&ran);
    found.sort();
    let mut expected = vec![fifo, "late.env".to_owned(), "stdin".to_owned()];
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_compressed_stream_is_unpacked_from_standard_input_as_well() {
    let place = Place::new();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writeln!(gz, "T={}", token(1)).unwrap();
    let ran = scan(&place, &["-"], Some(&gz.finish().unwrap())).exits(1);
    assert_eq!(paths(&ran), ["stdin!content"]);
}

#[test]
fn archives_that_are_bombs_cut_short_or_lead_out_are_named_and_the_rest_is_scanned() {
    let place = Place::new();
    let secret = format!("T={}\n", token(1));
    let whole = zip_of(&[("../../out.env", secret.as_bytes()), ("b.txt", &b"words"[..])]);
    place.write("whole.zip", &whole);
    place.write("after.env", &secret);
    let ran = place.run("scan TREE").exits(1).says("2 items").says("2 findings");
    assert!(ran.stdout.contains("whole.zip!../../out.env:1:3"), "{ran:?}");
    assert!(!place.tree.join("../out.env").exists());

    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let mut tar = tar::Builder::new(gz);
    for (name, content) in [("zeros", &vec![0; 80 << 20][..]), ("late.env", secret.as_bytes())] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content).unwrap();
    }
    place.write("bomb.tgz", tar.into_inner().unwrap().finish().unwrap());
    place.write("cut.zip", &whole[..whole.len() - 30]);
    let ran = place.run("scan TREE").exits(2).says("2 findings");
    let ran = ran.says("1 archive beyond limits").says("1 damaged archive");
    let ran = ran.says("  bomb.tgz: archive beyond limits\n").says("  cut.zip: damaged archive\n");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    fs::remove_file(place.tree.join("bomb.tgz")).unwrap();
    place.write("cut.zip", &whole);
    place.run("scan TREE").exits(1).says("3 findings");
}

#[test]
fn what_is_printable_in_binary_files_is_found_when_asked_for() {
    let place = Place::new();
    let program = [b"\x7fELF\x02\x01\0\0", token(1).as_bytes(), b"\0\xff\xfe\0"].concat();
    place.write("program", &program);
    place.write("in.zip", zip_of(&[("program", &program)]));
    place.run("scan TREE").exits(0).says("2 binary: executable");
    let ran = place.run("scan TREE --binary --format json").exits(1);
    let found: Vec<_> =
        ran.json().iter().map(|f| (f["path"].clone(), f["start"].clone())).collect();
    assert_eq!(found, [("in.zip!program".into(), 8.into()), ("program".into(), 8.into())]);
    // What was skipped without stays skipped.
    place.run("scan TREE").exits(0);
}

#[test]
fn a_run_that_was_begun_with_binaries_is_resumed_with_them() {
    let place = Place::new();
    for number in 0..200 {
        let head = [b"\x7fELF\x02\x01\0\0", token(number).as_bytes(), b"\0"].concat();
        place.write(&format!("{number}"), [head, vec![0; 100_000]].concat());
    }
    let trace = place.path("trace");
    let mut command = place.command();
    command.args(["scan", "--binary", "--no-progress", "--read-log"]).arg(&trace);
    let mut child = command.arg(&place.tree).stderr(Stdio::null()).spawn().unwrap();
    while fs::metadata(&trace).map_or(0, |trace| trace.len()) < 200 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    crate::kill::kill(&mut child);
    let ran = place.run("resume 1 --format json").exits(1);
    assert_eq!(ran.json().len(), 200);
    assert_eq!(runs(&place).len(), 1);
}
