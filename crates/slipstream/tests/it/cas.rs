//! Compare-and-swap, on every backend.

use std::sync::Arc;

use slipstream::{KvError, VersionToken};

use crate::backend::{Backend, bucket};

pub(crate) async fn create_is_exclusive(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let version = bucket.writer.create("lock", "mine".into()).await.unwrap();
    let refused = bucket.writer.create("lock", "yours".into()).await;
    assert_eq!(refused, Err(KvError::AlreadyExists));
    let entry = bucket.reader.get("lock").await.unwrap().unwrap();
    assert_eq!((entry.value.as_ref(), entry.version), (&b"mine"[..], version));
}

pub(crate) async fn one_of_many_creators_wins(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.writer.delete("lock").await.unwrap();
    let creators = (0..16).map(|at| {
        let writer = Arc::clone(&bucket.writer);
        tokio::spawn(async move { writer.create("lock", format!("{at}").into()).await })
    });
    let mut winners = Vec::new();
    for (at, creator) in creators.collect::<Vec<_>>().into_iter().enumerate() {
        match creator.await.unwrap() {
            Ok(version) => winners.push((at, version)),
            Err(error) => assert_eq!(error, KvError::AlreadyExists),
        }
    }
    let [(winner, version)] = winners[..] else { panic!("{} winners", winners.len()) };
    let entry = bucket.reader.get("lock").await.unwrap().unwrap();
    assert_eq!(entry.value, winner.to_string());
    assert_eq!(entry.version, version);
}

pub(crate) async fn create_works_over_every_kind_of_delete(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    for key in ["deleted", "purged", "emptied"] {
        bucket.put(key, "old").await;
    }
    bucket.writer.delete("deleted").await.unwrap();
    bucket.writer.purge("purged").await.unwrap();
    let version = bucket.reader.entry("emptied").await.unwrap().unwrap().version;
    bucket.writer.delete_with_version("emptied", version).await.unwrap();
    for key in ["deleted", "purged", "emptied"] {
        let version = bucket.writer.create(key, "new".into()).await.unwrap();
        let entry = bucket.reader.get(key).await.unwrap().unwrap();
        assert_eq!((entry.value.as_ref(), entry.version), (&b"new"[..], version), "{key}");
        let again = bucket.writer.create(key, "newer".into()).await;
        assert_eq!(again, Err(KvError::AlreadyExists), "{key}");
    }
}

pub(crate) async fn update_needs_the_current_version(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let first = bucket.writer.put("node", "1".into()).await.unwrap();
    let second = bucket.writer.update("node", "2".into(), first).await.unwrap();
    let stale = bucket.writer.update("node", "3".into(), first).await;
    assert_eq!(stale, Err(KvError::RevisionMismatch));
    let missing = bucket.writer.update("missing", "1".into(), first).await;
    assert_eq!(missing, Err(KvError::RevisionMismatch));
    let entry = bucket.reader.get("node").await.unwrap().unwrap();
    assert_eq!((entry.value.as_ref(), entry.version), (&b"2"[..], second));
    assert_eq!(bucket.watcher.log().await.unwrap().last, 2);
}

pub(crate) async fn a_deleted_key_is_updated_at_its_version(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("node", "1").await;
    bucket.writer.delete("node").await.unwrap();
    let deleted = bucket.reader.entry("node").await.unwrap().unwrap().version;
    bucket.writer.update("node", "2".into(), deleted).await.unwrap();
    assert_eq!(bucket.reader.get("node").await.unwrap().unwrap().value, "2");
}

pub(crate) async fn versioned_delete_needs_the_current_version(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let first = bucket.writer.put("node", "1".into()).await.unwrap();
    bucket.put("node", "2").await;
    let stale = bucket.writer.delete_with_version("node", first).await;
    assert_eq!(stale, Err(KvError::RevisionMismatch));
    assert_eq!(bucket.reader.get("node").await.unwrap().unwrap().value, "2");
}

pub(crate) async fn versioned_delete_hides_the_key_and_shows_its_version(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    let put = bucket.writer.put("node", "1".into()).await.unwrap();
    assert_eq!(bucket.writer.delete_with_version("node", put).await, Ok(true));
    assert_eq!(bucket.reader.get("node").await, Ok(None));
    let entry = bucket.reader.entry("node").await.unwrap().unwrap();
    assert!(entry.value.is_empty());
    assert_eq!(entry.version.as_u64(), Some(2));
    // Somebody who still compares with the old version sees the conflict.
    let stale = bucket.writer.update("node", "2".into(), put).await;
    assert_eq!(stale, Err(KvError::RevisionMismatch));
    assert_eq!(bucket.sync().await.until_synced().await, ["-node@2"]);
}

pub(crate) async fn versions_of_other_stores_are_refused(backend: impl Backend) {
    let bucket = bucket(&backend).await;
    bucket.put("node", "1").await;
    let versionstamp = VersionToken::from_bytes(&[1; 10]).unwrap();
    for version in [VersionToken::unknown(), versionstamp] {
        let update = bucket.writer.update("node", "2".into(), version).await;
        assert_eq!(update, Err(KvError::InvalidVersion));
        let delete = bucket.writer.delete_with_version("node", version).await;
        assert_eq!(delete, Err(KvError::InvalidVersion));
    }
    assert_eq!(bucket.reader.get("node").await.unwrap().unwrap().value, "1");
}
