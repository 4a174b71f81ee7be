//! Folds that are killed while somebody writes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use slipstream::{Connection, LogCursor, Snapshot, StoreConfig};

use crate::cli::{Cli, figures, text};
use crate::killed::{PATIENCE, Writer, soak_scale};
use crate::server::NatsServer;

/// In one run of the test command; a soak multiplies it.
const KILLS: u64 = 15;

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
    let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
    let bucket = server.connect().await.store("b", &config).await.unwrap();
    let (reader, writer) = (bucket.reader(), bucket.writer().unwrap());
    for at in 0..2000 {
        writer.put(&format!("k.{at}"), "first".into()).await.unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let (copy, fold) = (text(dir.path()), dir.path().join("fold.log"));
    let cli = Cli { server: &server };
    let writer = Writer::start(writer);
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
        let cursor = Snapshot::load(&fold).unwrap().cursor;
        let stored = cursor.revision().unwrap_or_default();
        // One that is killed in its first listing begins again.
        let in_repair = LogCursor::decode(&cursor).is_ok_and(|cursor| cursor.in_repair);
        assert!(stored >= began_at, "round {round}: back from {began_at} to {stored}");
        behind += u64::from(stored < written);
        halfway += u64::from(began_at < stored && stored < written);
        let current = reader.scan("").await.unwrap();
        let lacking = current.iter().filter(|entry| entry.version.as_u64() > Some(stored)).count();
        let output = cli.ok(&["fold", copy, "--once"]);
        let run = figures(&output, "stopped");
        assert_eq!(run["repairs"], u64::from(in_repair), "round {round}: {output}");
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
