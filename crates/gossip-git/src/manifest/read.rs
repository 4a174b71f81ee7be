//! Reading a manifest: rows and texts are read from the file as they are needed.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use gix::ObjectId;
use gossip_contracts::connector::RunName;
use gossip_contracts::identity::RunId;

use super::{
    HASH_LEN, HEADER_LEN, Layout, MAGIC, ManifestError, NONCE_LEN, NONE, OriginRow, Row, RowKind,
    Sections, VERSION,
};
use crate::plan::TipFile;

const FILES_AT_ONCE: usize = 1024;

/// A manifest, checked (M1).
pub struct Manifest {
    file: File,
    id: u64,
    nonce: [u8; NONCE_LEN],
    last: u64,
    is_partial: bool,
    layout: Layout,
    sections: Sections,
    hash: [u8; HASH_LEN],
}

impl Manifest {
    /// Opens the manifest at `path` and checks all of it.
    pub fn open(path: &Path) -> Result<Self, ManifestError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ManifestError::Missing,
            _ => error.into(),
        })?;
        let len = file.metadata()?.len();
        let mut header = [0; HEADER_LEN as usize];
        if len < HEADER_LEN + HASH_LEN as u64 {
            return Err(ManifestError::Damaged);
        }
        file.read_exact_at(&mut header, 0)?;
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC || u32_at(rest, 0) != VERSION {
            return Err(ManifestError::OtherVersion);
        }
        let id_len = u32_at(rest, 4) as usize;
        let [rows, origins, more, texts, text_bytes, tips, shallow] =
            std::array::from_fn(|at| u64_at(rest, 32 + 8 * at));
        let layout = Layout { id_len, rows, origins, more, texts, text_bytes, tips, shallow };
        let sections = layout.sections().filter(|_| matches!(id_len, 20 | 32));
        let sections = sections.ok_or(ManifestError::Damaged)?;
        if sections.hash + HASH_LEN as u64 != len {
            return Err(ManifestError::Damaged);
        }
        let hash = hash_of(&file, sections.hash)?;
        let mut written = [0; HASH_LEN];
        file.read_exact_at(&mut written, sections.hash)?;
        if hash != written {
            return Err(ManifestError::Damaged);
        }
        let (id, last, is_partial) = (u64_at(rest, 8), u64_at(rest, 16), u64_at(rest, 24) != 0);
        let nonce = rest[32 + 8 * 7..][..NONCE_LEN].try_into().expect("the header is that long");
        Ok(Self { file, id, nonce, last, is_partial, layout, sections, hash })
    }

    /// The manifest's own number.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Whether it was planned for this run (M3).
    pub(crate) fn is_of(&self, run: RunName) -> bool {
        (self.id, self.nonce) == (run.number.as_raw(), run.nonce)
    }

    /// The run that was planned before it for the same target and policy.
    pub(crate) fn last(&self) -> Option<RunId> {
        // One before another, so that no file makes a circle.
        (0 < self.last && self.last < self.id).then(|| RunId::from_raw(self.last))
    }

    /// The hash of its bytes.
    #[must_use]
    pub const fn hash(&self) -> &[u8; HASH_LEN] {
        &self.hash
    }

    /// How many rows it has.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.layout.rows
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.layout.rows == 0
    }

    /// Whether something that is reachable could not be walked when it was made.
    pub(crate) const fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// The commits and tags that the run was planned from.
    pub(crate) fn tips(&self) -> Result<Vec<ObjectId>, ManifestError> {
        self.ids(self.sections.tips, self.layout.tips)
    }

    /// The commits whose parents were not there.
    pub(crate) fn shallow(&self) -> Result<Vec<ObjectId>, ManifestError> {
        self.ids(self.sections.shallow, self.layout.shallow)
    }

    fn ids(&self, at: u64, count: u64) -> Result<Vec<ObjectId>, ManifestError> {
        let mut bytes = vec![0; count as usize * self.layout.id_len];
        self.file.read_exact_at(&mut bytes, at)?;
        bytes.chunks_exact(self.layout.id_len).map(object_id).collect()
    }

    /// Up to `count` rows from `first` on.
    pub(crate) fn rows(&self, first: u64, count: usize) -> Result<Vec<Row>, ManifestError> {
        let count = (count as u64).min(self.layout.rows.saturating_sub(first));
        let row_len = self.layout.row_len();
        let mut bytes = vec![0; (count * row_len) as usize];
        self.file.read_exact_at(&mut bytes, self.sections.rows + first * row_len)?;
        bytes.chunks_exact(row_len as usize).map(|bytes| self.row_of(bytes)).collect()
    }

    /// The path and object of every file, in order.
    pub(crate) fn files(&self) -> Result<Vec<TipFile>, ManifestError> {
        let mut files = Vec::new();
        let mut first = 0;
        while first < self.len() {
            let rows = self.rows(first, FILES_AT_ONCE)?;
            first += rows.len() as u64;
            for row in rows.iter().filter(|row| row.kind == RowKind::Blob) {
                let base = self.origin(row.origin)?.map(|origin| origin.id);
                for path in std::iter::once(row.path).chain(self.more(row.more)?) {
                    files.extend(self.text(path)?.map(|path| (path, row.id, base)));
                }
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// One row.
    pub(crate) fn row(&self, number: u64) -> Result<Option<Row>, ManifestError> {
        Ok(self.rows(number, 1)?.pop())
    }

    fn row_of(&self, bytes: &[u8]) -> Result<Row, ManifestError> {
        let (id, rest) = bytes.split_at(self.layout.id_len);
        let kind = RowKind::ALL.get(usize::from(rest[28]));
        Ok(Row {
            id: object_id(id)?,
            class: u64_at(rest, 0),
            size: u64_at(rest, 8),
            origin: u32_at(rest, 16),
            path: u32_at(rest, 20),
            more: u32_at(rest, 24),
            kind: *kind.ok_or(ManifestError::Damaged)?,
        })
    }

    /// A commit or tag; `None` for [`NONE`].
    pub(crate) fn origin(&self, number: u32) -> Result<Option<OriginRow>, ManifestError> {
        if number == NONE {
            return Ok(None);
        }
        let len = self.layout.origin_len();
        let mut bytes = vec![0; len as usize];
        let at = self.in_section(self.sections.origins, number, len, self.layout.origins)?;
        self.file.read_exact_at(&mut bytes, at)?;
        let (id, rest) = bytes.split_at(self.layout.id_len);
        Ok(Some(OriginRow {
            id: object_id(id)?,
            order: u64_at(rest, 0),
            seconds: u64_at(rest, 8) as i64,
            offset_seconds: u32_at(rest, 16) as i32,
            author: u32_at(rest, 20),
        }))
    }

    /// The further paths of a row, as texts.
    pub(crate) fn more(&self, start: u32) -> Result<Vec<u32>, ManifestError> {
        self.some_more(start, u64::MAX).map(|(more, _)| more)
    }

    /// The first `max` further paths of a row, as texts, and how many it has.
    pub(crate) fn some_more(&self, start: u32, max: u64) -> Result<(Vec<u32>, u64), ManifestError> {
        if start == NONE {
            return Ok((Vec::new(), 0));
        }
        let Layout { more, .. } = self.layout;
        let mut number = [0; 4];
        let at = self.in_section(self.sections.more, start, 4, more)?;
        self.file.read_exact_at(&mut number, at)?;
        let count = u64::from(u32::from_le_bytes(number));
        if u64::from(start) + 1 + count > more {
            return Err(ManifestError::Damaged);
        }
        let mut bytes = vec![0; 4 * count.min(max) as usize];
        self.file.read_exact_at(&mut bytes, at + 4)?;
        Ok((bytes.chunks_exact(4).map(|bytes| u32_at(bytes, 0)).collect(), count))
    }

    /// A text; `None` for [`NONE`].
    pub(crate) fn text(&self, number: u32) -> Result<Option<Vec<u8>>, ManifestError> {
        if number == NONE {
            return Ok(None);
        }
        let at = self.in_section(self.sections.ends, number, 8, self.layout.texts)?;
        let mut ends = [0; 16];
        // The end of the text before it is where it begins.
        let (start, end) = if number == 0 {
            self.file.read_exact_at(&mut ends[..8], at)?;
            (0, u64_at(&ends, 0))
        } else {
            self.file.read_exact_at(&mut ends, at - 8)?;
            (u64_at(&ends, 0), u64_at(&ends, 8))
        };
        if start > end || end > self.layout.text_bytes {
            return Err(ManifestError::Damaged);
        }
        let mut text = vec![0; (end - start) as usize];
        self.file.read_exact_at(&mut text, self.sections.texts + start)?;
        Ok(Some(text))
    }

    fn in_section(
        &self,
        start: u64,
        number: u32,
        each: u64,
        count: u64,
    ) -> Result<u64, ManifestError> {
        if u64::from(number) >= count {
            return Err(ManifestError::Damaged);
        }
        Ok(start + u64::from(number) * each)
    }
}

/// Its number and size: paths are private.
impl std::fmt::Debug for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Manifest").field("id", &self.id).field("rows", &self.layout.rows).finish()
    }
}

fn hash_of(file: &File, len: u64) -> Result<[u8; HASH_LEN], ManifestError> {
    let mut hasher = blake3::Hasher::new();
    let mut input = BufReader::with_capacity(1 << 20, file).take(len);
    io::copy(&mut input, &mut hasher)?;
    Ok(*hasher.finalize().as_bytes())
}

fn object_id(bytes: &[u8]) -> Result<ObjectId, ManifestError> {
    ObjectId::try_from(bytes).map_err(|_| ManifestError::Damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
