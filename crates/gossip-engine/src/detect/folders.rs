//! What the folders of a path say of the files in them.

use super::{file_kind, noted};

/// Translations are kept there.
pub(super) const CATALOGUE: u8 = 1;
/// What is written there as documentation is, is what people note down.
pub(super) const NOTES: u8 = 2;
/// A program keeps there what people say or do in it.
pub(super) const OF_PROGRAM: u8 = 4;
/// People keep there what they write down.
pub(super) const OF_PEOPLE: u8 = 8;

/// The folders of the path that was asked for last. Files come folder by folder, so that most of them are told
/// without a look at any name.
#[derive(Default)]
pub(crate) struct Folders {
    path: Vec<u8>,
    told: u8,
}

impl Folders {
    /// What the folders tell that `path` has before the name of its file.
    pub(super) fn of(&mut self, path: &[u8]) -> u8 {
        let name = memchr::memrchr2(b'/', b'!', path).map_or(0, |at| at + 1);
        let folders = &path[..name];
        if self.path != folders {
            self.path.clear();
            self.path.extend_from_slice(folders);
            // What is in an archive stands behind its name.
            let names = folders.split(|byte| matches!(byte, b'/' | b'!'));
            let told = names.map(|name| file_kind::of_folder(name) | noted::of_folder(name));
            self.told = told.fold(0, |told, one| told | one);
        }
        self.told
    }
}
