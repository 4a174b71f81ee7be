//! Folds that are killed while somebody writes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use slipstream::{
    Connection, FjallSnapshot, FoldConfig, KvWriter, Snapshot, SnapshotStore, WatchScope,
    fold_control, watch_applied,
};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::task::JoinHandle;

use super::super::support::{Disk, PATIENCE, Seen, bucket_on, config, start_on};
use super::equal_in_the_end;
use crate::cli::{Cli, figures, text};
use crate::server::{NatsServer, connect};

/// In one run of the test command; a soak multiplies it.
const KILLS: u64 = 15;
/// The writer comes back to a key after so many writes: later than between two looks of the fold.
const RING: u64 = 100_000;

/// Writes all the time, but for when somebody takes its turn.
struct Writer {
    turn: Arc<Mutex<()>>,
    /// The last revision that it was told.
    last: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Writer {
    fn start(writer: Arc<dyn KvWriter>) -> Self {
        let turn = Arc::new(Mutex::new(()));
        let (told, last) = watch::channel(0);
        let its_turn = Arc::clone(&turn);
        let task = tokio::spawn(async move {
            for written in 0u64.. {
                let _turn = its_turn.lock().await;
                let key = format!("k.{}", written * 7919 % RING);
                let version = writer.put(&key, format!("{written}").into()).await.unwrap();
                told.send_replace(version.as_u64().unwrap());
            }
        });
        Self { turn, last, task }
    }

    fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Waits for so many more writes.
    async fn goes_on(&self, writes: u64) {
        let (mut last, until) = (self.last.clone(), self.last() + writes);
        let waited = tokio::time::timeout(PATIENCE, last.wait_for(|last| *last >= until)).await;
        waited.expect("the writer goes on").unwrap();
    }

    async fn pause(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn soak_scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().unwrap())
}

/// Of a file that may not be there yet.
fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// A writer, and children that fold into one directory and are killed. After each, what the next
/// one reads is exactly what the log has above the cursor on disk, and then the copy is the bucket.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_killed_again_and_again_reads_only_what_it_lacks() {
    let kills = KILLS * soak_scale();
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    for at in 0..2000 {
        bucket.put(&format!("k.{at}"), "first").await;
    }
    let dir = tempfile::tempdir().unwrap();
    let (copy, fold) = (text(dir.path()), dir.path().join("fold.log"));
    let cli = Cli { server: &server };
    let writer = Writer::start(Arc::clone(&bucket.writer));
    let (mut began_at, mut behind, mut halfway) = (0, 0, 0);
    for round in 0..kills {
        let before = length(&fold);
        let mut child = cli.spawn(&["fold", copy]);
        // From the very beginning of the child's life to well into it.
        if round % 2 == 1 {
            let progress = async {
                while length(&fold) == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(PATIENCE, progress).await.expect("the child folds");
        }
        writer.goes_on(20 + round * 37 % 400).await;
        let written = writer.last();
        child.kill().unwrap();
        child.wait().unwrap();
        writer.goes_on(20).await;
        let paused = writer.pause().await;
        let stored = Snapshot::load(&fold).unwrap().cursor.revision().unwrap_or_default();
        assert!(stored >= began_at, "round {round}: back from {began_at} to {stored}");
        behind += u64::from(stored < written);
        halfway += u64::from(began_at < stored && stored < written);
        let current = bucket.reader.scan("").await.unwrap();
        let lacking = current.iter().filter(|entry| entry.version.as_u64() > Some(stored)).count();
        let output = cli.ok(&["fold", copy, "--once"]);
        let run = figures(&output, "stopped");
        assert_eq!(run["repairs"], 0, "round {round}: {output}");
        assert_eq!(run["updates"], lacking as u64, "round {round}, from {stored}: {output}");
        began_at = run["revision"];
        assert_eq!(began_at, writer.last(), "round {round}: {output}");
        let folded = Snapshot::load(&fold).unwrap().entries;
        let current = current.into_iter().map(|entry| (entry.key.clone(), entry));
        assert!(folded == current.collect::<BTreeMap<_, _>>(), "round {round}: not the bucket");
        drop(paused);
    }
    assert!(behind * 3 >= kills, "{behind} of {kills} were killed before they had everything");
    assert!(halfway * 3 >= kills, "{halfway} of {kills} were killed when they had some of it");
}

/// Set in a process that is to be killed: the path of its fold, and where its server is.
const CHILD: [&str; 2] = ["SLIPSTREAM_KILLED_FOLD", "SLIPSTREAM_KILLED_FOLD_SERVER"];
const FJALL_KILLS: u64 = 5;

/// Folds until it is killed. Says so once it has stored something.
async fn fold_on_fjall(path: &Path, url: &str) {
    let bucket = connect(url).await.open("b").await.unwrap();
    let (_, store) = FjallSnapshot::load(path).unwrap();
    let config = FoldConfig::new(bucket.watcher().unwrap(), Some(bucket.reader()));
    let (handle, control) = fold_control();
    let folding = tokio::spawn(watch_applied(config, store, (), control));
    handle.status().wait_for(|status| status.updates > 0).await.unwrap();
    // libtest has begun a line.
    println!("\nfolding");
    folding.await.unwrap();
}

/// Returns when it has stored something.
fn spawn_fold_on_fjall(path: &Path, server: &NatsServer) -> Child {
    let name = "folds::faults::kills::a_fold_on_fjall_that_is_killed_reads_only_what_it_lacks";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD[0], path)
        .env(CHILD[1], server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "folding"), "the child folds");
    child
}

/// As above, on an engine. The next fold is in this process.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_on_fjall_that_is_killed_reads_only_what_it_lacks() {
    if let [Ok(path), Ok(url)] = CHILD.map(std::env::var) {
        return fold_on_fjall(Path::new(&path), &url).await;
    }
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    bucket.put("stays", "v").await;
    let disk = Disk::new();
    let writer = Writer::start(Arc::clone(&bucket.writer));
    let (kills, mut began_at, mut behind) = (FJALL_KILLS * soak_scale(), 0, 0);
    for round in 0..kills {
        let mut child = spawn_fold_on_fjall(&disk.path(), &server);
        writer.goes_on(20 + round * 37 % 400).await;
        let written = writer.last();
        child.kill().unwrap();
        child.wait().unwrap();
        writer.goes_on(20).await;
        let paused = writer.pause().await;
        let stored = FjallSnapshot::load(&disk.path()).unwrap().0.revision().unwrap();
        assert!(stored > began_at, "round {round}: {began_at}, {stored}");
        behind += u64::from(stored < written);
        let current = bucket.reader.scan("").await.unwrap();
        let lacking = current.iter().filter(|entry| entry.version.as_u64() > Some(stored)).count();
        let (all, seen) = (WatchScope::All, Seen::default());
        let fold = start_on::<FjallSnapshot>(config(&bucket, &all), &disk, seen.clone());
        equal_in_the_end(&bucket, &all, &fold, &seen).await;
        assert_eq!(seen.all(), lacking as u64, "round {round}, from {stored}");
        began_at = fold.stop().await.cursor.revision().unwrap();
        drop(paused);
    }
    assert!(behind * 3 >= kills, "{behind} of {kills} were killed before they had everything");
}
