//! A fold of a bucket on a real server: the server is killed, or the process that folds.

use slipstream::{Connection, KvStore, StoreConfig};
use slipstream_rocksdb::RocksDbSnapshot;

use crate::killed::{Fold, reads_only_what_it_lacks};
use crate::server::NatsServer;

/// 20 writes, half of them of the scope: of keys from `at` on.
async fn write(bucket: &dyn KvStore, at: u32, value: &str) -> u64 {
    let writer = bucket.writer().unwrap();
    let mut last = 0;
    for at in at..at + 10 {
        for place in ["other", "k"] {
            let put = writer.put(&format!("{place}.{at}"), value.to_owned().into()).await;
            last = put.unwrap().as_u64().unwrap();
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_goes_on_after_a_killed_server_and_a_restart_with_what_follows() {
    let mut server = NatsServer::start();
    let bucket = server.connect().await.store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let before = write(&*bucket, 0, "before").await;
    let fold = Fold::<RocksDbSnapshot>::start(&*bucket, &path);
    fold.has(before).await;
    server.kill();
    server.restart();
    let connection = server.connect().await;
    let bucket = connection.open("b").await.unwrap();
    let after = write(&*bucket, 5, "after a kill").await;
    fold.has(after).await;
    assert_eq!(fold.stop_equal_to(&*bucket, 0).await, 20, "each once");
    // While it is away: five keys are new, five are written over, one is deleted.
    let away = write(&*bucket, 10, "while it was away").await;
    bucket.writer().unwrap().delete("k.0").await.unwrap();
    let fold = Fold::<RocksDbSnapshot>::start(&*bucket, &path);
    fold.has(away + 1).await;
    assert_eq!(fold.stop_equal_to(&*bucket, 0).await, 11, "the delta");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_is_killed_beside_a_writer_reads_only_what_it_lacks() {
    let name =
        concat!(module_path!(), "::a_fold_that_is_killed_beside_a_writer_reads_only_what_it_lacks");
    reads_only_what_it_lacks::<RocksDbSnapshot>(name).await;
}
