//! `gossip runs prune`: what it deletes, and all that it must not.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::Value;

use super::support::{Place, Ran, gossip, token};

/// Three scans: the first finds one secret, the second another beside it, the third the same two.
fn scanned_three_times() -> Place {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    place.write("second.env", format!("TOKEN={}\n", token(2)));
    place.run("scan TREE").exits(1);
    place.run("scan TREE").exits(1);
    place
}

fn numbers(runs: &[Value]) -> Vec<u64> {
    runs.iter().map(|run| run["run"].as_u64().unwrap()).collect()
}

fn runs(place: &Place) -> Vec<u64> {
    numbers(&place.run("runs --format json").exits(0).json())
}

#[test]
fn runs_are_shown_first_and_deleted_when_told() {
    let place = scanned_three_times();
    let shown = place.run("runs prune --format json").exits(0).says("2 runs would be deleted");
    assert_eq!(numbers(&shown.json()), [1, 2]);
    assert_eq!(runs(&place), [1, 2, 3], "nothing is deleted unless told");
    let deleted = place.run("runs prune --yes --format json").exits(0).says("deleted 2 runs");
    assert_eq!(deleted.json(), shown.json());
    assert_eq!(runs(&place), [3]);
    place.run("runs prune --yes").exits(0).says("deleted 0 runs");
    place.run("show 1").exits(2).says("there is no run 1");
    place.run("findings 1").exits(2).says("there is no run 1");
    place.run("doctor").exits(0);
}

#[test]
fn nothing_that_was_found_or_read_is_forgotten() {
    let place = scanned_three_times();
    // A file is not trusted within two seconds of its last change, and would be read again anyhow.
    std::thread::sleep(Duration::from_millis(2_100));
    place.run("scan TREE").exits(1);
    let findings = place.run("findings --format json").exits(1).json();
    assert_eq!(findings.len(), 2);
    let new = place.run("findings --new-since 1 --format json").exits(1).json();
    assert_eq!(new.len(), 1);
    place.run("runs prune --yes").exits(0).says("deleted 3 runs");
    assert_eq!(place.run("findings --format json").exits(1).json(), findings);
    assert_eq!(place.run("findings --new-since 1 --format json").exits(1).json(), new);
    place.run("findings --new-since 5").exits(2).says("there is no run 5");
    place.run("findings --new-since 0").exits(2).says("there is no run 0");
    // The next scan reads nothing again, and its number is new.
    let log = place.path("reads");
    place.run(&format!("scan TREE --read-log {}", log.display())).exits(1);
    assert_eq!(fs::read(&log).unwrap_or_default(), b"");
    assert_eq!(runs(&place), [4, 5]);
    assert_eq!(place.run("findings --format json").exits(1).json(), findings);
}

#[test]
fn the_newest_and_the_young_stay_when_asked() {
    let place = scanned_three_times();
    place.run("runs prune --yes --older-than 1h").exits(0).says("deleted 0 runs");
    place.run("runs prune --yes --keep 3").exits(0).says("deleted 0 runs");
    place.run("runs prune --yes --keep 2 --older-than 0s").exits(0).says("deleted 1 run");
    assert_eq!(runs(&place), [2, 3]);
    for age in ["1", "h", "1y", "-1d", "99999999999999999999w", "9999999999999999999w"] {
        place.run(&format!("runs prune --older-than={age}")).exits(2);
    }
    assert_eq!(runs(&place), [2, 3]);
}

#[test]
fn the_newest_run_of_every_target_and_policy_stays() {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    place.run("scan TREE --only-rule aws-access-key-id").exits(0);
    place.run("scan config").exits(1);
    place.run("runs prune --yes").exits(0).says("deleted 0 runs");
    assert_eq!(runs(&place), [1, 2, 3]);
}

/// Every change of the rules begins a memory of its own; those of old rules need not stay for ever.
#[test]
fn what_was_remembered_under_other_rules_goes_when_told() {
    let place = Place::with_a_token();
    std::thread::sleep(Duration::from_millis(2_100));
    let log = place.path("reads");
    let scan = |words: &str| {
        let _ = fs::remove_file(&log);
        place.run(&format!("scan TREE --read-log {} {words}", log.display()));
        fs::read_to_string(&log).unwrap_or_default().lines().count()
    };
    assert_eq!((scan("--only-rule aws-access-key-id"), scan("")), (2, 2));
    assert_eq!((scan("--only-rule aws-access-key-id"), scan("")), (0, 0));
    place.run("runs prune").exits(0).says("2 runs would be deleted");
    let shown = place.run("runs prune --other-rules --format json").exits(0).json();
    assert_eq!(numbers(&shown), [1, 2, 3]);
    let findings = place.run("findings --format json").exits(1).json();
    assert_eq!(scan("--only-rule aws-access-key-id"), 0, "listing them forgets nothing");
    assert_eq!(scan(""), 0);
    place.run("runs prune --other-rules --yes").exits(0).says("deleted 5 runs");
    assert_eq!(runs(&place), [6]);
    assert_eq!(place.run("findings --format json").exits(1).json(), findings);
    place.run("doctor").exits(0);
    assert_eq!(scan(""), 0, "what the newest rules need not read again stays");
    assert_eq!(scan("--only-rule aws-access-key-id"), 2, "what others would not is forgotten");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs are deleted in two steps each, and what they remembered in many.
#[test]
fn a_prune_of_other_rules_killed_at_any_moment_is_finished_by_the_next() {
    const KILLS: u32 = 10;
    let place = Place::with_a_token();
    for number in 0..150 {
        place.write(&format!("many/{number}.txt"), "text\n");
    }
    for rule in ["aws-access-key-id", "gitlab-token", "slack-bot-token"] {
        place.run(&format!("scan TREE --only-rule {rule}")).exits(0);
    }
    place.run("scan TREE").exits(1);
    place.run("scan TREE").exits(1);
    let findings = place.run("findings --format json").exits(1).json();
    let words = ["runs", "prune", "--other-rules", "--yes"];
    let run = |state: &Path, words: &[&str]| {
        let mut command = gossip(state);
        let output = command.current_dir(&place.tree).args(words).output();
        Ran::of(output.unwrap(), &words.join(" "))
    };
    let state = |number: u32| place.path(&format!("state{number}"));
    let began = Instant::now();
    copy(&place.state, &state(0));
    run(&state(0), &words).exits(0).says("deleted 4 runs");
    let takes = began.elapsed();
    for kill in 1..=KILLS {
        let state = state(kill);
        copy(&place.state, &state);
        let mut command = gossip(&state);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        std::thread::sleep(takes * kill / KILLS);
        // It may have ended before.
        let _ = process.kill();
        process.wait().unwrap();
        run(&state, &words).exits(0);
        assert_eq!(numbers(&run(&state, &["runs", "--format", "json"]).json()), [5]);
        assert_eq!(run(&state, &["findings", "--format", "json"]).exits(1).json(), findings);
        run(&state, &["doctor"]).exits(0);
        run(&state, &words).exits(0).says("deleted 0 runs");
        let left = "SELECT count(DISTINCT scope) FROM scan_ledger";
        let database = Connection::open(state.join("gossip.db")).unwrap();
        let left: i64 = database.query_row(left, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 1, "only what the newest rules remember");
    }
}
