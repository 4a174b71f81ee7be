//! A secret is reported once, however many versions of its file have it.

use std::fs;

use serde_json::Value;

use crate::git::git;
use crate::support::{Place, Ran, token, zip_of};

fn commit(place: &Place, message: &str) -> String {
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", message]);
    git(&place.tree, &["rev-parse", "HEAD"])
}

fn repository() -> Place {
    let place = Place::new();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    place
}

/// Six versions of a file with the same token, at another line in each; the first commit's name.
fn with_six_versions() -> (Place, String) {
    let place = repository();
    let write = |version: usize| {
        let lines = "# a comment\n".repeat(version);
        place.write("app.env", format!("{lines}GITHUB_TOKEN={}\n", token(1)));
    };
    write(0);
    let first = commit(&place, "first");
    for version in 1..6 {
        write(version);
        commit(&place, "later");
    }
    (place, first)
}

fn rows(ran: &Ran) -> Vec<Value> {
    ran.jsonl()
}

/// How many findings a report has in each format.
fn numbers(place: &Place) -> Vec<usize> {
    let report = |format: &str| place.run(&format!("findings -f {format}")).exits(1);
    let in_json = |format: &str, at: &str| {
        let json: Value = serde_json::from_str(&report(format).stdout).unwrap();
        json.pointer(at).unwrap().as_array().unwrap().len()
    };
    vec![
        report("text").finding_lines().len(),
        report("json").json().len(),
        report("jsonl").jsonl().len(),
        in_json("sarif", "/runs/0/results"),
        report("csv").stdout.lines().count() - 1,
        report("junit").stdout.matches("<failure").count(),
        in_json("gitlab", "/vulnerabilities"),
        report("html").stdout.matches("\"fingerprint\":").count(),
    ]
}

#[test]
fn a_secret_in_many_versions_is_one_finding_that_says_which_commit_brought_it_in() {
    let (place, first) = with_six_versions();
    let proof = place.path("proof");
    let words = format!("scan TREE --only-history -f jsonl --proof {}", proof.display());
    let ran = place.run(&words).exits(1);
    let found = rows(&ran);
    assert_eq!(found.len(), 1, "{ran:?}");
    let row = &found[0];
    assert_eq!(
        (&row["commit"], &row["versions"], &row["line"]),
        (&first.clone().into(), &6.into(), &1.into())
    );
    assert_eq!(row["in_work_tree"], Value::Null, "nobody looked");
    assert_eq!(numbers(&place), [1; 8]);
    place
        .run("findings")
        .exits(1)
        .prints(&format!("in 6 versions, from commit {first} by A. U. Thor"));
    // The numbers of the run are those of its reports.
    place.run("runs").exits(0).prints("  1 finding  ");
    place.run(&format!("proof verify {}", proof.display())).exits(0).prints(", 1 finding;");
    place.run("scan TREE --only-history").exits(1).says(" 1 finding");
    assert_eq!(rows(&place.run("findings --all-versions -f jsonl").exits(1)).len(), 6);
    let file = place.path("baseline.json");
    place.run(&format!("baseline -o {}", file.display())).exits(0).says("1 finding of run");
    place
        .run(&format!("scan TREE --only-history --baseline {}", file.display()))
        .exits(0)
        .says("not reported: 1 by the baseline");
}

#[test]
fn what_the_work_tree_has_too_is_found_there_and_says_so() {
    let (place, first) = with_six_versions();
    let ran = place.run("scan TREE -f jsonl").exits(1);
    let row = &rows(&ran)[0];
    assert_eq!(rows(&ran).len(), 1, "{ran:?}");
    assert_eq!((&row["line"], &row["versions"]), (&6.into(), &6.into()), "where it is now");
    assert_eq!((&row["commit"], &row["in_work_tree"]), (&first.clone().into(), &true.into()));
    assert_eq!(numbers(&place), [1; 8]);
    place
        .run("findings")
        .exits(1)
        .prints(&format!("also in 6 versions of the history, from commit {first}"));
    // gitleaks names the commit, and the line there; or the line in the work tree.
    for entry in [format!("{first}:app.env:github-pat:1"), "app.env:github-pat:6".to_owned()] {
        place.write(".gitleaksignore", format!("{entry}\n"));
        place.run("scan TREE -q").exits(0);
    }
    fs::remove_file(place.tree.join(".gitleaksignore")).unwrap();

    place.write("app.env", "GITHUB_TOKEN=\n");
    commit(&place, "taken out");
    let row = &rows(&place.run("scan TREE -f jsonl").exits(1))[0];
    assert_eq!((&row["line"], &row["in_work_tree"]), (&1.into(), &false.into()));
    place.run("findings").exits(1).prints("on; no longer in the work tree");
    // What was not read may have it.
    let row =
        &rows(&place.run("scan TREE -f jsonl --max-file-size 2k --exclude /none").exits(1))[0];
    assert_eq!(row["in_work_tree"], false);
    place.write("app.env", "x\n".repeat(4_000));
    let row =
        &rows(&place.run("scan TREE -f jsonl --max-file-size 2k --exclude /none").exits(1))[0];
    assert_eq!(row["in_work_tree"], Value::Null);
}

#[test]
fn rotated_secrets_and_second_copies_and_other_paths_are_findings_of_their_own() {
    let place = repository();
    place.write("app.env", format!("TOKEN={}\n", token(1)));
    commit(&place, "first");
    place.write("app.env", format!("TOKEN={}\n", token(2)));
    let second = commit(&place, "rotated");
    // The name changes, and the secret stays.
    place.write("app.env", format!("RENAMED={}\n", token(2)));
    commit(&place, "renamed");
    let found = rows(&place.run("scan TREE --only-history -f jsonl").exits(1));
    let versions: Vec<_> = found.iter().map(|row| row["versions"].as_u64().unwrap()).collect();
    assert_eq!(versions, [1, 2], "{found:?}");
    assert_eq!(found[1]["commit"], second);

    place.write("app.env", format!("RENAMED={0}\nCOPY={0}\n", token(2)));
    commit(&place, "a second copy");
    place.write("other.env", format!("RENAMED={}\n", token(2)));
    commit(&place, "another path");
    let found = rows(&place.run("scan TREE --only-history -f jsonl --fresh").exits(1));
    let of = |path: &str| found.iter().filter(|row| row["path"] == path).count();
    // The version of before is also at the other path.
    assert_eq!((of("app.env"), of("other.env")), (3, 0), "{found:?}");
    assert_eq!(found[1]["other_paths"][0], "other.env");
    assert_eq!(numbers(&place), [3; 8]);
}

#[test]
fn a_new_version_with_an_old_secret_is_not_new() {
    let (place, _) = with_six_versions();
    place.run("scan TREE --only-history").exits(1);
    place.write("app.env", format!("# below\nGITHUB_TOKEN={}\n# more\n", token(1)));
    commit(&place, "the same");
    assert_eq!(rows(&place.run("scan TREE --only-history -f jsonl").exits(1))[0]["first_seen"], 1);
    place.run("findings --new-since 1").exits(0);
    place.write("app.env", format!("GITHUB_TOKEN={}\n", token(2)));
    commit(&place, "rotated");
    place.run("scan TREE --only-history").exits(1);
    assert_eq!(rows(&place.run("findings --new-since 1 -f jsonl").exits(1)).len(), 1);
}

/// Which of its versions stands for a secret does not depend on how a repository is stored.
#[test]
fn clones_and_packed_repositories_report_the_same() {
    let (place, _) = with_six_versions();
    place.write("box.zip", zip_of(&[("in.env", format!("T={}\n", token(3)))]));
    commit(&place, "an archive");
    place.write("box.zip", zip_of(&[("in.env", format!("T={}\n#\n", token(3)))]));
    commit(&place, "another version of it");
    let report = |place: &Place| -> Vec<Value> {
        let mut found = rows(&place.run("scan TREE -f jsonl").exits(1));
        found.iter_mut().for_each(|row| row["finding"] = Value::Null);
        found
    };
    let loose = report(&place);
    let paths: Vec<_> = loose.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["app.env", "box.zip!in.env"]);
    assert_eq!(loose[1]["versions"], 2);
    git(&place.tree, &["gc", "-q"]);
    assert_eq!(report(&Place::with_state(&place, "packed")), loose);
    let clone = Place::new();
    git(&clone.tree, &["clone", "-q", &format!("file://{}", place.tree.display()), "."]);
    assert_eq!(report(&clone), loose);
}

/// Files of one name in two places have nothing to do with each other.
#[test]
fn the_same_secret_in_two_repositories_is_two_findings() {
    let (one, first) = with_six_versions();
    let (other, _) = with_six_versions();
    let words = format!("scan TREE {} -f jsonl", other.tree.display());
    let found = rows(&one.run(&words).exits(1));
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((&found[0]["versions"], &found[1]["versions"]), (&6.into(), &6.into()));
    assert!(found.iter().any(|row| row["commit"] == first));
}
