//! Reads, listings and refusals, on every backend.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use slipstream::{Discard, KvError, LogInfo, StoreConfig, WatchCursor, WatchScope};

use crate::backend::{Backend, Bucket, bucket};

pub(crate) async fn a_key_that_was_never_written_has_no_entry(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    assert_eq!(bucket.reader.get("a.key").await, Ok(None));
    assert_eq!(bucket.reader.entry("a.key").await, Ok(None));
    assert_eq!(bucket.reader.keys("").await, Ok(Vec::new()));
    assert_eq!(bucket.reader.scan("").await, Ok(Vec::new()));
}

pub(crate) async fn the_last_value_and_its_version_are_read(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let first = bucket.put("a.key", "1").await;
    let second = bucket.put("a.key", "2").await;
    assert!(second > first);
    let got = bucket.reader.get("a.key").await.unwrap().unwrap();
    assert_eq!(got.key, "a.key");
    assert_eq!(got.value, "2");
    assert_eq!(got.version.as_u64(), Some(second));
    assert_eq!(bucket.reader.entry("a.key").await.unwrap(), Some(got));
}

pub(crate) async fn deletes_hide_the_value_and_leave_the_version(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["deleted", "purged"] {
        bucket.put(key, "1").await;
    }
    assert_eq!(bucket.writer.delete("deleted").await, Ok(true));
    bucket.writer.purge("purged").await.unwrap();
    assert_eq!(bucket.writer.delete("never.written").await, Ok(true));
    for (key, version) in [("deleted", 3), ("purged", 4), ("never.written", 5)] {
        assert_eq!(bucket.reader.get(key).await, Ok(None), "{key}");
        let entry = bucket.reader.entry(key).await.unwrap().unwrap();
        assert!(entry.value.is_empty(), "{key}");
        assert_eq!(entry.version.as_u64(), Some(version), "{key}");
    }
}

pub(crate) async fn a_bucket_that_exists_is_returned_as_it_is(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("a.key", "1").await;
    let other = StoreConfig { max_history: 5, max_bytes: Some(1 << 30), ..StoreConfig::default() };
    let again = Bucket::make(backend.connection(), &other).await;
    assert_eq!(again.reader.get("a.key").await.unwrap().unwrap().value, "1");
    let retention = again.watcher.log().await.unwrap().retention;
    assert_eq!(retention.max_bytes, StoreConfig::default().max_bytes);
    let opened = Bucket::of(backend.connection().open("b").await.unwrap());
    assert_eq!(opened.store.name(), "b");
    assert_eq!(opened.reader.get("a.key").await.unwrap().unwrap().value, "1");
}

pub(crate) async fn the_capabilities_of_a_connection_are_those_of_its_buckets(
    backend: impl Backend,
) {
    let can = backend.connection().capabilities();
    let bucket = bucket(&backend).await;
    bucket.put("a.key", "1").await;
    let created = bucket.writer.create("a.key", "2".into()).await;
    assert_eq!(can.cas, created == Err(KvError::AlreadyExists));
    assert_eq!(can.streaming_watch, bucket.store.watcher().is_some());
    let mut watch = bucket.sync().await;
    watch.until_synced().await;
    let resumed = bucket.watcher.watch(&WatchScope::All, &watch.cursor()).await;
    assert_eq!(can.resumable_watch, resumed.is_ok());
    let prefixes = WatchScope::Prefixes(vec!["a.".into(), "b.".into()]);
    let filtered = bucket.watcher.watch(&prefixes, &WatchCursor::none()).await;
    assert_eq!(can.multi_prefix_watch, filtered.is_ok());
    assert_eq!(can.direct_reads, bucket.store.direct_reader().is_some());
    let config = StoreConfig { ttl: true, ..StoreConfig::default() };
    let expiring = backend.connection().store("expiring", &config).await;
    assert_eq!(can.ttl, expiring.is_ok_and(|store| store.ttl().is_some()));
}

pub(crate) async fn a_bucket_that_does_not_exist_is_not_found(backend: impl Backend) {
    let error = backend.connection().open("missing").await.err().unwrap();
    assert_eq!(error, KvError::BucketNotFound { bucket: "missing".into() });
}

pub(crate) async fn names_that_cannot_be_are_refused(backend: impl Backend) {
    let connection = backend.connection();
    for name in ["", "a.b", "a b", "a>", "ä"] {
        let made = connection.store(name, &StoreConfig::default()).await;
        assert_eq!(made.err(), Some(KvError::InvalidBucketName), "{name:?}");
        assert_eq!(connection.open(name).await.err(), Some(KvError::InvalidBucketName), "{name:?}");
    }
    let endless = StoreConfig { max_history: 65, ..StoreConfig::default() };
    let made = connection.store("b", &endless).await;
    assert!(matches!(made.err(), Some(KvError::Config(_))));
}

pub(crate) async fn many_keys_are_read_in_their_order(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for at in 0..200 {
        bucket.put(&format!("k.{at}"), &format!("{at}")).await;
    }
    bucket.writer.delete("k.7").await.unwrap();
    let keys: Vec<String> = (0..200).rev().map(|at| format!("k.{at}")).collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    keys.insert(0, "none");
    let entries = bucket.reader.multi_get(&keys).await.unwrap();
    let found: Vec<_> =
        entries.iter().map(|one| one.as_ref().map(|one| one.key.as_str())).collect();
    let expected: Vec<_> =
        keys.iter().map(|key| (!["none", "k.7"].contains(key)).then_some(*key)).collect();
    assert_eq!(found, expected);
    let refused = bucket.reader.multi_get(&["k.1", "a b"]).await;
    assert!(matches!(refused, Err(KvError::InvalidKey(_))));
}

pub(crate) async fn buckets_are_named(backend: impl Backend) {
    let connection = backend.connection();
    for name in ["b", "a"] {
        connection.store(name, &StoreConfig::default()).await.unwrap();
    }
    let named = connection.buckets().await.unwrap();
    assert!(["a", "b"].iter().all(|name| named.iter().any(|one| one == name)), "{named:?}");
    assert!(named.is_sorted());
}

pub(crate) async fn listings_have_every_key_of_the_prefix(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["a.1", "a.2", "a.b.3", "ab.4", "b.5"] {
        bucket.put(key, key).await;
    }
    assert_eq!(bucket.keys("").await, ["a.1", "a.2", "a.b.3", "ab.4", "b.5"]);
    assert_eq!(bucket.keys("a.").await, ["a.1", "a.2", "a.b.3"]);
    assert!(bucket.keys("c.").await.is_empty());
    let mut entries = bucket.reader.scan("a.").await.unwrap();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(entries.len(), 3);
    for entry in entries {
        assert_eq!(entry.value, entry.key.as_str());
        assert_eq!(bucket.reader.get(entry.key.as_str()).await.unwrap(), Some(entry));
    }
}

pub(crate) async fn a_prefix_is_one_of_text(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["a", "a.1", "ab.2", "a.bc.3", "a.bd.4", "b"] {
        bucket.put(key, "v").await;
    }
    assert_eq!(bucket.keys("a").await, ["a", "a.1", "a.bc.3", "a.bd.4", "ab.2"]);
    assert_eq!(bucket.keys("a.b").await, ["a.bc.3", "a.bd.4"]);
    assert_eq!(bucket.keys("a.bc.3").await, ["a.bc.3"]);
    assert_eq!(bucket.reader.scan("a.b").await.unwrap().len(), 2);
    assert!(matches!(bucket.reader.keys("a.*").await, Err(KvError::InvalidKey(_))));
}

pub(crate) async fn listings_hide_what_was_deleted(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["kept", "deleted", "purged", "emptied"] {
        bucket.put(key, "v").await;
    }
    bucket.writer.delete("deleted").await.unwrap();
    bucket.writer.purge("purged").await.unwrap();
    let version = bucket.reader.entry("emptied").await.unwrap().unwrap().version;
    bucket.writer.delete_with_version("emptied", version).await.unwrap();
    assert_eq!(bucket.keys("").await, ["kept"]);
    let entries = bucket.reader.scan("").await.unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].key, "kept");
    // With nothing but deletes to list, too.
    bucket.writer.delete("kept").await.unwrap();
    assert!(bucket.keys("").await.is_empty());
}

pub(crate) async fn a_listing_of_thousands_is_complete(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    // Beyond the thousand that a server sends unacknowledged.
    for at in 0..2500 {
        bucket.put(&format!("k.{at:05}"), &at.to_string()).await;
    }
    let expected: Vec<_> = (0..2500).map(|at| format!("k.{at:05}")).collect();
    assert_eq!(bucket.keys("").await, expected);
    assert_eq!(bucket.keys("k.012").await, expected[1200..1300]);
    let entries = bucket.reader.scan("k.").await.unwrap();
    assert_eq!(entries.len(), 2500);
    for entry in entries {
        let at: u64 = entry.key.as_str()[2..].parse().unwrap();
        assert_eq!(entry.value, at.to_string());
        assert_eq!(entry.version.as_u64(), Some(at + 1));
    }
}

pub(crate) async fn a_listing_beside_a_writer_has_every_key_once(backend: impl Backend) {
    list_beside_a_writer(&bucket(&backend).await).await;
}

/// Overwritten values stay in the log for a while, and are not listed.
pub(crate) async fn a_listing_beside_a_writer_has_every_key_once_with_history(
    backend: impl Backend,
) {
    let config = StoreConfig { max_history: 5, ..StoreConfig::default() };
    list_beside_a_writer(&Bucket::make(backend.connection(), &config).await).await;
}

async fn list_beside_a_writer(bucket: &Bucket) {
    let keys: Vec<_> = (0..500).map(|at| format!("k.{at:03}")).collect();
    for key in &keys {
        bucket.put(key, "first").await;
    }
    let done = AtomicBool::new(false);
    let write = async {
        for key in keys.iter().cycle() {
            bucket.put(key, "again").await;
            // In memory nothing waits, so nobody else would have a turn.
            tokio::task::yield_now().await;
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    let list = async {
        for _ in 0..20 {
            assert_eq!(bucket.keys("k.").await, keys);
            let entries = bucket.reader.scan("k.").await.unwrap();
            let listed: HashSet<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
            assert_eq!((listed.len(), entries.len()), (500, 500));
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(write, list);
}

pub(crate) async fn keys_and_values_over_the_limits_are_refused_and_change_nothing(
    backend: impl Backend,
) {
    let bucket = bucket(&backend).await;
    bucket.put("a.key", "1").await;
    let before = bucket.watcher.log().await.unwrap();
    let (writer, value) = (&bucket.writer, Bytes::from_static(b"v"));
    let version = bucket.reader.entry("a.key").await.unwrap().unwrap().version;
    let long = "k".repeat(2049);
    for key in ["", ".a", "a.", "a..b", "a b", "a.>", "a\r\nb", &long] {
        let refused = [
            writer.put(key, value.clone()).await.err(),
            writer.create(key, value.clone()).await.err(),
            writer.update(key, value.clone(), version).await.err(),
            writer.delete(key).await.err(),
            writer.purge(key).await.err(),
            writer.delete_with_version(key, version).await.err(),
            bucket.reader.get(key).await.err(),
            bucket.reader.entry(key).await.err(),
        ];
        for error in refused {
            assert!(matches!(error, Some(KvError::InvalidKey(_))), "{key:?}: {error:?}");
        }
    }
    let huge = Bytes::from(vec![7; (1 << 20) + 1]);
    for value in [Bytes::new(), huge] {
        let refused = [
            writer.put("a.key", value.clone()).await.err(),
            writer.create("another", value.clone()).await.err(),
            writer.update("a.key", value.clone(), version).await.err(),
        ];
        for error in refused {
            match error {
                Some(KvError::EmptyValue) => assert!(value.is_empty()),
                Some(KvError::ValueTooLarge { len, max }) => {
                    assert_eq!(len, value.len());
                    assert!(max < len);
                }
                other => panic!("{} bytes: {other:?}", value.len()),
            }
        }
    }
    let after = bucket.watcher.log().await.unwrap();
    assert_eq!(LogInfo { read_at_ms: before.read_at_ms, ..after }, before);
    // The largest that is allowed can be put, and updated too.
    let huge = writer.put("a.key", vec![7; 1 << 21].into()).await.unwrap_err();
    let KvError::ValueTooLarge { max, .. } = huge else { panic!("{huge:?}") };
    let largest = Bytes::from(vec![7; max]);
    let version = writer.put("a.key", largest.clone()).await.unwrap();
    writer.update("a.key", largest, version).await.unwrap();
    let longest = "k".repeat(2048);
    bucket.put(&longest, "v").await;
    assert_eq!(bucket.keys("k").await, [longest]);
}

pub(crate) async fn a_full_bucket_refuses(backend: impl Backend) {
    let config = StoreConfig { max_bytes: Some(10_000), ..StoreConfig::default() };
    let bucket = Bucket::make(backend.connection(), &config).await;
    let value = Bytes::from(vec![7; 1000]);
    let mut stored = 0;
    let error = loop {
        assert!(stored < 20, "the limit is not kept");
        match bucket.writer.put(&format!("k.{stored}"), value.clone()).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, KvError::BucketFull(_)), "{error:?}");
    assert!(stored >= 5);
    assert_eq!(bucket.keys("").await.len(), stored);
    assert_eq!(bucket.watcher.log().await.unwrap().first, 1);
}

pub(crate) async fn a_full_bucket_that_evicts_says_so(backend: impl Backend) {
    let config =
        StoreConfig { max_bytes: Some(10_000), discard: Discard::Old, ..StoreConfig::default() };
    let bucket = Bucket::make(backend.connection(), &config).await;
    for at in 0..20 {
        bucket.put(&format!("k.{at}"), &"v".repeat(1000)).await;
    }
    let log = bucket.watcher.log().await.unwrap();
    assert!(log.retention.discards_oldest);
    assert_eq!(log.retention.max_bytes, Some(10_000));
    assert_eq!(log.last, 20);
    assert!(log.first > 5, "{log:?}");
    assert_eq!(bucket.keys("").await.len() as u64, log.last - log.first + 1);
    assert_eq!(bucket.reader.get("k.0").await, Ok(None));
}
