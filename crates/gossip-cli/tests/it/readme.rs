//! The commands of the README, pasted into a shell, and its picture.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::git::git;
use crate::support::{Place, path_with_gossip, token};

const README: &str = include_str!("../../../../README.md");

/// The commands of the block with this number, without what installs the program or wants a store.
fn commands(number: usize) -> Vec<&'static str> {
    let block = README.split("```\n").nth(2 * number + 1).unwrap();
    let is_for_a_test = |line: &&str| !line.starts_with("cargo install") && !line.contains("s3://");
    block.lines().filter(is_for_a_test).collect()
}

fn sh(place: &Place, line: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(&place.tree);
    command.env("PATH", path_with_gossip()).env("GOSSIP_STATE_DIR", &place.state);
    command.output().unwrap()
}

/// Text with the colours of a terminal, as a line of the picture.
fn svg_line(line: &str, y: usize) -> String {
    let spans = format!("\u{1b}[0m{line}");
    let spans = spans.split("\u{1b}[").skip(1).filter_map(|span| {
        let (code, text) = span.split_once('m').unwrap();
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let class = match code {
            "0" => "",
            "1" => " class=\"b\"",
            "2" => " class=\"d\"",
            "1;31" => " class=\"r\"",
            other => panic!("a colour that the picture has none for: {other}"),
        };
        (!text.is_empty()).then(|| format!("<tspan{class}>{text}</tspan>"))
    });
    format!("<text x=\"18\" y=\"{y}\">{}</text>\n", spans.collect::<String>())
}

fn svg(lines: &[String]) -> String {
    let height = 34 + 20 * lines.len();
    let body = lines.iter().enumerate().map(|(at, line)| svg_line(line, 34 + 20 * at));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"860\" height=\"{height}\" \
         viewBox=\"0 0 860 {height}\" role=\"img\" aria-label=\"gossip scan shop finds a token and \
         shows it redacted\">\n<style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\
         monospace;fill:#d6d9df;white-space:pre}}.b{{font-weight:700}}.r{{font-weight:700;fill:#ff6b6b}}\
         .d{{fill:#8b93a1}}</style>\n<rect width=\"860\" height=\"{height}\" rx=\"8\" \
         fill=\"#16181c\"/>\n{}</svg>\n",
        body.collect::<String>()
    )
}

/// `GOSSIP_BLESS=1` makes the picture anew.
#[test]
fn the_picture_is_what_a_terminal_shows_of_the_commands_above_it() {
    let place = Place::new();
    let mut lines = Vec::new();
    for command in commands(0) {
        if !command.starts_with("gossip scan") {
            let output = sh(&place, command);
            assert!(output.status.success(), "{command}: {output:?}");
            continue;
        }
        // `script` gives the program a terminal. How far it is comes and goes.
        let line = format!("script -qec '{command} --no-progress' /dev/null");
        let output = sh(&place, &format!("unset NO_COLOR; TERM=xterm {line}"));
        assert_eq!(output.status.code(), Some(1), "{command}: {output:?}");
        let shown = String::from_utf8(output.stdout).unwrap().replace('\r', "");
        lines.push(format!("\u{1b}[1m$ {command}"));
        lines.extend(shown.lines().map(str::to_owned));
    }
    assert!(lines.len() > 2, "{lines:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/terminal.svg");
    if std::env::var_os("GOSSIP_BLESS").is_some() {
        fs::write(&path, svg(&lines)).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), svg(&lines), "GOSSIP_BLESS=1 makes it anew");
}

#[test]
fn the_other_commands_do_what_is_said_of_them_in_a_repository() {
    let place = Place::with_a_token();
    git(&place.tree, &["init", "-q", "-b", "main"]);
    git(&place.tree, &["add", "-A"]);
    git(&place.tree, &["commit", "-q", "-m", "first"]);
    let commands = commands(1);
    assert_eq!(commands.len(), 5, "{commands:?}");
    for command in &commands {
        let code = if command.contains("--staged") || command.contains("baseline") { 0 } else { 1 };
        let output = sh(&place, command);
        assert_eq!(output.status.code(), Some(code), "{command}: {output:?}");
    }
    assert!(
        fs::read_to_string(place.tree.join("findings.sarif")).unwrap().contains("github-token")
    );
    place.write("new.env", format!("T={}\n", token(2)));
    git(&place.tree, &["add", "new.env"]);
    let staged = commands.iter().find(|command| command.contains("--staged")).unwrap();
    assert_eq!(sh(&place, staged).status.code(), Some(1));
}
