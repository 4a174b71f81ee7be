//! Configurations, through the program: what is found, what holds, what is said, what is refused.

use std::fs;

use crate::support::{Place, token};

#[test]
fn a_configuration_is_found_upward_and_says_what_it_does() {
    let place = Place::with_a_token();
    fs::create_dir(place.tree.join(".git")).unwrap();
    place.write("config/mine.txt", "mine_abcdwxyz\n");
    place.write(
        "gossip.toml",
        "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\n[extend]\ndisabledRules = ['jwt']\n",
    );
    let ran = place.run("scan config").exits(1).says("2 findings");
    let said = format!(
        "using {}: 1 rule added, 1 built-in rule disabled",
        place.tree.join("gossip.toml").display()
    );
    let ran = ran.says(&said);
    assert_eq!(ran.finding_lines().len(), 2);
    place.run("scan config --no-local-config").exits(1).says("1 finding");
    // Above the repository is not looked.
    fs::write(place.path("gossip.toml"), "not toml").unwrap();
    fs::remove_file(place.tree.join("gossip.toml")).unwrap();
    let ran = place.run("scan config").exits(1);
    assert!(!ran.stderr.contains("using"), "{ran:?}");
    let ran = place.run("config check .").exits(0);
    assert!(ran.stdout.contains("no configuration"), "{ran:?}");
}

#[test]
fn what_a_local_configuration_silences_is_counted_and_can_be_ignored() {
    let place = Place::with_a_token();
    place.write("gossip.toml", "[allowlist]\npaths = ['other/']\nregexes = ['ghp_']\n");
    let config = place.tree.join("gossip.toml");
    let said = format!("not reported: 1 by allow-lists of {}", config.display());
    place.run("scan TREE").exits(0).says(&said).says("0 findings");
    place.run("findings").exits(0).says(&said);
    place.run("scan TREE --no-local-config").exits(1);
    // Given by name, it is the user's own.
    let given = place.path("given.toml");
    fs::rename(&config, &given).unwrap();
    let ran = place.run(&format!("scan TREE --config {}", given.display())).exits(0);
    assert!(!ran.stderr.contains("not reported"), "{ran:?}");
}

#[test]
fn the_scan_table_sets_options_and_the_command_line_goes_before_it() {
    let place = Place::with_a_token();
    place.write("docs/a.env", format!("T={}\n", token(2)));
    place.write(
        "gossip.toml",
        "[scan]\nexclude = ['docs/']\nexit-code = 9\nseverity = 'low'\nmax-file-size = '1M'\n\
         disable-rules = ['jwt']\n",
    );
    place.run("scan TREE").exits(9).says("1 finding").says("1 excluded");
    place.run("scan TREE --exit-code 4").exits(4);
    place.write(
        "gossip.toml",
        "[scan]\nseverity = 'critical'\nconfidence = 'high'\nonly-rules = ['jwt']\n",
    );
    place.run("scan TREE").exits(0);
    // A baseline beside the configuration.
    place.write("gossip.toml", "[scan]\nbaseline = 'known.json'\n");
    place.run("scan TREE").exits(2).says("known.json");
    place.run("scan TREE --no-local-config").exits(1);
    place.run(&format!("baseline -o {}", place.tree.join("known.json").display())).exits(0);
    place.run("scan TREE").exits(0).says("2 by the baseline");
}

#[test]
fn a_configuration_of_gitleaks_means_what_it_means_there() {
    let place = Place::with_a_token();
    place.write("mine.txt", "mine_abcdwxyz\n");
    let rule = "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\n";
    place.write(".gitleaks.toml", rule);
    let ran = place.run("scan TREE").exits(1).says("1 rule in place of the");
    assert_eq!(ran.finding_lines().len(), 1);
    // An id that a built-in rule has too makes it no built-in one.
    place.write(".gitleaks.toml", rule.replace("'mine'", "'jwt'"));
    place.run("scan TREE").exits(1).says("1 rule in place of the");
    place.write(".gitleaks.toml", format!("[extend]\nuseDefault = true\n{rule}"));
    place.run("scan TREE").exits(1).says("2 findings");
    place.write("base.toml", rule);
    place.write(".gitleaks.toml", "[extend]\npath = 'base.toml'\n");
    place.run("scan TREE").exits(1).says("1 finding");
    place.write(".gitleaks.toml", "[extend]\npath = 'gone.toml'\n");
    let fault =
        format!("{}:2:8: `extend.path`: gone.toml: ", place.tree.join(".gitleaks.toml").display());
    place.run("scan TREE").exits(2).says(&fault);
    place.write(".gitleaks.toml", "title = 'nothing'\n");
    place.run("scan TREE").exits(0).says("there are no rules, so nothing can be found");
    place.write(".gitleaks.toml", "[extend]\nuseDefault = true\ndisabledRules = ['nope']\n");
    place.run("scan TREE").exits(1).says(".gitleaks.toml:3:18: there is no rule `nope` to disable");
}

#[test]
fn a_configuration_with_a_fault_names_file_line_and_fault_and_nothing_is_scanned() {
    let place = Place::with_a_token();
    for (text, part) in [
        ("[scan]\nexlude = ['a']\n", "gossip.toml:2:1: unknown field `exlude`"),
        ("[scan]\nexclude = 'a'\n", "gossip.toml:2:11: invalid type"),
        ("[scan]\nmax-file-size = 'big'\n", "gossip.toml:2:17: a size is"),
        ("[scan]\nseverity = 'worst'\n", "gossip.toml:2:12: unknown variant `worst`"),
        (
            "[scan]\ndisable-rules = ['github-tokn']\n",
            "gossip.toml:2:18: there is no rule `github-tokn`; is it `github-token`?",
        ),
        ("[scan]\nexclude = ['a', 'a{b']\n", "gossip.toml:2:17: `a{b` is no pattern"),
        ("x = = 1\n", "gossip.toml:1:5: "),
        ("[[rules]]\nid = 'a'\nregex = '('\n", "gossip.toml:3:9: rule `a`: `regex` is not a valid"),
        (
            "[[rules]]\nid = 'a'\nregexx = 'b'\n",
            "gossip.toml:3:1: rule `a`: unknown field `regexx`",
        ),
    ] {
        place.write("gossip.toml", text);
        let ran = place.run("scan TREE").exits(2).says(part);
        assert_eq!(ran.stdout, "");
        place.run("config check .").exits(2).says(part);
    }
    assert!(!place.state.exists(), "nothing was begun");
    place.run("scan TREE --config /does/not/exist.toml").exits(2).says("/does/not/exist.toml");
}

#[test]
fn rules_check_tries_examples_and_names_what_is_wrong() {
    let place = Place::new();
    let file = place.path("mine.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        place.run(&format!("rules check {}", file.display()))
    };
    let rule = "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\n";
    let ran = check(&format!("{rule}examples = ['mine_{{lower:8}}']\n")).exits(0);
    assert!(ran.stdout.contains("1 rule, all in order"), "{ran:?}");
    check(&format!("{rule}examples = ['mine_1']\n")).exits(2).says("does not find its example");
    check(&format!("{rule}counterexamples = ['mine_abcdefgh']\n"))
        .exits(2)
        .says("finds its counter");
    check("[[rules]]\nid = 'a'\nregex = '('\n").exits(2).says("mine.toml:3:9");
    check("[[rules]]\nid = 'a'\nregex = '[0-9]{9}'\n").exits(0).says("tried on every byte");
}
