//! What a plan has, and what `git` says is reachable.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gossip_contracts::connector::Connector;
use gossip_git::{GitSource, Selection};

use crate::support::{Random, ReadRow, Repo, begin, git_in, name, open, rows};

/// The blobs of a plan with all their paths; their bytes are compared with git's.
#[track_caller]
fn assert_whole(repo: &Repo, source: &GitSource) {
    let rows = rows(source);
    let mut blobs = BTreeMap::<String, BTreeSet<Vec<u8>>>::new();
    let mut classes = BTreeSet::new();
    for row in rows.iter().filter(|row| row.kind == "Blob") {
        assert_eq!(row.content.as_ref(), Ok(&repo.content("blob", &row.id)), "{}", row.id);
        let is_test = |path: &Vec<u8>| path.starts_with(b"test/");
        assert!(row.paths.iter().all(|path| is_test(path) == is_test(&row.paths[0])));
        assert!(classes.insert((row.id.clone(), is_test(&row.paths[0]))), "{} twice", row.id);
        blobs.entry(row.id.clone()).or_default().extend(row.paths.iter().cloned());
    }
    assert_eq!(blobs, repo.blobs(), "blobs and their paths");
    let messages: BTreeMap<_, _> = rows
        .iter()
        .filter(|row| row.kind == "Commit")
        .map(|row| (row.id.clone(), row.content.clone().unwrap()))
        .collect();
    let commits = repo.git(&["rev-list", "--all"]);
    assert_eq!(messages.len(), commits.lines().count());
    for commit in commits.lines() {
        let object = repo.content("commit", commit);
        assert!(object.ends_with(&messages[commit]), "the message of {commit}");
    }
}

/// Commits on several branches: edits, renames, copies, removals, modes, links, merges.
fn grow(repo: &mut Repo, random: &mut Random, commits: u64) {
    let mut branches = vec!["main".to_owned()];
    for number in 0..commits {
        match random.below(8) {
            0 if number > 2 => {
                let branch = format!("b{}", repo.clock);
                repo.git(&["checkout", "-q", "-b", &branch]);
                branches.push(branch);
            }
            1 if branches.len() > 1 => {
                let branch = &branches[random.below(branches.len() as u64) as usize];
                repo.git(&["checkout", "-q", branch]);
            }
            2 if branches.len() > 1 => {
                let branch = &branches[random.below(branches.len() as u64) as usize];
                let head = repo.git(&["rev-parse", branch]);
                repo.command(&["merge", "-q", "-X", "ours", "--no-edit", &head]).output().unwrap();
                // A merge that is left in the middle becomes a commit below.
            }
            _ => {}
        }
        for _ in 0..=random.below(3) {
            change(repo, random, number);
        }
        repo.commit(&format!("commit {number}\n\nwith a body {}\n", random.below(1000)));
    }
}

fn change(repo: &Repo, random: &mut Random, number: u64) {
    let directories = ["", "src/", "src/deep/er/", "test/", "test/src/", "docs \u{e9}/"];
    let directory = directories[random.below(6) as usize];
    let path = format!("{directory}file{}.txt", random.below(6));
    let full = repo.path.join(&path);
    match random.below(7) {
        0 => drop(fs::remove_file(&full)),
        1 if full.is_file() => {
            let to = repo.path.join(format!("test/moved{}.txt", random.below(4)));
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::rename(full, to).unwrap();
        }
        2 if full.is_file() => {
            let to = repo.path.join(format!("copy{}.txt", random.below(4)));
            drop(fs::copy(full, to));
        }
        3 => {
            let link = repo.path.join(format!("link{}", random.below(3)));
            drop(fs::remove_file(&link));
            std::os::unix::fs::symlink(&path, link).unwrap();
        }
        _ => {
            let before = fs::read_to_string(&full).unwrap_or_default();
            let mut lines: Vec<String> = before.lines().map(str::to_owned).collect();
            while lines.len() < 60 {
                lines.push(format!("line {} of a file that is long enough", random.below(1 << 30)));
            }
            let at = random.below(lines.len() as u64) as usize;
            lines[at] = format!("changed in {number} to {}", random.below(1 << 30));
            repo.write(&path, lines.join("\n"));
        }
    }
}

/// Packs what there is in one of several ways.
fn pack(repo: &Repo, way: u64) {
    match way {
        0 => {}
        1 => drop(repo.git(&["repack", "-q", "-d"])),
        2 => drop(repo.git(&["gc", "-q"])),
        _ => drop(repo.git(&["repack", "-q", "-a", "-d", "-f", "--depth=200", "--window=50"])),
    }
}

#[test]
fn random_histories_are_planned_whole_and_read_as_git_reads_them() {
    let seeds = 3 * std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().unwrap());
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut random = Random(seed);
        let mut repo = Repo::with_format(if seed % 3 == 2 { "sha256" } else { "sha1" });
        for _ in 0..3 {
            grow(&mut repo, &mut random, 6);
            let way = random.below(4);
            pack(&repo, way);
        }
        repo.git(&["tag", "-a", "-m", "an annotation", "v1"]);
        repo.git(&["tag", "light"]);
        let source = repo.planned();
        assert_whole(&repo, &source);
        let before = rows(&source);
        // Repacking changes nothing of a run that was planned.
        pack(&repo, 3);
        assert_eq!(rows(&source), before);
        let again = repo.source();
        again.resume(name(1)).unwrap();
        assert_eq!(rows(&again), before);
    }
}

/// Each was looked for among all others of its content.
#[test]
fn many_staged_files_of_one_content_are_read_once_for_each_version_of_before() {
    let mut repo = Repo::new();
    let name = |number: u32| format!("{number:02}");
    (0..60).for_each(|number| repo.write(&name(number), format!("before {}", number % 3)));
    repo.commit("before");
    (0..60).for_each(|number| repo.write(&name(number), "after"));
    repo.git(&["add", "-A"]);
    let rows = rows(&repo.select(Selection::Staged));
    assert_eq!(rows.len(), 3);
    let mut paths: Vec<_> = rows.iter().flat_map(|row| row.paths.clone()).collect();
    paths.sort();
    assert!(rows.iter().all(|row| row.paths.len() == 20));
    assert_eq!(paths, (0..60).map(|number| name(number).into_bytes()).collect::<Vec<_>>());
}

#[test]
fn one_content_is_read_once_for_each_class_of_its_paths() {
    let mut repo = Repo::new();
    repo.write("test/key.pem", "a key");
    repo.write("test/again.pem", "a key");
    let first = repo.commit("first");
    repo.write("prod/key.pem", "a key");
    repo.write("prod/zkey.pem", "a key");
    let second = repo.commit("second");
    let rows: Vec<ReadRow> = rows(&repo.planned());
    let keys: Vec<_> = rows.iter().filter(|row| row.content == Ok(b"a key".to_vec())).collect();
    let of = |prefix: &[u8]| keys.iter().find(|row| row.paths[0].starts_with(prefix)).unwrap();
    assert_eq!(keys.len(), 2);
    let paths = |texts: [&str; 2]| texts.map(|text| text.as_bytes().to_vec()).to_vec();
    assert_eq!(of(b"test").paths, paths(["test/again.pem", "test/key.pem"]));
    assert_eq!(of(b"prod").paths, paths(["prod/key.pem", "prod/zkey.pem"]));
    assert_eq!(of(b"test").commit, Some(first));
    assert_eq!(of(b"prod").commit, Some(second));
}

#[test]
fn a_directory_that_moves_takes_its_files_paths_along() {
    let mut repo = Repo::new();
    repo.write("test/deep/key.pem", "a key");
    repo.commit("first");
    repo.git(&["mv", "test", "prod"]);
    repo.commit("second");
    let rows = rows(&repo.planned());
    let mut paths: Vec<_> = rows.iter().flat_map(|row| row.paths.clone()).collect();
    paths.sort();
    assert_eq!(paths, [b"prod/deep/key.pem".to_vec(), b"test/deep/key.pem".to_vec()]);
}

#[test]
fn an_item_is_put_down_to_the_commit_that_brought_it_in() {
    let mut repo = Repo::new();
    repo.write("a", "one");
    let first = repo.commit("first");
    repo.write("b", "two");
    repo.commit("second");
    repo.git(&["checkout", "-q", "-b", "side", &first]);
    repo.write("c", "three");
    let third = repo.commit("third");
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["merge", "-q", "--no-edit", "side"]);
    let source = repo.planned();
    for (content, commit) in [(&b"one"[..], &first), (b"three", &third)] {
        let rows = rows(&source);
        let row = rows.iter().find(|row| row.content.as_deref() == Ok(content)).unwrap();
        assert_eq!(row.commit.as_ref(), Some(commit));
    }
    let (key, ..) = &crate::support::keys(&source)[0];
    let origin = source.origin(key).unwrap().unwrap();
    assert_eq!(origin.author.as_deref(), Some(&b"A. U. Thor <author@example.com>"[..]));
    assert!(origin.seconds.is_some_and(|seconds| seconds > 1_700_000_000));
    assert_eq!(origin.offset_seconds, 7200);
}

#[test]
fn tags_are_read_whatever_they_name() {
    let mut repo = Repo::new();
    repo.write("a", "in a tree");
    repo.commit("first");
    repo.write("loose.txt", "a blob by itself");
    let blob = repo.git(&["hash-object", "-w", "loose.txt"]);
    fs::remove_file(repo.path.join("loose.txt")).unwrap();
    repo.git(&["tag", "-a", "-m", "of a blob", "blob", &blob]);
    let tree = repo.git(&["rev-parse", "HEAD^{tree}"]);
    repo.git(&["tag", "-a", "-m", "of a tree", "tree", &tree]);
    repo.git(&["tag", "-a", "-m", "of a commit", "commit", "HEAD"]);
    repo.git(&["tag", "-a", "-m", "of a tag", "tag", "commit"]);
    let rows = rows(&repo.planned());
    let annotations: BTreeSet<_> = rows
        .iter()
        .filter(|row| row.kind == "Tag")
        .map(|row| String::from_utf8(row.content.clone().unwrap()).unwrap())
        .collect();
    let expected = ["of a blob\n", "of a commit\n", "of a tag\n", "of a tree\n"];
    assert_eq!(annotations, expected.map(str::to_owned).into());
    let contents: Vec<_> = rows.iter().filter(|row| row.kind == "Blob").collect();
    assert_eq!(contents.len(), 2);
    assert!(contents.iter().any(|row| row.content == Ok(b"a blob by itself".to_vec())));
}

#[test]
fn bare_linked_shallow_and_borrowing_repositories_open() {
    let mut repo = Repo::new();
    for number in 0..5 {
        repo.write("file", format!("content {number}"));
        repo.commit(&format!("commit {number}"));
    }
    let clone = |name: &str, args: &[&str]| {
        let to = repo.at(name);
        let url = format!("file://{}", repo.path.display());
        let source = if args.contains(&"-s") { repo.path.to_str().unwrap() } else { &url };
        let all = [&["clone", "-q"], args, &[source, to.to_str().unwrap()]].concat();
        assert!(git_in(repo.at("").as_path(), &all).status().unwrap().success());
        to
    };
    let blobs = |path: &Path| {
        let source = open(path, &path.with_extension("manifests"), Default::default());
        begin(&source, 1).unwrap();
        rows(&source).iter().filter(|row| row.kind == "Blob" && row.content.is_ok()).count()
    };
    assert_eq!(blobs(&clone("bare.git", &["--bare"])), 5);
    assert_eq!(blobs(&clone("borrowing", &["-s"])), 5);
    assert_eq!(blobs(&clone("shallow", &["--depth=2"])), 2);
    repo.git(&["worktree", "add", "-q", repo.at("linked").to_str().unwrap()]);
    assert_eq!(blobs(&repo.at("linked")), 5);
    assert!(
        git_in(&repo.at("shallow"), &["fetch", "-q", "--unshallow"]).status().unwrap().success()
    );
    fs::remove_dir_all(repo.at("shallow.manifests")).unwrap();
    assert_eq!(blobs(&repo.at("shallow")), 5);
}

#[test]
fn a_partial_clone_lacks_what_it_did_not_fetch() {
    let mut repo = Repo::new();
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    repo.write("file", "before");
    repo.commit("first");
    repo.write("file", "after");
    repo.commit("second");
    let to = repo.at("partial");
    let url = format!("file://{}", repo.path.display());
    let args = ["clone", "-q", "--filter=blob:none", &url, to.to_str().unwrap()];
    assert!(git_in(repo.at("").as_path(), &args).status().unwrap().success());
    let source = open(&to, &repo.at("manifests"), Default::default());
    begin(&source, 1).unwrap();
    let kinds: Vec<_> = rows(&source).into_iter().map(|row| (row.kind, row.content.ok())).collect();
    assert!(kinds.contains(&("Blob".to_owned(), Some(b"after".to_vec()))));
    assert!(kinds.contains(&("NotFetched".to_owned(), None)));
}

#[test]
fn submodules_are_named_and_not_read() {
    let mut inner = Repo::new();
    inner.write("file", "inside");
    inner.commit("inner");
    let mut repo = Repo::new();
    repo.write("file", "outside");
    repo.commit("first");
    repo.git(&["submodule", "--quiet", "add", inner.path.to_str().unwrap(), "vendor/inner"]);
    repo.commit("second");
    let rows = rows(&repo.planned());
    let row = rows.iter().find(|row| row.kind == "Submodule").unwrap();
    assert_eq!(row.paths, [b"vendor/inner".to_vec()]);
    assert!(row.content.is_err());
    assert!(rows.iter().all(|row| row.content != Ok(b"inside".to_vec())));
}

#[test]
fn selections_read_a_part() {
    let mut repo = Repo::new();
    repo.write("a", "one");
    let first = repo.commit("first");
    repo.write("a", "two");
    repo.commit("second");
    repo.git(&["checkout", "-q", "-b", "side"]);
    repo.write("a", "three");
    repo.write("b", "one");
    repo.commit("third");
    repo.write("c", "staged");
    repo.git(&["add", "c"]);
    repo.write("d", "not staged");
    let contents = |selection| {
        let rows = rows(&repo.select(selection));
        let mut contents: Vec<_> = rows
            .into_iter()
            .filter(|row| row.kind == "Blob")
            .map(|row| String::from_utf8(row.content.unwrap()).unwrap())
            .collect();
        contents.sort();
        contents
    };
    let history = |branch: Option<&str>, since: Option<&str>| Selection::History {
        branch: branch.map(str::to_owned),
        since: since.map(str::to_owned),
    };
    assert_eq!(contents(history(None, None)), ["one", "three", "two"]);
    assert_eq!(contents(history(Some("main"), None)), ["one", "two"]);
    assert_eq!(contents(history(None, Some(&first))), ["three", "two"]);
    assert_eq!(contents(history(Some("side"), Some("main"))), ["one", "three"]);
    assert_eq!(contents(Selection::Staged), ["staged"]);
    assert_eq!(contents(Selection::Diff(first.clone())), ["one", "three"]);
    let missing = Selection::Diff("no-such-branch".to_owned());
    let mut options = gossip_git::GitOptions::default();
    options.selection = missing;
    let error = begin(&repo.source_with(options), 1).unwrap_err();
    assert!(error.to_string().contains("no-such-branch"), "{error}");
}

#[test]
fn directories_that_hold_each_other_many_times_are_walked_in_bounded_time() {
    let repo = Repo::new();
    repo.write("leaf", "at the end of ten to the twelfth paths");
    let mut child = format!("100644 blob {}\tleaf\n", repo.git(&["hash-object", "-w", "leaf"]));
    let mut tree = String::new();
    for level in 0..12 {
        repo.write("listing", &child);
        let listing = fs::File::open(repo.path.join("listing")).unwrap();
        let output = repo.command(&["mktree"]).stdin(listing).output().unwrap();
        tree = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        child = (0..10).map(|name| format!("040000 tree {tree}\t{level}-{name}\n")).collect();
    }
    let commit = repo.git(&["commit-tree", "-m", "a bomb", &tree]);
    repo.git(&["update-ref", "refs/heads/main", &commit]);
    let rows = rows(&repo.planned());
    assert_eq!(rows.iter().filter(|row| row.kind == "Blob").count(), 1);
    assert_eq!(rows.iter().filter(|row| row.kind == "ManyPaths").count(), 1);
}
