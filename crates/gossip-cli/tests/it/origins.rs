//! Which commit a secret of a history is put down to, and in which order commits come.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::git::{git, repository};
use crate::support::{Place, token};

/// `git` at this moment, in Unix seconds.
fn git_at(at: &Path, seconds: u64, args: &[&str]) {
    let date = format!("{seconds} +0000");
    let output = Command::new("git")
        .current_dir(at)
        .args(["-c", "gc.auto=0", "-c", "user.name=A. U. Thor", "-c", "user.email=a@example.com"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", at)
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
}

fn commit_at(place: &Place, seconds: u64, message: &str) -> String {
    git(&place.tree, &["add", "-A"]);
    git_at(&place.tree, seconds, &["commit", "-q", "-m", message]);
    git(&place.tree, &["rev-parse", "HEAD"])
}

fn history(place: &Place) -> Vec<Value> {
    place.run("scan TREE --only-history -f jsonl").exits(1).jsonl()
}

/// They used to be walked before commits, and to take what commits brought in.
#[test]
fn what_a_commit_brought_in_is_put_down_to_it_though_a_tag_names_its_tree_or_blob() {
    let place = repository();
    place.write("dir/app.env", format!("T={}\n", token(1)));
    let first = commit_at(&place, 1_600_000_000, "first");
    let later = 1_900_000_000;
    git_at(&place.tree, later, &["tag", "-a", "-m", "a tree", "annotated", "HEAD^{tree}"]);
    git_at(&place.tree, later, &["tag", "-a", "-m", "a blob", "of-blob", "HEAD:dir/app.env"]);
    for (name, object) in
        [("tree", "HEAD^{tree}"), ("sub", "HEAD:dir"), ("blob", "HEAD:dir/app.env")]
    {
        git(&place.tree, &["tag", name, object]);
    }
    let check = |found: &[Value]| {
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["path"], &found[0]["commit"]),
            (&"dir/app.env".into(), &first.clone().into())
        );
    };
    check(&history(&place));
    place.write("dir/app.env", "T=\n");
    commit_at(&place, 1_600_000_100, "taken out");
    check(&history(&place));
    check(&place.run("scan TREE -f jsonl").exits(1).jsonl());
    // A tag that comes later brings nothing either.
    git(&place.tree, &["tag", "again", "HEAD~:dir/app.env"]);
    check(&history(&place));
    // What no commit has is the tag's.
    let id = {
        let file = place.path("lone");
        std::fs::write(&file, format!("L={}\n", token(2))).unwrap();
        git(&place.tree, &["hash-object", "-w", file.to_str().unwrap()])
    };
    git(&place.tree, &["tag", "lone", &id]);
    let found = history(&place);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|row| row["path"] == id), "{found:?}");
}

#[test]
fn a_commit_that_claims_to_be_older_than_its_parent_brought_nothing_in() {
    let place = repository();
    place.write("app.env", format!("T={}\n", token(1)));
    let first = commit_at(&place, 1_600_000_000, "first");
    place.write("app.env", format!("# moved\nT={}\n", token(1)));
    commit_at(&place, 1_300_000_000, "from a clock that is wrong");
    let found = history(&place);
    assert_eq!((&found[0]["commit"], &found[0]["versions"]), (&first.into(), &2.into()));
}

/// Where git keeps an object that is in no pack.
fn loose(place: &Place, name: &str) -> PathBuf {
    let id = git(&place.tree, &["rev-parse", name]);
    place.tree.join(".git/objects").join(&id[..2]).join(&id[2..])
}

#[test]
fn what_was_found_below_a_directory_of_the_history_stays_when_its_object_is_missing() {
    let place = repository();
    place.write("d/app.env", format!("T={}\n", token(1)));
    place.write("x.env", format!("X={}\n", token(2)));
    commit_at(&place, 1_600_000_000, "first");
    git(&place.tree, &["rm", "-q", "-r", "d"]);
    commit_at(&place, 1_600_000_100, "taken out");
    let before = history(&place);
    assert_eq!(before.len(), 2);
    let (object, away) = (loose(&place, "HEAD~:d"), place.path("object"));
    std::fs::rename(&object, &away).unwrap();
    for _ in 0..2 {
        let found = place.run("scan TREE --only-history --fresh -f jsonl").exits(2).jsonl();
        let paths: Vec<_> = found.iter().map(|row| &row["path"]).collect();
        assert_eq!(paths, ["d/app.env", "x.env"]);
        assert!(found.iter().all(|row| row["versions"] == 1), "{found:?}");
    }
    // Once it can be read again, what is not there is forgotten.
    std::fs::rename(&away, &object).unwrap();
    assert_eq!(place.run("scan TREE --only-history --fresh -f jsonl").exits(1).jsonl().len(), 2);
    git(&place.tree, &["checkout", "-q", "--orphan", "new"]);
    commit_at(&place, 1_600_000_200, "a new beginning");
    git(&place.tree, &["branch", "-D", "main", "-q"]);
    git(&place.tree, &["reflog", "expire", "--expire=now", "--all"]);
    let found = place.run("scan TREE --only-history --fresh -f jsonl").exits(1).jsonl();
    assert_eq!(found.len(), 1, "{found:?}");
}

/// An ignore pattern that names one of its paths used to silence it.
#[test]
fn a_blob_that_cannot_be_read_any_more_keeps_its_other_paths() {
    let place = repository();
    for dir in ["d", "e"] {
        place.write(&format!("{dir}/app.env"), format!("T={}\n", token(1)));
    }
    commit_at(&place, 1_600_000_000, "first");
    git(&place.tree, &["rm", "-q", "-r", "d", "e"]);
    place.write(".gossipignore", "e/\n");
    commit_at(&place, 1_600_000_100, "taken out");
    let paths = |code: i32| -> Vec<Value> {
        let ran = place.run("scan TREE --only-history --fresh -f jsonl").exits(code);
        ran.jsonl().iter().map(|row| row["path"].clone()).collect()
    };
    assert_eq!(paths(1), ["d/app.env"]);
    std::fs::remove_file(loose(&place, "HEAD~:e/app.env")).unwrap();
    for _ in 0..2 {
        assert_eq!(paths(2), ["d/app.env"]);
    }
}

/// A fingerprint in an ignore file names a version; it is to be the same one everywhere.
#[test]
fn a_grown_state_directory_and_a_fresh_one_name_the_same_version() {
    for round in 0..6 {
        let place = repository();
        let now = 1_700_000_000;
        place.write("readme", "nothing\n");
        commit_at(&place, now, "root");
        git(&place.tree, &["branch", "side"]);
        place.write("app.env", format!("KEY={}\n", token(1)));
        commit_at(&place, now, "on main");
        history(&place);
        git(&place.tree, &["checkout", "-q", "side"]);
        place.write("app.env", format!("TOKEN={}\n", token(1)));
        commit_at(&place, now, &format!("on the side {round}"));
        let shown = |place: &Place| -> Vec<_> {
            let found = history(place);
            found.iter().map(|row| (row["fingerprint"].clone(), row["commit"].clone())).collect()
        };
        let fresh = Place::with_state(&place, &format!("fresh{round}"));
        assert_eq!(shown(&place), shown(&fresh), "{round}");
    }
}
