//! The program, on a real server.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::server::NatsServer;

pub(crate) struct Cli<'a> {
    pub(crate) server: &'a NatsServer,
}

impl Cli<'_> {
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_slipstream"));
        command.args(args).env("NATS_URL", self.server.url()).env("SLIPSTREAM_BUCKET", "b");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output of a run that must succeed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Exit code and standard error of one that must not.
    fn fails(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(args);
        assert!(!output.status.success(), "{args:?}");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).spawn().unwrap()
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The `name=value` words of the last line that begins with `word`.
pub(crate) fn figures(output: &str, word: &str) -> BTreeMap<String, u64> {
    let line = output.lines().rfind(|line| line.starts_with(word)).expect(word);
    let figure = |word: &str| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    line.split_whitespace().filter_map(figure).collect()
}

#[test]
fn a_bucket_is_written_folded_and_read_without_the_server() {
    let mut server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let cli = Cli { server: &server };
    assert_eq!(cli.ok(&["put", "rules.aws", "AKIA"]), "1\n");
    assert_eq!(cli.ok(&["put", "rules.gcp", "AIza"]), "2\n");
    assert_eq!(cli.ok(&["put", "allow.x", "y"]), "3\n");
    assert_eq!(cli.ok(&["get", "rules.aws"]), "AKIA\n");
    assert_eq!(cli.fails(&["get", "rules.none"]), (Some(1), String::new()));
    let fold = ["fold", text(&copy), "--once", "--prefix", "rules."];
    assert_eq!(figures(&cli.ok(&fold), "stopped")["updates"], 2);
    let (code, error) = cli.fails(&["fold", text(&copy), "--once"]);
    assert!(code == Some(2) && error.contains("of other keys"), "{error}");
    cli.ok(&["put", "rules.aws", "ASIA"]);
    let again = figures(&cli.ok(&fold), "stopped");
    assert_eq!((again["updates"], again["repairs"]), (1, 0));
    server.kill();
    let cli = Cli { server: &server };
    assert_eq!(cli.ok(&["range", text(&copy), "rules."]), "rules.aws\tASIA\nrules.gcp\tAIza\n");
    assert_eq!(cli.ok(&["range", text(&copy), "rules.g"]), "rules.gcp\tAIza\n");
    assert_eq!(cli.ok(&["status", text(&copy)]), "revision=4 keys=2\n");
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { server: &server };
    let (code, error) = cli.fails(&["fold", text(&dir.path().join("copy")), "--once"]);
    assert_eq!((code, error.as_str()), (Some(2), "slipstream: there is no bucket \"b\"\n"));
    assert!(!dir.path().join("copy").exists(), "nothing is made for a bucket that is not there");
    let (code, error) = cli.fails(&["status", text(dir.path())]);
    assert!(code == Some(2) && error.contains("holds no fold"), "{error}");
    let (code, error) = cli.fails(&["put", "a b", "v"]);
    assert!(code == Some(2) && error.starts_with("slipstream: not a key"), "{error}");
    // A file that is somebody else's is left alone.
    cli.ok(&["put", "k", "v"]);
    std::fs::write(dir.path().join("fold.log"), "a letter, and not a short one at all").unwrap();
    let (code, error) = cli.fails(&["fold", text(dir.path()), "--once"]);
    assert!(code == Some(2) && error.lines().count() == 1, "{error}");
    let kept = std::fs::read_to_string(dir.path().join("fold.log")).unwrap();
    assert!(kept.starts_with("a letter"), "{kept}");
}

#[test]
fn wrong_credentials_are_refused_and_not_repeated() {
    let server = NatsServer::start_with(&["--user", "me", "--pass", "right"]);
    let cli = Cli { server: &server };
    let url = server.url().replace("nats://", "nats://me:wr0ng@");
    let (code, error) = cli.fails(&["--server", &url, "get", "k"]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("slipstream: ") && !error.contains("wr0ng"), "{error}");
    let url = server.url().replace("nats://", "nats://me:right@");
    assert_eq!(cli.ok(&["--server", &url, "put", "k", "v"]), "1\n");
}

/// The client library has a log of its own.
#[test]
fn a_password_is_in_no_log() {
    let server = NatsServer::start_with(&["--user", "me", "--pass", "r1ght@:"]);
    let cli = Cli { server: &server };
    let said = |url: &str| {
        let output = cli.run(&["-v", "--server", url, "put", "k", "v"]);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    for (password, right) in [("r1ght%40%3A", true), ("wr0ng", false)] {
        let (ok, text) = said(&server.url().replace("nats://", &format!("nats://me:{password}@")));
        assert_eq!(ok, right, "{text}");
        assert!(text.contains("attempting connection"), "the log is there: {text}");
        for secret in ["r1ght", "wr0ng"] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    let nobody = "nats://me:wr0ng@127.0.0.1:1";
    let (ok, text) = said(nobody);
    assert!(!ok && !text.contains("wr0ng"), "{text}");
}

/// A limit on the size of files stands in for a disk that is full.
#[test]
fn a_full_disk_ends_the_fold_and_more_room_mends_it() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { server: &server };
    let value = "v".repeat(4000);
    for at in 0..40 {
        cli.ok(&["put", &format!("k.{at}"), &value]);
    }
    let mut limited = Command::new("sh");
    // In blocks of 512 bytes, or of 1024.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\"";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_slipstream"), "fold", text(dir.path())]);
    limited.env("NATS_URL", server.url()).env("SLIPSTREAM_BUCKET", "b");
    let output = limited.output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("the store failed 16 times in a row"), "{error}");
    let figures = figures(&cli.ok(&["fold", text(dir.path()), "--once"]), "stopped");
    assert_eq!((figures["revision"], figures["repairs"]), (40, 0));
    assert_eq!(cli.ok(&["range", text(dir.path())]).lines().count(), 40);
}
