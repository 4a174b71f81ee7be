//! Later runs read what earlier runs did not.

use gossip_contracts::connector::{Connector, NewRun};
use gossip_git::{GitSource, Selection};

use crate::support::{Repo, keys, name, path_class, rows};

/// What a run has settled: all its items but those that `fails` names.
fn settle(source: &GitSource, fails: impl Fn(&str) -> bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_settled = |key: &[u8]| !fails(&source.origin(key).unwrap().unwrap().object);
    let keys = keys(source).into_iter().filter(|(key, ..)| is_settled(key));
    keys.map(|(key, version, _)| (key, version)).collect()
}

fn plan(repo: &Repo, run: u64, settled: &[(Vec<u8>, Vec<u8>)]) -> GitSource {
    let source = repo.source();
    let last = run.checked_sub(1).filter(|last| *last > 0);
    let each_settled = |each: &mut dyn FnMut(&[u8], &[u8])| {
        settled.iter().for_each(|(key, version)| each(key, version));
        Ok(())
    };
    let last = last.map(name);
    let (run, settled) = (name(run), &each_settled);
    let is_left_out = &|_: &[u8]| false;
    source.begin(NewRun { run, last, settled, path_class: &path_class, is_left_out }).unwrap();
    source
}

fn contents(source: &GitSource) -> Vec<String> {
    let mut rows = rows(source);
    rows.retain(|row| row.kind != "Shallow");
    let read = rows.into_iter().map(|row| String::from_utf8(row.content.unwrap()).unwrap());
    let mut contents: Vec<String> = read.collect();
    contents.sort();
    contents
}

#[test]
fn a_later_run_reads_only_what_is_new() {
    let mut repo = Repo::new();
    repo.write("a", "one");
    repo.commit("first");
    let mut settled = settle(&plan(&repo, 1, &[]), |_| false);
    let second = plan(&repo, 2, &settled);
    assert_eq!(contents(&second), [""; 0]);
    repo.write("b", "two");
    // The old content under another path, and under a path that rules tell apart.
    repo.write("c", "one");
    repo.write("test/d", "one");
    repo.commit("second");
    // Planned before: the tips at planning define the run.
    assert_eq!(contents(&plan(&repo, 2, &settled)), [""; 0]);
    let third = plan(&repo, 3, &settled);
    assert_eq!(contents(&third), ["one", "second\n", "two"]);
    settled.extend(settle(&third, |_| false));
    // What a branch had that comes back is known.
    repo.write("b", "three");
    repo.commit("third");
    repo.write("b", "two");
    repo.commit("fourth");
    assert_eq!(contents(&plan(&repo, 4, &settled)), ["fourth\n", "third\n", "three"]);
}

/// The clock of a child was behind; and what is left out as settled counts as a parent still.
#[test]
fn commits_have_the_same_places_in_every_run_and_come_behind_their_parents() {
    let mut repo = Repo::new();
    fn commit(repo: &mut Repo, name: &str, clock: u64) {
        repo.clock = clock;
        repo.write("a", name);
        repo.commit(name);
    }
    commit(&mut repo, "first", 1_600_000_000);
    let first = plan(&repo, 1, &[]);
    let settled = settle(&first, |_| false);
    commit(&mut repo, "second", 1_300_000_000);
    commit(&mut repo, "third", 1_200_000_000);
    let places = |source: &GitSource| -> Vec<(u64, String)> {
        let origins =
            keys(source).into_iter().map(|(key, ..)| source.origin(&key).unwrap().unwrap());
        let commits = origins.filter(|origin| origin.commit.as_ref() == Some(&origin.object));
        let mut places: Vec<_> = commits.map(|origin| (origin.order, origin.object)).collect();
        places.sort();
        places
    };
    let later = plan(&repo, 2, &settled);
    let all = repo.select(Selection::default());
    assert_eq!([places(&first), places(&later)].concat(), places(&all));
    let log = repo.git(&["log", "--reverse", "--format=%H"]);
    let ids: Vec<_> = places(&all).into_iter().map(|(_, id)| id).collect();
    assert_eq!(ids, log.lines().collect::<Vec<_>>());
}

#[test]
fn what_failed_is_planned_again() {
    let mut repo = Repo::new();
    repo.write("a", "one");
    repo.write("b", "two");
    repo.commit("first");
    let bad = repo.git(&["rev-parse", "HEAD:b"]);
    let settled = settle(&plan(&repo, 1, &[]), |object| object == bad);
    assert_eq!(contents(&plan(&repo, 2, &settled)), ["two"]);
}

#[test]
fn a_run_without_its_base_manifest_walks_everything_and_reads_the_same() {
    let mut repo = Repo::new();
    repo.write("a", "one");
    repo.commit("first");
    let settled = settle(&plan(&repo, 1, &[]), |_| false);
    repo.write("a", "two");
    repo.commit("second");
    std::fs::write(repo.at("manifests/1.manifest"), b"not a manifest").unwrap();
    assert_eq!(contents(&plan(&repo, 2, &settled)), ["second\n", "two"]);
}

#[test]
fn deepening_a_shallow_clone_brings_the_rest() {
    let mut repo = Repo::new();
    for number in 0..4 {
        repo.write("file", format!("content {number}"));
        repo.commit(&format!("commit {number}"));
    }
    let shallow = repo.at("shallow");
    let url = format!("file://{}", repo.path.display());
    let git = |args: &[&str], at: &std::path::Path| {
        assert!(crate::support::git_in(at, args).status().unwrap().success());
    };
    git(&["clone", "-q", "--depth=1", &url, shallow.to_str().unwrap()], &repo.path);
    repo.path = shallow.clone();
    let settled = settle(&plan(&repo, 1, &[]), |_| false);
    git(&["fetch", "-q", "--deepen=1"], &shallow);
    let second = plan(&repo, 2, &settled);
    assert_eq!(contents(&second), ["commit 2\n", "content 2"]);
}
