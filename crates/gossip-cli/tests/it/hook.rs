//! `gossip hook install`, with commits that git makes.

use std::fs;
use std::process::{Command, Output};

use crate::support::{Place, path_with_gossip, token};

/// A repository with the hook and one commit of `kept.txt`.
struct Hooked(Place);

impl Hooked {
    fn new() -> Self {
        let hooked = Self(Place::new());
        hooked.0.run("hook install").exits(2).says("no git repository");
        hooked.git("init -q -b main");
        hooked.0.run("hook install").exits(0).says("scans before every commit");
        hooked.0.run("hook install").exits(0);
        hooked.0.write("kept.txt", "nothing\n");
        hooked.git("add .");
        hooked.git("commit -q -m first");
        hooked
    }

    fn command(&self, words: &str) -> Output {
        let mut command = Command::new("git");
        command.args(words.split(' '));
        self.run(command)
    }

    fn run(&self, mut command: Command) -> Output {
        command.current_dir(&self.0.tree);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GOSSIP_STATE_DIR", &self.0.state);
        command.envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")]);
        command.envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")]);
        command.env("PATH", path_with_gossip());
        command.output().unwrap()
    }

    #[track_caller]
    fn git(&self, words: &str) -> String {
        let output = self.command(words);
        assert!(output.status.success(), "git {words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The commit does not come about, and git shows on standard error what the hook printed.
    #[track_caller]
    fn refuses(&self, words: &str, place: &str) {
        let output = self.command(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(place), "git {words}: {output:?}");
    }

    fn plant(&self, path: &str, seed: u64) {
        self.0.write(path, format!("T={}\n", token(seed)));
    }
}

#[test]
fn a_commit_that_brings_a_token_is_refused_until_it_is_taken_out() {
    let hooked = Hooked::new();
    hooked.plant("app.env", 1);
    hooked.git("add .");
    hooked.refuses("commit -q -m second", "app.env:1:3: github-token");
    hooked.refuses("commit -q -m second", "app.env:1:3: github-token");
    hooked.0.write("app.env", "T=\n");
    hooked.refuses("commit -q -m second", "app.env:1:3: github-token");
    hooked.git("add .");
    hooked.git("commit -q -m second");
}

#[test]
fn what_a_commit_does_not_bring_does_not_stop_it() {
    let hooked = Hooked::new();
    // In the history, in a file that is not tracked, and in one that is not staged.
    hooked.plant("old.env", 1);
    hooked.git("add .");
    hooked.git("commit -q --no-verify -m known");
    hooked.plant("untracked.env", 2);
    hooked.plant("kept.txt", 3);
    hooked.0.write("new.txt", "nothing\n");
    hooked.git("add new.txt");
    hooked.git("commit -q -m third");
    hooked.git("rm -q --cached old.env");
    hooked.git("commit -q -m fourth");
    // The hook was there all along.
    hooked.git("add untracked.env");
    hooked.refuses("commit -q -m fifth", "untracked.env:1:3: github-token");
}

/// Who changes a file with a known secret in it elsewhere need not be told of it at every commit.
#[test]
fn a_secret_that_a_file_had_before_does_not_stop_a_commit_and_a_new_one_does() {
    let hooked = Hooked::new();
    let (old, new) = (token(1), token(2));
    let scan = |words: &str, code| hooked.0.run(&format!("scan {words} TREE -f jsonl")).exits(code);
    hooked.0.write("app.env", format!("OLD={old}\n"));
    // The same content at a path that did not have it is new there.
    hooked.0.write("copy.env", format!("OTHER={}\n", token(3)));
    hooked.git("add .");
    hooked.git("commit -q --no-verify -m known");
    hooked.0.write("app.env", format!("# a comment\nRENAMED={old}\n"));
    hooked.git("add .");
    scan("--staged", 0);
    let ran = hooked.0.run("scan --staged TREE").exits(0);
    assert_eq!(ran.finding_lines(), [""; 0]);
    let ran = ran.says("1 was there before; `gossip scan` shows it").says(", 0 findings");
    assert!(!ran.stderr.contains("not reported"), "{ran:?}");
    hooked.git("commit -q -m comment");

    hooked.0.write("app.env", format!("# a comment\nRENAMED={old}\nNEW={new}\n"));
    hooked.0.write("copy.env", format!("OTHER={}\nRENAMED={old}\n", token(3)));
    hooked.git("add .");
    hooked.refuses("commit -q -m second", "app.env:3:5: github-token");
    let lines: Vec<_> = scan("--staged", 1).jsonl();
    let places: Vec<_> =
        lines.iter().map(|row| (row["path"].as_str().unwrap(), &row["line"])).collect();
    assert_eq!(places, [("app.env", &3.into()), ("copy.env", &2.into())]);

    hooked.git("commit -q --no-verify -m second");
    // `--diff` goes by the revision that it is given, whatever is between.
    let places = |revision: &str, code| scan(&format!("--diff {revision}"), code).jsonl().len();
    assert_eq!((places("HEAD", 0), places("HEAD~1", 1), places("HEAD~2", 1)), (0, 2, 2));
    assert_eq!(places("HEAD~3", 1), 4);
    let proof = hooked.0.path("proof");
    hooked.0.run(&format!("scan --diff HEAD~1 TREE --proof {}", proof.display())).exits(1);
    hooked
        .0
        .run(&format!("proof verify {}", proof.display()))
        .exits(0)
        .prints("2 findings, 2 there before");
    assert_eq!(hooked.0.run("scan --no-history TREE -f jsonl").exits(1).jsonl().len(), 4);
}

/// git makes such a commit from an index of its own, and tells its hooks which.
#[test]
fn commits_of_all_or_of_some_files_are_scanned_as_what_they_bring() {
    let hooked = Hooked::new();
    hooked.plant("kept.txt", 1);
    hooked.refuses("commit -q -a -m all", "kept.txt:1:3: github-token");
    hooked.refuses("commit -q -m some kept.txt", "kept.txt:1:3: github-token");
    // Of two files one is clean, and only that is committed.
    hooked.plant("staged.env", 2);
    hooked.git("add staged.env");
    hooked.0.write("kept.txt", "still nothing\n");
    hooked.git("commit -q -m some kept.txt");
    hooked.refuses("commit -q -m rest", "staged.env:1:3: github-token");
    // From a directory below, and in a second work tree.
    fs::create_dir(hooked.0.tree.join("below")).unwrap();
    hooked.refuses("-C below commit -q -m rest", "staged.env:1:3: github-token");
    let other = hooked.0.path("other");
    hooked.git(&format!("worktree add -q {}", other.display()));
    fs::write(other.join("kept.txt"), format!("T={}\n", token(3))).unwrap();
    let other = format!("-C {}", other.display());
    hooked.refuses(&format!("{other} commit -q -a -m other"), "kept.txt:1:3: github-token");
}

/// What is staged by then is not what the scan that was killed began with.
#[test]
fn a_scan_after_one_that_was_killed_reads_what_is_staged_now() {
    let hooked = Hooked::new();
    hooked.0.write("kept.txt", "clean ".repeat(200_000));
    hooked.git("add .");
    let mut command = hooked.0.command();
    command.args(["scan", "--staged", "--no-progress", "--checkpoint-bytes=1", "."]);
    let mut child = command.spawn().unwrap();
    let manifests = hooked.0.state.join("git");
    let has_manifest = || {
        let files = fs::read_dir(&manifests).into_iter().flatten().flatten();
        files.map(|file| file.path()).filter(|path| path.ends_with("2.manifest")).count() > 0
    };
    while !has_manifest() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    crate::kill::kill(&mut child);
    hooked.plant("app.env", 1);
    hooked.git("add .");
    hooked.refuses("commit -q -m second", "app.env:1:3: github-token");
}

#[test]
fn a_hook_of_somebody_else_is_left_alone() {
    let hooked = Hooked::new();
    let hook = hooked.0.tree.join(".git/hooks/pre-commit");
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    hooked.0.run("hook install").exits(2).says("is there already; add this line");
    assert_eq!(fs::read(hook).unwrap(), b"#!/bin/sh\n");
}

/// Only `system` builds nothing: with `rust`, pre-commit installs the package at the root of the
/// repository, which has none.
#[test]
fn what_pre_commit_runs_stops_a_commit_that_brings_a_token() {
    let manifest = include_str!("../../../../.pre-commit-hooks.yaml");
    let field = |name: &str| {
        let line = manifest
            .lines()
            .find_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix(name));
        line.unwrap_or_else(|| panic!("there is no `{name}`")).trim()
    };
    assert_eq!(field("language:"), "system");
    // No names of files come after the entry, and it runs also when a commit has none.
    assert_eq!((field("pass_filenames:"), field("always_run:")), ("false", "true"));
    let hooked = Hooked::new();
    // As pre-commit does it: at the root, the entry split into words.
    let entry = || {
        let mut words = field("entry:").split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        hooked.run(command)
    };
    assert_eq!(entry().status.code(), Some(0), "{:?}", entry());
    hooked.plant("config/app.env", 1);
    assert_eq!(entry().status.code(), Some(0), "it is not staged");
    hooked.git("add .");
    let output = entry();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stdout).starts_with("config/app.env:1:3: github-token")
    );
}
