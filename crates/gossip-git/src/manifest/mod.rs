//! The manifest of a run over a repository: which objects it reads, in which order, and where each
//! came from.
//!
//! - M1: a manifest is written once, whole: to a file of another name, synced, then renamed. Whoever
//!   opens one checks every byte of it against its hash.
//! - M2: a row is one object under one class of paths; rows never change, so a key names the same
//!   bytes as long as the run lives.
//! - M3: a manifest has the nonce of the run that it was planned for, and is not used for another.
//!
//! Numbers are little-endian. A header, then sections one after the other: rows, origins (commits and
//! tags), further paths, where each text begins, texts, tips, shallow commits; then the BLAKE3 hash of
//! everything before it.

#[cfg(test)]
mod golden;
mod read;
mod write;

use std::io;

use gix::ObjectId;

pub use read::Manifest;
pub(crate) use write::Draft;

const MAGIC: [u8; 8] = *b"gossipGM";
const VERSION: u32 = 2;
const NONCE_LEN: usize = 16;
const HASH_LEN: usize = 32;
/// Where there is no path, origin or text.
pub(crate) const NONE: u32 = u32::MAX;

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RowKind {
    /// The content of a file, or the target of a link.
    Blob = 0,
    /// A commit, of which the message is read.
    Commit = 1,
    /// A tag, of which the annotation is read.
    Tag = 2,
    /// A directory that could not be read when the run was planned.
    Tree = 3,
    /// Another repository, which is scanned by itself.
    Submodule = 4,
    /// An object that a partial clone does not have.
    NotFetched = 5,
    /// A directory that is met under more paths than are walked.
    ManyPaths = 6,
    /// What came before a commit, which a shallow clone does not have.
    Shallow = 7,
}

impl RowKind {
    const ALL: [Self; 8] = [
        Self::Blob,
        Self::Commit,
        Self::Tag,
        Self::Tree,
        Self::Submodule,
        Self::NotFetched,
        Self::ManyPaths,
        Self::Shallow,
    ];
}

/// A row as it is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: ObjectId,
    pub(crate) kind: RowKind,
    /// Which path-dependent rules hold of its paths.
    pub(crate) class: u64,
    pub(crate) size: u64,
    /// What brought it in.
    pub(crate) origin: u32,
    /// The path that it was brought in under.
    pub(crate) path: u32,
    /// Where its further paths begin; [`NONE`] if it has none.
    pub(crate) more: u32,
}

/// A commit or a tag as it is stored. In a manifest of files by themselves, what was at a file's path before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginRow {
    pub(crate) id: ObjectId,
    /// Its place among all commits: behind its parents.
    pub(crate) order: u64,
    pub(crate) seconds: i64,
    pub(crate) offset_seconds: i32,
    pub(crate) author: u32,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// There is none.
    #[error("the run's manifest is gone")]
    Missing,
    /// It is another program's file, or of another version of this one.
    #[error("the run's manifest is of another version")]
    OtherVersion,
    /// It was planned for a run of the same number in another database.
    #[error("the run's manifest is another run's")]
    OtherRun,
    /// It is not what was written.
    #[error("the run's manifest is damaged")]
    Damaged,
    /// The manifest's file cannot be read or written.
    #[error("the run's manifest: {0}")]
    Io(#[from] io::Error),
}

/// Where the sections of a manifest are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    id_len: usize,
    rows: u64,
    origins: u64,
    /// Numbers in the section of further paths.
    more: u64,
    texts: u64,
    text_bytes: u64,
    tips: u64,
    shallow: u64,
}

const HEADER_LEN: u64 = 8 + 4 + 4 + 8 + 8 + 8 + 7 * 8 + NONCE_LEN as u64;

impl Layout {
    const fn row_len(&self) -> u64 {
        self.id_len as u64 + 8 + 8 + 4 + 4 + 4 + 1
    }

    const fn origin_len(&self) -> u64 {
        self.id_len as u64 + 8 + 8 + 4 + 4
    }

    /// Where each section begins, and the hash at the end; `None` if no file is that long.
    fn sections(&self) -> Option<Sections> {
        let mut at = HEADER_LEN;
        let mut section = |count: u64, each: u64| {
            let start = at;
            at = at.checked_add(count.checked_mul(each)?)?;
            Some(start)
        };
        let id_len = self.id_len as u64;
        Some(Sections {
            rows: section(self.rows, self.row_len())?,
            origins: section(self.origins, self.origin_len())?,
            more: section(self.more, 4)?,
            ends: section(self.texts, 8)?,
            texts: section(self.text_bytes, 1)?,
            tips: section(self.tips, id_len)?,
            shallow: section(self.shallow, id_len)?,
            hash: section(HASH_LEN as u64, 1)?,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sections {
    rows: u64,
    origins: u64,
    more: u64,
    /// Where each text ends.
    ends: u64,
    texts: u64,
    tips: u64,
    shallow: u64,
    hash: u64,
}
