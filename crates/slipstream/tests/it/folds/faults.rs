//! Servers that are killed, wires that are cut, a log that goes back in time.

mod kills;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rstest::rstest;
use slipstream::{
    AppendLogSnapshot, BatchConfig, Connection, CursorExpiry, FjallSnapshot, FoldConfig, KvWriter,
    SnapshotStore, WatchScope,
};

use super::cable::{Cable, Wire};
use super::support::{
    Disk, Gate, Running, Seen, Stops, bucket_on, config, contents_in, contents_of, fill_mixed,
    scopes, start, start_on, start_with,
};
use crate::backend::Bucket;
use crate::cluster::Cluster;
use crate::server::{NatsServer, connect};

/// Writes until it is told to stop, and does not mind when the server is away. Every other key is
/// new, so that the log keeps something old however long it writes; some are of no prefix.
struct Writing {
    stop: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<u64>,
}

impl Writing {
    fn start(writer: Arc<dyn KvWriter>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            let mut written = 0;
            while !stopped.load(Ordering::Relaxed) {
                let key = match written % 4 {
                    0 | 2 => format!("k.hot{}", written % 50),
                    1 => format!("k.{written}"),
                    _ => format!("other.{written}"),
                };
                let write = async {
                    match written % 10 {
                        8 => writer.delete(&key).await.is_ok(),
                        _ => writer.put(&key, format!("{written}").into()).await.is_ok(),
                    }
                };
                // Answers may be lost with the server.
                let done = tokio::time::timeout(Duration::from_secs(2), write).await;
                written += u64::from(done == Ok(true));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            written
        });
        Self { stop, task }
    }

    /// How much was acknowledged.
    async fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        tokio::time::timeout(Duration::from_secs(120), self.task).await.unwrap().unwrap()
    }
}

/// The fold is the bucket, and was sent no update twice: nothing but what it lacked.
async fn equal_in_the_end<S: SnapshotStore>(
    bucket: &Bucket,
    scope: &WatchScope,
    fold: &Running<S>,
    seen: &Seen,
) {
    fold.caught_up(bucket).await;
    assert!(fold.contents() == contents_in(bucket, scope).await, "the copy is not the bucket");
    let status = fold.status();
    assert_eq!(status.repairs, 0, "nothing was lost, so nothing is mended: {status:?}");
    assert_eq!(seen.again(), 0, "updates were read again: {status:?}");
    assert_eq!(seen.all(), status.updates);
}

async fn killed_and_restarted_under_a_fold_on<S: SnapshotStore>(scope: &WatchScope) {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    let (disk, seen) = (Disk::new(), Seen::default());
    let fold = start_on::<S>(config(&bucket, scope), &disk, seen.clone());
    fold.synced().await;
    let writing = Writing::start(Arc::clone(&bucket.writer));
    for _ in 0..2 {
        let before = fold.status().updates;
        fold.until("updates", |status| status.updates > before + 50).await;
        server.kill();
        tokio::time::sleep(Duration::from_millis(200)).await;
        server.restart();
        // The fold is back when it has something new.
        let revision = bucket.put("k.back", "v").await;
        fold.has(revision).await;
    }
    assert!(writing.finish().await > 0);
    equal_in_the_end(&bucket, scope, &fold, &seen).await;
    assert!(fold.stop().await.result.is_ok());
    resumes_with_the_delta::<S>(&bucket, scope, &disk).await;
}

/// A fold that was stopped reads what was written meanwhile, and no more.
async fn resumes_with_the_delta<S: SnapshotStore>(
    bucket: &Bucket,
    scope: &WatchScope,
    disk: &Disk,
) {
    fill_mixed(bucket, 0..10, "while it was away").await;
    let written = contents_in(bucket, scope).await.into_values();
    let written = written.filter(|(value, _)| value == b"while it was away").count();
    let seen = Seen::default();
    let fold = start_on::<S>(config(bucket, scope), disk, seen.clone());
    equal_in_the_end(bucket, scope, &fold, &seen).await;
    assert_eq!(seen.all(), written as u64, "{:?}", fold.status());
    assert!(fold.stop().await.result.is_ok());
}

#[rstest]
#[case::all(0)]
#[case::prefix(1)]
#[case::prefixes(2)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_and_restarted_under_a_fold(#[case] scope: usize) {
    killed_and_restarted_under_a_fold_on::<AppendLogSnapshot>(&scopes()[scope]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_and_restarted_under_a_fold_on_fjall() {
    killed_and_restarted_under_a_fold_on::<FjallSnapshot>(&scopes()[1]).await;
}

async fn a_wire_is(wire: Wire) {
    let server = NatsServer::start();
    let direct = server.connect().await;
    let bucket = bucket_on(&direct).await;
    let cable = Cable::to(server.port()).await;
    let far = connect(&cable.url()).await;
    let view = Bucket::of(far.open("b").await.unwrap());
    let disk = Disk::new();
    let seen = Seen::default();
    let fold = start_with(config(&view, &WatchScope::All), &disk, seen.clone());
    fold.synced().await;
    let writing = Writing::start(Arc::clone(&bucket.writer));
    tokio::time::sleep(Duration::from_millis(300)).await;
    cable.set(wire);
    // Whatever has got through was in the log by now.
    let cut_at = bucket.watcher.log().await.unwrap().last;
    let mut status = fold.handle.status();
    let passed = status.wait_for(|status| status.applied > cut_at);
    let passed = tokio::time::timeout(Duration::from_secs(10), passed).await;
    assert!(passed.is_err(), "{wire:?}: nothing gets through, but {:?}", fold.status());
    assert!(fold.status().watch_error.is_some(), "{wire:?}: it is noticed: {:?}", fold.status());
    assert!(bucket.watcher.log().await.unwrap().last > cut_at + 100, "the bucket goes on");
    cable.set(Wire::Whole);
    assert!(writing.finish().await > 0);
    equal_in_the_end(&bucket, &WatchScope::All, &fold, &seen).await;
    assert_eq!(fold.status().watch_error, None);
    fold.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_is_held_or_cut_for_ten_seconds() {
    tokio::join!(a_wire_is(Wire::Held), a_wire_is(Wire::Cut));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_an_older_log_under_folds_of_every_scope() {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill_mixed(&bucket, 0..20, "old").await;
    server.kill();
    let older = server.copy_store();
    server.restart();
    let disks = [(); 3].map(|()| Disk::new());
    let folds: Vec<_> = scopes()
        .iter()
        .zip(&disks)
        .map(|(scope, disk)| start(config(&bucket, scope), disk))
        .collect();
    fill_mixed(&bucket, 20..40, "lost").await;
    for fold in &folds {
        fold.caught_up(&bucket).await;
    }
    server.kill();
    server.go_back(&older);
    server.restart();
    // The same numbers, for other keys, and more.
    fill_mixed(&bucket, 1000..1030, "new").await;
    for (fold, scope) in folds.into_iter().zip(scopes()) {
        fold.until("repair", |status| status.repairs > 0 && status.synced).await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
    }
}

/// Much more than a server sends unanswered and a fold that is held up reads ahead.
async fn put_much(bucket: &Bucket) {
    let large = "v".repeat(1_000_000);
    for at in 0..64 {
        bucket.put(&format!("k.{at}"), &large).await;
    }
}

/// On its way to the head a fold passes over what is superseded further on. An older copy of the log
/// has that back, below the cursor, where nobody would look for it.
#[rstest]
#[case::running(false)]
#[case::stopped(true)]
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_an_older_log_while_a_fold_is_catching_up(
    #[case] stopped: bool,
) {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    bucket.put("k.x", "first").await;
    bucket.put("k.stays", "v").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.stop().await;
    bucket.put("k.x", "second").await;
    // It is held up before the end of the older log.
    put_much(&bucket).await;
    server.kill();
    let older = server.copy_store();
    server.restart();
    let bucket = Bucket::on(&server).await;
    let last = bucket.put("k.x", "third").await;
    let gate = Gate::default();
    let held = gate.hold().await;
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() };
    let config = FoldConfig { batch, ..config(&bucket, &WatchScope::All) };
    let mut fold = start_with(config.clone(), &disk, gate.clone());
    gate.reached().await;
    let mut held = Some(held);
    if stopped {
        fold.handle.shutdown();
        held = None;
        let ended = fold.ended().await;
        assert!(ended.cursor.revision() < Some(last - 1), "it was not to get so far");
        drop(ended);
        server.kill();
        server.go_back(&older);
        server.restart();
        fold = start_with(config, &disk, gate);
    } else {
        server.kill();
        server.go_back(&older);
        server.restart();
    }
    drop(held);
    fold.until("repair", |status| status.repairs > 0 && status.synced).await;
    let why = fold.status().last_repair.unwrap().why;
    assert_eq!(why, CursorExpiry::AheadOfLog { revision: last, last: last - 1 });
    fold.caught_up(&bucket).await;
    assert!(fold.contents() == contents_of(&bucket, "").await, "the copy is not the bucket");
    assert_eq!(fold.contents()["k.x"].0, b"second");
    fold.stop().await;
}

/// What a listing comes to may have been superseded after it began, by a message that the log then
/// loses.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_with_an_older_log_while_a_fold_is_listing() {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    bucket.put("stop.1", "v").await;
    put_much(&bucket).await;
    bucket.put("k.x", "first").await;
    bucket.put("k.y", "v").await;
    bucket.put("stop.2", "v").await;
    bucket.put("k.z", "v").await;
    server.kill();
    let older = server.copy_store();
    server.restart();
    let bucket = Bucket::on(&server).await;
    let (disk, stops) = (Disk::new(), Stops::new());
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() };
    let config = FoldConfig { batch, ..config(&bucket, &WatchScope::All) };
    let fold = start_with(config.clone(), &disk, stops.clone());
    stops.reached().await;
    bucket.put("k.x", "second").await;
    stops.go_on();
    stops.reached().await;
    let folded = fold.contents();
    assert!(folded.contains_key("k.y") && !folded.contains_key("k.x"), "it was passed over");
    // What a fold that was killed here would have.
    let killed = Disk::new();
    fs::copy(disk.path(), killed.path()).unwrap();
    server.kill();
    fold.handle.shutdown();
    stops.go_on();
    fold.ended().await;
    server.go_back(&older);
    server.restart();
    let fold = start(config, &killed);
    fold.until("repair", |status| status.repairs > 0 && status.synced).await;
    fold.caught_up(&bucket).await;
    assert!(fold.contents() == contents_of(&bucket, "").await, "the copy is not the bucket");
    assert_eq!(fold.contents()["k.x"].0, b"first");
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Interrupted);
    fold.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leader_of_a_replicated_bucket_is_killed_under_a_fold() {
    let (mut cluster, bucket) = Cluster::start().await;
    let url = cluster.url();
    let (disk, seen) = (Disk::new(), Seen::default());
    let fold = start_with(config(&bucket, &WatchScope::All), &disk, seen.clone());
    fold.synced().await;
    let writing = Writing::start(Arc::clone(&bucket.writer));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let client = async_nats::connect(url.split(',').collect::<Vec<_>>()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut stream = jetstream.get_stream("KV_b").await.unwrap();
    let leader = stream.info().await.unwrap().cluster.clone().unwrap().leader.unwrap();
    cluster.named(&leader).kill();
    // The others elect another, and the fold goes on without the one that is down.
    let before = fold.status().updates;
    fold.until("updates", |status| status.updates > before + 100).await;
    cluster.named(&leader).restart();
    assert!(writing.finish().await > 0);
    equal_in_the_end(&bucket, &WatchScope::All, &fold, &seen).await;
    let info = stream.info().await.unwrap().cluster.clone().unwrap();
    assert!(info.leader.is_some());
    assert!(fold.stop().await.result.is_ok());
}
