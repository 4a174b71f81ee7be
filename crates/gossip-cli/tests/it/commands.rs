//! Every command: what it prints, and how it exits.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Place, token};

#[test]
fn exit_codes_say_whether_something_was_found() {
    let place = Place::with_a_token();
    // What was modified a moment ago is not trusted.
    std::thread::sleep(std::time::Duration::from_millis(2_200));
    place.run("scan TREE").exits(1).says("1 finding");
    place.run("scan TREE").exits(1).says("2 unchanged").says("1 finding");
    fs::remove_file(place.tree.join("config/app.env")).unwrap();
    place.run("scan TREE").exits(0).says("0 findings");
    place.run("findings").exits(0);
}

#[test]
fn text_names_the_place_and_hides_the_secret() {
    let place = Place::with_a_token();
    let ran = place.run("scan TREE").exits(1);
    let line = "config/app.env:1:14: github-token (critical, high confidence): ghp_… (40 bytes)";
    assert_eq!(ran.stdout, format!("{line}\n    GITHUB_TOKEN=ghp_…\n"));
}

#[test]
fn json_and_jsonl_are_well_formed_and_say_the_same() {
    let place = Place::with_a_token();
    let json = place.run("scan TREE --format json").exits(1).json();
    let jsonl = place.run("scan TREE --format jsonl").exits(1).jsonl();
    assert_eq!(json, jsonl);
    assert_eq!(json.len(), 1);
    let found = &json[0];
    assert_eq!(found["path"], "config/app.env");
    assert_eq!((found["line"].as_u64(), found["column"].as_u64()), (Some(1), Some(14)));
    assert_eq!((found["start"].as_u64(), found["length"].as_u64()), (Some(13), Some(40)));
    assert_eq!(found["secret"], "ghp_… (40 bytes)");
    assert_eq!(place.run("findings --format json").exits(1).json(), json);
}

#[test]
fn runs_and_show_keep_the_numbers_of_older_runs() {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    fs::remove_file(place.tree.join("config/app.env")).unwrap();
    place.run("scan TREE").exits(0);
    let runs = place.run("runs --format json").exits(0).json();
    assert_eq!(runs.len(), 2);
    assert_eq!((&runs[0]["findings"], &runs[0]["items"]), (&1.into(), &2.into()));
    assert_eq!((&runs[1]["findings"], &runs[1]["items"]), (&0.into(), &1.into()));
    assert_eq!(runs[0]["status"], "done");
    let mut shown = place.run("show 1 --format jsonl").exits(0).jsonl();
    let only_there =
        ["missed", "superseded_by"].map(|key| shown[0].as_object_mut().unwrap().remove(key));
    assert_eq!(only_there, [Some(Value::Array(Vec::new())), Some(2.into())]);
    assert_eq!(shown, runs[..1]);
    assert_eq!(place.run("runs").exits(0).stdout.lines().count(), 2);
    place.run("findings 1").exits(2).says("superseded by run 2");
    place.run("findings 2").exits(0);
}

#[test]
fn an_unknown_run_is_named() {
    let place = Place::with_a_token();
    place.run("findings").exits(2).says("there are no runs yet");
    for command in ["show 9", "findings 9", "resume 9", "cancel 9", "unpark 9"] {
        place.run(command).exits(2).says("there is no run 9");
    }
    place.run("scan TREE").exits(1);
    place.run("resume 1").exits(2).says("run 1 has ended");
    place.run("cancel 1").exits(2).says("run 1 is done: there is nothing to call off");
    place.run("unpark 1").exits(0).says("run 1 has no parked shards");
    assert_eq!(place.run("show 1 --format json").exits(0).json()[0]["status"], "done");
}

#[test]
fn what_cannot_work_is_said_in_one_line() {
    let place = Place::with_a_token();
    let one_line = |words: &str, part: &str| {
        let ran = place.run(words).exits(2).says(part);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert_eq!(ran.stdout, "");
    };
    one_line("scan /does/not/exist", "/does/not/exist: ");
    one_line("scan TREE --rules /does/not/exist.toml", "/does/not/exist.toml: ");
    one_line("scan TREE --show-secrets", "terminal only");
    one_line("rules test /does/not/exist", "/does/not/exist: ");

    let rules = place.path("bad.toml");
    fs::write(&rules, "[[rules]]\nid = \"mine\"\nregex = '''(unclosed'''\n").unwrap();
    one_line(&format!("scan TREE --rules {}", rules.display()), "bad.toml");
    one_line(&format!("rules list --rules {}", rules.display()), "mine");

    let file = place.path("a file");
    fs::write(&file, "").unwrap();
    let mut command = crate::support::gossip(&file);
    let output = command.arg("runs").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a file: not a directory"));
    place.run("no-such-command").exits(2);
}

#[test]
fn a_damaged_database_is_refused_and_left_alone() {
    let place = Place::with_a_token();
    fs::create_dir(&place.state).unwrap();
    let database = place.state.join("gossip.db");
    fs::write(&database, "this is somebody's diary").unwrap();
    for command in ["scan TREE", "runs", "doctor"] {
        place.run(command).exits(2).says("gossip.db");
    }
    assert_eq!(fs::read(&database).unwrap(), b"this is somebody's diary");
}

/// A limit on the size of files stands in for a disk: the writes fail in the same way.
#[test]
fn a_full_disk_is_reported_and_nothing_is_lost() {
    let place = Place::new();
    for number in 0..300 {
        place.write(&format!("{number}.env"), format!("GITHUB_TOKEN={}\n", token(number)));
    }
    let script = "trap '' XFSZ; ulimit -f 300; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_gossip"), "scan"]).arg(&place.tree);
    let output = command.env("GOSSIP_STATE_DIR", &place.state).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("gossip: ") && !stderr.contains("bug"), "{stderr}");
    let found = place.run("scan TREE --format jsonl").exits(1).jsonl();
    assert_eq!(found.len(), 300);
    place.run("doctor").exits(0);
}

#[test]
fn doctor_says_that_everything_is_in_order() {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    let ran = place.run("doctor").exits(0);
    assert!(ran.stdout.contains("in order"), "{ran:?}");
}

#[test]
fn rules_are_listed_and_tested() {
    let place = Place::with_a_token();
    let rules = place.run("rules list --format json").exits(0).json();
    assert!(rules.len() >= 60, "{}", rules.len());
    assert_eq!(place.run("rules list").exits(0).stdout.lines().count(), rules.len());

    let mine = place.path("mine.toml");
    fs::write(&mine, "[[rules]]\nid = \"mine\"\nregex = '''mine_[a-z]{8}'''\n").unwrap();
    let more = place.run(&format!("rules list --format jsonl --rules {}", mine.display()));
    assert_eq!(more.exits(0).jsonl().len(), rules.len() + 1);

    let test = |input: &str| {
        let mut child = place
            .command()
            .args(["rules", "test"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(test("nothing\n"), (Some(0), String::new()));
    let (code, found) = test(&format!("x\ny {}\n", token(2)));
    assert_eq!(code, Some(1));
    assert!(found.starts_with("2:3: github-") && found.contains("ghp_…"), "{found}");
    assert!(found.contains("(high confidence)"), "{found}");
}

#[test]
fn rules_of_the_user_are_scanned_with() {
    let place = Place::new();
    place.write("a.txt", "x = mine_abcdwxyz\n");
    let mine = place.path("mine.toml");
    fs::write(&mine, "[[rules]]\nid = \"mine\"\nregex = '''mine_[a-z]{8}'''\n").unwrap();
    let ran = place.run(&format!("scan TREE --rules {} --format json", mine.display()));
    let found = ran.exits(1).json();
    assert_eq!((found.len(), &found[0]["rule"]), (1, &"mine".into()));
    place.run("scan TREE").exits(0);
}

#[test]
fn one_file_can_be_scanned_and_gitignore_is_another_target() {
    let place = Place::with_a_token();
    place.write(".gitignore", "config/\n");
    let file = place.tree.join("config/app.env");
    place.run(&format!("scan {}", file.display())).exits(1);
    place.run("scan TREE").exits(1);
    place.run("scan TREE --gitignore").exits(0).says("ignored");
    place.run("scan TREE").exits(1);
}

#[test]
fn help_of_every_command_exits_with_success() {
    let place = Place::new();
    for command in [
        "",
        "scan",
        "resume",
        "runs",
        "runs prune",
        "show",
        "findings",
        "cancel",
        "unpark",
        "rules",
        "rules list",
        "rules test",
        "rules check",
        "config check",
        "baseline",
        "explain",
        "proof verify",
        "hook install",
        "completions",
        "man",
        "doctor",
    ] {
        let ran = place.run(&format!("{command} --help")).exits(0);
        assert!(ran.stdout.contains("Usage: gossip"), "{ran:?}");
    }
    place.run("--version").exits(0);
    assert!(!place.state.exists(), "help remembers nothing");
}

#[test]
fn an_interrupted_scan_says_so_and_the_same_command_goes_on() {
    let place = Place::with_a_token();
    for number in 0..200 {
        place.write(&format!("many/{number}.txt"), "some words\n".repeat(20_000));
    }
    let mut child = place
        .command()
        .args(["scan", "-q", "-j", "2"])
        .arg(&place.tree)
        .arg("--read-log")
        .arg(place.path("trace"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has begun to read.
    while fs::metadata(place.path("trace")).map_or(0, |trace| trace.len()) < 200 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let pid = child.id().to_string();
    // The shell's own: a bare machine has no program of that name.
    let mut kill = std::process::Command::new("sh");
    assert!(kill.args(["-c", "kill -INT \"$0\"", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("interrupted; the same command goes on"), "{stderr}");
    // What it has found so far is not all that there is.
    place.run("findings").exits(2).says("is active: it has not scanned everything");
    let baseline = format!("baseline -o {}", place.path("b.json").display());
    place.run(&baseline).exits(2).says("finish it first");
    assert!(!place.path("b.json").exists());
    let runs = place.run("runs --format json").exits(0).json();
    assert_eq!(runs[0]["status"], "active");
    let mine = place.path("mine.toml");
    fs::write(&mine, "[[rules]]\nid = \"mine\"\nregex = '''mine_[a-z]{8}'''\n").unwrap();
    place.run(&format!("resume 1 --rules {}", mine.display())).exits(2).says("with other rules");
    // Nothing is proposed that nobody asked for.
    let ran = place.run(&format!("resume 1 --rules {}", mine.display())).exits(2);
    assert!(!ran.stderr.contains("--binary"), "{ran:?}");
    place.run("resume 1").exits(1).says("went on with run 1").says("202 items");
}
