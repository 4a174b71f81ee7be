//! Writes that expire, on every backend.

use std::time::Duration;

use slipstream::{KvError, StoreConfig};

use crate::backend::{Backend, Bucket, bucket};

async fn expiring(backend: &impl Backend) -> Bucket {
    let config = StoreConfig { ttl: true, ..StoreConfig::default() };
    Bucket::make(backend.connection(), &config).await
}

pub(crate) async fn a_bucket_without_expiry_vends_no_expiring_writes(backend: impl Backend) {
    assert!(backend.connection().capabilities().ttl);
    let bucket = bucket(&backend).await;
    assert!(bucket.store.ttl().is_none());
    assert!(!bucket.watcher.log().await.unwrap().retention.per_message_ttl);
}

pub(crate) async fn an_expired_key_is_gone_and_watches_report_it(backend: impl Backend) {
    let bucket = expiring(&backend).await;
    assert!(bucket.watcher.log().await.unwrap().retention.per_message_ttl);
    let ttl = bucket.store.ttl().unwrap();
    bucket.put("stays", "v").await;
    ttl.put_with_ttl("goes", "v".into(), Duration::from_secs(1)).await.unwrap();
    let mut watch = bucket.sync().await;
    assert_eq!(watch.until_synced().await, ["stays=v@1", "goes=v@2"]);
    backend.pass(Duration::from_secs(2)).await;
    assert_eq!(watch.updates(1).await, ["--goes@3"]);
    assert_eq!(bucket.reader.get("goes").await, Ok(None));
    assert_eq!(bucket.keys("").await, ["stays"]);
}

pub(crate) async fn create_with_expiry_is_exclusive_until_then(backend: impl Backend) {
    let bucket = expiring(&backend).await;
    let ttl = bucket.store.ttl().unwrap();
    let second = Duration::from_secs(1);
    ttl.create_with_ttl("lock", "mine".into(), second).await.unwrap();
    let mut watch = bucket.sync().await;
    assert_eq!(watch.until_synced().await.len(), 1);
    let refused = ttl.create_with_ttl("lock", "yours".into(), second).await;
    assert_eq!(refused, Err(KvError::AlreadyExists));
    backend.pass(Duration::from_secs(2)).await;
    watch.updates(1).await;
    ttl.create_with_ttl("lock", "yours".into(), second).await.unwrap();
}

pub(crate) async fn an_expiry_is_whole_seconds(backend: impl Backend) {
    let bucket = expiring(&backend).await;
    let ttl = bucket.store.ttl().unwrap();
    for duration in [Duration::ZERO, Duration::from_millis(1500)] {
        let refused = ttl.put_with_ttl("goes", "v".into(), duration).await;
        assert!(matches!(refused, Err(KvError::Config(_))), "{duration:?}");
    }
    assert_eq!(bucket.watcher.log().await.unwrap().last, 0);
}

/// It would uncover the value before it, and no message would say so.
pub(crate) async fn an_expiry_above_a_history_is_refused(backend: impl Backend) {
    let config = StoreConfig { ttl: true, max_history: 2, ..StoreConfig::default() };
    let refused = backend.connection().store("b", &config).await;
    assert!(matches!(refused, Err(KvError::Config(_))));
}

pub(crate) async fn what_is_too_old_leaves_the_log(backend: impl Backend) {
    let max_age = Some(Duration::from_secs(1));
    let config = StoreConfig { max_age, ..StoreConfig::default() };
    let bucket = Bucket::make(backend.connection(), &config).await;
    bucket.put("old", "v").await;
    assert_eq!(bucket.watcher.log().await.unwrap().retention.max_age, max_age);
    // The server sweeps now and then.
    for _ in 0..30 {
        backend.pass(Duration::from_secs(1)).await;
        if bucket.watcher.log().await.unwrap().first == 2 {
            break;
        }
    }
    assert_eq!(bucket.watcher.log().await.unwrap().first, 2);
    assert_eq!(bucket.reader.get("old").await, Ok(None));
}
