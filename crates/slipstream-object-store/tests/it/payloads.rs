//! Payloads that are not what their manifest says.

use std::path::Path;

use slipstream::artifact::Compression;
use slipstream::artifact::{About, ArtifactError, ArtifactInvalid, ExportManifest, Import};
use slipstream::payload::{read_manifest, read_payload, write_payload};
use slipstream::{
    AppendLogSnapshot, KvEntry, KvUpdate, SnapshotStore, VersionToken, WatchCursor, WatchScope,
};
use tar::{Builder, EntryType, Header};

struct World {
    dir: tempfile::TempDir,
    manifest: ExportManifest,
}

impl World {
    fn new(compression: Compression) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut store) = AppendLogSnapshot::load(&dir.path().join("fold")).unwrap();
        let version = VersionToken::from_u64(1);
        let put = KvEntry { key: "a".into(), value: "1".repeat(5000).into(), version };
        let cursor = WatchCursor::from_bytes(vec![1]).unwrap();
        store.apply(&[KvUpdate::Put(put)], &cursor).unwrap();
        let about = About::new(WatchScope::All);
        let mut manifest = store.export_to(&dir.path().join("artifact"), about).unwrap();
        manifest.compression = compression;
        Self { dir, manifest }
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        write_payload(&self.dir.path().join("artifact"), &self.manifest, &mut payload).unwrap();
        payload
    }

    fn log(&self) -> Vec<u8> {
        std::fs::read(self.dir.path().join("artifact/data/log")).unwrap()
    }

    fn import(&self, mut payload: &[u8]) -> Result<(), ArtifactError> {
        let path = self.dir.path().join("imported");
        let scope = WatchScope::All;
        let import = Import::<AppendLogSnapshot>::begin(self.manifest.clone(), &path, &scope)?;
        let read = read_payload(&self.manifest, &mut payload, Box::new(import));
        if read.is_err() {
            assert!(!path.exists(), "the destination is untouched");
        }
        read
    }

    #[track_caller]
    fn refuses(&self, payload: &[u8], why: &str) {
        match self.import(payload) {
            Err(ArtifactError::Invalid(reason)) => {
                let stages = std::fs::read_dir(self.dir.path()).unwrap().filter(|entry| {
                    entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')
                });
                assert_eq!(stages.count(), 0, "{why}: {reason}");
            }
            other => panic!("{why}: {other:?}"),
        }
    }
}

/// Name, kind, what its header says of its size, bytes.
pub(crate) type TarEntry<'a> = (&'a str, EntryType, u64, &'a [u8]);

pub(crate) fn tar_of(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for (name, kind, size, bytes) in entries {
        let mut header = Header::new_ustar();
        // As bytes: the library refuses to write some of these.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(*size);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

#[test]
fn a_payload_is_read_as_it_was_written() {
    for compression in [Compression::None, Compression::Zstd] {
        let world = World::new(compression);
        let payload = world.payload();
        assert_eq!(read_manifest(&mut &payload[..]).unwrap(), world.manifest);
        world.import(&payload).unwrap();
    }
    let sizes = [Compression::None, Compression::Zstd].map(|how| World::new(how).payload().len());
    assert!(sizes[1] * 4 < sizes[0], "{sizes:?}");
}

#[test]
fn a_payload_that_is_cut_short_or_changed_is_refused() {
    for compression in [Compression::None, Compression::Zstd] {
        let world = World::new(compression);
        let payload = world.payload();
        let step = payload.len() / 50 + 1;
        // The end of a tar is two blocks of nothing: all files have come before it.
        let end = match compression {
            Compression::None => payload.len() - 1024 - 512,
            Compression::Zstd => payload.len(),
        };
        for len in (0..end).step_by(step) {
            world.refuses(&payload[..len], &format!("{compression:?} cut to {len}"));
        }
        for at in (0..end).step_by(step) {
            let mut changed = payload.clone();
            changed[at] ^= 0x20;
            // A byte of a header that nobody looks at, like a time, may change.
            match world.import(&changed) {
                Ok(()) => std::fs::remove_file(world.dir.path().join("imported")).unwrap(),
                Err(ArtifactError::Invalid(_)) => {}
                Err(other) => panic!("{at}: {other}"),
            }
        }
    }
}

#[test]
fn a_tar_with_anything_else_in_it_is_refused() {
    use EntryType::{Directory, GNULongName, Link, Regular, Symlink, XHeader};
    let world = World::new(Compression::None);
    let (manifest, log) = (world.manifest.encode(), world.log());
    let (manifest_len, len) = (manifest.len() as u64, log.len() as u64);
    let first = ("MANIFEST.json", Regular, manifest_len, &manifest[..]);
    let file = ("data/log", Regular, len, &log[..]);
    world.import(&tar_of(&[first, file])).unwrap();
    std::fs::remove_file(world.dir.path().join("imported")).unwrap();
    let mut other = world.manifest.clone();
    other.epoch += 1;
    let other = other.encode();
    let nothing: &[u8] = &[];
    let cases: &[(&str, &[TarEntry<'_>])] = &[
        ("empty", &[]),
        ("no manifest", &[file]),
        ("no files", &[first]),
        ("another manifest", &[("MANIFEST.json", Regular, other.len() as u64, &other), file]),
        ("the manifest last", &[file, first]),
        ("a file twice", &[first, file, file]),
        ("one more", &[first, file, ("data/more", Regular, 1, b"x")]),
        ("path traversal", &[first, ("data/../../escaped", Regular, len, &log)]),
        ("absolute path", &[first, ("/tmp/escaped", Regular, len, &log)]),
        ("another name", &[first, ("data/other", Regular, len, &log)]),
        ("a link", &[first, ("data/log", Symlink, 0, nothing)]),
        ("a hard link", &[first, ("data/log", Link, 0, nothing)]),
        ("a directory", &[first, ("data", Directory, 0, nothing), file]),
        ("a long name", &[first, ("././@LongLink", GNULongName, 9, b"data/log\0"), file]),
        ("an extension", &[first, ("x", XHeader, 17, b"17 path=data/log\n"), file]),
        ("too short", &[first, ("data/log", Regular, len - 1, &log[1..])]),
        ("too long", &[first, ("data/log", Regular, len + 1, &[&log[..], b"x"].concat())]),
        ("oversized", &[first, ("data/log", Regular, u64::MAX / 4, &log)]),
        ("an oversized manifest", &[("MANIFEST.json", Regular, 1 << 40, &manifest), file]),
    ];
    for (why, entries) in cases {
        world.refuses(&tar_of(entries), why);
    }
    assert!(!Path::new("/tmp/escaped").exists());
}

/// The manifest of a payload is read before anything is known of it.
#[test]
fn what_begins_with_no_manifest_has_none() {
    let world = World::new(Compression::None);
    for bytes in [&b""[..], b"abc", &[0; 2048], &world.log()] {
        let refused = read_manifest(&mut &*bytes);
        assert!(matches!(refused, Err(ArtifactError::Invalid(ArtifactInvalid::Payload(_)))));
    }
}
