//! Reports, baselines and proofs of a repository's history.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::git::{commit, git, repository};
use crate::support::{Place, Ran, token};

/// Two files with a token each, in several versions, of which some have more tokens.
fn with_versions() -> Place {
    let place = repository();
    for version in 0..4 {
        let lines = "# a comment\n".repeat(version);
        place.write("a.env", format!("{lines}GITHUB_TOKEN={}\n", token(1)));
        place.write("b.env", format!("T={}\n{lines}T={}\n", token(2), token(3)));
        commit(&place, &format!("version {version}"));
    }
    place
}

/// Which fingerprint a secret at a path has: its line is that of the version.
fn prints(ran: &Ran) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ran.jsonl().iter().map(|row| (text(&row["path"]), text(&row["fingerprint"]))).collect()
}

#[test]
fn a_secret_has_one_fingerprint_in_all_versions_loose_packed_and_cloned() {
    let place = with_versions();
    let scan = |place: &Place, words: &str| place.run(&format!("scan TREE -f jsonl {words}"));
    let loose = scan(&place, "--only-history").exits(1);
    assert_eq!(loose.jsonl().len(), 3, "however many versions");
    let each = scan(&place, "--only-history --all-versions").exits(1);
    assert_eq!(each.jsonl().len(), 4 + 2 * 4);
    assert_eq!(prints(&each), prints(&loose));
    let expected = prints(&loose);
    assert_eq!(expected.len(), 3, "one of `a.env`, two of `b.env`: {expected:?}");
    assert_eq!(prints(&scan(&place, "").exits(1)), expected, "the work tree has the same");
    assert_eq!(prints(&scan(&place, "--no-history").exits(1)), expected);

    git(&place.tree, &["gc", "-q"]);
    let packed = Place::with_state(&place, "packed");
    assert_eq!(prints(&scan(&packed, "--only-history").exits(1)), expected);
    let clone = Place::new();
    git(&clone.tree, &["clone", "-q", &format!("file://{}", place.tree.display()), "."]);
    assert_eq!(prints(&scan(&clone, "").exits(1)), expected);

    // GitLab wants an id for each of them, also of the versions.
    let report: Value =
        serde_json::from_str(&clone.run("findings -f gitlab --all-versions").stdout).unwrap();
    let found = report["vulnerabilities"].as_array().unwrap();
    let ids: BTreeSet<&str> = found.iter().map(|found| found["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), found.len()), (15, 15));
}

#[test]
fn a_baseline_of_a_history_stays_silent_until_there_is_a_new_secret() {
    let place = with_versions();
    let file = place.path("baseline.json");
    place.run("scan TREE").exits(1);
    place.run(&format!("baseline -o {}", file.display())).exits(0).says("3 findings");
    let scan_with = |place: &Place, words: &str| {
        place.run(&format!("scan TREE -f jsonl {words} --baseline {}", file.display()))
    };
    let scan = |place: &Place| scan_with(place, "");
    scan(&place).exits(0);
    place.write("a.env", format!("# above\n\nGITHUB_TOKEN={}\nOTHER=1\n", token(1)));
    commit(&place, "a line above");
    scan(&place).exits(0);
    git(&place.tree, &["gc", "-q"]);
    let clone = Place::new();
    git(&clone.tree, &["clone", "-q", &format!("file://{}", place.tree.display()), "."]);
    scan(&clone).exits(0);
    // What is known of one message says nothing of another.
    for (number, count) in [(7, 1), (8, 2)] {
        let message = format!("deploy with {}", token(number));
        git(&place.tree, &["commit", "-q", "--allow-empty", "-m", &message]);
        // Git has the last one in files of its own, too.
        assert_eq!(prints(&scan_with(&place, "--only-history").exits(1)).len(), count);
    }
    place.write("a.env", format!("GITHUB_TOKEN={}\nNEW={}\n", token(1), token(9)));
    commit(&place, "a new one");
    // In the work tree and in the history.
    let paths: Vec<_> = prints(&scan(&place).exits(1)).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths.iter().filter(|path| *path == "a.env").count(), 1, "{paths:?}");
}

#[test]
fn a_proof_of_a_repository_names_paths_and_objects() {
    let place = with_versions();
    let file = place.path("proof.jsonl");
    let items = |words: &str| -> Vec<Value> {
        place.run(&format!("scan TREE {words} --proof {}", file.display())).exits(1);
        place.run(&format!("proof verify {}", file.display())).exits(0);
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("\\u0000") && !text.contains("many:"), "{text}");
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        assert_eq!(
            Path::new(lines[0]["target"].as_str().unwrap().trim_start_matches("--only-history ")),
            place.tree.canonicalize().unwrap()
        );
        lines[1..lines.len() - 1].to_vec()
    };
    let check = |items: &[Value], files: usize, versions: usize| {
        let of = |path: &str| items.iter().filter(|item| item["path"] == path).count();
        assert_eq!((of("a.env"), of("b.env")), (versions + files, versions + files), "{items:?}");
        let objects: Vec<&str> = items.iter().filter_map(|item| item["object"].as_str()).collect();
        // The work tree has git's own files, too.
        assert_eq!(objects.len(), 3 * versions);
        assert!(files > 0 || objects.len() == items.len(), "{items:?}");
        for object in objects {
            let kind = git(&place.tree, &["cat-file", "-t", object]);
            assert!(kind == "blob" || kind == "commit", "{kind}");
        }
        let message = format!("commit message of {}", git(&place.tree, &["rev-parse", "HEAD"]));
        assert_eq!(of(&message), 1);
    };
    check(&items("--only-history"), 0, 4);
    // What an earlier run settled is named as well.
    place.write("a.env", format!("later\nGITHUB_TOKEN={}\n", token(1)));
    place.write("b.env", format!("later\nGITHUB_TOKEN={}\n", token(2)));
    commit(&place, "later");
    check(&items("--only-history"), 0, 5);
    check(&items(""), 1, 5);
}

#[test]
fn text_has_each_file_once_and_messages_are_called_that() {
    let place = with_versions();
    let message = format!("deploy with {}", token(7));
    git(&place.tree, &["commit", "-q", "--allow-empty", "-m", &message]);
    let head = git(&place.tree, &["rev-parse", "HEAD"]);
    let other = place.path("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("z.env"), format!("GITHUB_TOKEN={}\n", token(5))).unwrap();
    for words in ["scan TREE".to_owned(), format!("scan TREE {}", other.display())] {
        let ran = place.run(&words).exits(1);
        let paths: Vec<&str> =
            ran.finding_lines().iter().map(|line| line.split(".env:").next().unwrap()).collect();
        let mut runs: Vec<&str> = paths.clone();
        runs.dedup();
        let distinct: BTreeSet<&str> = runs.iter().copied().collect();
        assert_eq!(runs.len(), distinct.len(), "{ran:?}");
        let line = format!("commit message of {head}:1:13: github-token");
        assert!(ran.stdout.contains(&line), "{ran:?}");
    }
    let tree = place.tree.canonicalize().unwrap();
    let ran = place.run("runs").exits(0);
    assert!(
        ran.stdout.lines().next().unwrap().ends_with(&format!("  {}", tree.display())),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains("many:"), "{ran:?}");
    let ran = place.run("show 1 --format json").exits(0);
    assert_eq!(ran.json()[0]["target"], tree.to_str().unwrap());
}

#[test]
fn allow_lists_of_gitleaks_name_commits() {
    let place = repository();
    place.write("old.env", format!("GITHUB_TOKEN={}\n", token(1)));
    let old = commit(&place, "old");
    place.write("new.env", format!("GITHUB_TOKEN={}\n", token(2)));
    commit(&place, "new");
    let list =
        |criteria: &str| format!("[extend]\nuseDefault = true\n[[allowlists]]\n{criteria}\n");
    let commits = format!("commits = [\"{old}\"]");
    for (criteria, expected) in [
        (commits.clone(), vec!["new.env"]),
        (commits.to_uppercase().replace("COMMITS", "commits"), vec!["new.env"]),
        (format!("{commits}\ncondition = \"AND\"\npaths = ['''^old''']"), vec!["new.env"]),
        (
            format!("{commits}\ncondition = \"AND\"\npaths = ['''^new''']"),
            vec!["new.env", "old.env"],
        ),
        (format!("{commits}\ntargetRules = [\"jwt\"]"), vec!["new.env", "old.env"]),
        (format!("commits = [\"{}\"]", &old[..12]), vec!["new.env", "old.env"]),
    ] {
        let file = place.path("gitleaks.toml");
        fs::write(&file, list(&criteria)).unwrap();
        let words = format!("scan TREE --only-history -f jsonl --config {}", file.display());
        let paths: Vec<_> = place.run(&words).exits(1).jsonl();
        let paths: Vec<&str> = paths.iter().map(|row| row["path"].as_str().unwrap()).collect();
        assert_eq!(paths, expected, "{criteria}");
    }
    // One that came with the repository says what it silences.
    place.write(".gitleaks.toml", list(&commits));
    let ran = place.run("scan TREE --only-history").exits(1).says("not reported: 1 by allow-lists");
    assert_eq!(ran.finding_lines().len(), 1, "{ran:?}");
}
