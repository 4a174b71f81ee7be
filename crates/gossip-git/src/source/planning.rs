//! The manifest of a source's run: planned once, taken by everybody who works on the run.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gossip_contracts::connector::{ConnectorError, NewRun, Provenance};
use gossip_contracts::coordination::ShardSpec;
use gossip_contracts::identity::RunId;
use gossip_frontier::{ShardSpecScratch, decode_manifest_row_key, manifest_shard_ref};

use super::GitSource;
use crate::manifest::{Manifest, ManifestError, Row, RowKind};
use crate::plan::{Planner, Settled, Tips};
use crate::repository::OpenError;

/// The run's manifest, and its rows as a range of keys.
pub(super) struct Planned {
    pub(super) manifest: Manifest,
    pub(super) range: ShardSpec,
    /// Origins are what brought rows in, and not what was there before.
    is_history: bool,
}

impl Planned {
    fn open(path: &Path, run: RunId, is_history: bool) -> Result<Self, ManifestError> {
        let manifest = Manifest::open(path)?;
        if manifest.id() != run.as_raw() {
            return Err(ManifestError::Damaged);
        }
        let mut scratch = ShardSpecScratch::new();
        // A range has at least one row, be it one that does not exist.
        let (id, rows) = (manifest.id(), manifest.len().max(1));
        let range = manifest_shard_ref(id, 0, rows, manifest.hash(), &mut scratch)
            .expect("row keys are short and ascend");
        let range = ShardSpec::new(range).expect("it was checked");
        Ok(Self { manifest, range, is_history })
    }

    /// The row of a key, with its number.
    pub(super) fn find(&self, key: &[u8]) -> Result<Option<(u64, Row)>, ManifestError> {
        let key = decode_manifest_row_key(key);
        let Some(key) = key.filter(|key| key.manifest_id() == self.manifest.id()) else {
            return Ok(None);
        };
        Ok(self.manifest.row(key.row())?.map(|row| (key.row(), row)))
    }

    /// What rules and reports call it. A message belongs to no file, and to one commit or tag only.
    pub(super) fn path(&self, row: &Row) -> Result<Vec<u8>, ManifestError> {
        Ok(match row.kind {
            RowKind::Commit => format!("commit message of {}", row.id).into_bytes(),
            RowKind::Tag => format!("tag message of {}", row.id).into_bytes(),
            RowKind::Shallow => format!("history before commit {}", row.id).into_bytes(),
            _ => self.manifest.text(row.path)?.unwrap_or_else(|| row.id.to_string().into_bytes()),
        })
    }

    /// What was at the path of a file by itself before.
    pub(super) fn base(&self, row: &Row) -> Result<Option<gix::ObjectId>, ManifestError> {
        let origin = self.manifest.origin(row.origin)?.filter(|_| !self.is_history);
        Ok(origin.map(|origin| origin.id))
    }

    pub(super) fn origin(&self, row: &Row) -> Result<Origin, ManifestError> {
        let Self { manifest, is_history, .. } = self;
        let origin = manifest.origin(row.origin)?.filter(|_| *is_history);
        let author = origin.map(|origin| manifest.text(origin.author)).transpose()?.flatten();
        let (mut other_paths, mut bytes) = (Vec::new(), 0);
        let (more, count) = manifest.some_more(row.more, Provenance::OTHER_PATHS_MAX as u64)?;
        for path in more {
            let Some(text) = manifest.text(path)? else { continue };
            bytes += text.len();
            if bytes > Provenance::OTHER_PATHS_BYTES_MAX {
                break;
            }
            other_paths.push(text);
        }
        Ok(Origin {
            object: row.id.to_string(),
            kind: row.kind,
            path: manifest.text(row.path)?,
            more_paths: count - other_paths.len() as u64,
            other_paths,
            commit: origin.map(|origin| origin.id.to_string()),
            author,
            seconds: origin.map(|origin| origin.seconds),
            offset_seconds: origin.map_or(0, |origin| origin.offset_seconds),
        })
    }
}

/// Where an item came from. No `Debug`: paths and names may be private.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The object, in hexadecimal.
    pub object: String,
    /// What it is.
    pub kind: RowKind,
    /// The path that it was brought in under, if it is a file.
    pub path: Option<Vec<u8>>,
    /// Its other paths that rules do not tell from the first; as many as a [`Provenance`] has.
    pub other_paths: Vec<Vec<u8>>,
    /// How many there are besides.
    pub more_paths: u64,
    /// The commit that brought it in, in hexadecimal; of a commit or tag, itself.
    pub commit: Option<String>,
    /// Who made that, as `Name <email>`.
    pub author: Option<Vec<u8>>,
    /// When, in Unix seconds.
    pub seconds: Option<i64>,
    /// How far the clock was ahead of UTC.
    pub offset_seconds: i32,
}

/// Why a run cannot be planned or gone on with.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error(transparent)]
    Repository(#[from] OpenError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// What earlier runs have settled cannot be told.
    #[error(transparent)]
    Settled(ConnectorError),
    /// The source is another run's.
    #[error("another run of the same repository has begun")]
    OtherRun,
    /// The directory of manifests.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl GitSource {
    /// Plans a run, unless that was done before, and makes it the source's.
    pub(super) fn plan(&self, new: NewRun<'_>) -> Result<(), PlanError> {
        let io_error = |source| PlanError::Io { path: self.manifests.clone(), source };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.manifests).map_err(io_error)?;
        // Two processes that begin the same run plan it once.
        let lock = lock(&self.manifests.join("plan.lock")).map_err(io_error)?;
        match self.take(new.run) {
            Err(PlanError::Manifest(_)) => {}
            taken => return taken,
        }
        let is_history = self.options.selection.is_history();
        let (mut known, mut of_last, mut runs) = (Settled::new(), 0_u64, BTreeSet::new());
        let hash = self.repository.objects().hash();
        (new.settled)(&mut |key, version| {
            known.extend(version_parts(version, hash).filter(|_| is_history));
            let run = decode_manifest_row_key(key).map(|row| row.manifest_id());
            of_last += u64::from(run.is_some() && run == new.last.map(RunId::as_raw));
            runs.extend(run);
        })
        .map_err(PlanError::Settled)?;
        let mut tips = self.tips()?;
        // What is left out by request is not settled, and what that is may change. A run that starts over
        // is told of nothing that is settled, and the last may have had nothing to plan.
        if is_history
            && tips.exclude.is_empty()
            && !known.is_empty()
            && let Some(base) = new.last.and_then(|last| Manifest::open(&self.path_of(last)).ok())
            && base.len() == of_last
            && !base.is_partial()
            && base.shallow()? == tips.shallow
        {
            // Everything that its tips reach is settled.
            tips.exclude.extend(base.tips()?);
        }
        let planner = Planner {
            objects: self.repository.objects(),
            class_of: &|path| match (new.is_left_out)(path) {
                true => LEFT_OUT,
                false => class_number(&(new.path_class)(path)),
            },
            cache_bytes: self.options.cache_bytes,
        };
        let mut draft = planner.plan(new.run.as_raw(), &tips, &known).map_err(OpenError::from)?;
        draft.last = new.last.map_or(0, RunId::as_raw);
        draft.write(&self.path_of(new.run)).map_err(io_error)?;
        self.remove_superseded(new.last, &runs).map_err(io_error)?;
        drop(lock);
        self.take(new.run)
    }

    fn tips(&self) -> Result<Tips, OpenError> {
        self.repository.tips(&self.options.selection, self.options.index.as_deref())
    }

    /// Whether the repository has something that the run does not read.
    pub(super) fn is_behind(&self) -> Result<bool, PlanError> {
        let Planned { manifest, .. } = &**self.planned();
        let mut tips = self.tips()?;
        if !self.options.selection.is_history() {
            tips.files.sort_unstable();
            return Ok(manifest.files()? != tips.files);
        }
        let planned = manifest.tips()?;
        let is_new = |id: &gix::ObjectId| planned.binary_search(id).is_err();
        let has_new = tips.include.iter().chain(&tips.exclude).any(is_new);
        Ok(has_new || manifest.shallow()? != tips.shallow)
    }

    /// Makes a run that was planned before the source's.
    pub(super) fn take(&self, run: RunId) -> Result<(), PlanError> {
        let is_history = self.options.selection.is_history();
        let planned = Planned::open(&self.path_of(run), run, is_history)?;
        let taken = self.planned.get_or_init(|| Arc::new(planned));
        if taken.manifest.id() == run.as_raw() { Ok(()) } else { Err(PlanError::OtherRun) }
    }

    /// Removes manifests of runs before `last` that are not among `runs`, of which something is
    /// remembered.
    fn remove_superseded(&self, last: Option<RunId>, runs: &BTreeSet<u64>) -> io::Result<()> {
        let before = |run| Manifest::open(&self.path_of(run)).ok().and_then(|found| found.last());
        let mut at = last.and_then(before);
        while let Some(run) = at {
            at = before(run);
            if runs.contains(&run.as_raw()) {
                continue;
            }
            match fs::remove_file(self.path_of(run)) {
                // An earlier run removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                removed => removed?,
            }
        }
        Ok(())
    }

    /// The row of a run before this one, if its manifest is still there: what it settled counts.
    pub(super) fn earlier_path(&self, key: &[u8]) -> Option<Vec<u8>> {
        let key = decode_manifest_row_key(key)?;
        let mut earlier = self.earlier.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let planned = earlier.entry(key.manifest_id()).or_insert_with(|| {
            let run = RunId::from_raw(key.manifest_id());
            Planned::open(&self.path_of(run), run, self.options.selection.is_history()).ok()
        });
        let planned = planned.as_ref()?;
        planned.path(&planned.manifest.row(key.row()).ok()??).ok()
    }

    fn path_of(&self, run: RunId) -> PathBuf {
        self.manifests.join(format!("{}.manifest", run.as_raw()))
    }
}

fn version_parts(version: &[u8], hash: gix::hash::Kind) -> Option<(gix::ObjectId, u64)> {
    let (id, class) = version.split_at_checked(hash.len_in_bytes())?;
    let class = u64::from_le_bytes(class.try_into().ok()?);
    Some((gix::ObjectId::try_from(id).ok()?, class))
}

/// The class of paths that are left out. [`class_number`] is odd.
const LEFT_OUT: u64 = 2;

/// Never 0, which is the class of what has no path.
fn class_number(class: &[u8]) -> u64 {
    let hash = blake3::hash(class);
    let (number, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
    u64::from_le_bytes(*number) | 1
}

/// Waits for a lock that ends with its file.
fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.lock()?;
    Ok(file)
}
