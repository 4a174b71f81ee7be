//! A bucket of a real store on this machine, beside a plain parallel download of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt};
use gossip_bench::corpus::LogLines;
use gossip_bench::figure;
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStore, ObjectStoreExt};

#[path = "../../../gossip-object-store/tests/it/server.rs"]
#[allow(dead_code, reason = "tests of the store use more of it")]
mod server;

use super::{run, tool};
use server::Weed;

const OBJECTS: usize = 2_000;
const OBJECT_BYTES: usize = 100_000;
const ROUNDS: usize = 3;
/// As many as `gossip scan` has under way.
const REQUESTS: usize = 32;

pub(super) fn measure(place: &Path) {
    if std::env::var_os("GOSSIP_WEED").is_none() {
        return println!("# no store: set what `cargo xtask servers seaweedfs` prints");
    }
    let weed = Weed::start();
    let mut lines = LogLines::default();
    for number in 0..OBJECTS {
        let mut content = String::new();
        while content.len() < OBJECT_BYTES {
            content.push_str(&lines.next().expect("they have no end"));
            content.push('\n');
        }
        weed.put("bench", &format!("{}/{number}.log", number % 50), content.as_bytes());
    }
    let variables = weed.variables(weed.endpoint());
    let store = store(&variables);
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().expect("a runtime starts");
    let ours = ["scan", "-j", "2", "--format", "jsonl", "--state-dir", "STATE", "s3://bench"];
    let mut ours = tool("gossip", env!("CARGO_BIN_EXE_gossip").into(), &ours, "");
    ours.variables = variables;
    let (mut plain_s, mut ours_s, mut bytes) = (f64::MAX, f64::MAX, 0);
    // The first round warms the cache.
    for round in 0..=ROUNDS {
        let start = Instant::now();
        bytes = runtime.block_on(download(Arc::clone(&store)));
        let plain = start.elapsed().as_secs_f64();
        let scanned = run(place, &ours, Path::new("")).wall;
        if round > 0 {
            (plain_s, ours_s) = (plain_s.min(plain), ours_s.min(scanned));
        }
    }
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds;
    figure("bucket-download", rate(plain_s), "MB/s", Some(1.0));
    figure("bucket-gossip", rate(ours_s), "MB/s", Some(plain_s / ours_s));
}

fn store(variables: &[(&'static str, String)]) -> Arc<dyn ObjectStore> {
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().expect("nobody has chosen before");
    let builder = AmazonS3Builder::new().with_bucket_name("bench").with_allow_http(true);
    let builder = variables.iter().fold(builder, |builder, (name, value)| {
        let key = name.to_lowercase().parse().expect("it is one of the store's");
        builder.with_config(key, value)
    });
    Arc::new(builder.build().expect("it has all that it needs"))
}

/// Lists the bucket, and reads every object and forgets it; how many bytes that is.
async fn download(store: Arc<dyn ObjectStore>) -> u64 {
    let listed = store.list(None).map_ok(|object| {
        let store = Arc::clone(&store);
        async move { store.get(&object.location).await?.bytes().await }
    });
    let read = listed.try_buffer_unordered(REQUESTS);
    let sizes = read.map(|bytes| bytes.expect("the store answers").len() as u64);
    sizes.fold(0, |sum, size| async move { sum + size }).await
}
