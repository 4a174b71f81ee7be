//! Export: a copy of a fold's files, opened again, hashed, and then shown.

use std::fs::{self, File};
use std::io;
use std::marker::PhantomData;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use super::stage::{Stage, Staged, in_parallel, sync_early};
use super::{ArtifactError, ArtifactFile, Compression, DATA, ExportManifest, MANIFEST, io_error};
use crate::kv::{LogCursor, WatchCursor, WatchScope};
use crate::log_cursor::{WitnessMessage, scope_hash};
use crate::snapshot::{FinishCopy, SnapshotStore};

/// Files that are hashed at a time.
const HASH_THREADS: usize = 4;

/// The directory of a stage that becomes the artifact.
const STAGED: &str = "artifact";

/// What a manifest says that is not in the fold.
#[derive(Clone)]
pub struct About {
    /// The bucket that was folded, if its name is known.
    pub bucket: Option<String>,
    /// What was folded.
    pub scope: WatchScope,
    /// See [`ExportManifest::cursor_time_ms`].
    pub cursor_time_ms: Option<u64>,
    /// The fold's cursor, if it is known with more witnesses than are stored.
    pub(crate) cursor: Option<LogCursor>,
}

impl About {
    /// Of a fold of which no more is known than its scope.
    #[must_use]
    pub fn new(scope: WatchScope) -> Self {
        Self { bucket: None, scope, cursor_time_ms: None, cursor: None }
    }
}

/// An export for which the store is needed no longer: it applies on meanwhile.
pub struct Export<S> {
    stage: Stage,
    destination: PathBuf,
    cursor: WatchCursor,
    about: About,
    finish_copy: FinishCopy,
    store: PhantomData<fn(S)>,
}

impl<S: SnapshotStore> Export<S> {
    /// Begins an artifact of what the store holds now. It appears at `destination`, where nothing may
    /// be, when the export is [finished](Self::finish).
    ///
    /// # Errors
    /// [`ArtifactError::OtherScope`] if the fold's cursor says that it is of other keys. Nothing is left
    /// behind.
    pub fn begin(store: &mut S, destination: &Path, about: About) -> Result<Self, ArtifactError> {
        let files = S::FILES.ok_or(ArtifactError::Unsupported)?;
        let cursor = store.cursor();
        let stored = LogCursor::decode(&cursor);
        if cursor.is_none() || stored.as_ref().is_ok_and(|stored| stored.in_repair) {
            return Err(ArtifactError::Incomplete);
        }
        if stored.is_ok_and(|stored| stored.scope != scope_hash(&about.scope)) {
            return Err(ArtifactError::OtherScope);
        }
        let stage = Stage::beside(destination)?;
        let staged = stage.path(STAGED);
        fs::create_dir(&staged).map_err(io_error("making the artifact"))?;
        let finish_copy = (files.copy)(store, &staged.join(DATA))?;
        let destination = destination.to_owned();
        Ok(Self { stage, destination, cursor, about, finish_copy, store: PhantomData })
    }

    /// Completes the copy, reads it back to see that it is the fold (F5), hashes it, and moves it to its
    /// destination (F4).
    ///
    /// # Errors
    /// Nothing is left behind, but for [`ArtifactError::NotDurable`].
    pub fn finish(self) -> Result<ExportManifest, ArtifactError> {
        self.prepare()?.publish()
    }

    /// All of it but the last: nothing is at the destination yet.
    pub(crate) fn prepare(self) -> Result<Staged, ArtifactError> {
        let Self { stage, destination, cursor, about, finish_copy, .. } = self;
        let files = S::FILES.expect("it was begun");
        let staged = stage.path(STAGED);
        let data = staged.join(DATA);
        let known = finish_copy()?;
        let verify_and_hash = || {
            let verified = known.cursor.map_or_else(|| (files.verify)(&data), Ok);
            let copied = verified.map_err(|error| ArtifactError::Copy(error.to_string()))?;
            if copied != cursor {
                return Err(ArtifactError::Copy("it stands elsewhere".into()));
            }
            hash_all(&data, known.files)
        };
        let hashed = beside(|| sync_early(&data), verify_and_hash)?;
        if let Some(file) = hashed.iter().find(|file| !(files.owns)(&file.path)) {
            return Err(ArtifactError::Copy(format!("it has a file {:?}", file.path)));
        }
        let manifest = manifest_of::<S>(cursor, &about, hashed);
        let bytes = manifest.encode();
        // What nobody could read is no artifact.
        ExportManifest::decode(&bytes)?;
        fs::write(staged.join(MANIFEST), bytes).map_err(io_error("writing the manifest"))?;
        Ok(Staged { stage, from: staged, beside: None, destination, manifest })
    }
}

fn manifest_of<S: SnapshotStore>(
    cursor: WatchCursor,
    about: &About,
    files: Vec<ArtifactFile>,
) -> ExportManifest {
    let kind = S::FILES.expect("it was begun");
    let stored = LogCursor::decode(&cursor).ok();
    let witnesses = stored.as_ref().map_or_else(Vec::new, |stored| witnesses(stored, about));
    ExportManifest {
        backend: kind.backend.to_owned(),
        generation: kind.generation,
        compression: Compression::None,
        epoch: 0,
        bucket: about.bucket.clone(),
        prefixes: about.scope.prefixes().into_iter().map(str::to_owned).collect(),
        evicted: stored.is_some_and(|cursor| cursor.evicted),
        cursor,
        cursor_time_ms: about.cursor_time_ms,
        witnesses,
        files,
    }
}

/// All that are known with a stored cursor. What is remembered may be of another moment: then those
/// that are stored with it.
fn witnesses(stored: &LogCursor, about: &About) -> Vec<WitnessMessage> {
    let remembered = about.cursor.as_ref().filter(|known| {
        let newest = known.witnesses.first().map_or(0, |newest| newest.revision);
        let witnesses = known.witnesses.clone();
        newest <= stored.position.end
            && known.position.revision == stored.position.revision
            && LogCursor { witnesses, ..stored.clone() }.encode() == stored.encode()
    });
    remembered.unwrap_or(stored).witnesses.clone()
}

/// Does two things at once.
fn beside(
    sync: impl FnOnce() -> io::Result<()> + Send,
    work: impl FnOnce() -> Result<Vec<ArtifactFile>, ArtifactError>,
) -> Result<Vec<ArtifactFile>, ArtifactError> {
    thread::scope(|scope| {
        let syncing = scope.spawn(sync);
        let worked = work();
        let synced = syncing.join().unwrap_or_else(|panic| resume_unwind(panic));
        synced.map_err(io_error("syncing the copy of the fold"))?;
        worked
    })
}

/// The files below a directory, in order. Of those that are `known` the hash is known.
fn hash_all(data: &Path, known: Vec<ArtifactFile>) -> Result<Vec<ArtifactFile>, ArtifactError> {
    let names = list(data).map_err(io_error("listing the copy of the fold"))?;
    if let Some((path, _)) = names.iter().find(|(_, is_file)| !is_file) {
        return Err(ArtifactError::Copy(format!("it has something that is no file: {path:?}")));
    }
    let hashed = in_parallel(&names, HASH_THREADS, |(path, _)| {
        if let Some(known) = known.iter().find(|file| file.path == *path) {
            return Ok(known.clone());
        }
        let (size, hash) = hash(&data.join(path))?;
        Ok(ArtifactFile { path: path.clone(), size, hash })
    });
    let hashed: io::Result<Vec<ArtifactFile>> = hashed.into_iter().collect();
    hashed.map_err(io_error("hashing the fold"))
}

fn hash(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((hasher.count(), *hasher.finalize().as_bytes()))
}

/// Everything below a directory that is none itself, and whether it is a file, in ascending order of
/// the names.
pub(super) fn list(directory: &Path) -> io::Result<Vec<(String, bool)>> {
    let mut found = Vec::new();
    let mut directories = vec![(directory.to_owned(), String::new())];
    while let Some((directory, before)) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            // A name that is no text is none of ours, whatever is put for it.
            let name = format!("{before}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            match kind.is_dir() {
                true => directories.push((entry.path(), format!("{name}/"))),
                false => found.push((name, kind.is_file())),
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
