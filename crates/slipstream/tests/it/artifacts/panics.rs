//! An engine that panics at files which no engine has written, though their hashes are right.

use std::path::Path;

use slipstream::artifact::{About, ArtifactError, ArtifactInvalid};
use slipstream::snapshot_conformance::{Alter, Altered};
use slipstream::{AppendLogSnapshot, SnapshotError, SnapshotStore, WatchCursor, WatchScope};

use crate::snapshot::append_log::support::{cursor, put};

#[derive(Default)]
struct Panics;

impl Alter for Panics {
    fn verify(_: &Path) -> Result<WatchCursor, SnapshotError> {
        panic!("on purpose: a sequence number that cannot be");
    }
}

#[test]
fn an_artifact_that_its_engine_panics_at_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut store) = AppendLogSnapshot::load(&dir.path().join("fold")).unwrap();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let artifact = dir.path().join("artifact");
    store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    let refused =
        Altered::<Panics>::import(&artifact, &dir.path().join("imported"), &WatchScope::All);
    assert!(
        matches!(refused, Err(ArtifactError::Invalid(ArtifactInvalid::Fold(_)))),
        "{refused:?}"
    );
    let names = std::fs::read_dir(dir.path()).unwrap();
    assert_eq!(names.count(), 2, "nothing is left");
}
