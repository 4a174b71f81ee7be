//! The format on disk: what was written once is written and read for ever.

use super::*;

/// The kinds of rows in the golden file. Those that came later are pinned by their numbers.
const FIRST_KINDS: usize = 6;

/// A row of each of those, with every field that a row, an origin or a header has.
fn draft() -> Draft {
    let id = |byte| ObjectId::try_from(&[byte; 20][..]).unwrap();
    let row = |(kind, number): (RowKind, u8)| Row {
        id: id(number),
        kind,
        class: u64::from(number) << 56 | 1,
        size: 1000 + u64::from(number),
        origin: if kind == RowKind::Submodule { NONE } else { 0 },
        path: if kind == RowKind::Blob { 0 } else { NONE },
        more: if kind == RowKind::Blob { 0 } else { NONE },
    };
    Draft {
        id: 7,
        nonce: std::array::from_fn(|at| 0x50 + at as u8),
        last: 5,
        is_partial: true,
        hash: gix::hash::Kind::Sha1,
        rows: RowKind::ALL.into_iter().take(FIRST_KINDS).zip(1..).map(row).collect(),
        origins: vec![OriginRow {
            id: id(0xaa),
            order: 9 << 29 | 1,
            seconds: -1,
            offset_seconds: -3600,
            author: 3,
        }],
        more: vec![2, 1, 2],
        texts: [&b"src/main.rs"[..], b"", b"\xff\n", b"A <a@example.com>"].map(Box::from).into(),
        tips: vec![id(0xbb), id(0xcc)],
        shallow: vec![id(0xdd)],
    }
}

fn golden() -> Vec<u8> {
    bytes(include_str!("../../tests/golden/manifest.v2.hex"))
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn a_manifest_is_written_as_the_golden_file_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("7.manifest");
    draft().write(&path).unwrap();
    let written = std::fs::read(path).unwrap();
    let hex: Vec<String> = written
        .chunks(32)
        .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    assert!(written == golden(), "what was written:\n{}", hex.join("\n"));
}

/// It does not say which run it is of, so its run is planned anew.
#[test]
fn a_manifest_of_the_first_version_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("7.manifest");
    std::fs::write(&path, bytes(include_str!("../../tests/golden/manifest.v1.hex"))).unwrap();
    assert!(matches!(Manifest::open(&path), Err(ManifestError::OtherVersion)));
}

#[test]
fn a_kind_keeps_its_number() {
    assert_eq!(RowKind::ALL.map(|kind| kind as u8), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(RowKind::ALL[FIRST_KINDS..], [RowKind::ManyPaths, RowKind::Shallow]);
}

#[test]
fn the_golden_manifest_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("7.manifest");
    std::fs::write(&path, golden()).unwrap();
    let (manifest, draft) = (Manifest::open(&path).unwrap(), draft());
    assert_eq!((manifest.id(), manifest.len()), (7, draft.rows.len() as u64));
    assert_eq!(manifest.last().map(gossip_contracts::identity::RunId::as_raw), Some(5));
    assert!(manifest.is_partial());
    assert!(manifest.rows(0, 100).unwrap() == draft.rows);
    assert!(manifest.origin(0).unwrap().as_ref() == draft.origins.first());
    assert_eq!(manifest.more(0).unwrap(), [1, 2]);
    for (number, text) in (0..).zip(&draft.texts) {
        assert_eq!(manifest.text(number).unwrap().as_deref(), Some(&**text));
    }
    assert_eq!(manifest.tips().unwrap(), draft.tips);
    assert_eq!(manifest.shallow().unwrap(), draft.shallow);
    let base = draft.origins.first().map(|origin| origin.id);
    let file = |path: &[u8]| (path.to_vec(), draft.rows[0].id, base);
    assert_eq!(manifest.files().unwrap(), [file(b""), file(b"src/main.rs"), file(b"\xff\n")]);
}
