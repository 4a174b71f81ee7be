//! Configurations, through the program: what is found, what holds, what is said, what is refused.

use std::fs;

use crate::support::{Place, Ran, token};

/// Whoever planted a secret can plant a comment beside it.
#[test]
fn what_a_comment_silences_is_counted_and_said() {
    let place = Place::new();
    let lines = |comment: &str| format!("A={} # {comment}\nA={}\n", token(1), token(2));
    place.write("app.env", lines("prod"));
    let prints = |ran: &Ran| -> Vec<_> {
        ran.jsonl().iter().map(|row| row["fingerprint"].clone()).collect()
    };
    let before = prints(&place.run("scan TREE -f jsonl").exits(1));
    place.write("app.env", lines("gossip:allow"));
    place.write("b.env", format!("B={} # gitleaks:allow\n", token(3)));
    let proof = place.path("proof");
    for quiet in ["", "-q"] {
        let words = format!("scan TREE {quiet} -f jsonl --proof {}", proof.display());
        let ran = place.run(&words).exits(1).says("not reported: 2 by comments in their lines");
        // The one below it keeps its fingerprint.
        assert_eq!(prints(&ran), before[1..]);
    }
    place.run("runs").exits(0).prints("  1 finding  ");
    let ran = place.run(&format!("proof verify {}", proof.display())).exits(0);
    ran.prints("1 finding, 2 allowed by comments");
    place.run("findings").exits(1).says("2 by comments");
    // Once the comment is gone it is new: nobody was told of it before.
    let file = place.path("baseline.json");
    place.run(&format!("baseline -o {}", file.display())).exits(0).says("1 finding of");
    place.write("b.env", format!("B={}\n", token(3)));
    let words = format!("scan TREE -f jsonl --baseline {}", file.display());
    assert_eq!(place.run(&words).exits(1).jsonl()[0]["path"], "b.env");
    let new = place.run("findings --new-since 3 -f jsonl").exits(1).jsonl();
    assert_eq!((new.len(), &new[0]["path"]), (1, &"b.env".into()));
}

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

/// Who planted a secret can plant a configuration.
#[test]
fn a_configuration_beside_the_target_that_takes_something_away_is_announced_even_to_the_quiet() {
    let place = Place::with_a_token();
    let config = place.tree.join("gossip.toml");
    for (text, code, parts) in [
        (
            "[scan]\nexit-code = 0\nseverity = 'critical'\nconfidence = 'high'\n",
            0,
            "reports nothing below critical severity; reports nothing below high confidence; \
             exits with 0 when secrets are found\n",
        ),
        (
            "[scan]\nexclude = ['config/', 'b', 'c', 'd']\ninclude = ['*.zzz']\nmax-file-size = 4\n",
            0,
            "leaves out `config/`, `b`, `c` and 1 more; scans only `*.zzz`; leaves out files above 4 B\n",
        ),
        ("[scan]\nonly-rules = ['jwt']\n", 0, "built-in rules disabled\n"),
        ("[[rules]]\nid = 'jwt'\nregex = 'zzzz'\n", 1, "1 built-in rule changed\n"),
        (
            "[[allowlists]]\npaths = ['^config/']\n[[rules]]\nid = 'jwt'\n\
             [[rules.allowlists]]\nstopwords = ['x']\n",
            0,
            "2 allow-lists, of paths `^config/`\n",
        ),
    ] {
        fs::write(&config, text).unwrap();
        let using = format!("gossip: using {}: ", config.display());
        place.run("scan TREE -q").exits(code).says(&using).says(parts);
        let checked = place.run("config check .").exits(0).stdout;
        assert!(checked.contains(parts), "{checked}");
    }
    assert_eq!(place.run("scan TREE -q --no-local-config").exits(1).stderr, "");
    // What only adds is no warning, and what the command line says otherwise does not hold.
    fs::write(&config, "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\n").unwrap();
    assert_eq!(place.run("scan TREE -q").exits(1).stderr, "");
    fs::write(&config, "[scan]\nexit-code = 0\nseverity = 'critical'\n").unwrap();
    let ran = place.run("scan TREE -q --exit-code 3 --severity low").exits(3);
    assert_eq!(ran.stderr, "");
    // A report of what was found goes by it, too.
    place.run("findings -q").exits(0).says("exits with 0 when secrets are found");
}

#[test]
fn what_the_levels_of_a_configuration_keep_back_is_put_down_to_it() {
    let place = Place::with_a_token();
    place.write("mine.txt", "mine_abcdwxyz\n");
    let rule = "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\nseverity = 'low'\n";
    place.write("gossip.toml", format!("[scan]\nseverity = 'high'\n{rule}"));
    let config = place.tree.join("gossip.toml");
    let said = format!("not reported: 1 by the severity or confidence of {}", config.display());
    for quiet in ["", "-q"] {
        place.run(&format!("scan TREE {quiet}")).exits(1).says(&said);
    }
    place.run("scan TREE --severity medium").exits(1).says("1 by --severity or --confidence");
    place.write(".gossipignore", "config/\n");
    let said = format!("1 by {}", place.tree.join(".gossipignore").display());
    place.run("scan TREE -q --severity medium").exits(0).says(&said);
}

/// A report names the rule, and says `gossip explain RULE`.
#[test]
fn rules_of_a_configuration_are_listed_and_explained() {
    let place = Place::new();
    place.write(
        "gossip.toml",
        "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\ndescription = 'Ours'\n",
    );
    let explained = place.run("explain mine").exits(0).stdout;
    assert!(explained.starts_with("mine\n  Ours\n"), "{explained}");
    place.run("explain mine --no-local-config").exits(2).says("there is no rule `mine`");
    let listed = |options: &str| {
        let ran = place.run(&format!("rules list -f jsonl {options}")).exits(0);
        ran.jsonl().iter().any(|rule| rule["id"] == "mine")
    };
    assert!(listed(""));
    assert!(!listed("--no-local-config"));
    let given = place.path("given.toml");
    fs::rename(place.tree.join("gossip.toml"), &given).unwrap();
    assert!(!listed(""));
    assert!(listed(&format!("--config {}", given.display())));
    place.run(&format!("explain mine --config {}", given.display())).exits(0);
    // One that it disables may have found something before.
    place.write("gossip.toml", "[extend]\ndisabledRules = ['jwt']\n");
    place.run("explain jwt").exits(0);
    place.run("explain aws-access-token").exits(0);
}

#[test]
fn rules_check_tries_what_the_file_says_and_not_the_rules_below_it() {
    let place = Place::new();
    let file = place.path("mine.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        place.run(&format!("rules check {}", file.display()))
    };
    let docs = include_str!("../../../../docs/rules.md");
    let blocks = docs.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    for (block, number) in blocks.zip(1..) {
        let ran = check(block).exits(0);
        assert_eq!((number, ran.stderr.as_str()), (1, ""));
        assert!(ran.stdout.contains("1 rule, all in order"), "{ran:?}");
    }
    // Examples are tried wherever the rule holds.
    let bound = "[[rules]]\nid = 'mine'\npath = '\\.mine$'\n";
    check(&format!("{bound}regex = 'mine_[a-z]{{8}}'\nexamples = ['mine_{{lower:8}}']\n")).exits(0);
    check(&format!("{bound}regex = 'mine_[a-z]{{8}}'\nexamples = ['mine']\n")).exits(2);
    // Of a rule for paths, they are paths.
    let ran =
        check(&format!("{bound}examples = ['a.mine']\ncounterexamples = ['a.txt']\n")).exits(0);
    assert_eq!(ran.stderr, "");
    check(&format!("{bound}examples = ['a.txt']\n")).exits(2).says("does not find its example");
    // What adjusts a built-in rule is tried with it.
    let adjusted = "[extend]\nuseDefault = true\n[[rules]]\nid = 'github-token'\n";
    let ran = check(&format!("{adjusted}tags = ['ours']\n")).exits(0);
    assert!(ran.stdout.contains("1 rule, all in order"), "{ran:?}");
    check(&format!("{adjusted}[[rules.allowlists]]\nregexes = ['ghp_']\n")).exits(2);
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
