//! `export`, `import`, `pointer`, `prune` and `fold --store`, on real servers.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use slipstream::{Connection, Discard, StoreConfig};

use crate::cli::{Cli, figures, text};
use crate::server::NatsServer;
use crate::weed::Weed;

/// The program, with what it needs to know of a store.
struct Node<'a> {
    cli: Cli<'a>,
    weed: &'a Weed,
}

const STORE: &str = "s3://fleet/folds";

impl Node<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cli.command(args);
        command.envs(self.weed.variables(self.weed.endpoint())).env("SLIPSTREAM_STORE", STORE);
        command
    }

    /// Exit code, standard output and standard error.
    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn ok(&self, args: &[&str]) -> String {
        let (code, out, error) = self.run(args);
        assert_eq!(code, Some(0), "{args:?}: {error}");
        out
    }
}

/// A bucket that evicts, a node that has everything, and others that begin with its artifacts.
#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_shares_artifacts_through_s3() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    weed.put("fleet", "made", b"the bucket").unwrap();
    let (max_bytes, discard) = (Some(30_000), Discard::Old);
    let config = StoreConfig { max_bytes, discard, ..StoreConfig::default() };
    let bucket = server.connect().await.store("b", &config).await.unwrap();
    let writer = bucket.writer().unwrap();
    let write = async |keys: std::ops::Range<u32>| {
        for at in keys {
            writer.put(&format!("k.{at:03}"), "v".repeat(200).into()).await.unwrap();
        }
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let node = Node { cli: Cli { server: &server }, weed: &weed };

    let (code, out, error) = node.run(&["pointer"]);
    assert!(code == Some(1) && out.is_empty() && error.contains("has no artifact"), "{error}");
    let (code, _, error) = node.run(&["import", &at("none")]);
    assert!(code == Some(1) && error.contains("`slipstream fold` lists it"), "{error}");

    write(0..50).await;
    let first = at("first");
    let published = node.ok(&["export", &first]);
    assert_eq!(figures(&published, "published")["revision"], 50, "{published}");
    assert!(!Path::new(&first).join("artifact").exists(), "it is uploaded");
    let second = at("second");
    let imported = node.ok(&["import", &second]);
    assert_eq!(figures(&imported, "imported")["revision"], 50, "{imported}");
    let (code, _, error) = node.run(&["import", &second]);
    assert!(code == Some(2) && error.contains("something at the destination"), "{error}");
    write(50..60).await;
    let folded = node.ok(&["fold", &second, "--once"]);
    assert_eq!(figures(&folded, "stopped")["updates"], 10, "only what is newer: {folded}");

    // The second node is away for longer than the bucket remembers.
    for from in (60..300).step_by(40) {
        node.ok(&["fold", &first, "--once"]);
        write(from..from + 40).await;
    }
    let published = node.ok(&["export", &first, "--zstd"]);
    assert!(published.starts_with("published revision=300 "), "{published}");
    write(295..305).await;
    let floor = bucket.watcher().unwrap().log().await.unwrap().first;
    assert!(floor > 100, "{floor}");
    let (code, out, error) = node.run(&["fold", &second, "--once", "--store", STORE]);
    assert!(code == Some(0) && error.contains("downloading an artifact"), "{error}");
    assert_eq!(figures(&out, "stopped")["updates"], 10, "{out}");
    assert!(!error.contains("may be missing"), "{error}");
    assert_eq!(node.ok(&["range", &second]).lines().count(), 305);
    // Without an artifact it has what the bucket has left, and says so.
    let nowhere = "s3://nowhere/folds";
    let (_, out, error) = node.run(&["fold", &at("listed"), "--once", "--store", nowhere]);
    let said = format!("{nowhere}: the fold is not restored from an artifact: there is no");
    assert!(error.contains("keys may be missing") && error.contains(&said), "{out}{error}");
    assert!(node.ok(&["range", &at("listed")]).lines().count() < 305);
    // Nor does it take the place of one that lacks nothing.
    let (code, out, error) = node.run(&["export", &at("listed")]);
    assert!(code == Some(1) && out == "not-published less-complete\n", "{out}{error}");
    assert!(error.contains("older than the fold") && error.contains("not published: "), "{error}");
    // A new directory is restored first.
    let published = node.ok(&["export", &at("fresh")]);
    assert!(published.starts_with("published revision=310 "), "{published}");
    assert!(!published.contains("may-lack"), "{published}");
    assert_eq!(node.ok(&["range", &at("fresh")]).lines().count(), 305);

    let pointer = node.ok(&["pointer"]);
    assert!(pointer.starts_with("revision=310 bytes="), "{pointer}");
    for word in [" age=", " behind=", " bucket=b ", " backend=append-log ", " prefixes=\"\""] {
        assert!(pointer.contains(word), "{pointer}");
    }
    assert_eq!(node.ok(&["prune"]), "deleted=0\n", "they are new");
    assert_eq!(node.ok(&["prune", "--grace", "0"]), "deleted=2\n");
    assert!(node.ok(&["import", &at("third")]).starts_with("imported revision=310 "));
}

/// Of nodes that export by one lease, one publishes; by another, or by none, whoever comes does.
#[test]
fn exporters_that_share_a_lease_publish_once_in_a_round() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    weed.put("fleet", "made", b"the bucket").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let node = Node { cli: Cli { server: &server }, weed: &weed };
    node.cli.ok(&["put", "rules.aws", "1"]);
    let export = |name: &str, more: &[&str]| {
        let copy = dir.path().join(name);
        let mut command = node.command(&[&["export", text(&copy)], more].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let ended = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (out, error) = (text(output.stdout), text(output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}{error}");
        (out, error)
    };
    for round in 0..2u64 {
        let longer = ["--lease-bucket", &format!("leases-{round}"), "--lease-seconds", "600"];
        let both = ["first", "second"].map(|name| export(name, &longer));
        let mut both = both.map(ended);
        // The one that published comes last.
        both.sort_by_key(|(out, _)| out.starts_with("published"));
        let [(held, error), (published, _)] = both;
        assert!(published.starts_with(&format!("published revision={}", round + 1)), "{published}");
        assert_eq!(held, "not-published lease-held\n", "{error}");
        assert!(error.contains(" has the lease for another "), "{error}");
        node.cli.ok(&["put", "rules.aws", "2"]);
    }
    let (published, _) = ended(export("first", &["--lease-bucket", "leases"]));
    assert!(published.starts_with("published revision=3 "), "{published}");
    assert_eq!(node.cli.ok(&["--bucket", "leases", "keys"]), "b\n", "named as the artifact");
    node.cli.ok(&["put", "rules.aws", "3"]);
    assert!(ended(export("second", &[])).0.starts_with("published revision=4 "), "without a lease");
    let (code, _, error) = node.run(&["export", "x", "--lease-bucket", "not.a.name"]);
    assert!(code == Some(2) && error.lines().count() == 1, "{error}");
}

/// Folds that are killed while they are restored: each begins again, and has everything then.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_is_killed_while_it_is_restored_begins_again() {
    const KEYS: u32 = 20_000;
    let (server, weed) = (NatsServer::start(), Weed::start());
    weed.put("fleet", "made", b"the bucket").unwrap();
    let (max_bytes, discard) = (Some(8 << 20), Discard::Old);
    let config = StoreConfig { max_bytes, discard, ..StoreConfig::default() };
    let bucket = server.connect().await.store("b", &config).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let node = Node { cli: Cli { server: &server }, weed: &weed };
    // Folded before it is evicted.
    let mut first = node.cli.spawn(&["fold", &at("first")]);
    for from in (0..KEYS).step_by(100) {
        let mut writes = tokio::task::JoinSet::new();
        for at in from..from + 100 {
            let writer = bucket.writer().unwrap();
            writes.spawn(async move {
                writer.put(&format!("k.{at:05}"), "v".repeat(400).into()).await.unwrap();
            });
        }
        writes.join_all().await;
    }
    let log = bucket.watcher().unwrap().log().await.unwrap();
    assert!(log.first > 1000, "{log:?}");
    let status = || node.ok(&["status", &at("first")]);
    let whole = format!("revision={} keys={KEYS}\n", log.last);
    while status() != whole {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(node.ok(&["export", &at("first")]).starts_with("published "));
    let mut halfway = 0;
    for round in 0..4 {
        let copy = at(&format!("copy-{round}"));
        let file = Path::new(&copy).join("fold.log");
        let mut child = node.command(&["fold", &copy, "--store", STORE]).spawn().unwrap();
        // It has some of it.
        while std::fs::metadata(&file).map_or(0, |file| file.len()) < 100_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        halfway += u32::from(node.ok(&["status", &copy]).contains(" in-repair"));
        let (code, out, error) = node.run(&["fold", &copy, "--once", "--store", STORE]);
        assert!(code == Some(0) && !error.contains("may be missing"), "{out}{error}");
        assert_eq!(node.ok(&["status", &copy]), whole, "round {round}: {error}");
        assert!(node.ok(&["range", &copy]) == node.ok(&["range", &at("first")]));
    }
    assert!(halfway > 0, "none was killed in the middle");
}

/// Nothing of an upload that somebody interrupts is left, here or in the store.
#[test]
fn an_interrupted_export_cleans_up() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    weed.put("fleet", "made", b"the bucket").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy");
    let node = Node { cli: Cli { server: &server }, weed: &weed };
    node.cli.ok(&["put", "rules.aws", &"v".repeat(100_000)]);
    let mut export = node.command(&["export", text(&copy), "--bytes-per-second", "1000"]);
    let child = export.stderr(Stdio::piped()).spawn().unwrap();
    while !copy.join("artifact").join("MANIFEST.json").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("interrupted"), "{error}");
    assert!(!error.contains("may be left"), "{error}");
    assert!(!copy.join("artifact").exists());
    let (code, _, _) = node.run(&["pointer"]);
    assert_eq!(code, Some(1), "nothing was published");
}

#[test]
fn what_goes_wrong_with_a_store_is_said_in_one_line() {
    let server = NatsServer::start();
    let dir = tempfile::tempdir().unwrap();
    let (copy, store) = (dir.path().join("copy"), dir.path().join("store"));
    let cli = Cli { server: &server };
    cli.ok(&["put", "rules.aws", "1"]);
    let fails = |args: &[&str], what: &[&str]| {
        let (code, error) = cli.fails(args);
        assert!(code == Some(2) && error.lines().count() == 1, "{error}");
        for what in what {
            assert!(error.contains(what), "{what}: {error}");
        }
    };
    fails(&["pointer", "--store", "ftp://host"], &["ftp://host", "s3://", "a directory"]);
    fails(&["pointer", "--store", text(&store)], &[text(&store), "make the directory first"]);
    for secret in ["s3://name:hush@bucket/folds", "s3://name:hu/sh@bucket"] {
        let (code, error) = cli.fails(&["pointer", "--store", secret]);
        assert!(code == Some(2) && error.contains("from the environment"), "{error}");
        assert!(!error.contains("hu") && !error.contains("name:"), "{error}");
    }
    std::fs::create_dir(&store).unwrap();
    let export = ["export", text(&copy), "--store", text(&store), "--prefix", "rules."];
    assert!(cli.ok(&export).starts_with("published revision=1 "));
    cli.ok(&["put", "rules.aws", "2"]);
    // After what became of the fold.
    let (code, error) = cli.fails(&export);
    let last = error.lines().last().unwrap();
    assert!(code == Some(2) && last.contains("--non-atomic"), "{error}");
    assert!(
        cli.ok(&[&export[..], &["--non-atomic"]].concat()).starts_with("published revision=2 ")
    );
    let import = ["import", text(dir.path()), "--store", text(&store)];
    fails(&import, &["another scope", "--prefix"]);
    assert!(!dir.path().join("fold.log").exists());
    cli.ok(&["--bucket", "other", "put", "k", "v"]);
    let other = ["--bucket", "other", "--artifact", "b", "--prefix", "rules."];
    fails(&[&import[..], &other].concat(), &["the bucket \"b\", not of \"other\"", "--artifact"]);
    let pointer = store.join("b.manifest.json");
    std::fs::write(pointer, "rubbish").unwrap();
    fails(&["pointer", "--store", text(&store)], &["cannot be read", "`slipstream export`"]);
}

#[test]
fn help_teaches() {
    let server = NatsServer::start();
    let cli = Cli { server: &server };
    let help = cli.ok(&["--help"]);
    assert!(help.contains("slipstream import ./new --store s3://"), "{help}");
    let help = cli.ok(&["export", "--help"]);
    for what in
        ["brought up to date first", "AWS_ACCESS_KEY_ID", "--zstd", "--prefix", "rounds of a fleet"]
    {
        assert!(help.contains(what), "{what}: {help}");
    }
}
