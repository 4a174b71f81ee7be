//! A repository as a source: rows of the run's manifest as keys, and the bytes of their objects.
//!
//! - S1: keys and what they name are the manifest's. Commits that come later belong to later runs.
//! - S2: a shard of another manifest, or of one with another hash, is refused.
//! - S3: an item's identity is its object, whatever row, pack or path it has.

mod planning;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use gossip_connectors::content::HeadClassifier;
use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, KeyRange, NewRun, Page,
    PageEntry, Provenance, RunName, SkipReason,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_frontier::{KeyBuf, KeyEncoding, ManifestRowKey, ShardHint, decode_metadata};

use crate::manifest::{ManifestError, Row, RowKind};
use crate::objects::{Body, ObjectError, ObjectKind, ObjectReader, message_start};
use crate::repository::{OpenError, Repository};
use crate::select::Selection;
use planning::{PlanError, Planned};

pub use planning::Origin;

/// Rows looked at to tell how the work is spread.
const SAMPLES: u64 = 8192;
/// What an item costs beside its bytes, in bytes.
const ITEM_COST: u64 = 4096;

/// How a repository is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitOptions {
    /// What of it is read.
    pub selection: Selection,
    /// The index that [`Selection::Staged`] reads, where that is not the repository's own: git gives
    /// its hooks one that is still to become it.
    pub index: Option<PathBuf>,
    /// Decoded objects that are kept, by all threads together.
    pub cache_bytes: usize,
    /// Threads that read.
    pub threads: usize,
}

impl Default for GitOptions {
    fn default() -> Self {
        Self { selection: Selection::default(), index: None, cache_bytes: 96 << 20, threads: 2 }
    }
}

/// A repository as a source.
pub struct GitSource {
    repository: Repository,
    options: GitOptions,
    manifests: PathBuf,
    planned: OnceLock<Arc<Planned>>,
    /// Runs before that one whose items were asked for.
    earlier: Mutex<HashMap<u64, Option<Planned>>>,
    /// Readers at rest, each with the row that it read last.
    readers: Mutex<Vec<(u64, ObjectReader)>>,
}

impl GitSource {
    /// Opens the repository at `path`, or in it. Manifests of its runs are kept in the
    /// directory `manifests`, which no other repository of the same run may share.
    pub fn open(path: &Path, options: GitOptions, manifests: PathBuf) -> Result<Self, OpenError> {
        let repository = Repository::open(path)?;
        let (planned, earlier, readers) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Ok(Self { repository, options, manifests, planned, earlier, readers })
    }

    /// Where an item came from; `None` if the run has no such item.
    pub fn origin(&self, key: &[u8]) -> Result<Option<Origin>, ManifestError> {
        let Some((_, row)) = self.planned().find(key)? else { return Ok(None) };
        self.planned().origin(&row).map(Some)
    }

    /// # Panics
    /// If no run was planned or resumed: that comes first.
    fn planned(&self) -> &Arc<Planned> {
        self.planned.get().expect("a run is planned before it is worked on")
    }

    /// S2.
    fn check(&self, range: ShardSpecRef<'_>) -> Result<(), ConnectorError> {
        if range.metadata().is_empty() {
            return Ok(());
        }
        let Planned { manifest, .. } = &**self.planned();
        let is_ours = decode_metadata(range).is_ok_and(|metadata| {
            matches!(metadata.hint, ShardHint::Manifest { manifest_id, .. } if manifest_id == manifest.id())
                && metadata.connector_extra == manifest.hash()
        });
        if is_ours { Ok(()) } else { Err(permanent("list", "the shard is of another manifest")) }
    }

    /// The rows of `range` behind `cursor`.
    fn rows_in(&self, range: ShardSpecRef<'_>, cursor: CursorUpdate<'_>) -> std::ops::Range<u64> {
        let Planned { manifest, .. } = &**self.planned();
        // The first row whose key is not before `bound`.
        let first = |bound: &[u8], is_behind: bool| {
            let (mut low, mut high) = (0, manifest.len());
            while low < high {
                let middle = low + (high - low) / 2;
                let key = row_key(manifest.id(), middle);
                if &key[..] < bound || is_behind && &key[..] == bound {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let start = first(range.start(), false);
        let start = cursor.last_key().map_or(start, |last| start.max(first(last, true)));
        let end = if range.end().is_empty() { manifest.len() } else { first(range.end(), false) };
        start..end.max(start)
    }

    /// Opens an object with the reader that was nearest to it.
    fn open_row(&self, number: u64, row: &Row) -> Result<Body, ObjectError> {
        let place = self.repository.objects().locate(&row.id)?;
        let mut reader = self.take_reader(number);
        let opened = reader.open(&place);
        self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((number, reader));
        match (opened?, row.kind) {
            ((ObjectKind::Blob, body), RowKind::Blob) => Ok(body),
            ((ObjectKind::Commit, Body::Whole { bytes, .. }), RowKind::Commit)
            | ((ObjectKind::Tag, Body::Whole { bytes, .. }), RowKind::Tag) => Ok(message(bytes)),
            // When the run was planned it could not be read.
            _ => Err(ObjectError::Corrupt("an object that is not what it is used as")),
        }
    }

    fn take_reader(&self, number: u64) -> ObjectReader {
        let mut readers = self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let nearest = readers
            .iter()
            .enumerate()
            .filter(|(_, (last, _))| *last <= number)
            .max_by_key(|(_, (last, _))| *last)
            .map(|(at, _)| at)
            .or(if readers.len() >= self.options.threads { Some(0) } else { None });
        match nearest {
            Some(at) => readers.swap_remove(at).1,
            None => ObjectReader::new(self.options.cache_bytes / self.options.threads.max(1)),
        }
    }
}

impl Connector for GitSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities { resume_tokens: false, range_reads: true, split_points: true, versions: true }
    }

    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        self.plan(run).map_err(|error| not_begun("begin", error))
    }

    /// Without its manifest a run cannot be gone on with.
    fn resume(&self, run: RunName) -> Result<(), ConnectorError> {
        self.take(run).map_err(|error| not_begun("resume", error))
    }

    fn has_newer(&self) -> Result<bool, ConnectorError> {
        self.is_behind().map_err(|error| not_begun("compare", error))
    }

    /// A history never concludes that something is gone: what earlier runs have settled is not planned
    /// again. Files by themselves are what they are at this moment.
    fn incremental_ranges(&self) -> Vec<KeyRange> {
        if !self.options.selection.is_history() {
            return Vec::new();
        }
        vec![(Vec::new(), vec![0xff; ManifestRowKey::ENCODED_LEN + 1])]
    }

    /// Below a directory or commit that cannot be read there may be anything.
    fn unlisted_ranges(&self) -> Vec<KeyRange> {
        if self.planned().manifest.is_partial() { self.incremental_ranges() } else { Vec::new() }
    }

    fn path_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        match self.planned().find(key).ok()? {
            Some((_, row)) => self.planned().path(&row).ok(),
            None => self.earlier_path(key),
        }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        self.planned().range.as_ref()
    }

    fn classifier(&self) -> &dyn Classifier {
        &HeadClassifier
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        page.clear();
        self.check(range)?;
        let Planned { manifest, .. } = &**self.planned();
        let rows = self.rows_in(range, cursor);
        let count = max_entries.min(usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX));
        let listed = manifest.rows(rows.start, count).map_err(|error| unlisted(&error))?;
        for (number, row) in (rows.start..).zip(&listed) {
            let key = row_key(manifest.id(), number);
            let skip = not_read(row.kind);
            // What may be fetched or walked some day is never settled.
            let is_settled =
                !matches!(row.kind, RowKind::NotFetched | RowKind::ManyPaths | RowKind::Shallow);
            let version = if is_settled { version(row) } else { Vec::new() };
            page.push(PageEntry { key: &key, version: &version, size: row.size, skip });
        }
        page.finish(rows.start + count as u64 == rows.end, None);
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let found = self.planned().find(key).map_err(|error| unlisted(&error))?;
        let readable = found.filter(|(_, row)| not_read(row.kind).is_none());
        let (number, row) = readable.ok_or(ConnectorError::NotFound { operation: "open" })?;
        let body = self.open_row(number, &row).map_err(|error| unread("open", error))?;
        let planned = Arc::clone(self.planned());
        let path = planned.path(&row).map_err(|error| unlisted(&error))?;
        Ok(Box::new(GitReader { version: version(&row), path, body, row, planned }))
    }

    fn open_base(&self, key: &[u8]) -> Result<Option<Box<dyn ItemReader>>, ConnectorError> {
        let planned = self.planned();
        let found = planned.find(key).map_err(|error| unlisted(&error))?;
        let Some((number, mut row)) = found else { return Ok(None) };
        let base = planned.base(&row).map_err(|error| unlisted(&error))?;
        let Some(id) = base.filter(|_| row.kind == RowKind::Blob) else { return Ok(None) };
        let path = planned.path(&row).map_err(|error| unlisted(&error))?;
        row.id = id;
        let body = self.open_row(number, &row).map_err(|error| unread("open", error))?;
        let planned = Arc::clone(planned);
        Ok(Some(Box::new(GitReader { version: version(&row), path, body, row, planned })))
    }

    /// An object never changes.
    fn is_settled(&self, version: &[u8], _opened_at_ms: u64) -> bool {
        !version.is_empty()
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        let Planned { manifest, .. } = &**self.planned();
        let rows = self.rows_in(range, cursor);
        let step = (rows.end - rows.start).div_ceil(SAMPLES).max(1);
        let mut weights = Vec::new();
        let mut number = rows.start;
        while number < rows.end {
            let count = if step == 1 { SAMPLES as usize } else { 1 };
            let sampled = manifest.rows(number, count).map_err(|error| unlisted(&error))?;
            for row in sampled.iter().take((rows.end - number) as usize) {
                weights.push((number, row.size.saturating_add(ITEM_COST)));
                number += step;
            }
        }
        let cuts = cut_evenly(&weights, want);
        // A point is ahead of the cursor, and leaves something before it.
        let inside = cuts.into_iter().filter(|&row| row > rows.start);
        Ok(inside.map(|row| Box::<[u8]>::from(row_key(manifest.id(), row).as_slice())).collect())
    }
}

/// Rows that cut weighted rows into `want` + 1 parts of about the same weight; ascending.
fn cut_evenly(weights: &[(u64, u64)], want: usize) -> Vec<u64> {
    let total: u128 = weights.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let parts = want as u128 + 1;
    let (mut cuts, mut before, mut part) = (Vec::new(), 0_u128, 1);
    for &(row, weight) in weights {
        if part < parts && before * parts >= total * part {
            cuts.push(row);
            // A heavy row may be several parts long.
            part = before * parts / total.max(1) + 1;
        }
        before += u128::from(weight);
    }
    cuts
}

/// The bytes of one object.
struct GitReader {
    version: Vec<u8>,
    path: Vec<u8>,
    body: Body,
    row: Row,
    planned: Arc<Planned>,
}

impl ItemReader for GitReader {
    fn size(&self) -> u64 {
        self.body.size()
    }

    fn version(&self) -> &[u8] {
        &self.version
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        self.body.read_at(offset, buf).map_err(|error| unread("read", error))
    }

    /// What is inflated piece by piece is inflated from its start each time that somebody goes back.
    fn reads_anywhere(&self) -> bool {
        matches!(self.body, Body::Whole { .. })
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(self.version.clone())
    }

    fn path(&self) -> Option<&[u8]> {
        Some(&self.path)
    }

    /// S3.
    fn identity(&self) -> Option<&[u8]> {
        Some(self.row.id.as_bytes())
    }

    fn provenance(&self) -> Option<Provenance> {
        let origin = self.planned.origin(&self.row).ok()?;
        Some(Provenance {
            commit: origin.commit?,
            author: String::from_utf8_lossy(&origin.author.unwrap_or_default()).into_owned(),
            date_ms: u64::try_from(origin.seconds.unwrap_or(0)).unwrap_or(0).saturating_mul(1000),
            order: origin.order,
            other_paths: origin.other_paths,
            more_paths: origin.more_paths,
        })
    }
}

/// Why a row is not read, if it is not.
fn not_read(kind: RowKind) -> Option<SkipReason> {
    match kind {
        RowKind::Submodule => Some(SkipReason::Submodule),
        RowKind::NotFetched => Some(SkipReason::NotFetched),
        RowKind::ManyPaths => Some(SkipReason::ManyPaths),
        RowKind::Shallow => Some(SkipReason::Shallow),
        RowKind::Blob | RowKind::Commit | RowKind::Tag | RowKind::Tree => None,
    }
}

/// The message of a commit or tag.
fn message(bytes: Arc<Vec<u8>>) -> Body {
    let range = message_start(&bytes)..bytes.len();
    Body::Whole { bytes, range }
}

fn row_key(manifest: u64, row: u64) -> [u8; ManifestRowKey::ENCODED_LEN] {
    let mut buf = KeyBuf::new();
    ManifestRowKey::new(manifest, row).encode_into(&mut buf);
    buf.as_bytes().try_into().expect("every encoding has this length")
}

/// The object and the class of its paths: what tells later runs that it is settled.
fn version(row: &Row) -> Vec<u8> {
    [row.id.as_bytes(), &row.class.to_le_bytes()].concat()
}

/// The object, in hexadecimal, that an item of this version is.
#[must_use]
pub fn object_of(version: &[u8]) -> Option<String> {
    let (id, _class) = version.split_last_chunk::<8>()?;
    gix::ObjectId::try_from(id).ok().map(|id| id.to_string())
}

fn not_begun(operation: &'static str, error: PlanError) -> ConnectorError {
    match error {
        PlanError::Settled(error) => error,
        PlanError::OtherRun => ConnectorError::Retryable { operation, message: error.to_string() },
        error => permanent(operation, &error.to_string()),
    }
}

fn permanent(operation: &'static str, message: &str) -> ConnectorError {
    ConnectorError::Permanent { operation, message: message.to_owned() }
}

fn unlisted(error: &ManifestError) -> ConnectorError {
    permanent("list", &error.to_string())
}

fn unread(operation: &'static str, error: ObjectError) -> ConnectorError {
    match error {
        ObjectError::Missing => ConnectorError::NotFound { operation },
        ObjectError::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            ConnectorError::PermissionDenied { operation }
        }
        error => permanent(operation, &error.to_string()),
    }
}
