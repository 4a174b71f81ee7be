//! Databases that are not ours to open: of somebody else, or of a program that is newer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{cursor, open, place, put};
use crate::snapshot::engine::LABEL;
use crate::snapshot::{SnapshotError, SnapshotStore};

/// Of an engine: a complete database of it, `make` by somebody else, is refused and left as it is, to
/// the byte.
pub fn somebody_elses_database<S: SnapshotStore>(make: impl FnOnce(&Path)) {
    let (_dir, path) = place();
    make(&path);
    assert_refused::<S>(&path);
}

/// Of an engine: what becomes of a fold whose label says something else, or is not whole.
pub fn labels<S: SnapshotStore>() {
    let (_dir, path) = place();
    open::<S>(&path).apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    // Once more: an engine may give back room that it set aside.
    drop(open::<S>(&path));
    let label = path.join(LABEL);
    let ours = fs::read_to_string(&label).unwrap();
    // A second line says that the database was made.
    let begun = ours.strip_suffix("made\n").unwrap();
    let (says, format) = begun.trim_end().rsplit_once(' ').unwrap();
    let format: u32 = format.parse().unwrap();
    for other in [0, format + 1, 4_000_000_000] {
        fs::write(&label, format!("{says} {other}\n")).unwrap();
        let what = assert_refused::<S>(&path);
        assert!(what.starts_with(&format!("format {other}; ")), "{what}");
    }
    for wrong in [String::new(), format!("{says} {format}"), format!("{ours}{ours}"), says.into()] {
        fs::write(&label, wrong).unwrap();
        assert_refused::<S>(&path);
    }
    fs::remove_file(&label).unwrap();
    assert_refused::<S>(&path);
    // Killed before the label was whole; or of a program that did not write the second line.
    for len in begun.len()..=ours.len() {
        fs::write(&label, &ours[..len]).unwrap();
        assert_eq!(open::<S>(&path).cursor(), cursor(1));
        assert_eq!(fs::read_to_string(&label).unwrap(), ours);
    }

    // One that is just being made.
    for len in [0, 1, begun.len() / 2, begun.len() - 1, begun.len()] {
        let (_dir, path) = place();
        fs::create_dir(&path).unwrap();
        fs::write(path.join(LABEL), &ours[..len]).unwrap();
        assert!(S::load(&path).unwrap().0.is_none());
        assert_eq!(fs::read_to_string(path.join(LABEL)).unwrap(), ours);
    }
    for other in [format!("{says} {}\n", format + 1), "slipstream of the mountains\n".into()] {
        let (_dir, path) = place();
        fs::create_dir(&path).unwrap();
        fs::write(path.join(LABEL), other).unwrap();
        assert_refused::<S>(&path);
    }
}

#[track_caller]
fn assert_refused<S: SnapshotStore>(path: &Path) -> String {
    let before = files(path);
    let refused = S::load(path).err().expect("it is not ours");
    let SnapshotError::InvalidFormat(what) = refused else { panic!("{refused:?}") };
    let after = files(path);
    assert!(before.keys().eq(after.keys()), "{:?}\n{:?}", before.keys(), after.keys());
    for (name, bytes) in before {
        assert!(after[&name] == bytes, "{} was written to", name.display());
    }
    what
}

/// Every file and directory, and its bytes.
pub fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, Vec::new());
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}
