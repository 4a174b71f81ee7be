//! What reads bytes of others, for the targets of `fuzz/`. Errors are what most inputs end in; nothing
//! panics.

use std::path::Path;

use gix::hash::Kind as HashKind;

use crate::manifest::{Manifest, ManifestError};
use crate::objects::{ObjectError, ObjectReader, Objects, Positions, apply_delta};

/// No more is read of one object.
const BYTES_MAX: u64 = 4 << 20;

/// The object that a delta makes from its base, of at most `max` bytes.
#[must_use]
pub fn delta(base: &[u8], instructions: &[u8], max: u64) -> Option<Vec<u8>> {
    apply_delta(base, instructions, max).ok()
}

/// Reads all objects in `dir`, a repository's directory of objects; how many could be.
#[must_use]
pub fn objects(dir: &Path) -> usize {
    let open = || -> Result<_, ObjectError> {
        let objects = Objects::open(vec![dir.to_owned()], HashKind::Sha1)?;
        let positions = Positions::new(&objects)?;
        Ok((objects, positions))
    };
    let Ok((objects, positions)) = open() else { return 0 };
    let mut reader = ObjectReader::new(1 << 20);
    let mut read = |number: u32| -> Result<(), ObjectError> {
        let place = objects.locate(&positions.id(number))?;
        let (_, mut body) = reader.open(&place)?;
        let (size, mut at, mut buf) = (body.size(), 0, vec![0; 64 << 10]);
        while at < BYTES_MAX {
            let len = body.read_at(at, &mut buf)? as u64;
            at += len;
            if len == 0 {
                assert_eq!(at, size, "O1");
                break;
            }
        }
        Ok(())
    };
    (0..positions.len() as u32).filter(|number| read(*number).is_ok()).count()
}

/// Reads all of the manifest at `path`; how many files it names.
#[must_use]
pub fn manifest(path: &Path) -> usize {
    let read = || -> Result<usize, ManifestError> {
        let manifest = Manifest::open(path)?;
        manifest.tips()?;
        manifest.shallow()?;
        for number in 0..manifest.len() {
            // One that is damaged leaves the others.
            let Ok(Some(row)) = manifest.row(number) else { continue };
            if let Ok(Some(origin)) = manifest.origin(row.origin) {
                let _ = manifest.text(origin.author);
            }
        }
        Ok(manifest.files()?.len())
    };
    read().unwrap_or(0)
}
