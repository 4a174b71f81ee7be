//! The program, on a real server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio};

use slipstream::Connection;

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
    pub(crate) fn fails(&self, args: &[&str]) -> (Option<i32>, String) {
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
    let output = cli.run(&fold);
    assert!(output.status.success() && output.stderr.is_empty(), "nothing to say: {output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(figures(&said, "stopped")["updates"], 2);
    let (code, error) = cli.fails(&["fold", text(&copy), "--once"]);
    assert!(code == Some(2) && error.contains("of other keys; give the --prefix"), "{error}");
    assert!(error.contains(text(&copy)), "{error}");
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
fn keys_are_listed_and_deleted_and_buckets_are_named() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    assert_eq!(cli.ok(&["buckets"]), "");
    for key in ["rules.gcp", "rules.aws", "allow.x"] {
        cli.ok(&["put", key, "v"]);
    }
    cli.ok(&["--bucket", "a", "put", "k", "v"]);
    assert_eq!(cli.ok(&["buckets"]), "a\nb\n");
    assert_eq!(cli.ok(&["keys", "rules."]), "rules.aws\nrules.gcp\n");
    assert_eq!(cli.ok(&["delete", "rules.aws"]), "");
    assert_eq!(cli.ok(&["delete", "rules.none"]), "");
    assert_eq!(cli.ok(&["keys"]), "allow.x\nrules.gcp\n");
}

#[test]
fn what_goes_wrong_is_said_in_one_line() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { server: &server };
    let (code, error) = cli.fails(&["fold", text(&dir.path().join("copy")), "--once"]);
    assert!(
        code == Some(2) && error.starts_with("slipstream: there is no bucket \"b\"; "),
        "{error}"
    );
    assert!(error.contains("`slipstream put` makes it") && error.contains("--bucket"), "{error}");
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
    assert!(error.contains("fold.log") && error.contains("use another directory"), "{error}");
    let kept = std::fs::read_to_string(dir.path().join("fold.log")).unwrap();
    assert!(kept.starts_with("a letter"), "{kept}");
}

#[test]
fn a_damaged_fold_is_refused_with_what_to_do() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { server: &server };
    for at in 0..10 {
        cli.ok(&["put", &format!("k.{at}"), "value"]);
        cli.ok(&["fold", text(dir.path()), "--once"]);
    }
    let file = dir.path().join("fold.log");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    for args in [&["fold", text(dir.path())][..], &["status", text(dir.path())]] {
        let (code, error) = cli.fails(args);
        assert!(code == Some(2) && error.lines().count() == 1, "{error}");
        assert!(error.starts_with(&format!("slipstream: {}: ", text(&file))), "{error}");
        assert!(error.contains("damaged") && error.contains("delete it"), "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let figures = figures(&cli.ok(&["fold", text(dir.path()), "--once"]), "stopped");
    assert_eq!((figures["revision"], figures["updates"]), (10, 10));
}

#[test]
fn directories_and_servers_that_are_not_there_are_named() {
    let mut server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let cli = Cli { server: &server };
    cli.ok(&["put", "k", "v"]);
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("copy");
    let (code, error) = cli.fails(&["fold", text(&below), "--once"]);
    assert!(code == Some(2) && error.contains(text(&below)), "{error}");
    let (code, error) = cli.fails(&["status", text(&file)]);
    assert!(code == Some(2) && error.contains(text(&file)), "{error}");
    let (code, error) = cli.fails(&["--creds", text(&below), "get", "k"]);
    assert!(code == Some(2) && error.contains(text(&below)), "{error}");
    server.kill();
    let cli = Cli { server: &server };
    let port = server.port();
    let url = format!("nats://me:s3cret@127.0.0.1:{port}");
    let (code, error) = cli.fails(&["--server", &url, "get", "k"]);
    assert!(code == Some(2) && error.contains(&format!("127.0.0.1:{port}: ")), "{error}");
    assert!(error.contains("--server") && !error.contains("s3cret"), "{error}");
}

#[test]
fn help_shows_the_default_server_and_no_value_of_the_environment() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    let help = cli.command(&["--help"]).env("NATS_URL", "nats://me:s3cret@host").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("[default: nats://127.0.0.1:4222]"), "{help}");
    assert!(help.contains("[env: NATS_URL]") && !help.contains("s3cret"), "{help}");
}

#[test]
fn a_value_is_read_from_standard_input() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    let (piped, out) = (Stdio::piped(), Stdio::piped());
    let mut put = cli.command(&["put", "k", "-"]).stdin(piped).stdout(out).spawn().unwrap();
    put.stdin.take().unwrap().write_all(b"two\nlines\n").unwrap();
    let output = put.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout == b"1\n");
    assert_eq!(cli.ok(&["get", "k"]), "two\nlines\n\n");
    // An empty value would be a delete.
    let output = cli.command(&["put", "k", "-"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(cli.ok(&["get", "k"]), "two\nlines\n\n");
}

/// A program that goes on, and the lines that it prints; killed when dropped.
struct Running {
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
    err: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap()).lines();
        let err = BufReader::new(child.stderr.take().unwrap()).lines();
        Self { child, out, err }
    }

    fn line(&mut self) -> String {
        self.out.next().expect("it ended").unwrap()
    }

    fn complaint(&mut self) -> String {
        self.err.next().expect("it ended").unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_watch_prints_what_is_there_and_what_comes() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    cli.ok(&["put", "rules.aws", "AKIA"]);
    cli.ok(&["put", "other", "x"]);
    let mut watch = Running::start(cli.command(&["watch", "rules."]));
    assert_eq!(watch.line(), "1\tput\trules.aws\tAKIA");
    let writer = server.connect().await.open("b").await.unwrap().writer().unwrap();
    writer.delete("rules.aws").await.unwrap();
    // Before the purge, which takes the message of the delete away.
    assert_eq!(watch.line(), "3\tdelete\trules.aws");
    writer.purge("rules.aws").await.unwrap();
    assert_eq!(watch.line(), "4\tpurge\trules.aws");
}

#[tokio::test]
async fn a_watch_of_a_bucket_that_was_made_again_prints_everything_again() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    cli.ok(&["put", "a", "1"]);
    cli.ok(&["put", "b", "1"]);
    let mut watch = Running::start(cli.command(&["watch"]));
    assert_eq!((watch.line(), watch.line()), ("1\tput\ta\t1".into(), "2\tput\tb\t1".into()));
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).delete_stream("KV_b").await.unwrap();
    cli.ok(&["put", "a", "2"]);
    assert_eq!(watch.line(), "1\tput\ta\t2");
    let said = [(); 3].map(|()| watch.complaint());
    assert!(said[0].ends_with("; waiting"), "{said:?}");
    assert!(said[1].ends_with("printed again: the bucket was made again"), "{said:?}");
    assert_eq!(said[2], "slipstream: watching again");
}

mod faults {
    use super::*;

    #[test]
    fn a_watch_goes_on_after_the_server_was_away_and_says_so() {
        let mut server = NatsServer::start();
        let cli = Cli { server: &server };
        cli.ok(&["put", "a", "1"]);
        let mut watch = Running::start(cli.command(&["watch"]));
        assert_eq!(watch.line(), "1\tput\ta\t1");
        server.kill();
        let complaint = watch.complaint();
        assert!(complaint.ends_with("; waiting"), "{complaint}");
        server.restart();
        assert_eq!(watch.complaint(), "slipstream: watching again");
        Cli { server: &server }.ok(&["put", "b", "2"]);
        assert_eq!(watch.line(), "2\tput\tb\t2");
    }

    #[test]
    fn a_fold_says_that_the_server_is_away_and_that_it_is_repaired() {
        let mut server = NatsServer::start();
        let dir = tempfile::tempdir().unwrap();
        let cli = Cli { server: &server };
        cli.ok(&["put", "a", "1"]);
        let mut fold = Running::start(cli.command(&["fold", text(dir.path())]));
        assert_eq!(fold.line(), "loaded revision=0");
        assert_eq!(fold.line(), "synced revision=1 updates=1");
        server.kill();
        let complaint = fold.complaint();
        assert!(complaint.ends_with("; waiting"), "{complaint}");
        // Another log, under the same name.
        std::fs::remove_dir_all(server.store_dir()).unwrap();
        server.restart();
        Cli { server: &server }.ok(&["put", "b", "2"]);
        let said: Vec<_> = (0..3).map(|_| fold.complaint()).collect();
        assert!(said.contains(&"slipstream: watching again".to_owned()), "{said:?}");
        assert!(said.iter().any(|line| line.contains("the bucket is listed: ")), "{said:?}");
        assert_eq!(said[2], "slipstream: repaired: deleted=1 unconfirmed=0");
        // Before the key was put into it, or after.
        assert!(fold.line().starts_with("synced revision="));
    }
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
    assert_eq!((figures["revision"], figures["repairs"]), (40, 1), "the listing begins again");
    assert_eq!(cli.ok(&["range", text(dir.path())]).lines().count(), 40);
}
