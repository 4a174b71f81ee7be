//! Damaged repositories and manifests, and repositories that change.

use std::fs;
use std::path::PathBuf;

use gossip_contracts::connector::{Connector, ConnectorError, RunName};
use gossip_git::{GitOptions, GitSource, Manifest, ManifestError};

use crate::support::{Random, Repo, begin, begin_named, keys, name, rows};

fn repo() -> Repo {
    let mut repo = Repo::new();
    for number in 0..8 {
        let lines: String = (0..50)
            .map(|line| format!("{line} {}\n", if line == number { 1 } else { 0 }))
            .collect();
        repo.write("grows.txt", lines);
        repo.write(&format!("dir/{number}.txt"), format!("content {number}\n"));
        repo.commit(&format!("commit {number}"));
    }
    repo
}

fn packs(repo: &Repo, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(repo.path.join(".git/objects/pack")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// Writes over a file that git made read-only.
fn overwrite(path: &PathBuf, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_missing_object_is_a_failure_and_the_rest_is_read() {
    let repo = repo();
    let blob = repo.git(&["rev-parse", "HEAD:dir/3.txt"]);
    let tree = repo.git(&["rev-parse", "HEAD~4:dir"]);
    for id in [&blob, &tree] {
        fs::remove_file(repo.path.join(format!(".git/objects/{}/{}", &id[..2], &id[2..]))).unwrap();
    }
    let rows = rows(&repo.planned());
    let failed: Vec<_> = rows.iter().filter(|row| row.content.is_err()).collect();
    let mut ids: Vec<_> = failed.iter().map(|row| row.id.clone()).collect();
    ids.sort();
    let mut expected = vec![blob, tree];
    expected.sort();
    assert_eq!(ids, expected);
    assert_eq!(rows.iter().filter(|row| row.kind == "Blob").count(), 16);
}

#[test]
fn a_pack_with_any_byte_changed_is_read_or_refused_but_never_read_wrong() {
    let repo = repo();
    repo.git(&["gc", "-q"]);
    let whole = rows(&repo.planned());
    let pack = packs(&repo, "pack").pop().unwrap();
    let good = fs::read(&pack).unwrap();
    let mut random = Random(7);
    let mut failures = 0;
    for _ in 0..60 {
        let mut bad = good.clone();
        let at = 12 + random.below(bad.len() as u64 - 32) as usize;
        bad[at] ^= 1 << random.below(8);
        overwrite(&pack, &bad);
        let source = repo.source();
        source.resume(name(1)).unwrap();
        for ((key, ..), expected) in keys(&source).iter().zip(&whole) {
            match read(&source, key) {
                Some(bytes) => assert_eq!(Ok(&bytes), expected.content.as_ref(), "byte {at}"),
                None => failures += 1,
            }
        }
        // Nor does planning fall over it.
        fs::remove_dir_all(repo.at("replanned")).ok();
        let source = crate::support::open(&repo.path, &repo.at("replanned"), GitOptions::default());
        begin(&source, 1).unwrap();
    }
    assert!(failures > 0);
}

fn read(source: &GitSource, key: &[u8]) -> Option<Vec<u8>> {
    let mut reader = source.open(key).ok()?;
    let mut bytes = vec![0; reader.size() as usize];
    let len = reader.read_at(0, &mut bytes).ok()?;
    bytes.truncate(len);
    Some(bytes)
}

#[test]
fn a_truncated_pack_and_a_foreign_index_leave_the_rest_readable() {
    let mut repo = repo();
    repo.git(&["gc", "-q"]);
    repo.write("later", "in a pack of its own");
    repo.commit("later");
    repo.git(&["repack", "-q", "-d"]);
    let largest =
        packs(&repo, "pack").into_iter().max_by_key(|path| fs::metadata(path).unwrap().len());
    let pack = largest.unwrap();
    let good = fs::read(&pack).unwrap();
    for bad in [&good[..good.len() / 2], &good[..30], b""] {
        overwrite(&pack, bad);
        fs::remove_dir_all(repo.at("manifests")).ok();
        let rows = rows(&repo.planned());
        assert!(rows.iter().any(|row| row.content == Ok(b"in a pack of its own".to_vec())));
        assert!(rows.iter().any(|row| row.content.is_err()));
    }
}

#[test]
fn a_repository_that_is_collected_during_the_run_is_read_to_its_end() {
    let repo = repo();
    let source = repo.planned();
    let all = keys(&source);
    let (first, second) = all.split_at(all.len() / 2);
    assert!(first.iter().all(|(key, ..)| read(&source, key).is_some()));
    repo.git(&["repack", "-q", "-a", "-d"]);
    repo.git(&["prune-packed", "-q"]);
    assert!(second.iter().all(|(key, ..)| read(&source, key).is_some()));
    // A branch goes, and is collected: what only it had is gone, and said to be.
    repo.git(&["update-ref", "refs/heads/main", "HEAD~3"]);
    repo.git(&["reflog", "expire", "--expire=all", "--all"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    let again = repo.source();
    again.resume(name(1)).unwrap();
    let gone = all
        .iter()
        .filter(|(key, ..)| matches!(again.open(key), Err(ConnectorError::NotFound { .. })));
    // What the index has stays.
    assert_eq!(gone.count(), 5, "three commits, and two versions of the file that grows");
}

fn is_refused(repo: &Repo) -> bool {
    let resumed = repo.source().resume(name(1));
    matches!(resumed, Err(ConnectorError::Permanent { .. }))
}

#[test]
fn a_manifest_with_any_byte_changed_is_refused_and_planned_anew() {
    let repo = repo();
    let before = rows(&repo.planned());
    let path = repo.at("manifests/1.manifest");
    let good = fs::read(&path).unwrap();
    assert!(Manifest::open(&path).is_ok());
    let mut random = Random(11);
    for _ in 0..200 {
        let mut bad = good.clone();
        let at = random.below(bad.len() as u64) as usize;
        bad[at] ^= 1 << random.below(8);
        fs::write(&path, &bad).unwrap();
        assert!(is_refused(&repo), "byte {at}");
    }
    for len in [0, 7, 50, good.len() - 1] {
        fs::write(&path, &good[..len]).unwrap();
        assert!(is_refused(&repo), "{len} bytes");
    }
    fs::remove_file(&path).unwrap();
    assert!(is_refused(&repo));
    assert!(matches!(Manifest::open(&path), Err(ManifestError::Missing)));
    fs::write(&path, b"half a manif").unwrap();
    assert_eq!(rows(&repo.planned()), before);
    assert_eq!(fs::read(&path).unwrap(), good, "the same plan is the same file");
}

/// Run numbers begin again in another database.
#[test]
fn a_manifest_of_another_run_of_the_same_number_is_not_used_and_planned_anew() {
    let mut repo = repo();
    let stale = rows(&repo.planned());
    repo.write("later", "later");
    repo.commit("later");
    let run = RunName { nonce: [2; 16], ..name(1) };
    let resumed = repo.source().resume(run);
    assert!(matches!(resumed, Err(ConnectorError::Permanent { .. })));
    let source = repo.source();
    begin_named(&source, run).unwrap();
    assert_eq!(rows(&source).len(), stale.len() + 2);
    // Whoever begins the same run takes the same plan.
    let path = repo.at("manifests/1.manifest");
    let planned = fs::read(&path).unwrap();
    repo.write("more", "more");
    repo.commit("more");
    begin_named(&repo.source(), run).unwrap();
    assert_eq!(fs::read(&path).unwrap(), planned);
    assert!(is_refused(&repo), "the run of the other database");
}

#[test]
fn what_is_no_repository_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = GitSource::open(dir.path(), GitOptions::default(), dir.path().join("m"));
    assert!(opened.is_err_and(|error| error.to_string().contains("not a git repository")));
}
