//! The manifest of a source's run: planned once, taken by everybody who works on the run.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gossip_contracts::connector::{ConnectorError, NewRun, Provenance, RunName};
use gossip_contracts::coordination::ShardSpec;
use gossip_contracts::identity::RunId;
use gossip_frontier::{ShardSpecScratch, decode_manifest_row_key, manifest_shard_ref};

use super::GitSource;
use crate::manifest::{Manifest, ManifestError, Row, RowKind};
use crate::plan::{LEFT_OUT, Planner, Settled, Tips};
use crate::repository::OpenError;

/// The run's manifest, and its rows as a range of keys.
pub(super) struct Planned {
    pub(super) manifest: Manifest,
    pub(super) range: ShardSpec,
    /// Origins are what brought rows in, and not what was there before.
    is_history: bool,
}

impl Planned {
    fn new(manifest: Manifest, is_history: bool) -> Self {
        let mut scratch = ShardSpecScratch::new();
        // A range has at least one row, be it one that does not exist.
        let (id, rows) = (manifest.id(), manifest.len().max(1));
        let range = manifest_shard_ref(id, 0, rows, manifest.hash(), &mut scratch)
            .expect("row keys are short and ascend");
        let range = ShardSpec::new(range).expect("it was checked");
        Self { manifest, range, is_history }
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
            order: origin.map_or(0, |origin| origin.order),
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
    /// The commit's place among all: by a date that is later than those of its parents, then by name.
    pub order: u64,
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
            // None, or one of a run of the same number in another database.
            Err(PlanError::Manifest(_)) => {}
            taken => return taken,
        }
        let is_history = self.options.selection.is_history();
        let (mut known, mut of_last, mut runs) = (Settled::new(), 0_u64, BTreeSet::new());
        let hash = self.repository.objects().hash();
        (new.settled)(&mut |key, version| {
            known.extend(version_parts(version, hash).filter(|_| is_history));
            let run = decode_manifest_row_key(key).map(|row| row.manifest_id());
            of_last += u64::from(run.is_some() && run == new.last.map(|last| last.number.as_raw()));
            runs.extend(run);
        })
        .map_err(PlanError::Settled)?;
        let mut tips = self.tips()?;
        // What is left out by request is not settled, and what that is may change. A run that starts over
        // is told of nothing that is settled, and the last may have had nothing to plan.
        if is_history
            && tips.exclude.is_empty()
            && !known.is_empty()
            && let Some(base) = new.last.and_then(|last| self.manifest_of(last).ok())
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
        let mut draft =
            planner.plan(new.run.number.as_raw(), &tips, &known).map_err(OpenError::from)?;
        draft.nonce = new.run.nonce;
        draft.last = new.last.map_or(0, |last| last.number.as_raw());
        draft.write(&self.path_of(new.run.number)).map_err(io_error)?;
        // What could not be walked stays as an earlier run met it, and is called as that called it.
        if !draft.is_partial {
            self.remove_superseded(new.last, &runs).map_err(io_error)?;
        }
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
    pub(super) fn take(&self, run: RunName) -> Result<(), PlanError> {
        let planned = Planned::new(self.manifest_of(run)?, self.options.selection.is_history());
        let taken = self.planned.get_or_init(|| Arc::new(planned));
        if taken.manifest.is_of(run) { Ok(()) } else { Err(PlanError::OtherRun) }
    }

    /// The manifest that was planned for this run.
    fn manifest_of(&self, run: RunName) -> Result<Manifest, ManifestError> {
        let manifest = Manifest::open(&self.path_of(run.number))?;
        if manifest.is_of(run) { Ok(manifest) } else { Err(ManifestError::OtherRun) }
    }

    /// Removes manifests of runs before `last` that are not among `runs`, of which something is
    /// remembered.
    fn remove_superseded(&self, last: Option<RunName>, runs: &BTreeSet<u64>) -> io::Result<()> {
        let before = |run| Manifest::open(&self.path_of(run)).ok().and_then(|found| found.last());
        let mut at = last.and_then(|last| self.manifest_of(last).ok()?.last());
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
            let manifest = Manifest::open(&self.path_of(run)).ok();
            let manifest = manifest.filter(|manifest| manifest.id() == run.as_raw())?;
            Some(Planned::new(manifest, self.options.selection.is_history()))
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

/// Never 0, which is the class of what has no path, and odd, which [`LEFT_OUT`] is not.
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
