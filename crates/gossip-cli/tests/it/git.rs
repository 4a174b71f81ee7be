//! Repositories: their history, beside their files or alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::kill::kill;
use crate::support::{Place, Ran, gossip, token};

pub(crate) fn git(at: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(at)
        .args(["-c", "gc.auto=0", "-c", "user.name=A. U. Thor", "-c", "user.email=a@example.com"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", at)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository whose second commit takes a token out of `app.env` that the first put in.
fn with_a_removed_token() -> Place {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    place.write("app.env", format!("GITHUB_TOKEN={}\n", token(1)));
    commit(&place, "first");
    place.write("app.env", "GITHUB_TOKEN=\n");
    commit(&place, "second");
    place
}

/// Everything in the work tree as a commit; its name.
pub(crate) fn commit(place: &Place, message: &str) -> String {
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "--allow-empty", "-m", message]);
    git(&place.tree, &["rev-parse", "HEAD"])
}

/// A repository without a commit.
pub(crate) fn repository() -> Place {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    place
}

/// Path, start and rule of what was found, in order.
fn found(ran: &Ran) -> Vec<(String, u64, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let place =
        |row: &Value| (text(&row["path"]), row["start"].as_u64().unwrap(), text(&row["rule"]));
    let mut found: Vec<_> = ran.json().iter().map(place).collect();
    found.sort();
    found
}

fn paths(ran: &Ran) -> Vec<String> {
    found(ran).into_iter().map(|(path, ..)| path).collect()
}

#[test]
fn a_token_that_a_later_commit_took_out_is_found_in_the_history() {
    let place = with_a_removed_token();
    let ran = place.run("scan --format json TREE").exits(1);
    assert_eq!(paths(&ran), ["app.env"]);
    place.run("scan --format json --no-history TREE").exits(0);
    assert_eq!(paths(&place.run("scan --format json --only-history TREE").exits(1)), ["app.env"]);
    assert_eq!(paths(&place.run("scan --format json --since HEAD~1 TREE").exits(0)), [""; 0]);
    assert_eq!(paths(&place.run("scan --format json --branch HEAD~1 TREE").exits(1)), ["app.env"]);
    place.run("scan --since no-such-thing TREE").exits(2).says("no-such-thing");
}

#[test]
fn files_and_history_are_shown_as_seen_from_where_the_command_runs() {
    let place = with_a_removed_token();
    place.write("now.env", format!("GITHUB_TOKEN={}\n", token(2)));
    let mut command = place.command();
    let above = place.tree.parent().unwrap();
    command.current_dir(above).args(["scan", "--format", "json", "tree"]);
    let ran = Ran::of(command.output().unwrap(), "scan tree").exits(1);
    assert_eq!(paths(&ran), ["tree/app.env", "tree/now.env"]);
}

#[test]
fn who_starts_over_reads_the_whole_history_again_also_after_a_scan_that_had_nothing_to_read() {
    let place = with_a_removed_token();
    for options in ["", "", "--fresh", "", "--fresh"] {
        let ran = place.run(&format!("scan --format json --only-history {options} TREE")).exits(1);
        assert_eq!(paths(&ran), ["app.env"]);
    }
}

#[test]
fn several_repositories_in_one_scan_are_each_scanned_with_their_history() {
    let places = [1, 2, 3].map(|seed| {
        let place = Place::new();
        git(&place.tree, &["init", "-q", "-b", "main"]);
        place.write("app.env", format!("GITHUB_TOKEN={}\n", token(seed)));
        commit(&place, "first");
        git(&place.tree, &["rm", "-q", "app.env"]);
        commit(&place, "second");
        place
    });
    let [first, others @ ..] = &places;
    let others: Vec<String> = others.iter().map(|place| place.tree.display().to_string()).collect();
    let scan = format!("scan --format json --only-history TREE {}", others.join(" "));
    for _ in 0..2 {
        let ran = first.run(&scan).exits(1);
        assert_eq!(found(&ran).len(), 3, "{ran:?}");
    }
    let ran = first.run(&format!("{scan} --fresh")).exits(1);
    assert_eq!(found(&ran).len(), 3, "{ran:?}");
    // What is staged in each.
    for place in &places {
        place.write("new.env", format!("GITHUB_TOKEN={}\n", token(9)));
        git(&place.tree, &["add", "-A"]);
    }
    let ran = first.run(&scan.replace("--only-history", "--staged")).exits(1);
    assert_eq!(found(&ran).len(), 3, "{ran:?}");
}

#[test]
fn patterns_of_paths_count_for_the_history_too() {
    let place = with_a_removed_token();
    for scope in ["", "--only-history "] {
        let scan = |filter: &str| place.run(&format!("scan --format json {scope}{filter} TREE"));
        assert_eq!(paths(&scan("--exclude *.txt").exits(1)), ["app.env"]);
        assert_eq!(paths(&scan("--include /app.env").exits(1)), ["app.env"]);
        assert_eq!(paths(&scan("--exclude /app.env").exits(0)), [""; 0]);
        assert_eq!(paths(&scan("--include *.txt").exits(0)), [""; 0]);
    }
}

/// A blob is left out only where all its paths are.
#[test]
fn a_pattern_of_one_path_of_a_blob_does_not_hide_its_other_paths() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let secret = format!("GITHUB_TOKEN={}\n", token(1));
    place.write("vendor/x.env", &secret);
    commit(&place, "first");
    let scan = |words: &str| place.run(&format!("scan --format json --only-history {words} TREE"));
    let filters = ["--exclude vendor/", "--include src/"];
    for filter in filters {
        scan(filter).exits(0);
    }
    place.write("src/x.env", &secret);
    commit(&place, "second");
    let second = git(&place.tree, &["rev-parse", "HEAD"]);
    // Both after a run that left the blob out, and by itself.
    let other = Place::with_state(&place, "other");
    for place in [&place, &other] {
        for filter in filters {
            let words = format!("scan --format json --only-history {filter} TREE");
            let ran = place.run(&words).exits(1);
            assert_eq!(paths(&ran), ["src/x.env"], "{filter}");
            assert_eq!(ran.json()[0]["commit"], *second, "{filter}");
        }
    }
    // Beside the files, and named from another directory.
    let ran = place.run("scan --format json --exclude vendor/ TREE").exits(1);
    assert_eq!(paths(&ran), ["src/x.env"]);
    // An ignore file names paths, too.
    place.write(".gossipignore", "vendor/\n");
    let ran = scan("").exits(1);
    assert_eq!(paths(&ran), ["src/x.env"]);
    place.write(".gossipignore", "vendor/\nsrc/\n");
    scan("").exits(0).says("not reported: 1 by");
    place.write(".gossipignore", "vendor/x.env:github-token:1\n");
    assert_eq!(paths(&scan("").exits(1)), ["src/x.env"]);
}

#[test]
fn a_directory_with_a_broken_repository_says_how_its_files_are_scanned() {
    let place = Place::new();
    fs::create_dir(place.tree.join(".git")).unwrap();
    place.write("app.env", format!("GITHUB_TOKEN={}\n", token(1)));
    place.run("scan TREE").exits(2).says("--no-history");
    assert_eq!(paths(&place.run("scan --format json --no-history TREE").exits(1)), ["app.env"]);
}

/// The fourth run once failed: the manifest of the first was removed by the third, and again by it.
#[test]
fn a_repository_is_scanned_any_number_of_times() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    for number in 0..6 {
        place.run("scan TREE").exits(0);
        place.write("file", format!("{number}"));
    }
}

/// Whoever reads a report in whatever format can tell which commit to look at, and whom to ask.
#[test]
fn every_report_says_which_commit_brought_a_secret_in() {
    let place = with_a_removed_token();
    let commit = git(&place.tree, &["rev-parse", "HEAD~1"]);
    let seconds: u64 = git(&place.tree, &["log", "-1", "--format=%at", &commit]).parse().unwrap();
    // The hour of the day is enough to tell times in UTC from others.
    let date = format!("T{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    place.run("scan --only-history -q TREE").exits(1);
    for format in ["text", "json", "jsonl", "sarif", "csv", "junit", "gitlab", "html"] {
        let ran = place.run(&format!("findings --format {format}")).exits(1);
        // Angle brackets are markup in some of them.
        for part in [&commit, "A. U. Thor", "a@example.com", &date] {
            assert!(ran.stdout.contains(part), "{format} lacks {part}: {}", ran.stdout);
        }
    }
}

#[test]
fn messages_of_commits_and_tags_are_scanned() {
    let place = with_a_removed_token();
    let message = format!("deploy with {}", token(2));
    git(&place.tree, &["commit", "-q", "--allow-empty", "-m", &message]);
    let message = format!("signed with {}", token(3));
    git(&place.tree, &["tag", "-a", "-m", &message, "v1"]);
    let ran = place.run("scan --format json --only-history TREE").exits(1);
    let id = |of: &str| git(&place.tree, &["rev-parse", of]);
    let [commit, tag] = [id("HEAD"), id("v1")];
    let messages = [format!("commit message of {commit}"), format!("tag message of {tag}")];
    assert_eq!(paths(&ran), ["app.env", &messages[0], &messages[1]]);
}

#[test]
fn hooks_scan_what_is_staged_or_what_a_branch_changed() {
    let place = with_a_removed_token();
    place.write("new.env", format!("GITHUB_TOKEN={}\n", token(2)));
    place.run("scan --staged TREE").exits(0);
    git(&place.tree, &["add", "new.env"]);
    place.write("new.env", "taken out again, but not in the index\n");
    assert_eq!(paths(&place.run("scan --format json --staged TREE").exits(1)), ["new.env"]);
    git(&place.tree, &["commit", "-q", "-m", "third"]);
    assert_eq!(paths(&place.run("scan --format json --diff HEAD~1 TREE").exits(1)), ["new.env"]);
    place.run("scan --diff HEAD TREE").exits(0);
    place.run("scan --staged --diff HEAD TREE").exits(2);
    fs::create_dir(place.path("plain")).unwrap();
    let mut command = gossip(&place.state);
    command.args(["scan", "--staged"]).arg(place.path("plain"));
    Ran::of(command.output().unwrap(), "").exits(2).says("not a git repository");
}

#[test]
fn a_later_scan_reads_only_what_is_new_and_reports_everything() {
    let place = with_a_removed_token();
    let scan = "scan --format json --only-history TREE";
    let first = place.run(scan).exits(1);
    let ids = |ran: &Ran| -> BTreeSet<String> {
        ran.json().iter().map(|row| row["finding"].as_str().unwrap().to_owned()).collect()
    };
    let trace = place.path("trace");
    let read = |words: &str| {
        fs::remove_file(&trace).ok();
        let ran = place.run(&format!("{words} --read-log {}", trace.display())).exits(1);
        (ran, fs::read_to_string(&trace).unwrap_or_default().lines().count())
    };
    let (second, reads) = read(scan);
    assert_eq!((ids(&second), reads), (ids(&first), 0));
    place.write("other.env", format!("GITHUB_TOKEN={}\n", token(2)));
    commit(&place, "third");
    git(&place.tree, &["gc", "-q"]);
    let (third, reads) = read(scan);
    assert_eq!(paths(&third), ["app.env", "other.env"]);
    assert!(ids(&third).is_superset(&ids(&first)), "findings keep their ids");
    // The file and the message, each to its end.
    assert!(reads <= 4, "{reads} reads");
    // A run that trusts nothing reads and finds the same.
    let (fresh, _) = read(&format!("{scan} --fresh"));
    assert_eq!(ids(&fresh), ids(&third));
    assert_eq!(fresh.json().len(), 2);
}

#[test]
fn a_key_that_is_allowed_at_one_path_is_still_found_at_another() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let secret = format!("GITHUB_TOKEN={}\n", token(1));
    place.write("test/k.pem", &secret);
    commit(&place, "first");
    place.write("prod/k.pem", &secret);
    commit(&place, "second");
    let rules = place.path("rules.toml");
    fs::write(&rules, "[allowlist]\npaths = ['''^test/''']\n").unwrap();
    let words = format!("scan --format json --only-history --rules {} TREE", rules.display());
    assert_eq!(paths(&place.run(&words).exits(1)), ["prod/k.pem"]);
}

/// Commits a tree of `levels` levels, each of which holds the one below it twice, and beside it the files
/// of the last commit. The deepest holds the file `leaf`.
fn commit_doubled(place: &Place, levels: u32, leaf: &str) {
    let make = |listing: &str| {
        fs::write(place.path("listing"), listing).unwrap();
        let output = Command::new("git")
            .current_dir(&place.tree)
            .arg("mktree")
            .stdin(fs::File::open(place.path("listing")).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let blob = git(&place.tree, &["hash-object", "-w", leaf]);
    let mut tree = make(&format!("100644 blob {blob}\tleaf\n"));
    for _ in 0..levels {
        tree = make(&format!("040000 tree {tree}\ta\n040000 tree {tree}\tb\n"));
    }
    let files = git(&place.tree, &["ls-tree", "HEAD"]);
    let root = make(&format!("{files}\n040000 tree {tree}\tdoubled\n"));
    let commit = git(&place.tree, &["commit-tree", "-p", "HEAD", "-m", "doubled", &root]);
    git(&place.tree, &["reset", "-q", "--soft", &commit]);
}

/// However many paths there are before it, a path that rules tell apart from an object's others is
/// found; and if there are more than are walked, that is a failure.
#[test]
fn directories_that_hold_each_other_many_times_hide_nothing() {
    for (levels, code, filter) in [(16, 1, ""), (24, 2, "--exclude doubled/")] {
        let place = Place::new();
        git(&place.tree, &["init", "-q", "-b", "main"]);
        let secret = format!("GITHUB_TOKEN={}\n", token(1));
        place.write("test/keys/k.env", &secret);
        place.write("leaf", "nothing");
        commit(&place, "first");
        commit_doubled(&place, levels, "leaf");
        place.write("prod/keys/k.env", &secret);
        commit(&place, "second");
        let rules = place.path("rules.toml");
        fs::write(&rules, "[allowlist]\npaths = ['''^test/''']\n").unwrap();
        let rules = format!("--rules {}", rules.display());
        let ran = place.run(&format!("scan --format json --only-history {rules} {filter} TREE"));
        let ran = ran.exits(code);
        assert_eq!(paths(&ran), ["prod/keys/k.env"], "{levels}");
        assert_eq!(ran.stderr.contains("1 too many paths"), code == 2, "{ran:?}");
    }
}

/// All paths with every finding once took 24 MB here, and all memory with a few more of either.
#[test]
fn a_blob_with_many_paths_and_many_findings_names_some_of_its_paths_once() {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let lines: Vec<String> = (0..200).map(|seed| format!("T{seed}={}\n", token(seed))).collect();
    place.write("leaf", lines.concat());
    commit(&place, "first");
    commit_doubled(&place, 12, "leaf");
    let ran = place.run("scan --format json --only-history TREE").exits(1);
    let found = ran.json();
    assert_eq!(found.len(), 200);
    for row in &found {
        assert_eq!(row["path"], "leaf");
        let others = row["other_paths"].as_array().unwrap().len() as u64;
        assert_eq!((others, row["more_paths"].as_u64()), (100, Some((1 << 12) - 100)));
    }
    place.run("findings").exits(1).prints("and 4093 more");
    let files = fs::read_dir(&place.state).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    let bytes: u64 = files.filter(fs::Metadata::is_file).map(|file| file.len()).sum();
    assert!(bytes < 8 << 20, "{bytes}");
    // What is not named may be anywhere.
    place.write(".gossipignore", "doubled/\nleaf\n");
    place.run("findings").exits(1);
}

/// Blobs written out as files have the findings that the repository has.
#[test]
fn a_repository_has_the_findings_of_its_blobs_as_files() {
    let place = history(60);
    git(&place.tree, &["gc", "-q"]);
    let blobs = place.path("blobs");
    fs::create_dir(&blobs).unwrap();
    for line in git(&place.tree, &["rev-list", "--all", "--objects"]).lines() {
        let Some((id, path)) = line.split_once(' ') else { continue };
        if git(&place.tree, &["cat-file", "-t", id]) == "blob" {
            let output = Command::new("git")
                .current_dir(&place.tree)
                .args(["cat-file", "blob", id])
                .output();
            let name = Path::new(path).file_name().unwrap().to_str().unwrap();
            fs::create_dir(blobs.join(id)).unwrap();
            fs::write(blobs.join(id).join(name), output.unwrap().stdout).unwrap();
        }
    }
    let mut command = gossip(&place.path("other state"));
    command.args(["scan", "--format", "json"]).arg(&blobs);
    let as_files = Ran::of(command.output().unwrap(), "blobs").exits(1);
    let as_history = place.run("scan --format json --only-history --all-versions TREE").exits(1);
    let places = |ran: &Ran| {
        let mut places: Vec<_> = found(ran)
            .into_iter()
            .map(|(path, start, rule)| (path.rsplit('/').next().unwrap().to_owned(), start, rule))
            .collect();
        places.sort();
        places
    };
    assert_eq!(places(&as_files), places(&as_history));
    assert!(as_files.json().len() > 30);
}

/// Commits that edit, move and copy files with tokens in them.
pub(crate) fn history(commits: u64) -> Place {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    for number in 0..commits {
        let file = number % 7;
        let filler = format!("line of commit {number}\n").repeat(400);
        place.write(
            &format!("dir{}/f{file}.txt", number % 3),
            format!("{filler}{}\n", token(number)),
        );
        if number % 5 == 4 {
            fs::rename(place.tree.join("dir0"), place.tree.join("dir9")).ok();
        }
        commit(&place, &format!("commit {number}"));
    }
    place
}

#[test]
fn a_manifest_that_is_damaged_is_planned_anew() {
    let place = history(10);
    let scan = "scan --format json --only-history TREE";
    let expected = place.run(scan).exits(1);
    // A run that is interrupted before anything is done, and loses its manifest.
    let attempt = Place::with_state(&place, "damaged");
    let mut command = attempt.command();
    command.args(["scan", "--only-history", "--no-progress", "--checkpoint-items=1"]);
    command.arg(&place.tree).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // Each repository has a directory of its own.
    let manifest = || {
        let repositories = fs::read_dir(attempt.state.join("git")).into_iter().flatten();
        let paths = repositories.map(|entry| entry.unwrap().path().join("1.manifest"));
        paths.into_iter().find(|path| path.exists())
    };
    while manifest().is_none() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    kill(&mut child);
    fs::write(manifest().unwrap(), b"damaged").unwrap();
    let ran = attempt.run(scan).exits(1);
    assert_eq!(found(&ran), found(&expected));
}

/// That a blob cannot be read does not say that what was found in it is gone, however often it fails.
#[test]
fn what_was_found_in_a_blob_that_cannot_be_read_any_more_stays_in_the_report() {
    let place = with_a_removed_token();
    let scan = |options: &str, code| {
        let ran =
            place.run(&format!("scan --format json --only-history {options} TREE")).exits(code);
        assert_eq!(paths(&ran), ["app.env"], "{ran:?}");
        ran
    };
    scan("", 1);
    let blob = git(&place.tree, &["rev-parse", "HEAD~1:app.env"]);
    let object = place.tree.join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..]));
    let bytes = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    for options in ["--fresh", "", "", "--fresh"] {
        let ran = scan(options, 2).says("could not be read: 1 vanished");
        assert_eq!(ran.json()[0]["first_seen"], 1);
    }
    // Damaged, and then as it was.
    fs::write(&object, &bytes[..bytes.len() / 2]).unwrap();
    scan("", 2);
    fs::write(&object, bytes).unwrap();
    let ran = scan("", 1);
    assert_eq!(ran.json()[0]["versions"], 1);
    scan("--fresh", 1);
}

#[test]
fn what_is_missing_is_said_and_the_rest_is_found() {
    let place = with_a_removed_token();
    let blob = git(&place.tree, &["rev-parse", "HEAD:app.env"]);
    fs::remove_file(place.tree.join(format!(".git/objects/{}/{}", &blob[..2], &blob[2..])))
        .unwrap();
    let ran = place.run("scan --only-history TREE").exits(2).says("could not be read: 1 vanished");
    assert!(ran.stdout.contains("app.env"));
    git(&place.tree, &["hash-object", "-w", "app.env"]);
    place.run("scan --only-history TREE").exits(1);
}
