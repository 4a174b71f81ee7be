//! Options of a scan, by what a user sees of them.

use std::fs;
use std::process::Command;

use crate::support::{Place, Ran, token};

/// Tokens in files of several kinds.
fn several() -> Place {
    let place = Place::new();
    for (name, seed) in
        [("src/a.env", 1), ("src/b.txt", 2), ("docs/c.txt", 3), ("vendor/x/d.env", 4)]
    {
        place.write(name, format!("T={}\n", token(seed)));
    }
    place
}

fn paths(ran: &Ran) -> Vec<String> {
    ran.jsonl().iter().map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn exclude_and_include_take_patterns_of_gitignore() {
    let place = several();
    let scan = |options: &str| place.run(&format!("scan TREE -f jsonl {options}"));
    let ran = scan("--exclude vendor/ --exclude *.txt").exits(1);
    assert_eq!(paths(&ran), ["src/a.env"]);
    assert_eq!(paths(&scan("--include *.txt")), ["docs/c.txt", "src/b.txt"]);
    assert_eq!(paths(&scan("--include src/ --exclude b.*")), ["src/a.env"]);
    // What was left out is scanned again when it is wanted.
    assert_eq!(paths(&scan("")).len(), 4);
    place.run("scan TREE --exclude docs/").exits(1).says("not scanned: 1 excluded");
    // Also what would not be read in any case: nobody misses what they left out.
    std::os::unix::fs::symlink("a.env", place.tree.join("src/link")).unwrap();
    let ran = place.run("scan TREE --exclude link").exits(1).says("not scanned: 1 excluded\n");
    assert!(!ran.stderr.contains("1 link"), "{ran:?}");
    place.run("scan TREE --exclude a{b").exits(2).says("`a{b` is no pattern");
}

#[test]
fn files_beyond_the_size_limit_are_left_out_and_counted() {
    let place = several();
    place.write("large.env", format!("T={}\n{}", token(9), "some words\n".repeat(1_000)));
    place.run("scan TREE --max-file-size 1k").exits(1).says("1 too large").says("4 findings");
    place.run("scan TREE --max-file-size 1M").exits(1).says("5 findings");
    place.run("scan TREE --max-file-size 1x").exits(2).says("a size is a number of bytes");
}

#[test]
fn rules_are_disabled_or_chosen_by_name_and_a_wrong_name_suggests_the_nearest() {
    let place = Place::with_a_token();
    place.write("jwt.txt", "x = hello\n");
    place.run("scan TREE --only-rule github-token").exits(1);
    place.run("scan TREE --only-rule jwt").exits(0);
    place.run("scan TREE --disable-rule github-token --only-rule github-token").exits(0);
    // As gitleaks calls it.
    place.run("scan TREE --only-rule github-pat").exits(1);
    place.run("scan TREE --disable-rule github-tokn").exits(2).says("is it `github-token`?");
    place.run("explain githubtoken").exits(2).says("is it `github-token`?");
}

#[test]
fn severity_and_confidence_leave_out_what_is_less_and_say_how_much() {
    let place = Place::with_a_token();
    place.write("mine.txt", "mine_abcdwxyz\n");
    let rules = place.path("mine.toml");
    fs::write(&rules, "[[rules]]\nid = 'mine'\nregex = 'mine_[a-z]{8}'\nseverity = 'low'\n")
        .unwrap();
    let scan =
        |options: &str| place.run(&format!("scan TREE --rules {} {options}", rules.display()));
    assert_eq!(scan("").exits(1).finding_lines().len(), 2);
    let ran = scan("--severity high").exits(1).says("not reported: 1 by --severity");
    assert_eq!(ran.finding_lines().len(), 1);
    let ran = scan("--confidence high").exits(1);
    assert_eq!(ran.finding_lines().len(), 1);
    place.run("findings --severity critical --only x").exits(2);
    assert_eq!(place.run("findings --severity critical").exits(1).finding_lines().len(), 1);
    scan("--severity urgent").exits(2).says("[possible values: low, medium, high, critical]");
}

#[test]
fn the_exit_code_is_as_asked_for() {
    let place = Place::with_a_token();
    place.run("scan TREE --exit-code 42").exits(42);
    place.run("scan TREE --exit-code 0").exits(0);
    place.run("findings --exit-code 3").exits(3);
    place.run("scan TREE --only-rule jwt --exit-code 42").exits(0);
}

#[test]
fn quiet_says_nothing_but_what_went_wrong() {
    let place = Place::with_a_token();
    let ran = place.run("scan TREE -q").exits(1);
    assert_eq!((ran.stderr.as_str(), ran.finding_lines().len()), ("", 1));
    place.run("-q scan /does/not/exist").exits(2).says("/does/not/exist");
}

#[test]
fn redact_is_the_default_and_taken_for_the_sake_of_habit() {
    let place = Place::with_a_token();
    for option in ["--redact", "--redact=100", "--redact=20"] {
        let ran = place.run(&format!("scan TREE {option}")).exits(1);
        assert!(ran.stdout.contains("ghp_… (40 bytes)"), "{ran:?}");
    }
}

#[test]
fn colours_are_for_terminals_and_can_be_turned_off() {
    let place = Place::with_a_token();
    let on_terminal = |options: &str, variable: &str| {
        // `script` gives the program a terminal.
        let mut command = Command::new("script");
        let program = env!("CARGO_BIN_EXE_gossip");
        let line = format!("{program} scan {} --no-progress {options}", place.tree.display());
        command.args(["-qec", &line, "/dev/null"]).env("GOSSIP_STATE_DIR", &place.state);
        command.env_remove("NO_COLOR").env("TERM", "xterm");
        if !variable.is_empty() {
            command.env("NO_COLOR", variable);
        }
        Ran::of(command.output().unwrap(), &line).stdout
    };
    assert!(on_terminal("", "").contains("\u{1b}[1;31mgithub-token"));
    assert!(!on_terminal("--no-color", "").contains('\u{1b}'));
    assert!(!on_terminal("", "1").contains('\u{1b}'));
    assert!(!place.run("scan TREE").exits(1).stdout.contains('\u{1b}'));
}

#[test]
fn an_unknown_option_or_format_suggests_the_nearest() {
    let place = Place::with_a_token();
    place.run("scan TREE --exlude x").exits(2).says("'--exclude'");
    place.run("scan TREE --format sarf").exits(2).says("'sarif'");
    place.run("scna TREE").exits(2).says("'scan'");
    assert!(!place.state.exists(), "nothing was begun");
}

#[test]
fn paths_are_as_seen_from_where_the_command_runs() {
    let place = Place::with_a_token();
    let first = |dir: &std::path::Path, target: &str| {
        let mut command = place.command();
        let output = command.current_dir(dir).args(["scan", target]).output().unwrap();
        let ran = Ran::of(output, "scan").exits(1);
        ran.finding_lines()[0].split(":1:14").next().unwrap().to_owned()
    };
    let above = place.tree.parent().unwrap();
    assert_eq!(first(above, "tree"), "tree/config/app.env");
    assert_eq!(first(&place.tree, "."), "config/app.env");
    assert_eq!(first(&place.tree, "config/app.env"), "config/app.env");
    let elsewhere = first(std::path::Path::new("/"), place.tree.to_str().unwrap());
    let whole = place.tree.canonicalize().unwrap().join("config/app.env");
    assert_eq!(elsewhere, whole.strip_prefix("/").unwrap().to_str().unwrap());
}

#[test]
fn findings_new_since_a_run_are_those_that_no_run_before_had_seen() {
    let place = Place::with_a_token();
    place.run("scan TREE").exits(1);
    place.write("later.env", format!("T={}\n", token(5)));
    // The old one is read again, and is not new for that.
    place.write("config/app.env", format!("# a comment\nGITHUB_TOKEN={}\n", token(1)));
    place.run("scan TREE").exits(1).says("2 findings");
    let ran = place.run("findings --new-since 1 -f jsonl").exits(1);
    assert_eq!(paths(&ran), ["later.env"]);
    place.run("findings --new-since 2").exits(0);
    place.run("findings --new-since 9").exits(2).says("there is no run 9");
}

#[test]
fn explain_says_what_a_rule_finds_and_what_to_do() {
    let place = Place::new();
    let ran = place.run("explain github-token").exits(0);
    for part in ["critical", "github.com/settings/tokens", "Revoke it", "gossip:allow"] {
        assert!(ran.stdout.contains(part), "`{part}` is not in {ran:?}");
    }
    // As gitleaks calls it.
    assert!(place.run("explain aws-access-token").exits(0).stdout.starts_with("aws-access-key-id"));
}

#[test]
fn completions_and_the_manual_page_name_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = place.run(&format!("completions {shell}")).exits(0);
        assert!(ran.stdout.contains("new-since"), "{shell}");
    }
    let page = place.run("man").exits(0).stdout;
    assert!(page.starts_with(".ie") && page.contains("baseline"), "{page}");
}
