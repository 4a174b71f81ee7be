//! What holds for manifests and payloads out of any bytes; also a fuzz target.

use std::sync::LazyLock;

use slipstream::artifact::{ExportManifest, Import};
use slipstream::payload::{read_manifest, read_payload};
use slipstream::{AppendLogSnapshot, WatchScope};

/// Of one file, `abc`.
const MANIFEST: &str = r#"{"schema":1,"backend":"append-log","generation":2,"compression":"none","epoch":0,"bucket":null,"scope":[""],"cursor":"01","cursor_time_ms":null,"evicted":false,"witnesses":[],"files":[{"path":"log","size":3,"blake3":"6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85"}]}"#;

static KNOWN: LazyLock<[ExportManifest; 2]> = LazyLock::new(|| {
    [MANIFEST.to_owned(), MANIFEST.replace("none", "zstd")]
        .map(|text| ExportManifest::decode(text.as_bytes()).unwrap())
});

/// Nothing panics; a manifest is written as it was read; a payload that is not the manifest's is refused,
/// and what is one is no fold, so that nothing is at the destination.
pub(crate) fn check_artifact(data: &[u8]) {
    if let Ok(manifest) = ExportManifest::decode(data) {
        assert_eq!(manifest.encode(), data);
        let _ = (manifest.rank(), manifest.log_cursor(), manifest.total_size());
    }
    if let Ok(manifest) = read_manifest(&mut &*data) {
        assert_eq!(ExportManifest::decode(&manifest.encode()), Ok(manifest));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    for manifest in &*KNOWN {
        let scope = WatchScope::All;
        let import = Import::<AppendLogSnapshot>::begin(manifest.clone(), &path, &scope).unwrap();
        let read = read_payload(manifest, &mut &*data, Box::new(import));
        assert!(read.is_err(), "`abc` is no log");
        assert!(!path.exists());
    }
}
