//! A secret is reported once, however many versions of its file have it.

use std::fs;

use serde_json::Value;

use crate::git::{commit, git, repository};
use crate::support::{Place, Ran, token, zip_of};

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
    // The line is of the work tree, and the commit has it in another.
    assert_eq!((&row["commit"], &row["in_work_tree"]), (&Value::Null, &true.into()));
    let oldest = &row["oldest_version"];
    assert_eq!((&oldest["commit"], &oldest["line"]), (&first.clone().into(), &1.into()));
    assert_eq!(numbers(&place), [1; 8]);
    place
        .run("findings")
        .exits(1)
        .prints(&format!("also in 6 versions of the history, from commit {first}"));

    place.write("app.env", "GITHUB_TOKEN=\n");
    commit(&place, "taken out");
    let row = &rows(&place.run("scan TREE -f jsonl").exits(1))[0];
    assert_eq!((&row["line"], &row["commit"]), (&1.into(), &first.into()));
    // It may be there under another name, by another rule, or allowed: nobody knows that it is not.
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
    assert!(found.iter().any(|row| row["oldest_version"]["commit"] == first));
}

/// The lines of `app.env`, which are committed.
fn commit_lines(place: &Place, lines: &[String]) -> String {
    place.write("app.env", lines.join("\n") + "\n");
    commit(place, "lines")
}

fn key(number: u64) -> String {
    format!("KEY={}", token(number))
}

/// A rotation gives the new secret the fingerprint of the old one in later versions, and not in its first.
#[test]
fn a_rotated_secret_that_no_baseline_or_ignore_file_knew_is_reported() {
    let place = repository();
    commit_lines(&place, &[key(1)]);
    let old = rows(&place.run("scan TREE -f jsonl").exits(1))[0]["fingerprint"].clone();
    let file = place.path("baseline.json");
    place.run(&format!("baseline -o {}", file.display())).exits(0);
    commit_lines(&place, &[key(1), key(2)]);
    commit_lines(&place, &[key(2)]);
    let scan = format!("scan TREE -f jsonl --baseline {}", file.display());
    let found = rows(&place.run(&scan).exits(1).says("not reported: 1 by the baseline"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((&found[0]["line"], &found[0]["versions"]), (&2.into(), &1.into()));
    place.write(".gossipignore", old.as_str().unwrap());
    let ignored = rows(&place.run("scan TREE -f jsonl").exits(1));
    assert_eq!(ignored[0]["fingerprint"], found[0]["fingerprint"]);
}

#[test]
fn a_version_of_higher_confidence_is_reported_though_a_later_one_is_below() {
    let place = repository();
    commit_lines(&place, &["apikey: kX9vQ2mT7pLw4ZrB".to_owned()]);
    place.run("scan TREE --confidence medium").exits(1);
    commit_lines(&place, &["key: kX9vQ2mT7pLw4ZrB".to_owned()]);
    let grouped = place.run("scan TREE -f jsonl --confidence medium").exits(1);
    assert_eq!(rows(&grouped).len(), 1, "{grouped:?}");
    // Of all that are reported together the highest is said.
    let found = rows(&place.run("findings -f jsonl").exits(1));
    let all = rows(&place.run("findings -f jsonl --all-versions").exits(1));
    let is_said = |level: &str| all.iter().any(|row| row["confidence"] == level);
    assert!(is_said("low") && found.iter().all(|row| row["confidence"] != "low"), "{all:?}");
}

#[test]
fn an_ignored_commit_or_line_does_not_silence_the_secret_elsewhere() {
    let place = repository();
    let first = commit_lines(&place, &[key(1)]);
    commit_lines(&place, &["# nothing".to_owned()]);
    place.write(".gitleaksignore", format!("{first}:app.env:github-pat:1\n"));
    place.run("scan TREE").exits(0).says("not reported: 1 by");
    // It comes back, in another line.
    place.write("app.env", format!("#\n#\nNEWNAME={}\n", token(1)));
    let row = &rows(&place.run("scan TREE -f jsonl").exits(1))[0];
    assert_eq!((&row["line"], &row["in_work_tree"]), (&3.into(), &true.into()));
    // The version that is ignored is none that is reported.
    assert_eq!((&row["versions"], &row["oldest_version"]), (&Value::Null, &Value::Null));
    place.write(".gitleaksignore", "app.env:github-pat:3\n");
    let row = &rows(&place.run("scan TREE -f jsonl").exits(1))[0];
    assert_eq!((&row["line"], &row["commit"]), (&1.into(), &first.into()));
    place.write(".gitleaksignore", "app.env:github-pat:3\napp.env:github-pat:1\n");
    place.run("scan TREE").exits(0);
}

/// Other paths are of one version each: those of another do not stand for it.
#[test]
fn a_path_that_is_not_ignored_is_reported_by_the_version_that_has_it() {
    let place = repository();
    place.write("testdata/x.env", key(1));
    place.write("src/x.env", key(1));
    commit(&place, "two paths");
    fs::remove_dir_all(place.tree.join("src")).unwrap();
    place.write("testdata/x.env", format!("#\n{}", key(1)));
    commit(&place, "one path");
    place.write(".gossipignore", "testdata/\n");
    let found = rows(&place.run("scan TREE -f jsonl").exits(1));
    assert_eq!(found.len(), 1, "{found:?}");
    let row = &found[0];
    assert_eq!((&row["path"], &row["line"]), (&"src/x.env".into(), &1.into()));
    assert_eq!((&row["in_work_tree"], &row["versions"]), (&Value::Null, &1.into()));
    place.write(".gossipignore", "testdata/\nsrc/\n");
    place.run("scan TREE").exits(0);
}

/// More than a hundred other paths in all versions: the one that is not ignored is in the last of them.
#[test]
fn a_path_among_very_many_is_not_silenced_by_the_others() {
    let place = repository();
    let version = |number: usize, other: &str| {
        let text = format!("{}{}", "#\n".repeat(number), key(1));
        place.write("z/x.env", &text);
        place.write(other, &text);
        commit(&place, "version");
        fs::remove_file(place.tree.join(other)).unwrap();
    };
    for number in 0..102 {
        version(number, &format!("g/{number}.env"));
    }
    version(102, "prod/x.env");
    place.write(".gossipignore", "z/\ng/\n");
    let found = rows(&place.run("scan TREE --only-history -f jsonl").exits(1));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["path"], "prod/x.env");
}

#[test]
fn ids_for_gitlab_are_unique_and_lines_are_of_the_commit_beside_them() {
    let place = repository();
    commit_lines(&place, &[key(1), key(2)]);
    commit_lines(&place, &["#".to_owned(), key(2)]);
    place.run("scan TREE").exits(1);
    let json: Value =
        serde_json::from_str(&place.run("findings -f gitlab").exits(1).stdout).unwrap();
    let found = json["vulnerabilities"].as_array().unwrap();
    let ids: std::collections::BTreeSet<_> = found.iter().map(|one| one["id"].as_str()).collect();
    assert_eq!((found.len(), ids.len()), (2, 2), "{json}");
    for one in found {
        let location = &one["location"];
        let sha = location["commit"]["sha"].as_str().unwrap();
        let line = location["start_line"].as_u64().unwrap();
        let is_tree = sha == "0000000";
        assert_eq!(line, if is_tree { 2 } else { 1 }, "{one}");
    }
}

#[test]
fn a_second_copy_is_new_where_the_first_is_not() {
    let place = repository();
    commit_lines(&place, &[key(1)]);
    place.run("scan TREE").exits(1);
    commit_lines(&place, &[key(1), "#".to_owned()]);
    place.run("scan TREE").exits(1);
    place.run("findings --new-since 1").exits(0);
    place.run("findings --new-since 1 --all-versions").exits(0);
    commit_lines(&place, &[key(1), "#".to_owned(), format!("COPY={}", token(1))]);
    place.run("scan TREE").exits(1);
    let new = rows(&place.run("findings --new-since 2 -f jsonl").exits(1));
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(new[0]["line"], 3);
    place.run("findings --new-since 2 --all-versions").exits(1);
    // Also where there is no history.
    let plain = Place::new();
    plain.write("app.env", key(1));
    plain.run("scan TREE").exits(1);
    plain.write("app.env", format!("{}\nCOPY={}", key(1), token(1)));
    plain.run("scan TREE").exits(1);
    let new = rows(&plain.run("findings --new-since 1 -f jsonl").exits(1));
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(new[0]["line"], 2);
}

/// A secret that a comment allowed was never reported.
#[test]
fn what_is_no_longer_allowed_is_new() {
    let place = Place::new();
    place.write("app.env", format!("{} # gossip:allow\n", key(1)));
    place.run("scan TREE").exits(0);
    place.write("app.env", key(1));
    place.run("scan TREE").exits(1);
    place.run("findings --new-since 1").exits(1);
}

#[test]
fn the_configuration_of_a_bare_repository_is_no_version_of_a_tracked_file() {
    let place = repository();
    let url = format!("url = https://user:{}@example.com/x.git", token(1));
    place.write("config", format!("{url}\n"));
    commit(&place, "a file of that name");
    let bare = Place::new();
    let origin = format!("file://{}", place.tree.display());
    git(&bare.tree, &["clone", "-q", "--bare", &origin, "."]);
    let config = fs::read_to_string(bare.tree.join("config")).unwrap();
    bare.write("config", format!("{config}\t{url}\n"));
    let found = rows(&bare.run("scan TREE -f jsonl").exits(1).says(""));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|row| row["path"] == "config" && row["in_work_tree"].is_null()));
    bare.run("runs").exits(0).prints("  2 findings  ");
}

/// A tagged tree may have it without a commit. That is no work tree.
#[test]
fn what_a_tagged_tree_has_is_not_in_the_work_tree() {
    let place = repository();
    commit_lines(&place, &[key(1)]);
    git(&place.tree, &["tag", "a-tree", "HEAD^{tree}"]);
    commit_lines(&place, &["#".to_owned(), key(1)]);
    commit_lines(&place, &["# nothing".to_owned()]);
    for scan in ["scan TREE -f jsonl --only-history", "scan TREE -f jsonl"] {
        let found = rows(&place.run(scan).exits(1));
        assert!(found.iter().all(|row| row["in_work_tree"].is_null()), "{found:?}");
    }
}

/// Findings, and what is not reported of them, are counted alike: both once, or both by version.
#[test]
fn counts_are_in_one_unit() {
    let place = repository();
    commit_lines(&place, &[key(1)]);
    place.run("scan TREE").exits(1);
    let (file, proof) = (place.path("baseline.json"), place.path("proof"));
    place.run(&format!("baseline -o {}", file.display())).exits(0);
    commit_lines(&place, &[key(1), key(2)]);
    let (file, shown) = (file.display(), proof.display());
    let scan = format!("scan TREE --baseline {file} --proof {shown}");
    let verified = || place.run(&format!("proof verify {shown}")).exits(0);
    place.run(&scan).exits(1).says(", 2 findings").says("not reported: 1 by");
    verified().prints(", 2 findings (1 not reported)");
    place.run(&format!("{scan} --all-versions")).exits(1).says(", 5 findings").says("3 by the");
    verified().prints(", 5 findings (3 not reported)");
    let junit = |words: &str| place.run(&format!("findings -f junit {words}")).exits(1);
    junit("").prints("tests=\"2\" failures=\"2\"");
    junit("--all-versions").prints("tests=\"5\" failures=\"5\"");
}
