//! A directory that something is made in, beside where it goes.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::{ArtifactError, DATA, ExportManifest, io_error};

/// Files and directories that are synced at a time.
const SYNC_THREADS: usize = 8;

/// Begins the names of stages.
const PREFIX: &str = ".slipstream-stage-";

/// Removed when it is dropped. What a killed process left is removed by the next stage in the same
/// directory: nobody has it locked.
pub(super) struct Stage {
    // Declared first: it goes before its lock does.
    dir: TempDir,
    _lock: File,
}

impl Stage {
    /// Beside `destination`, where nothing may be.
    pub(super) fn beside(destination: &Path) -> Result<Self, ArtifactError> {
        if fs::symlink_metadata(destination).is_ok() {
            return Err(ArtifactError::Exists);
        }
        let parent = parent_of(destination);
        remove_abandoned(parent);
        loop {
            let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
            let dir = dir.map_err(io_error("making a directory beside the destination"))?;
            match lock(dir.path()) {
                Ok(Some(lock)) => return Ok(Self { dir, _lock: lock }),
                Ok(None) => {}
                Err(error) => {
                    return Err(io_error("locking a directory beside the destination")(error));
                }
            }
        }
    }

    /// The path of something in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a file or directory of it at the destination, unless something is there, so that a crash
    /// of the machine leaves it whole there or not at all.
    fn publish(
        &self,
        from: &Path,
        destination: &Path,
        sync_parent: impl FnOnce(&Path) -> io::Result<()>,
    ) -> Result<(), ArtifactError> {
        sync(from).map_err(io_error("syncing what was made"))?;
        match rename_new(from, destination) {
            Err(error) if is_there(&error) => return Err(ArtifactError::Exists),
            renamed => renamed.map_err(io_error("moving what was made to the destination"))?,
        }
        sync_parent(parent_of(destination)).map_err(ArtifactError::NotDurable)
    }
}

/// An artifact or a fold that is whole and was checked, and is not at its destination yet.
pub(crate) struct Staged {
    pub(super) stage: Stage,
    pub(super) from: PathBuf,
    /// A file that goes with it, and where: there first, where it counts for nothing by itself.
    pub(super) beside: Option<(PathBuf, PathBuf)>,
    pub(super) destination: PathBuf,
    pub(super) manifest: ExportManifest,
}

impl Staged {
    /// Moves it to its destination (F4).
    pub(crate) fn publish(self) -> Result<ExportManifest, ArtifactError> {
        let Self { stage, from, beside, destination, manifest } = self;
        if let Some((from, to)) = beside {
            // That of a fold which has come there meanwhile stays.
            if fs::symlink_metadata(&destination).is_ok() {
                return Err(ArtifactError::Exists);
            }
            fs::rename(from, to).map_err(io_error("moving what was made to the destination"))?;
        }
        stage.publish(&from, &destination, |parent| File::open(parent)?.sync_all())?;
        Ok(manifest)
    }

    /// The directory of its files, until it is dropped.
    pub(crate) fn data(&self) -> PathBuf {
        self.stage.path(DATA)
    }

    /// Moves it to its destination for somebody who waits for it. If nobody does any more, nothing stays
    /// there: it would be in the way of whoever tries again.
    pub(crate) fn publish_for(
        self,
        waiting: oneshot::Sender<Result<ExportManifest, ArtifactError>>,
    ) {
        if waiting.is_closed() {
            return;
        }
        let destination = self.destination.clone();
        let beside = self.beside.as_ref().map(|(_, to)| to.clone());
        if let Err(Ok(_)) = waiting.send(self.publish()) {
            for path in [Some(destination), beside].into_iter().flatten() {
                let removed = match path.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false => fs::remove_file(&path),
                };
                if let Err(error) = removed {
                    tracing::warn!(%error, "what nobody waits for any more was not removed");
                }
            }
        }
    }

    pub(crate) fn manifest(&self) -> &ExportManifest {
        &self.manifest
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != OsStr::new("")).unwrap_or(Path::new("."))
}

/// The lock of a directory; `None` if somebody took it for abandoned before it was locked.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let of = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let locked = File::open(path).and_then(|directory| {
        directory.lock()?;
        let is_there = of(directory.metadata()?) == of(fs::metadata(path)?);
        Ok(is_there.then_some(directory))
    });
    match locked {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        locked => locked,
    }
}

/// Not worth an error: the next one tries again.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        if let Ok(lock) = File::open(entry.path())
            && lock.try_lock().is_ok()
        {
            tracing::info!("removing what is left of an export or import that was killed");
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system does not know how.
        Err(rustix::io::Errno::INVAL) => rename_unless_there(from, to),
        renamed => Ok(renamed?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_unless_there(from, to)
}

fn rename_unless_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

fn is_there(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty)
}

/// A file or a directory, with all that is in it.
fn sync(path: &Path) -> io::Result<()> {
    sync_each(&everything(path)?, Err)
}

/// The same, while somebody is at work there who may remove a file. What changes later is for
/// [`sync`] to sync.
pub(super) fn sync_early(path: &Path) -> io::Result<()> {
    sync_each(&everything(path)?, |error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// A path, and what is below it. All of it is listed before the first is synced, as to read a directory
/// changes it.
fn everything(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = vec![path.to_owned()];
    let mut directories = Vec::new();
    if fs::symlink_metadata(path)?.is_dir() {
        directories.push(path.to_owned());
    }
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            found.push(entry.path());
            if entry.file_type()?.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Several at a time: the file system then writes its own journal once for all of them.
fn sync_each(
    paths: &[PathBuf],
    unless_opened: impl Fn(io::Error) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let synced = in_parallel(paths, SYNC_THREADS, |path| match File::open(path) {
        Ok(file) => file.sync_all(),
        Err(error) => unless_opened(error),
    });
    synced.into_iter().collect()
}

/// Calls a function with each item, on a few threads; the results, in order.
pub(super) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    f: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let nth = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|nth| *nth < items.len());
        std::iter::from_fn(|| nth().map(|nth| (nth, f(&items[nth])))).collect::<Vec<_>>()
    };
    let mut results = thread::scope(|scope| {
        // Where there can be no thread, the others have more to do.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads.min(items.len())).filter_map(spawn).collect();
        let mut results = work();
        for other in others {
            results.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(nth, _)| *nth);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Something that is ready to be published to a place in a directory.
    fn staged(dir: &Path) -> Staged {
        let destination = dir.join("destination");
        let stage = Stage::beside(&destination).unwrap();
        let from = stage.path("made");
        fs::write(&from, "made").unwrap();
        let text = br#"{"schema":1,"backend":"b","generation":1,"compression":"none","epoch":0,"bucket":null,"scope":[],"cursor":"01","cursor_time_ms":null,"evicted":false,"witnesses":[],"files":[]}"#;
        let manifest = ExportManifest::decode(text).unwrap();
        let file = stage.path("beside");
        fs::write(&file, "made").unwrap();
        let beside = Some((file, dir.join("beside")));
        Staged { stage, from, beside, destination, manifest }
    }

    fn count(dir: &Path) -> usize {
        fs::read_dir(dir).unwrap().count()
    }

    #[test]
    fn what_was_moved_and_not_synced_is_said_to_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let Staged { stage, from, destination, .. } = staged(dir.path());
        let published = stage.publish(&from, &destination, |parent| {
            assert_eq!(parent, dir.path());
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(matches!(published, Err(ArtifactError::NotDurable(_))), "{published:?}");
        assert_eq!(fs::read(destination).unwrap(), b"made");
    }

    #[test]
    fn each_of_many_is_done_once_and_results_are_in_order() {
        for (count, threads) in [(0, 4), (1, 4), (3, 8), (1000, 4)] {
            let items: Vec<usize> = (0..count).collect();
            let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(in_parallel(&items, threads, |item| item * 2), doubled);
        }
    }

    #[test]
    fn what_is_missing_is_an_error_of_the_last_sync_only() {
        let dir = tempfile::tempdir().unwrap();
        let paths = [dir.path().to_owned(), dir.path().join("removed")];
        assert!(sync_each(&paths, Err).is_err());
        fs::create_dir(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a/b"), "b").unwrap();
        let mut found = everything(dir.path()).unwrap();
        found.sort();
        let below = ["", "a", "a/b"].map(|name| dir.path().join(name));
        assert_eq!(found, below);
        sync_early(dir.path()).unwrap();
    }

    #[test]
    fn nothing_is_replaced_that_came_since_it_was_begun() {
        let dir = tempfile::tempdir().unwrap();
        let staged = staged(dir.path());
        let destination = staged.destination.clone();
        let beside = dir.path().join("beside");
        for theirs in [&destination, &beside] {
            fs::write(theirs, "theirs").unwrap();
        }
        assert!(matches!(staged.publish(), Err(ArtifactError::Exists)));
        for theirs in [&destination, &beside] {
            assert_eq!(fs::read(theirs).unwrap(), b"theirs");
        }
        assert_eq!(count(dir.path()), 2, "no stage is left");
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let (waiting, answer) = oneshot::channel();
        drop(answer);
        staged(dir.path()).publish_for(waiting);
        assert_eq!(count(dir.path()), 0);
        let (waiting, mut answer) = oneshot::channel();
        staged(dir.path()).publish_for(waiting);
        assert!(matches!(answer.try_recv(), Ok(Ok(_))));
        assert_eq!(count(dir.path()), 2, "with what goes beside it");
    }
}
