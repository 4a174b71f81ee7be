//! Artifacts of folds that run, and artifacts that are none.

mod checks;

use proptest::prelude::*;
use slipstream::artifact::{About, ArtifactError};
use slipstream::engine::EngineOptions;
use slipstream::{
    AppendLogSnapshot, CursorOnly, FjallSnapshot, SnapshotReader, SnapshotStore, WatchScope,
};

use crate::bootstrap;
use crate::snapshot::append_log::support::{cursor, put, state};

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
        let (_, copy) = FjallSnapshot::import(&artifact, &imported, &WatchScope::All).unwrap();
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
