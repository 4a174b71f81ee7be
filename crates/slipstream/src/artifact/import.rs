//! Import: an artifact's files, hashed as they are copied, opened, and only then a fold.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::early::EarlySync;
use super::export::list;
use super::imported::write_imported;
use super::stage::{Stage, Staged};
use super::{
    ArtifactError, ArtifactFile, ArtifactInvalid, DATA, ExportManifest, MANIFEST, MAX_MANIFEST_LEN,
    io_error,
};
use crate::kv::WatchScope;
use crate::snapshot::{FoldFiles, SnapshotError, SnapshotStore};

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 18;

/// An import that goes on: it is given the files one after the other. Nothing is at the destination
/// until it is [finished](Self::finish), and nothing is left behind if it is dropped.
pub struct Import<S> {
    stage: Stage,
    destination: PathBuf,
    manifest: ExportManifest,
    /// How many files have come.
    count: usize,
    chunk: Vec<u8>,
    early: EarlySync,
    store: PhantomData<fn() -> S>,
}

impl<S: SnapshotStore> Import<S> {
    /// Begins a fold of `scope` at `destination`, where nothing may be.
    ///
    /// # Errors
    /// The manifest is of something else than a fold of this store and scope.
    pub fn begin(
        manifest: ExportManifest,
        destination: &Path,
        scope: &WatchScope,
    ) -> Result<Self, ArtifactError> {
        let files = S::FILES.ok_or(ArtifactError::Unsupported)?;
        manifest.check(files.backend, files.generation, files.owns, scope)?;
        let stage = Stage::beside(destination)?;
        fs::create_dir(stage.path(DATA)).map_err(io_error("making the fold"))?;
        let early = EarlySync::start().map_err(io_error("starting to sync"))?;
        let (destination, chunk) = (destination.to_owned(), vec![0; CHUNK]);
        Ok(Self { stage, destination, manifest, count: 0, chunk, early, store: PhantomData })
    }

    /// The next file of the manifest, by its name, which must be this one.
    ///
    /// # Errors
    /// The name is another, or what `from` has is not the file.
    pub fn file(&mut self, path: &str, from: &mut dyn Read) -> Result<(), ArtifactError> {
        let Some(file) = self.manifest.files.get(self.count) else {
            return Err(ArtifactInvalid::Unlisted(path.to_owned()).into());
        };
        if file.path != path {
            let is_late = self.manifest.files.iter().any(|file| file.path == path);
            let other = if is_late { ArtifactInvalid::Missing } else { ArtifactInvalid::Unlisted };
            let name = if is_late { file.path.clone() } else { path.to_owned() };
            return Err(other(name).into());
        }
        let target = self.stage.path(DATA).join(path);
        write_checked(file, &target, from, &mut self.chunk, &self.early)?;
        self.count += 1;
        Ok(())
    }

    /// Makes what has come a fold, if it is the one of the manifest (F5, F6). The caller opens it, with
    /// the options that it wants.
    ///
    /// # Errors
    /// Nothing is at the destination, but for [`ArtifactError::NotDurable`].
    pub fn finish(self) -> Result<ExportManifest, ArtifactError> {
        self.prepare()?.publish()
    }

    /// All of it but the last: nothing is at the destination yet.
    pub(crate) fn prepare(self) -> Result<Staged, ArtifactError> {
        let Self { stage, destination, manifest, count, early, .. } = self;
        let files: FoldFiles<S> = S::FILES.expect("it was begun");
        if let Some(missing) = manifest.files.get(count) {
            return Err(ArtifactInvalid::Missing(missing.path.clone()).into());
        }
        let data = stage.path(DATA);
        // An engine may panic at files that no engine has written, whatever their hashes are.
        let verified = catch_unwind(AssertUnwindSafe(|| (files.verify)(&data)));
        early.finish().map_err(io_error("syncing the fold"))?;
        let stands = match verified {
            Ok(Ok(stands)) => stands,
            Ok(Err(refused @ SnapshotError::Io { .. })) => return Err(refused.into()),
            Ok(Err(error)) => return Err(ArtifactInvalid::Fold(error.to_string()).into()),
            Err(_) => {
                let what = "whoever opened them panicked".to_owned();
                return Err(ArtifactInvalid::Fold(what).into());
            }
        };
        if stands != manifest.cursor {
            return Err(ArtifactInvalid::Cursor.into());
        }
        let from = (files.fold)(&data);
        let mut beside = None;
        // Of another kind of cursor there is nothing to prove.
        if manifest.log_cursor().is_ok() {
            let (staged, at) = ((files.imported)(&from), (files.imported)(&destination));
            write_imported(&staged, &manifest).map_err(io_error("writing the manifest"))?;
            beside = (!staged.starts_with(&from)).then_some((staged, at));
        }
        Ok(Staged { stage, from, beside, destination, manifest })
    }
}

/// Takes the files of an artifact, one after the other as its manifest has them.
pub trait TakeFiles: Send {
    /// The next file.
    ///
    /// # Errors
    /// It is not the one of the manifest, or could not be kept.
    fn file(&mut self, path: &str, from: &mut dyn Read) -> Result<(), ArtifactError>;

    /// These were all.
    ///
    /// # Errors
    /// They are no fold, or not the one of the manifest.
    fn end(self: Box<Self>) -> Result<(), ArtifactError>;
}

/// The fold is at its destination at the end.
impl<S: SnapshotStore> TakeFiles for Import<S> {
    fn file(&mut self, path: &str, from: &mut dyn Read) -> Result<(), ArtifactError> {
        Self::file(self, path, from)
    }

    fn end(self: Box<Self>) -> Result<(), ArtifactError> {
        self.finish().map(drop)
    }
}

/// An import. What becomes of it when it is whole is for `then` to say.
pub(crate) struct Taking<S, F> {
    pub(crate) import: Import<S>,
    pub(crate) then: F,
}

impl<S: SnapshotStore, F: FnOnce(Staged) + Send> TakeFiles for Taking<S, F> {
    fn file(&mut self, path: &str, from: &mut dyn Read) -> Result<(), ArtifactError> {
        self.import.file(path, from)
    }

    fn end(self: Box<Self>) -> Result<(), ArtifactError> {
        let Self { import, then } = *self;
        then(import.prepare()?);
        Ok(())
    }
}

/// Copies one file, no more of it than there should be, and hashes what is written.
fn write_checked(
    file: &ArtifactFile,
    target: &Path,
    from: &mut dyn Read,
    chunk: &mut [u8],
    early: &EarlySync,
) -> Result<(), ArtifactError> {
    let writing = || io_error("writing the fold");
    if let Some(parent) = target.parent() {
        fs::create_dir_all(parent).map_err(writing())?;
    }
    let mut options = File::options();
    let mut to = options.write(true).create_new(true).mode(0o600).open(target).map_err(writing())?;
    let mut hasher = blake3::Hasher::new();
    loop {
        let some = match from.read(chunk) {
            Ok(0) => break,
            Ok(some) => some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(io_error("reading the artifact")(error)),
        };
        if hasher.count() + some as u64 > file.size {
            return Err(ArtifactInvalid::Size(file.path.clone()).into());
        }
        to.write_all(&chunk[..some]).map_err(writing())?;
        early.wrote(&to, hasher.count(), some as u64);
        hasher.update(&chunk[..some]);
    }
    early.sync(&to);
    if hasher.count() != file.size {
        return Err(ArtifactInvalid::Size(file.path.clone()).into());
    }
    match hasher.finalize().as_bytes() == &file.hash {
        true => Ok(()),
        false => Err(ArtifactInvalid::Hash(file.path.clone()).into()),
    }
}

/// Makes a fold of `scope` at `destination` from the artifact in a directory.
///
/// # Errors
/// As [`Import::begin`], [`Import::file`] and [`Import::finish`] say.
pub fn import<S: SnapshotStore>(
    artifact: &Path,
    destination: &Path,
    scope: &WatchScope,
) -> Result<ExportManifest, ArtifactError> {
    let manifest = read_manifest(artifact)?;
    let data = artifact.join(DATA);
    check_listed(&manifest, &data)?;
    let mut import = Import::<S>::begin(manifest, destination, scope)?;
    while let Some(file) = import.manifest.files.get(import.count) {
        let path = file.path.clone();
        let mut from = File::open(data.join(&path)).map_err(io_error("reading the artifact"))?;
        import.file(&path, &mut from)?;
    }
    import.finish()
}

/// The manifest of the artifact in a directory.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn read_manifest(artifact: &Path) -> Result<ExportManifest, ArtifactError> {
    read_manifest_at(&artifact.join(MANIFEST))
}

pub(super) fn read_manifest_at(path: &Path) -> Result<ExportManifest, ArtifactError> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ArtifactInvalid::Manifest("there is none").into());
        }
        file => {
            let file = file.map_err(io_error("reading the manifest"))?;
            let mut file = file.take(MAX_MANIFEST_LEN + 1);
            file.read_to_end(&mut bytes).map_err(io_error("reading the manifest"))?;
        }
    }
    Ok(ExportManifest::decode(&bytes)?)
}

/// Whether there is what the manifest lists, and nothing else: no link either.
fn check_listed(manifest: &ExportManifest, data: &Path) -> Result<(), ArtifactError> {
    let found = list(data).map_err(io_error("listing the artifact"))?;
    let listed =
        |name: &str| manifest.files.binary_search_by(|file| file.path.as_str().cmp(name)).is_ok();
    if let Some((name, _)) = found.iter().find(|(name, is_file)| !is_file || !listed(name)) {
        return Err(ArtifactInvalid::Unlisted(name.clone()).into());
    }
    let is_there =
        |name: &str| found.binary_search_by(|(other, _)| other.as_str().cmp(name)).is_ok();
    match manifest.files.iter().find(|file| !is_there(&file.path)) {
        Some(missing) => Err(ArtifactInvalid::Missing(missing.path.clone()).into()),
        None => Ok(()),
    }
}
