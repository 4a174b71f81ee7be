//! Artifacts of folds that run, and artifacts that are none.

mod checks;
mod panics;

use std::time::Duration;

use proptest::prelude::*;
use slipstream::artifact::{About, ArtifactError};
use slipstream::engine::EngineOptions;
use slipstream::{
    AppendLogSnapshot, Connection, CursorOnly, FjallSnapshot, FoldConfig, FoldError, KvError,
    MemoryConnection, SnapshotReader, SnapshotStore, StoreConfig, WatchScope, fold_control,
    watch_applied,
};

use crate::bootstrap;
use crate::snapshot::append_log::support::{cursor, put, state};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_is_sent_only_what_follows_the_artifact_of_a_log() {
    bootstrap::a_new_node_is_sent_only_what_follows_the_artifact::<AppendLogSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_is_sent_only_what_follows_the_artifact_of_fjall() {
    bootstrap::a_new_node_is_sent_only_what_follows_the_artifact::<FjallSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_proves_itself_where_its_cursor_does_not() {
    bootstrap::an_artifact_proves_itself_where_its_cursor_does_not::<AppendLogSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_of_fjall_proves_itself_where_its_cursor_does_not() {
    bootstrap::an_artifact_proves_itself_where_its_cursor_does_not::<FjallSnapshot>().await;
}

/// The request is answered to nobody: what it would leave is in the way of the next one.
#[tokio::test]
async fn an_export_that_nobody_waits_for_any_more_leaves_nothing() {
    let bucket = MemoryConnection::new().store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (_, store) = AppendLogSnapshot::load(&dir.path().join("fold")).unwrap();
    let (handle, control) = fold_control();
    let config = FoldConfig::new(bucket.watcher().unwrap());
    let folding = tokio::spawn(watch_applied(config, store, (), control));
    bucket.writer().unwrap().put("a", "1".into()).await.unwrap();
    handle.synced().await.unwrap();
    let artifact = dir.path().join("artifact");
    for _ in 0..20 {
        tokio::select! {
            biased;
            answer = handle.export(artifact.clone()) => panic!("the fold did not run: {answer:?}"),
            () = std::future::ready(()) => {}
        }
        // Answered after the one before.
        let next = dir.path().join("next");
        handle.export(next.clone()).await.unwrap();
        std::fs::remove_dir_all(next).unwrap();
    }
    handle.shutdown();
    assert!(folding.await.unwrap().result.is_ok());
    assert!(!artifact.exists());
}

/// The fold of an artifact of another bucket has keys that nobody would ever delete.
#[tokio::test]
async fn a_fold_of_an_artifact_of_another_bucket_is_not_watched() {
    let connection = MemoryConnection::new();
    let dir = tempfile::tempdir().unwrap();
    let (path, artifact) = (dir.path().join("fold"), dir.path().join("artifact"));
    let ours = connection.store("ours", &StoreConfig::default()).await.unwrap();
    let theirs = connection.store("theirs", &StoreConfig::default()).await.unwrap();
    ours.writer().unwrap().put("a", "1".into()).await.unwrap();
    let (_, store) = AppendLogSnapshot::load(&path).unwrap();
    let (handle, control) = fold_control();
    let config = FoldConfig::new(ours.watcher().unwrap());
    let folding = tokio::spawn(watch_applied(config, store, (), control));
    let manifest = handle.export(artifact.clone()).await.unwrap();
    assert_eq!(manifest.bucket.as_deref(), Some("ours"));
    handle.shutdown();
    assert!(folding.await.unwrap().result.is_ok());
    let imported = dir.path().join("imported");
    AppendLogSnapshot::import(&artifact, &imported, &WatchScope::All).unwrap();
    let (cursor, store) = AppendLogSnapshot::load(&imported).unwrap();
    let config = FoldConfig::new(theirs.watcher().unwrap());
    let watching = watch_applied(config, store, (), fold_control().1);
    let ended = tokio::time::timeout(PATIENCE, watching).await.expect("it is refused");
    assert!(
        matches!(ended.result, Err(FoldError::Watch(KvError::Config(_)))),
        "{:?}",
        ended.result
    );
    assert_eq!((ended.cursor, ended.store.range("").unwrap().len()), (cursor, 1));
}

#[test]
fn a_store_without_files_is_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = CursorOnly::new(cursor(1));
    let exported = store.export_to(&dir.path().join("artifact"), About::new(WatchScope::All));
    assert!(matches!(exported, Err(ArtifactError::Unsupported)));
}

/// While its workers turn journals into tables and tables into others.
#[test]
fn a_fold_of_many_tables_is_exported_while_they_are_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::default();
    options.memtable_bytes = Some(64 << 10);
    let (_, mut store) = FjallSnapshot::load_with(&dir.path().join("fold"), options).unwrap();
    let value = "v".repeat(500);
    for round in 0..4u64 {
        for at in round * 500..(round + 1) * 500 {
            let key = |of: u64| format!("k.{:03}", (at * 7 + of * 311) % 1000);
            let batch = [put(&key(0), &*value, at), put(&key(1), &*value, at)];
            store.apply(&batch, &cursor(at + 1)).unwrap();
        }
        let artifact = dir.path().join(format!("artifact.{round}"));
        let manifest = store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
        let tables = manifest.files.iter().filter(|file| file.path.contains("/tables/")).count();
        assert!(tables >= 2, "{tables} tables");
        let imported = dir.path().join(format!("imported.{round}"));
        FjallSnapshot::import(&artifact, &imported, &WatchScope::All).unwrap();
        // With the options of whoever opens it.
        let mut options = EngineOptions::default();
        (options.sync, options.cache_bytes) = (true, Some(1 << 20));
        let (_, copy) = FjallSnapshot::load_with(&imported, options).unwrap();
        assert_eq!(state(&copy), state(&store));
        assert_eq!(copy.cursor(), manifest.cursor);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_artifact_or_refused(data in prop::collection::vec(any::<u8>(), 0..2000)) {
        checks::check_artifact(&data);
    }
}
