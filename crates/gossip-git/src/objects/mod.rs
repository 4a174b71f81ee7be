//! A repository's objects: its packs and loose files, and those of its alternates.
//!
//! - O1: what is read of an object has the length that its header says and a right checksum of the
//!   compression, or is an error. No header makes more memory be taken than [`WHOLE_MAX`].
//! - O2: an object is found as long as the repository has it, whatever was repacked since the packs
//!   were opened.

mod delta;
mod inflate;
mod loose;
mod pack;
mod reader;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use gix::ObjectId;
use gix::hash::Kind as HashKind;

pub(crate) use delta::HEAD_MAX as DELTA_HEAD_MAX;
#[cfg(feature = "fuzzing")]
pub(crate) use delta::apply as apply_delta;
pub(crate) use delta::head as delta_head;
pub(crate) use inflate::Inflater;
pub(crate) use loose::list_loose;
pub(crate) use pack::{Form, Pack};
pub(crate) use reader::{Body, ObjectReader, Whole};

/// The largest object that is taken whole into memory: git makes no deltas of larger ones.
pub(crate) const WHOLE_MAX: u64 = 512 << 20;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Tree,
    Commit,
    Tag,
}

/// Why an object cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    #[error("the object is not in the repository")]
    Missing,
    #[error("the repository is damaged: {0}")]
    Corrupt(&'static str),
    #[error("an object of {size} bytes is too large")]
    TooLarge { size: u64 },
    #[error("{0}")]
    Io(io::Error),
}

/// Where an object is.
pub(crate) enum Place {
    Packed { pack: Arc<Pack>, offset: u64 },
    Loose(PathBuf),
}

/// The packs that there were at one time. An object that is in several is taken from the first.
pub(crate) struct Packs {
    pub(crate) packs: Vec<Arc<Pack>>,
    /// Packs that could not be opened.
    pub(crate) broken: usize,
    names: Vec<PathBuf>,
}

impl Packs {
    /// The pack and the position in its index.
    pub(crate) fn find(&self, id: &gix::oid) -> Option<(usize, u32)> {
        let mut packs = self.packs.iter().enumerate();
        packs.find_map(|(at, pack)| Some((at, pack.find(id)?)))
    }
}

/// All objects of a repository. Shared by all that read.
pub(crate) struct Objects {
    hash: HashKind,
    dirs: Vec<PathBuf>,
    packs: RwLock<Arc<Packs>>,
}

impl Objects {
    /// The objects in `dirs`: the repository's own and those of its alternates.
    pub(crate) fn open(dirs: Vec<PathBuf>, hash: HashKind) -> Result<Self, ObjectError> {
        let names = pack_names(&dirs).map_err(ObjectError::Io)?;
        let packs = RwLock::new(Arc::new(open_packs(names, hash, &[])));
        Ok(Self { hash, dirs, packs })
    }

    pub(crate) const fn hash(&self) -> HashKind {
        self.hash
    }

    pub(crate) fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    pub(crate) fn packs(&self) -> Arc<Packs> {
        Arc::clone(&self.packs.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Looks for packs that have appeared; whether there are any.
    pub(crate) fn refresh(&self) -> Result<bool, ObjectError> {
        let names = pack_names(&self.dirs).map_err(ObjectError::Io)?;
        let mut packs = self.packs.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if names == packs.names {
            return Ok(false);
        }
        // Packs that stay are not mapped a second time.
        *packs = Arc::new(open_packs(names, self.hash, &packs.packs));
        Ok(true)
    }

    /// Where an object is (O2).
    pub(crate) fn locate(&self, id: &gix::oid) -> Result<Place, ObjectError> {
        if let Some(place) = self.locate_now(id) {
            return Ok(place);
        }
        // A pack is moved into its place before what it replaces is removed, so that one more look
        // is enough.
        self.refresh()?;
        self.locate_now(id).ok_or(ObjectError::Missing)
    }

    fn locate_now(&self, id: &gix::oid) -> Option<Place> {
        let packs = self.packs();
        if let Some((at, position)) = packs.find(id) {
            let pack = Arc::clone(&packs.packs[at]);
            let offset = pack.offset(position);
            return Some(Place::Packed { pack, offset });
        }
        let paths = self.dirs.iter().map(|dir| loose::path_of(dir, id));
        paths.into_iter().find(|path| path.is_file()).map(Place::Loose)
    }
}

/// The indexes of all packs, in order.
fn pack_names(dirs: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for dir in dirs {
        let entries = match fs::read_dir(dir.join("pack")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path.extension() == Some(OsStr::new("idx")) {
                names.push(path);
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The largest come first: most look-ups end there.
fn open_packs(names: Vec<PathBuf>, hash: HashKind, known: &[Arc<Pack>]) -> Packs {
    let open = |name: &PathBuf| match known.iter().find(|pack| pack.path() == name) {
        Some(pack) => Ok(Arc::clone(pack)),
        None => Pack::open(name, hash).map(Arc::new),
    };
    let mut packs = Vec::new();
    let mut broken = 0;
    for name in &names {
        match open(name) {
            Ok(pack) => packs.push(pack),
            // What is only in there is missing, and is reported where it is wanted.
            Err(error) => {
                tracing::warn!(%error, "a pack cannot be read");
                broken += 1;
            }
        }
    }
    packs.sort_by(|a, b| (b.len(), a.path()).cmp(&(a.len(), b.path())));
    Packs { packs, broken, names }
}

/// Every object as a number: positions in the indexes of the packs, one pack after the other, then
/// loose objects, then what somebody asked for and is not there.
pub(crate) struct Positions {
    packs: Arc<Packs>,
    /// The number of each pack's first object; the last is that of the first loose object.
    bases: Vec<u32>,
    /// Sorted.
    loose: Vec<ObjectId>,
    missing: Vec<ObjectId>,
    missing_numbers: HashMap<ObjectId, u32>,
}

const TOO_MANY: ObjectError = ObjectError::Corrupt("it has too many objects");

impl Positions {
    pub(crate) fn new(objects: &Objects) -> Result<Self, ObjectError> {
        let packs = objects.packs();
        let mut bases = vec![0_u32];
        for pack in &packs.packs {
            bases.push(bases[bases.len() - 1].checked_add(pack.len()).ok_or(TOO_MANY)?);
        }
        let mut loose = Vec::new();
        for dir in objects.dirs() {
            list_loose(dir, objects.hash(), &mut loose).map_err(ObjectError::Io)?;
        }
        loose.sort_unstable();
        loose.dedup();
        // Half of the numbers are kept for what is missing.
        if loose.len() as u64 + u64::from(bases[bases.len() - 1]) > u64::from(u32::MAX / 2) {
            return Err(TOO_MANY);
        }
        Ok(Self { packs, bases, loose, missing: Vec::new(), missing_numbers: HashMap::new() })
    }

    pub(crate) fn len(&self) -> usize {
        self.first_missing() as usize + self.missing.len()
    }

    fn first_loose(&self) -> u32 {
        self.bases[self.bases.len() - 1]
    }

    fn first_missing(&self) -> u32 {
        self.first_loose() + self.loose.len() as u32
    }

    /// The number of an object; a new one if it is not there.
    pub(crate) fn of(&mut self, id: &gix::oid) -> u32 {
        if let Some(number) = self.find(id) {
            return number;
        }
        let number = self.len() as u32;
        self.missing.push(id.to_owned());
        self.missing_numbers.insert(id.to_owned(), number);
        number
    }

    /// The number of an object that is known.
    pub(crate) fn find(&self, id: &gix::oid) -> Option<u32> {
        if let Some((pack, position)) = self.packs.find(id) {
            return Some(self.bases[pack] + position);
        }
        if let Ok(at) = self.loose.binary_search_by(|loose| loose.as_ref().cmp(id)) {
            return Some(self.first_loose() + at as u32);
        }
        self.missing_numbers.get(id).copied()
    }

    /// The object of a number.
    pub(crate) fn id(&self, number: u32) -> ObjectId {
        match self.packed(number) {
            Some((pack, position)) => self.packs.packs[pack].id(position),
            None if number < self.first_missing() => {
                self.loose[(number - self.first_loose()) as usize]
            }
            None => self.missing[(number - self.first_missing()) as usize],
        }
    }

    /// The pack and position of a packed object.
    pub(crate) fn packed(&self, number: u32) -> Option<(usize, u32)> {
        if number >= self.first_loose() {
            return None;
        }
        let pack = self.bases.partition_point(|&base| base <= number) - 1;
        Some((pack, number - self.bases[pack]))
    }

    pub(crate) fn is_missing(&self, number: u32) -> bool {
        number >= self.first_missing()
    }

    pub(crate) fn packs(&self) -> &[Arc<Pack>] {
        &self.packs.packs
    }
}

/// Where the message of a commit or tag begins: behind the first empty line.
pub(crate) fn message_start(bytes: &[u8]) -> usize {
    bytes.windows(2).position(|pair| pair == b"\n\n").map_or(bytes.len(), |at| at + 2)
}
