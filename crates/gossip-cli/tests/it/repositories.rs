//! Repositories of unusual kinds: what of them is scanned, and what is said of the rest.

use std::fs;
use std::process::Command;

use crate::git::{commit, git, repository};
use crate::support::{Place, Ran, token};

/// Three commits; the first has a token that the second takes out.
fn three_commits() -> Place {
    let place = repository();
    place.write("app.env", format!("T={}\n", token(1)));
    commit(&place, "first");
    place.write("app.env", "T=\n");
    commit(&place, "second");
    place.write("sub/b.txt", "nothing\n");
    commit(&place, "third");
    place
}

fn clone(of: &Place, options: &[&str]) -> Place {
    let place = Place::new();
    let from = format!("file://{}", of.tree.display());
    git(&place.tree, &[&["clone", "-q"], options, &[&from, "."]].concat());
    place
}

fn paths(ran: &Ran) -> Vec<String> {
    ran.jsonl().iter().map(|row| row["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_shallow_clone_says_where_its_history_ends() {
    let of = three_commits();
    let head = git(&of.tree, &["rev-parse", "HEAD"]);
    let place = clone(&of, &["--depth", "1"]);
    let proof = place.path("proof");
    // Also by a scan that has nothing new to read.
    for _ in 0..2 {
        let ran = place.run(&format!("scan TREE --proof {}", proof.display())).exits(0);
        ran.says("1 shallow clone").says(&format!("  history before commit {head}: shallow clone"));
        let text = fs::read_to_string(&proof).unwrap();
        let line = format!("\"path\":\"history before commit {head}\"");
        assert!(text.lines().any(|item| item.contains(&line) && item.contains("shallow clone")));
        place.run("show 1 -f json").exits(0).prints("shallow clone");
    }
    place.run("scan -q TREE").exits(0).says("out of reach: 1 shallow clone");
    // What nobody asked for is not missed.
    for words in ["--since HEAD", "--no-history", "--staged"] {
        let ran = place.run(&format!("scan {words} TREE")).exits(0);
        assert!(!ran.stderr.contains("shallow"), "{ran:?}");
    }
    git(&place.tree, &["fetch", "-q", "--unshallow"]);
    let ran = place.run("scan TREE -f jsonl").exits(1);
    assert_eq!(paths(&ran), ["app.env"]);
    assert!(!ran.stderr.contains("shallow"), "{ran:?}");
}

#[test]
fn a_repository_with_a_reftable_is_refused_with_what_to_do() {
    let place = three_commits();
    let mut migrate = Command::new("git");
    migrate.current_dir(&place.tree).args(["refs", "migrate", "--ref-format=reftable"]);
    if !migrate.output().unwrap().status.success() {
        // git before 2.46 has none.
        git(&place.tree, &["config", "core.repositoryFormatVersion", "1"]);
        git(&place.tree, &["config", "extensions.refStorage", "reftable"]);
    }
    let ran = place.run("scan TREE").exits(2).says("refs migrate --ref-format=files");
    assert!(ran.stderr.contains("--no-history") && ran.stderr.lines().count() == 1, "{ran:?}");
    place.run("scan --no-history TREE").exits(0);
    place.run("scan --staged TREE").exits(2).says("refs migrate");
}

#[test]
fn a_part_of_a_repository_says_that_its_history_is_not_scanned() {
    let place = three_commits();
    let root = place.tree.canonicalize().unwrap();
    let part = format!("whose history is not scanned: `gossip scan {}` does", root.display());
    place.run("scan sub").exits(0).says(&part);
    for words in ["scan sub -q", "scan sub --no-history", "scan sub/b.txt", "scan . sub", "scan -"]
    {
        let ran = place.run(words);
        assert!(!ran.stderr.contains("history is not scanned"), "{words}: {ran:?}");
    }
    place.run("scan --staged sub").exits(2).says(&format!("it is inside of {}", root.display()));
}

#[test]
fn what_only_a_tag_or_another_reference_reaches_is_scanned() {
    let place = three_commits();
    let write = |name: &str, seed| {
        place.write(name, format!("T={}\n", token(seed)));
        git(&place.tree, &["hash-object", "-w", name])
    };
    // A commit that no branch has, by a tag without and one with an annotation.
    git(&place.tree, &["checkout", "-q", "--detach"]);
    write("light.env", 11);
    commit(&place, "light");
    git(&place.tree, &["tag", "light"]);
    write("annotated.env", 12);
    commit(&place, "annotated");
    git(&place.tree, &["tag", "-a", "-m", "of a commit", "annotated"]);
    git(&place.tree, &["tag", "-a", "-m", "of a tag", "nested", "annotated"]);
    // A directory and a file that no commit has.
    let blob = write("blob.env", 13);
    git(&place.tree, &["tag", "-a", "-m", "of a blob", "blob", &blob]);
    write("tree.env", 14);
    git(&place.tree, &["add", "tree.env"]);
    let tree = git(&place.tree, &["write-tree"]);
    git(&place.tree, &["tag", "-a", "-m", "of a tree", "tree", &tree]);
    let other = write("other.env", 15);
    git(&place.tree, &["update-ref", "refs/other/file", &other]);
    git(&place.tree, &["checkout", "-q", "-f", "main"]);
    for name in ["blob.env", "tree.env", "other.env"] {
        fs::remove_file(place.tree.join(name)).ok();
    }
    let mirror = clone(&place, &["--mirror"]);
    for place in [&place, &mirror] {
        let ran = place.run("scan TREE --only-history -f jsonl").exits(1);
        let mut found = paths(&ran);
        found.sort();
        let mut expected =
            vec!["annotated.env", "app.env", "light.env", "tree.env", &blob[..], &other[..]];
        expected.sort_unstable();
        assert_eq!(found, expected, "{ran:?}");
    }
}

#[test]
fn a_mirror_is_scanned_with_its_configuration() {
    let of = three_commits();
    let mirror = clone(&of, &["--mirror"]);
    let url = format!("https://user:{}@example.com/x.git", token(21));
    git(&mirror.tree, &["config", "remote.origin.url", &url]);
    let ran = mirror.run("scan TREE -f jsonl").exits(1);
    // Its own files are named from the root of the disk, and so come first.
    assert_eq!(paths(&ran), ["config", "app.env"], "{ran:?}");
    assert_eq!(ran.jsonl()[0]["in_work_tree"], serde_json::Value::Null, "there is none");
    assert_eq!(paths(&mirror.run("scan TREE --only-history -f jsonl").exits(1)), ["app.env"]);
    assert_eq!(paths(&mirror.run("scan TREE --no-history -f jsonl").exits(1)), ["config"]);
    // Objects are read as what they are, and not as files of zeros and ones.
    let ran = mirror.run("scan TREE").exits(1);
    assert!(!ran.stderr.contains("binary"), "{ran:?}");
}
