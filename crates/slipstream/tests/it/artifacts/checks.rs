//! What holds for manifests and payloads out of any bytes; also a fuzz target.

use std::io::Read;
use std::sync::LazyLock;

use slipstream::artifact::{ArtifactError, ExportManifest, Import, TakeFiles};
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
    for manifest in &*KNOWN {
        if read_payload(manifest, &mut &*data, Box::new(Anything)).is_ok() {
            check_import(manifest, data);
        }
    }
}

/// Whoever takes files looks at what is in them. This one does not, and is quick.
struct Anything;

impl TakeFiles for Anything {
    fn file(&mut self, _: &str, from: &mut dyn Read) -> Result<(), ArtifactError> {
        let source = |source| ArtifactError::Io { doing: "reading", source };
        std::io::copy(from, &mut std::io::sink()).map(drop).map_err(source)
    }

    fn end(self: Box<Self>) -> Result<(), ArtifactError> {
        Ok(())
    }
}

fn check_import(manifest: &ExportManifest, data: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let scope = WatchScope::All;
    let import = Import::<AppendLogSnapshot>::begin(manifest.clone(), &path, &scope).unwrap();
    let read = read_payload(manifest, &mut &*data, Box::new(import));
    assert!(read.is_err(), "`abc` is no log");
    assert!(!path.exists());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the checks are about is to be had: a payload of the manifest, with its file.
    #[test]
    fn a_payload_of_the_manifest_is_read_and_is_no_fold() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("data")).unwrap();
        std::fs::write(dir.path().join("data/log"), "abc").unwrap();
        for manifest in &*KNOWN {
            let mut payload = Vec::new();
            slipstream::payload::write_payload(dir.path(), manifest, &mut payload).unwrap();
            assert!(read_payload(manifest, &mut &*payload, Box::new(Anything)).is_ok());
            check_artifact(&payload);
        }
    }
}
