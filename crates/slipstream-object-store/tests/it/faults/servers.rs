//! Rounds whose process is killed, and logs that a real server loses.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use slipstream::Connection;
use slipstream::transport::{ArtifactTransport, RoundOutcome};

use crate::fleet::{Fleet, KEY, PATIENCE, transport};
use crate::nats::{NatsServer, connect};
use crate::rounds::scale;
use crate::s3::{s3, s3_at};
use crate::weed::Weed;

const TTL: Duration = Duration::from_secs(60);

/// Waits until a server that was restarted, or a bucket that was made again, is there.
async fn is_back(fleet: &Fleet) {
    let back = async {
        while fleet.bucket.writer().unwrap().put("probe", "there".into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, back).await.expect("it comes back");
}

/// Made again, or restored from an older copy of the server's files: nobody begins with the artifact of
/// the log that is gone, nor waits for it, and the next round publishes though its revision is lower.
#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_of_a_log_that_the_server_lost_is_used_by_nobody_and_replaced() {
    for made_again in [true, false] {
        let mut server = NatsServer::start();
        Fleet::on(&server.connect().await).await.write(0..20, "old").await;
        server.kill();
        let older = server.copy_store();
        server.restart();
        let connection = server.connect().await;
        let fleet = Fleet::on(&connection).await;
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let transport = transport(&store);
        fleet.write(20..60, "lost").await;
        let node = fleet.node("node");
        let published = node.caught_up().await.round(&transport, TTL).await.unwrap();
        let RoundOutcome::Published(dead) = published else { panic!("{published:?}") };
        node.next_round().await;
        node.stop().await;
        if made_again {
            let client = async_nats::connect(server.url()).await.unwrap();
            let jetstream = async_nats::jetstream::new(client);
            jetstream.delete_stream(format!("KV_{KEY}")).await.unwrap();
            Fleet::on(&connection).await;
        } else {
            server.kill();
            server.go_back(&older);
            server.restart();
        }
        is_back(&fleet).await;
        fleet.write(5..8, "other").await;
        let node = fleet.node("node");
        node.caught_up().await;
        assert_eq!(node.status().repairs, 1, "made again: {made_again}");
        for _ in 0..2 {
            let none = fleet.bootstrap("none", &transport).await;
            assert!(none.is_none(), "made again: {made_again}");
        }
        let published = node.round(&transport, TTL).await.unwrap();
        let RoundOutcome::Published(manifest) = published else { panic!("{published:?}") };
        assert!(manifest.cursor.revision() < dead.cursor.revision(), "it goes less far");
        assert!(manifest.rank() > dead.rank(), "made again: {made_again}");
        let bootstrapped = fleet.bootstrap("other", &transport).await.unwrap();
        bootstrapped.caught_up().await;
        assert_eq!(bootstrapped.entries(), node.entries());
        assert_eq!(bootstrapped.status().repairs, 0);
        assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
        node.stop().await;
        bootstrapped.stop().await;
        connection.shutdown().await.unwrap();
    }
}

/// In one run of the test command; a soak multiplies it.
const KILLS: u64 = 6;
/// Set in a process that is to be killed: where its folds go, its server and its store.
const CHILD: [&str; 3] =
    ["SLIPSTREAM_KILLED_ROUND", "SLIPSTREAM_KILLED_ROUND_NATS", "SLIPSTREAM_KILLED_ROUND_S3"];

/// Publishes until it is killed. Says so when a round begins.
async fn publish_until_killed(dir: &Path, url: &str, endpoint: String) {
    let connection = connect(url).await;
    let fleet = Fleet::beneath(&connection, dir).await;
    let node = fleet.node("node");
    // Slow enough that one can be killed while it uploads.
    let transport = transport(&s3_at(endpoint)).with_bandwidth_limit(10 << 20);
    for round in 0.. {
        fleet.write(0..5, &format!("{round} of {}", std::process::id())).await;
        node.caught_up().await;
        // libtest has begun a line.
        println!("\nround");
        node.try_round(&transport, TTL).await.unwrap();
        node.next_round().await;
    }
}

/// Returns when its first round has begun.
fn spawn_rounds(dir: &Path, server: &NatsServer, weed: &Weed) -> Child {
    let (_, name) = module_path!().split_once("::").unwrap();
    let name = format!("{name}::a_round_whose_process_is_killed_leaves_a_pointer_that_can_be_used");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--nocapture", "--test-threads=1"])
        .env(CHILD[0], dir)
        .env(CHILD[1], server.url())
        .env(CHILD[2], weed.endpoint())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "round"), "the child publishes");
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn a_round_whose_process_is_killed_leaves_a_pointer_that_can_be_used() {
    if let [Ok(dir), Ok(url), Ok(endpoint)] = CHILD.map(std::env::var) {
        return publish_until_killed(Path::new(&dir), &url, endpoint).await;
    }
    let (server, weed) = (NatsServer::start(), Weed::start());
    let (store, connection) = (s3(&weed), server.connect().await);
    let transport = transport(&store);
    let fleet = Fleet::on(&connection).await;
    fleet.write(0..3000, &"v".repeat(1000)).await;
    let node = fleet.node("node");
    node.caught_up().await.round(&transport, TTL).await.unwrap();
    let (mut newest, mut inside) = (None, 0);
    for kill in 0..KILLS * scale() {
        node.next_round().await;
        let dir = fleet.dir.path().join("killed");
        std::fs::create_dir(&dir).unwrap();
        let mut child = spawn_rounds(&dir, &server, &weed);
        tokio::time::sleep(Duration::from_millis(kill * 97 % 500)).await;
        child.kill().unwrap();
        child.wait().unwrap();
        inside += u64::from(artifact_in(&dir));
        std::fs::remove_dir_all(&dir).unwrap();
        let pointer = transport.pointer(KEY).await.unwrap().unwrap().manifest;
        assert!(newest <= pointer.rank(), "kill {kill}: back to {:?}", pointer.rank());
        newest = pointer.rank();
        let begun = fleet.bootstrap(&format!("begun {kill}"), &transport).await;
        let begun = begun.expect("the pointer can be used");
        begun.caught_up().await;
        node.caught_up().await;
        assert_eq!(begun.status().repairs, 0, "kill {kill}");
        assert!(begun.entries() == node.entries(), "kill {kill}");
        begun.stop().await;
    }
    assert!(inside * 3 >= KILLS, "{inside} were killed in the middle of a round");
    // What they left goes with the next round that prunes.
    fleet.write(0..1, "last").await;
    node.next_round().await;
    let published = node.caught_up().await.round(&transport, TTL).await.unwrap();
    assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
    transport.prune(KEY, Duration::ZERO).await.unwrap();
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 0);
    assert!(fleet.bootstrap("after", &transport).await.is_some());
    connection.shutdown().await.unwrap();
}

/// Whether an artifact, or what becomes one, was left behind.
fn artifact_in(dir: &Path) -> bool {
    let folds = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut names = folds.flat_map(|fold| std::fs::read_dir(fold).unwrap());
    names.any(|name| {
        let name = name.unwrap().file_name().into_string().unwrap();
        name.starts_with(".slipstream-stage-") || name.ends_with(".artifact")
    })
}
