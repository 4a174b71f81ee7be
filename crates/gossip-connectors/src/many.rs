//! Several sources as one: what a command with several targets scans in one run.
//!
//! A key is the number of its source in two bytes, and the key there; so is a version, and a listing's
//! token. Sources keep their order, and are scanned by the same workers. What kind of bytes an item
//! has is told from their beginning, whatever its source.
//!
//! - Y1: the keys of a source lie together, and before those of the next.
//! - Y2: a shard carries what all sources said when the run was planned; one that carries something else
//!   is refused.

use std::sync::OnceLock;

use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, KeyRange, NewRun, Page,
    PageEntry, Provenance, RunName,
};
use gossip_contracts::coordination::{CursorUpdate, MAX_KEY_SIZE, ShardSpecRef};
use gossip_frontier::{MetadataBuf, ShardHint, ShardMetadata, decode_metadata};

use crate::content::HeadClassifier;

/// How many bytes a source's number has.
const NUMBER_SIZE: usize = 2;
/// The longest key of a source that still fits with its number before it.
pub const INNER_KEY_SIZE_MAX: usize = MAX_KEY_SIZE - NUMBER_SIZE;

/// A source among several.
pub struct Part {
    /// The source. Its keys have [`INNER_KEY_SIZE_MAX`] bytes at most.
    pub source: Box<dyn Connector>,
    /// How reports call its items.
    pub shown: Shown,
}

/// How reports call the items of a part.
pub enum Shown {
    /// By this, and the item's own path or key after it.
    Below(Vec<u8>),
    /// By this alone: there is one item.
    As(Vec<u8>),
}

impl Shown {
    /// What the item with this path, or key, in its source is called.
    fn path(&self, inner: &[u8]) -> Vec<u8> {
        match self {
            Self::Below(above) => [above, inner].concat(),
            Self::As(name) => name.clone(),
        }
    }
}

/// Several sources as one.
pub struct Many {
    parts: Vec<Part>,
    end: [u8; NUMBER_SIZE],
    /// What the sources have to say about their shards, all together (Y2).
    metadata: OnceLock<Vec<u8>>,
}

impl Many {
    /// These sources, in this order.
    ///
    /// # Panics
    /// If there are more than two bytes can number.
    #[must_use]
    pub fn new(parts: Vec<Part>) -> Self {
        let end = number(parts.len());
        Self { parts, end, metadata: OnceLock::new() }
    }

    fn take_metadata(&self) {
        let mut extra = Vec::new();
        for part in &self.parts {
            let metadata = decode_metadata(part.source.key_range());
            extra.extend_from_slice(metadata.expect("a source knows its own").connector_extra);
        }
        if !extra.is_empty() {
            let mut buf = Box::new(MetadataBuf::new());
            let metadata = ShardMetadata::new(ShardHint::Range, &extra);
            let metadata = metadata.encode_into(&mut buf).expect("sources say little").to_vec();
            self.metadata.set(metadata).ok();
        }
    }

    /// Y2.
    fn check(&self, range: ShardSpecRef<'_>) -> Result<(), ConnectorError> {
        let extra = |metadata| ShardMetadata::decode(metadata).map(|read| read.connector_extra);
        let is_ours = range.metadata().is_empty()
            || self
                .metadata
                .get()
                .is_none_or(|own| extra(own).ok() == extra(range.metadata()).ok());
        let message = "the shard is of another run".to_owned();
        is_ours.then_some(()).ok_or(ConnectorError::Permanent { operation: "list", message })
    }

    /// The ranges of all sources.
    fn ranges(&self, of: &dyn Fn(&dyn Connector) -> Vec<KeyRange>) -> Vec<KeyRange> {
        let of_part = |(at, part): (usize, &Part)| {
            let named = move |key: Vec<u8>| [&number(at)[..], &key].concat();
            let ranges = of(&*part.source).into_iter();
            ranges.map(move |(start, end)| (named(start), named(end)))
        };
        self.parts.iter().enumerate().flat_map(of_part).collect()
    }

    /// The source that a key belongs to, and the key there.
    fn part<'k>(&self, key: &'k [u8]) -> Option<(&Part, &'k [u8])> {
        let (number, inner) = split(key)?;
        Some((self.parts.get(number)?, inner))
    }
}

/// What is before a key of the source with this number.
fn number(at: usize) -> [u8; NUMBER_SIZE] {
    u16::try_from(at).expect("there are few sources").to_be_bytes()
}

/// The number of a source, and what follows it.
fn split(key: &[u8]) -> Option<(usize, &[u8])> {
    let (number, inner) = key.split_first_chunk()?;
    Some((usize::from(u16::from_be_bytes(*number)), inner))
}

/// What of a range belongs to the source with the number `at`; `None` if nothing does.
fn within(range: ShardSpecRef<'_>, at: usize) -> Option<ShardSpecRef<'_>> {
    let number = number(at);
    let start = match range.start().strip_prefix(&number) {
        Some(start) => start,
        // A start that is cut short lies before all keys that it could go on as.
        None if range.start() < &number[..] => b"",
        None => return None,
    };
    let end: &[u8] = match range.end().strip_prefix(&number) {
        Some([]) => return None,
        Some(end) => end,
        None if !range.end().is_empty() && range.end() <= &number[..] => return None,
        None => b"",
    };
    Some(ShardSpecRef::new(start, end, b""))
}

/// What of a cursor belongs to the source with the number `at`; `None` if it is past that source.
fn cursor_within(cursor: CursorUpdate<'_>, at: usize) -> Option<CursorUpdate<'_>> {
    let number = number(at);
    let Some(last) = cursor.last_key() else { return Some(CursorUpdate::initial()) };
    match last.strip_prefix(&number) {
        Some(inner) => {
            let token = cursor.token().and_then(|token| token.strip_prefix(&number));
            Some(CursorUpdate::new(Some(inner), token))
        }
        None if last < &number[..] => Some(CursorUpdate::initial()),
        None => None,
    }
}

impl Connector for Many {
    fn capabilities(&self) -> Capabilities {
        let all = |has: fn(Capabilities) -> bool| {
            self.parts.iter().all(|part| has(part.source.capabilities()))
        };
        Capabilities {
            resume_tokens: all(|part| part.resume_tokens),
            range_reads: all(|part| part.range_reads),
            split_points: true,
            versions: all(|part| part.versions),
        }
    }

    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        for (at, part) in self.parts.iter().enumerate() {
            let number = number(at);
            let settled = |each: &mut dyn FnMut(&[u8], &[u8])| {
                (run.settled)(&mut |key, version| {
                    let inner = (key.strip_prefix(&number), version.strip_prefix(&number));
                    if let (Some(key), Some(version)) = inner {
                        each(key, version);
                    }
                })
            };
            let path_class = |path: &[u8]| (run.path_class)(&part.shown.path(path));
            part.source.begin(NewRun { settled: &settled, path_class: &path_class, ..run })?;
        }
        self.take_metadata();
        Ok(())
    }

    fn resume(&self, run: RunName) -> Result<(), ConnectorError> {
        self.parts.iter().try_for_each(|part| part.source.resume(run))?;
        self.take_metadata();
        Ok(())
    }

    fn has_newer(&self) -> Result<bool, ConnectorError> {
        for part in &self.parts {
            if part.source.has_newer()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn incremental_ranges(&self) -> Vec<KeyRange> {
        self.ranges(&|source| source.incremental_ranges())
    }

    fn unlisted_ranges(&self) -> Vec<KeyRange> {
        self.ranges(&|source| source.unlisted_ranges())
    }

    fn path_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (part, inner) = self.part(key)?;
        Some(part.source.path_of(inner).unwrap_or_else(|| inner.to_vec()))
    }

    fn shown_path(&self, key: &[u8]) -> Option<Vec<u8>> {
        let (part, inner) = self.part(key)?;
        Some(part.shown.path(part.source.shown_path(inner).as_deref().unwrap_or(inner)))
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        let metadata = self.metadata.get().map_or(&b""[..], Vec::as_slice);
        ShardSpecRef::new(&[0; NUMBER_SIZE], &self.end, metadata)
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
        let (mut inner, mut bytes) = (Page::new(), Vec::new());
        for (at, part) in self.parts.iter().enumerate() {
            let (Some(range), Some(cursor)) = (within(range, at), cursor_within(cursor, at)) else {
                continue;
            };
            let room = max_entries - page.len();
            let listed = match room {
                0 => None,
                _ => Some(part.source.list(range, cursor, room, &mut inner)),
            };
            match listed {
                Some(Ok(())) => {}
                Some(Err(error)) if page.is_empty() => return Err(error),
                // What was listed is the page; the next begins with this source, and with its error.
                None | Some(Err(_)) => {
                    page.finish(false, None);
                    return Ok(());
                }
            }
            for entry in inner.iter() {
                bytes.clear();
                bytes.extend_from_slice(&number(at));
                bytes.extend_from_slice(entry.key);
                let key_end = bytes.len();
                if !entry.version.is_empty() {
                    bytes.extend_from_slice(&number(at));
                    bytes.extend_from_slice(entry.version);
                }
                let (key, version) = bytes.split_at(key_end);
                page.push(PageEntry { key, version, ..entry });
            }
            if !inner.is_last() {
                let token = inner.token().map(|token| [&number(at), token].concat());
                page.finish(false, token);
                return Ok(());
            }
        }
        page.finish(true, None);
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let not_found = ConnectorError::NotFound { operation: "open" };
        let (part, inner) = self.part(key).ok_or(not_found)?;
        let reader = part.source.open(inner)?;
        let path = part.shown.path(reader.path().unwrap_or(inner));
        let number = &key[..NUMBER_SIZE];
        let version = named(number, reader.version());
        let identity = reader.identity().map(|identity| [number, identity].concat());
        let above = match &part.shown {
            Shown::Below(above) => above.clone(),
            Shown::As(_) => Vec::new(),
        };
        Ok(Box::new(PartReader { reader, path, above, version, identity }))
    }

    fn open_base(&self, key: &[u8]) -> Result<Option<Box<dyn ItemReader>>, ConnectorError> {
        match self.part(key) {
            Some((part, inner)) => part.source.open_base(inner),
            None => Ok(None),
        }
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        let part = self.part(version);
        part.is_some_and(|(part, version)| part.source.is_settled(version, opened_at_ms))
    }

    /// Where sources begin, and then points inside of each, as many of each.
    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        let left = self.parts.iter().enumerate().filter_map(|(at, part)| {
            Some((at, part, within(range, at)?, cursor_within(cursor, at)?))
        });
        let left: Vec<_> = left.collect();
        let between = left.len().saturating_sub(1);
        if between >= want {
            // As far from each other as they can be.
            let chosen = (1..=want).map(|nth| left[nth * left.len() / (want + 1)].0);
            return Ok(chosen.filter(|at| *at > left[0].0).map(|at| number(at).into()).collect());
        }
        let mut points: Vec<Box<[u8]>> = Vec::with_capacity(want);
        for (nth, (at, part, range, cursor)) in left.iter().enumerate() {
            if nth > 0 {
                points.push(number(*at).into());
            }
            let inside = (want - between) / left.len();
            for point in part.source.split_points(*range, *cursor, inside)? {
                points.push([&number(*at)[..], &point].concat().into());
            }
        }
        Ok(points)
    }
}

/// A version with its source's number before it; none stays none.
fn named(number: &[u8], version: &[u8]) -> Vec<u8> {
    if version.is_empty() { Vec::new() } else { [number, version].concat() }
}

struct PartReader {
    reader: Box<dyn ItemReader>,
    path: Vec<u8>,
    /// What comes before paths.
    above: Vec<u8>,
    version: Vec<u8>,
    identity: Option<Vec<u8>>,
}

impl ItemReader for PartReader {
    fn size(&self) -> u64 {
        self.reader.size()
    }

    fn version(&self) -> &[u8] {
        &self.version
    }

    fn path(&self) -> Option<&[u8]> {
        Some(&self.path)
    }

    fn identity(&self) -> Option<&[u8]> {
        self.identity.as_deref()
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        self.reader.read_at(offset, buf)
    }

    fn reads_anywhere(&self) -> bool {
        self.reader.reads_anywhere()
    }

    fn limit_read_ahead(&mut self, end: u64) {
        self.reader.limit_read_ahead(end);
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        let number = self.version.get(..NUMBER_SIZE).unwrap_or_default();
        Ok(named(number, &self.reader.version_now()?))
    }

    fn provenance(&self) -> Option<Provenance> {
        let mut provenance = self.reader.provenance()?;
        for path in &mut provenance.other_paths {
            *path = [&self.above[..], path].concat();
        }
        Some(provenance)
    }
}
