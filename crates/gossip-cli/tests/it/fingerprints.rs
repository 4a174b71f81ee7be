//! Fingerprints and baselines: the same on every machine, whatever lines move.

use std::fs;

use crate::git::git;
use crate::support::{Place, Ran, token};

/// A repository at a place of its own, with a state directory of its own: another machine.
fn machine(depth: &str) -> Place {
    let mut place = Place::new();
    let tree = place.tree.join(depth);
    fs::create_dir_all(&tree).unwrap();
    git(&tree, &["init", "-q"]);
    place.tree = tree;
    place.write("config/app.env", format!("# settings\nGITHUB_TOKEN={}\n", token(1)));
    place.write("src/main.py", format!("a = 1\nkey = \"{}\"  # prod\n", token(2)));
    place
}

fn prints(ran: &Ran) -> Vec<String> {
    ran.jsonl().iter().map(|found| found["fingerprint"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_machines_agree_and_a_part_of_the_tree_does_too() {
    let (one, other) = (machine("checkout"), machine("somewhere/else/entirely"));
    let first = prints(&one.run("scan TREE -f jsonl").exits(1));
    assert_eq!(first.len(), 2);
    assert_eq!(first, prints(&other.run("scan TREE -f jsonl").exits(1)));
    // From below the repository's root, and of one file.
    assert_eq!(prints(&one.run("scan src -f jsonl").exits(1)), first[1..]);
    assert_eq!(prints(&other.run("scan src/main.py -f jsonl").exits(1)), first[1..]);
    // Finding ids are of a machine; they are made with its key.
    let ids = |place: &Place| place.run("findings -f jsonl").jsonl()[0]["finding"].clone();
    assert_ne!(ids(&one), ids(&other));
}

#[test]
fn a_baseline_made_on_one_machine_silences_on_another() {
    let (one, other) = (machine("a"), machine("b/c"));
    one.run("scan TREE").exits(1);
    let file = one.path("baseline.json");
    one.run(&format!("baseline -o {}", file.display())).exits(0).says("2 findings");
    let scan = || other.run(&format!("scan TREE --baseline {} -f jsonl", file.display()));
    let said = other.run(&format!("scan TREE --baseline {}", file.display())).exits(0);
    said.says("not reported: 2 by the baseline");
    // A line above, other blanks and a comment behind change nothing.
    let key = token(2);
    other.write("src/main.py", format!("# new\n\na = 1\n    key =  \"{key}\"  # staging\n"));
    scan().exits(0);
    // A second secret in the same line is new, and the first is not.
    other.write("src/main.py", format!("a = 1\nkey = \"{key}\"; more = \"{}\"\n", token(3)));
    let ran = scan().exits(1);
    assert_eq!(ran.jsonl().len(), 1);
    assert!(ran.jsonl()[0]["context"].as_str().unwrap().contains("more = \"ghp_…\""), "{ran:?}");
    // So is one in a line like a known one.
    other.write("src/main.py", format!("key = \"{key}\"\nkey = \"{}\"\n", token(4)));
    assert_eq!(scan().exits(1).jsonl().len(), 1);
}

/// What stands before them is masked, but for the names.
#[test]
fn a_baseline_does_not_silence_a_secret_of_another_name_in_the_same_kind_of_line() {
    let place = Place::new();
    let file = place.path("baseline.json");
    let lines = |name: &str, seed: u64| {
        let [a, b, c] = [token(seed), token(seed + 1), token(seed + 2)];
        format!(
            "{{\"key\":\"GH_BOT_{name}\",\"value\":\"{a}\"}}\n\
             {name}_key = os.getenv(\"{name}\") or \"{b}\"\nX-{name}-Authorization: Bearer {c}\n"
        )
    };
    place.write("bots", lines("one", 1));
    place.run("scan TREE").exits(1);
    place.run(&format!("baseline -o {}", file.display())).exits(0).says("3 findings");
    let scan = || place.run(&format!("scan TREE --baseline {} -f jsonl", file.display()));
    place.write("bots", format!("# moved\n\n{}", lines("one", 1)));
    scan().exits(0);
    place.write("bots", lines("two", 4));
    assert_eq!(scan().exits(1).jsonl().len(), 3);
}

#[test]
fn a_baseline_with_a_fault_is_refused_by_line_and_nothing_is_scanned() {
    let place = Place::with_a_token();
    let file = place.path("baseline.json");
    let shown = file.display().to_string();
    for (text, part) in [
        ("{", ":1:1: this is no baseline"),
        ("{\n  \"gossip_baseline\": 3,\n  \"findings\": [{\"fingerprint\": \"xyz\"", ":3:"),
        ("{\"gossip_baseline\": 3,\n\"findings\": [],\n\"more\": 1}", ":3:6: this is no baseline"),
        ("{\"gossip_baseline\": 2, \"findings\": []}", "a baseline of version 2"),
        ("{\"gossip_baseline\": 7, \"findings\": []}", "a baseline of version 7"),
    ] {
        fs::write(&file, text).unwrap();
        let ran = place.run(&format!("scan TREE --baseline {shown}")).exits(2).says(part);
        assert!(ran.stderr.contains(&shown), "{ran:?}");
    }
    place.run("scan TREE --baseline /does/not/exist").exits(2).says("/does/not/exist");
    assert!(!place.state.exists(), "nothing was begun");
}

#[test]
fn ignore_files_name_findings_in_three_ways_and_say_so() {
    let place = machine("r");
    let print = prints(&place.run("scan TREE -f jsonl").exits(1)).remove(0);
    let silences = |name: &str, text: &str, count: u64| {
        place.write(name, text);
        let ran = place.run("scan TREE").exits(if count == 2 { 0 } else { 1 });
        assert_eq!(ran.finding_lines().len() as u64, 2 - count, "{text}: {ran:?}");
        if count > 0 {
            let part = format!("not reported: {count} by {}", place.tree.join(name).display());
            assert!(ran.stderr.contains(&part), "{part}: {ran:?}");
        }
        assert_eq!(place.run("scan TREE --no-local-config").exits(1).finding_lines().len(), 2);
        fs::remove_file(place.tree.join(name)).unwrap();
    };
    silences(".gossipignore", &format!("# known\n{print}\n\n"), 1);
    silences(".gossipignore", "config/\n", 1);
    silences(".gossipignore", "*.env\nsrc/main.py\n", 2);
    // gitleaks' names of rules, and its places.
    silences(".gitleaksignore", "config/app.env:github-pat:2\n", 1);
    silences(".gitleaksignore", "config/app.env:github-pat:3\n", 0);
    silences(".gitleaksignore", "config/app.env:jwt:2\n", 0);
    let commit = "0123456789abcdef0123456789abcdef01234567";
    silences(".gitleaksignore", &format!("{commit}:config/app.env:github-pat:2\n"), 0);

    place.write(".gossipignore", "fine\na{b\n");
    let fault = format!("{}:2: `a{{b` is no pattern", place.tree.join(".gossipignore").display());
    place.run("scan TREE").exits(2).says(&fault);
}
