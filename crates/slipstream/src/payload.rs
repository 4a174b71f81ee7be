//! The payload of an artifact: its manifest and files as one tar, in the order of the manifest, which
//! comes first.
//!
//! A payload comes from outside. It is read as the manifest says it is, entry by entry, and anything
//! else ends the reading: no name of it is ever used as a path.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::artifact::{
    ArtifactError, ArtifactInvalid, Compression, DATA, ExportManifest, MANIFEST, MAX_MANIFEST_LEN,
    TakeFiles,
};

/// Enough for the tables of an engine, and quick.
const ZSTD_LEVEL: i32 = 1;
/// Most memory that a frame may ask for, as a power of two: what level 1 needs, and some.
const ZSTD_WINDOW_LOG_MAX: u32 = 24;

/// Writes the artifact in a directory as the payload of `manifest`, which may say more than the one
/// that is there.
///
/// # Errors
/// A file cannot be read, or `to` cannot be written to.
pub fn write_payload(
    artifact: &Path,
    manifest: &ExportManifest,
    to: impl Write,
) -> Result<(), ArtifactError> {
    let writing = |source| ArtifactError::Io { doing: "writing the payload", source };
    let written = match manifest.compression {
        Compression::None => write_tar(artifact, manifest, to).map(drop),
        Compression::Zstd => zstd::Encoder::new(to, ZSTD_LEVEL)
            .and_then(|encoder| write_tar(artifact, manifest, encoder))
            .and_then(|encoder| encoder.finish()?.flush()),
    };
    written.map_err(writing)
}

fn write_tar<W: Write>(artifact: &Path, manifest: &ExportManifest, to: W) -> io::Result<W> {
    let mut tar = Builder::new(to);
    let header = |path: &str, size: u64| {
        let mut header = Header::new_ustar();
        header.set_path(path)?;
        header.set_size(size);
        header.set_mode(0o600);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        io::Result::Ok(header)
    };
    let bytes = manifest.encode();
    tar.append(&header(MANIFEST, bytes.len() as u64)?, &bytes[..])?;
    for file in &manifest.files {
        let from = File::open(artifact.join(DATA).join(&file.path))?;
        // A file that has changed since is noticed by whoever reads the payload.
        let header = header(&format!("{DATA}/{}", file.path), file.size)?;
        tar.append(&header, from.take(file.size))?;
    }
    let mut to = tar.into_inner()?;
    to.flush()?;
    Ok(to)
}

/// The manifest that a payload begins with, of which nothing is known.
///
/// # Errors
/// It does not begin with one.
pub fn read_manifest(from: &mut dyn Read) -> Result<ExportManifest, ArtifactError> {
    // The tar may be compressed: its own bytes tell.
    let mut begin = [0; 4];
    from.read_exact(&mut begin).map_err(reading)?;
    let is_zstd = begin == zstd::zstd_safe::MAGICNUMBER.to_le_bytes();
    let from = (&begin[..]).chain(from);
    let bytes = match is_zstd {
        true => manifest_bytes(&mut Archive::new(decoder(from)?))?,
        false => manifest_bytes(&mut Archive::new(from))?,
    };
    Ok(ExportManifest::decode(&bytes)?)
}

fn manifest_bytes<R: Read>(tar: &mut Archive<R>) -> Result<Vec<u8>, ArtifactError> {
    let mut entry = next(&mut tar.entries().map_err(reading)?.raw(true))?;
    read_embedded(&mut entry)
}

/// Reads the payload of a manifest, and hands its files on.
///
/// # Errors
/// The payload is not exactly what the manifest says.
pub fn read_payload(
    manifest: &ExportManifest,
    from: &mut dyn Read,
    mut into: Box<dyn TakeFiles + '_>,
) -> Result<(), ArtifactError> {
    match manifest.compression {
        Compression::None => read_tar(manifest, from, &mut *into)?,
        Compression::Zstd => read_tar(manifest, decoder(from)?, &mut *into)?,
    }
    into.end()
}

fn decoder<R: Read>(from: R) -> Result<zstd::Decoder<'static, io::BufReader<R>>, ArtifactError> {
    let mut decoder = zstd::Decoder::new(from).map_err(reading)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(reading)?;
    Ok(decoder.single_frame())
}

fn read_tar(
    manifest: &ExportManifest,
    from: impl Read,
    into: &mut dyn TakeFiles,
) -> Result<(), ArtifactError> {
    let mut tar = Archive::new(from);
    // Raw: an entry that changes the name of the next one is an entry that the manifest does not list.
    let mut entries = tar.entries().map_err(reading)?.raw(true);
    if read_embedded(&mut next(&mut entries)?)? != manifest.encode() {
        return Err(wrong("its manifest is another"));
    }
    for file in &manifest.files {
        let mut entry = next(&mut entries)?;
        check(&entry, &format!("{DATA}/{}", file.path), file.size)?;
        into.file(&file.path, &mut entry)?;
    }
    match entries.next() {
        None => Ok(()),
        Some(_) => Err(wrong("it goes on behind its last file")),
    }
}

fn next<'a, R: Read>(
    entries: &mut impl Iterator<Item = io::Result<Entry<'a, R>>>,
) -> Result<Entry<'a, R>, ArtifactError> {
    entries.next().ok_or_else(|| wrong("it ends early"))?.map_err(reading)
}

fn read_embedded<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, ArtifactError> {
    let size = entry.header().entry_size().map_err(reading)?;
    if size > MAX_MANIFEST_LEN {
        return Err(wrong("its manifest is too long"));
    }
    check(entry, MANIFEST, size)?;
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes).map_err(reading)?;
    match bytes.len() as u64 == size {
        true => Ok(bytes),
        false => Err(wrong("it ends early")),
    }
}

fn check<R: Read>(entry: &Entry<'_, R>, name: &str, size: u64) -> Result<(), ArtifactError> {
    let header = entry.header();
    if header.entry_type() != EntryType::Regular {
        return Err(wrong("it has something that is no file"));
    }
    if *header.path_bytes() != *name.as_bytes() {
        return Err(wrong("it has another file than its manifest"));
    }
    match header.entry_size().is_ok_and(|found| found == size) {
        true => Ok(()),
        false => Err(wrong("a file of it is of another size")),
    }
}

fn wrong(what: &str) -> ArtifactError {
    ArtifactInvalid::Payload(what.to_owned()).into()
}

/// What the tar or the frame says is wrong with it; but for a source that fails by itself.
fn reading(error: io::Error) -> ArtifactError {
    match error.get_ref().is_some_and(|inner| inner.is::<SourceFailed>()) {
        true => ArtifactError::Io { doing: "reading the payload", source: error },
        false => wrong(&error.to_string()),
    }
}

/// What a source of payloads says inside of an [`io::Error`] when it fails by itself: the payload may
/// be a good one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SourceFailed(pub String);

impl From<SourceFailed> for io::Error {
    fn from(failed: SourceFailed) -> Self {
        Self::other(failed)
    }
}
