//! Keys that the log tells nothing of any more, and what becomes of them in the fold.

use std::time::Duration;

use slipstream::FoldConfig;

use super::support::{
    Disk, Paused, bucket_on, config, contents_in, evict_below, fill_mixed, jetstream, scopes, start,
};
use crate::server::NatsServer;

/// All that the watch would have been sent is evicted: nothing comes that could be a gap.
#[tokio::test]
async fn an_overrun_without_any_delivery_is_noticed_by_the_probe() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let probe_interval = Duration::from_millis(20);
        let config = FoldConfig { probe_interval, ..config(&bucket, &scope) };
        let fold = start(config, &Disk::new());
        fold.caught_up(&bucket).await;
        let before = fold.status();
        let paused = Paused::on(&server).await;
        bucket.writer.delete("k.0001").await.unwrap();
        let last = bucket.put("k.0002", "gone before it could be sent").await;
        evict_below(&server, last + 1).await;
        fold.until("comparison", |status| status.comparisons > 0).await;
        let status = fold.status();
        assert_eq!(status.updates, before.updates, "nothing was delivered: {scope:?}");
        assert!(fold.contents().is_empty() && contents_in(&bucket, &scope).await.is_empty());
        paused.go_on().await;
        fill_mixed(&bucket, 5..15, "new").await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.status().repairs, 0, "the watch goes on: {scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}
