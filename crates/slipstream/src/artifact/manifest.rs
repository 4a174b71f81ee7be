//! The manifest: what an artifact is, and the hash of every byte of it.
//!
//! Pure: bytes in, a manifest or a reason out. There is one way to write a manifest, so that its bytes
//! are its identity.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hex;
use crate::kv::{CursorExpiry, Key, LogCursor, WatchCursor, WatchScope};
use crate::log_cursor::{MAX_REMEMBERED, WitnessMessage, scope_hash};
use crate::protocol::{Position, Rank};

/// The schema that is written, and the newest that is read.
const SCHEMA: u32 = 1;

/// Longest manifest in bytes: of a fold of a hundred thousand files.
pub const MAX_MANIFEST_LEN: u64 = 16 << 20;

/// Longest name of a file in bytes.
const MAX_PATH_LEN: usize = 200;

/// What an artifact is.
#[derive(Clone, PartialEq, Eq)]
pub struct ExportManifest {
    /// The backend of the fold.
    pub backend: String,
    /// The format of its files.
    pub generation: u32,
    /// How the payload that the files travel in is compressed. The files themselves are not.
    pub compression: Compression,
    /// Of the fleet's pointer, when the artifact was uploaded: see [`Rank`](crate::protocol::Rank). 0
    /// until then.
    pub epoch: u64,
    /// The bucket that was folded, if the exporter knew its name.
    pub bucket: Option<String>,
    /// The prefixes of the scope that was folded, as [`WatchScope::prefixes`] has them.
    pub prefixes: Vec<String>,
    /// Where the fold stands: the files hold exactly what this cursor covers.
    pub cursor: WatchCursor,
    /// When the last message that the cursor covers was written, by the server's clock, in Unix
    /// milliseconds; `None` if the exporter had not read it itself.
    pub cursor_time_ms: Option<u64>,
    /// Whether the log was seen with limits that evict current values: the artifact may have the only
    /// copies.
    pub evicted: bool,
    /// More of the last messages than the cursor has room for, newest first, as C2 has it.
    pub(crate) witnesses: Vec<WitnessMessage>,
    /// The files below `data`, in ascending order of their names.
    pub files: Vec<ArtifactFile>,
}

/// A file of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactFile {
    /// Its name below `data`, with `/` between directories.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// BLAKE3 of its bytes.
    pub hash: [u8; 32],
}

/// How a payload is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not at all.
    None,
    /// As one frame of Zstandard.
    Zstd,
}

/// Why an artifact is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactInvalid {
    /// There is no manifest, or it is not one.
    #[error("its manifest cannot be read: {0}")]
    Manifest(&'static str),
    /// A newer program wrote it.
    #[error("its schema is {found}; this program knows {SCHEMA}")]
    NewerSchema {
        /// The schema that the manifest says it has.
        found: u32,
    },
    /// It is a fold of another backend.
    #[error("it is a fold on {found:?}, not on {expected}")]
    Backend {
        /// The backend of the artifact.
        found: String,
        /// The one that was asked for.
        expected: &'static str,
    },
    /// The files are of another format.
    #[error("its files are of format {found}; this program knows {expected}")]
    Generation {
        /// The format of the artifact.
        found: u32,
        /// The one that this program reads.
        expected: u32,
    },
    /// It is a fold of another bucket.
    #[error("it is a fold of the bucket {found:?}, not of {expected:?}")]
    Bucket {
        /// The bucket of the artifact.
        found: String,
        /// The one that was asked for.
        expected: String,
    },
    /// It is a fold of other keys. One of the whole bucket is none of a prefix: its cursor says
    /// nothing about the prefix, and its files hold keys that nobody would ever delete.
    #[error("it is a fold of another scope")]
    Scope,
    /// A file has a name that the backend gives none.
    #[error("it has a file of the name {0:?}")]
    Path(String),
    /// A file that the manifest lists is not there.
    #[error("the file {0:?} is missing")]
    Missing(String),
    /// There is a file, a link or a device that the manifest does not list.
    #[error("{0:?} is not in its manifest")]
    Unlisted(String),
    /// A file is longer or shorter than the manifest says.
    #[error("the file {0:?} is of another size")]
    Size(String),
    /// A file has other bytes than the manifest says.
    #[error("the file {0:?} was changed")]
    Hash(String),
    /// The files are no fold.
    #[error("its files are no fold: {0}")]
    Fold(String),
    /// The fold that the files are stands elsewhere.
    #[error("its files are not of the cursor that its manifest names")]
    Cursor,
    /// The payload is not the one of this manifest.
    #[error("its payload is not that of its manifest: {0}")]
    Payload(String),
}

use ArtifactInvalid::Manifest as Unreadable;

/// As it is written. The order of the fields is that of the bytes.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    schema: u32,
    backend: String,
    generation: u32,
    compression: Compression,
    epoch: u64,
    bucket: Option<String>,
    scope: Vec<String>,
    cursor: String,
    cursor_time_ms: Option<u64>,
    evicted: bool,
    witnesses: Vec<WireWitness>,
    files: Vec<WireFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWitness {
    revision: u64,
    digest: u32,
    key: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFile {
    path: String,
    size: u64,
    blake3: String,
}

/// All that is read of a manifest whose schema may be another.
#[derive(Deserialize)]
struct AnySchema {
    schema: u32,
}

impl ExportManifest {
    /// The bytes of the manifest.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let witness = |one: &WitnessMessage| WireWitness {
            revision: one.revision,
            digest: one.digest,
            key: one.key.as_ref().map(|key| key.as_str().to_owned()),
        };
        let file = |one: &ArtifactFile| WireFile {
            path: one.path.clone(),
            size: one.size,
            blake3: hex::encode(&one.hash),
        };
        let wire = Wire {
            schema: SCHEMA,
            backend: self.backend.clone(),
            generation: self.generation,
            compression: self.compression,
            epoch: self.epoch,
            bucket: self.bucket.clone(),
            scope: self.prefixes.clone(),
            cursor: hex::encode(self.cursor.as_bytes()),
            cursor_time_ms: self.cursor_time_ms,
            evicted: self.evicted,
            witnesses: self.witnesses.iter().map(witness).collect(),
            files: self.files.iter().map(file).collect(),
        };
        serde_json::to_vec(&wire).expect("texts and numbers")
    }

    /// The manifest that some bytes are.
    ///
    /// # Errors
    /// Bytes that [`encode`](Self::encode) does not write, or a newer program did.
    pub fn decode(bytes: &[u8]) -> Result<Self, ArtifactInvalid> {
        if bytes.len() as u64 > MAX_MANIFEST_LEN {
            return Err(Unreadable("it is too long"));
        }
        let any: AnySchema =
            serde_json::from_slice(bytes).map_err(|_| Unreadable("it is not one"))?;
        if any.schema > SCHEMA {
            return Err(ArtifactInvalid::NewerSchema { found: any.schema });
        }
        let wire: Wire =
            serde_json::from_slice(bytes).map_err(|_| Unreadable("a field is wrong"))?;
        let manifest = Self::of(wire)?;
        // One manifest, one text: what differs in a space only would be another artifact.
        match manifest.encode() == bytes {
            true => Ok(manifest),
            false => Err(Unreadable("it is not as it would be written")),
        }
    }

    fn of(wire: Wire) -> Result<Self, ArtifactInvalid> {
        let cursor = hex::decode(&wire.cursor).ok_or(Unreadable("its cursor"))?;
        let cursor = WatchCursor::from_bytes(cursor).map_err(|_| Unreadable("its cursor"))?;
        let log_cursor = LogCursor::decode(&cursor).ok();
        if cursor.is_none() || log_cursor.as_ref().is_some_and(|cursor| cursor.in_repair) {
            return Err(Unreadable("a cursor of a fold that is not complete"));
        }
        if log_cursor.as_ref().is_some_and(|cursor| cursor.evicted != wire.evicted) {
            return Err(Unreadable("what it says about evictions"));
        }
        let scope = scope_hash(&WatchScope::Prefixes(wire.scope.clone()));
        if log_cursor.as_ref().is_some_and(|cursor| cursor.scope != scope) {
            return Err(Unreadable("its scope is not that of its cursor"));
        }
        // Nobody counts so far, and there is no epoch after it.
        if wire.epoch == u64::MAX {
            return Err(Unreadable("its epoch"));
        }
        let witness = |one: WireWitness| WitnessMessage {
            revision: one.revision,
            digest: one.digest,
            key: one.key.map(Key::from),
        };
        let witnesses: Vec<_> = wire.witnesses.into_iter().map(witness).collect();
        if !are_of_cursor(&witnesses, &cursor, log_cursor.as_ref()) {
            return Err(Unreadable("its witnesses"));
        }
        Ok(Self {
            backend: wire.backend,
            generation: wire.generation,
            compression: wire.compression,
            epoch: wire.epoch,
            bucket: wire.bucket,
            prefixes: wire.scope,
            cursor,
            cursor_time_ms: wire.cursor_time_ms,
            evicted: wire.evicted,
            witnesses,
            files: files(wire.files)?,
        })
    }

    /// Whether an artifact of this manifest may become a fold on a backend, of a scope.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn check(
        &self,
        backend: &'static str,
        generation: u32,
        owns: fn(&str) -> bool,
        scope: &WatchScope,
    ) -> Result<(), ArtifactInvalid> {
        if self.backend != backend {
            let (found, expected) = (self.backend.clone(), backend);
            return Err(ArtifactInvalid::Backend { found, expected });
        }
        if self.generation != generation {
            let (found, expected) = (self.generation, generation);
            return Err(ArtifactInvalid::Generation { found, expected });
        }
        if self.prefixes != scope.prefixes() {
            return Err(ArtifactInvalid::Scope);
        }
        match self.files.iter().find(|file| !owns(&file.path)) {
            Some(file) => Err(ArtifactInvalid::Path(file.path.clone())),
            None => Ok(()),
        }
    }

    /// Whether the artifact is of a bucket, as far as both names are known.
    ///
    /// # Errors
    /// It is of another one.
    pub fn check_bucket(&self, bucket: Option<&str>) -> Result<(), ArtifactInvalid> {
        match (&self.bucket, bucket) {
            (Some(found), Some(expected)) if found != expected => {
                let (found, expected) = (found.clone(), expected.to_owned());
                Err(ArtifactInvalid::Bucket { found, expected })
            }
            _ => Ok(()),
        }
    }

    /// The first bytes of BLAKE3 of the manifest, as hexadecimal digits: the name of its payload.
    #[must_use]
    pub fn content_id(&self) -> String {
        hex::encode(&blake3::hash(&self.encode()).as_bytes()[..8])
    }

    /// How many bytes the files have. At most `u64::MAX`, for there is no manifest of more.
    #[must_use]
    pub fn total_size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    /// Which of two artifacts is the newer one; `None` if the cursor is none of a log that numbers its
    /// messages.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        let Position { incarnation, revision, .. } = LogCursor::decode(&self.cursor).ok()?.position;
        Some(Rank { epoch: self.epoch, incarnation, revision })
    }

    /// The cursor of a fold that stands where the artifact does, with more witnesses; `None` if it stands
    /// elsewhere. A fold may know of evictions that the artifact does not, and of a longer log.
    pub(crate) fn known_at(&self, cursor: &LogCursor) -> Option<LogCursor> {
        let mut known = self.log_cursor().ok()?;
        if cursor.position.end < known.position.end {
            return None;
        }
        known.position.end = cursor.position.end;
        (known.evicted, known.incomplete) = (cursor.evicted, cursor.incomplete);
        (known.encode() == cursor.encode()).then_some(known)
    }

    /// The cursor, with more witnesses than it has room for when it is stored.
    ///
    /// # Errors
    /// The cursor is none of a log that numbers its messages.
    pub fn log_cursor(&self) -> Result<LogCursor, CursorExpiry> {
        let cursor = LogCursor::decode(&self.cursor)?;
        Ok(LogCursor { witnesses: self.witnesses.clone(), ..cursor })
    }
}

/// Whether witnesses are as C2 has it, and begin with those that the cursor has itself: what proves a
/// log is not to be had from anywhere else.
fn are_of_cursor(
    witnesses: &[WitnessMessage],
    cursor: &WatchCursor,
    decoded: Option<&LogCursor>,
) -> bool {
    let Some(decoded) = decoded else { return witnesses.is_empty() };
    let keys: HashSet<_> = witnesses.iter().map(|one| &one.key).collect();
    let is_sound = witnesses.len() <= MAX_REMEMBERED
        && keys.len() == witnesses.len()
        && witnesses.is_sorted_by(|one, next| one.revision > next.revision)
        && witnesses.first().is_none_or(|newest| newest.revision <= decoded.position.end)
        && !keys.contains(&Some(Key::from("")))
        && witnesses.iter().rev().skip(1).all(|one| one.key.is_some());
    // A cursor of an older format has all that is known with it.
    let is_newest_format = decoded.encode() == *cursor;
    is_sound
        && match is_newest_format {
            true => {
                let witnesses = witnesses.to_vec();
                LogCursor { witnesses, ..decoded.clone() }.encode() == *cursor
            }
            false => witnesses == decoded.witnesses,
        }
}

fn files(wire: Vec<WireFile>) -> Result<Vec<ArtifactFile>, ArtifactInvalid> {
    let mut files: Vec<ArtifactFile> = Vec::with_capacity(wire.len());
    let mut total = 0u64;
    for WireFile { path, size, blake3 } in wire {
        if !is_safe(&path) {
            return Err(ArtifactInvalid::Path(path));
        }
        if files.last().is_some_and(|before| before.path >= path) {
            return Err(Unreadable("its files are not in order"));
        }
        total = total.checked_add(size).ok_or(Unreadable("the sizes of its files"))?;
        let hash = hex::decode(&blake3).and_then(|hash| hash.try_into().ok());
        let hash = hash.ok_or(Unreadable("a hash"))?;
        files.push(ArtifactFile { path, size, hash });
    }
    Ok(files)
}

/// Whether a name stays below the directory that it is joined to, on every system.
pub(super) fn is_safe(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    path.len() <= MAX_PATH_LEN
        && path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != ".." && part.bytes().all(plain))
}

impl fmt::Debug for ExportManifest {
    /// Without keys, which the cursor and the witnesses name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportManifest")
            .field("backend", &self.backend)
            .field("generation", &self.generation)
            .field("compression", &self.compression)
            .field("cursor", &self.cursor)
            .field("revision", &self.cursor.revision())
            .field("evicted", &self.evicted)
            .field("witnesses", &self.witnesses.len())
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
