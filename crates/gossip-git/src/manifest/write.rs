//! Writing a manifest.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use gix::ObjectId;

use super::{Layout, MAGIC, NONCE_LEN, OriginRow, Row, VERSION};

/// A manifest that is not written yet.
pub(crate) struct Draft {
    pub(crate) id: u64,
    /// Of the run that it is planned for.
    pub(crate) nonce: [u8; NONCE_LEN],
    /// The manifest that was planned before it for the same target and policy; 0 if none was.
    pub(crate) last: u64,
    /// Not everything that is reachable could be walked.
    pub(crate) is_partial: bool,
    pub(crate) hash: gix::hash::Kind,
    pub(crate) rows: Vec<Row>,
    pub(crate) origins: Vec<OriginRow>,
    /// Lists of paths, each behind its length.
    pub(crate) more: Vec<u32>,
    pub(crate) texts: Vec<Box<[u8]>>,
    pub(crate) tips: Vec<ObjectId>,
    pub(crate) shallow: Vec<ObjectId>,
}

impl Draft {
    fn layout(&self) -> Layout {
        Layout {
            id_len: self.hash.len_in_bytes(),
            rows: self.rows.len() as u64,
            origins: self.origins.len() as u64,
            more: self.more.len() as u64,
            texts: self.texts.len() as u64,
            text_bytes: self.texts.iter().map(|text| text.len() as u64).sum(),
            tips: self.tips.len() as u64,
            shallow: self.shallow.len() as u64,
        }
    }

    /// Writes it to `path`, durably and whole (M1).
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let draft = path.with_extension("draft");
        // Whoever plans this run holds its lock, so a draft that is there is a dead process's.
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        let mut out = Hashing { out: BufWriter::new(file), hasher: blake3::Hasher::new() };
        self.write_to(&mut out)?;
        let hash = out.hasher.finalize();
        out.out.write_all(hash.as_bytes())?;
        let file = out.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        std::fs::rename(&draft, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let layout = self.layout();
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&(layout.id_len as u32).to_le_bytes())?;
        out.write_all(&self.id.to_le_bytes())?;
        out.write_all(&self.last.to_le_bytes())?;
        out.write_all(&u64::from(self.is_partial).to_le_bytes())?;
        let Layout { rows, origins, more, texts, text_bytes, tips, shallow, .. } = layout;
        for count in [rows, origins, more, texts, text_bytes, tips, shallow] {
            out.write_all(&count.to_le_bytes())?;
        }
        out.write_all(&self.nonce)?;
        for row in &self.rows {
            out.write_all(row.id.as_bytes())?;
            out.write_all(&row.class.to_le_bytes())?;
            out.write_all(&row.size.to_le_bytes())?;
            for number in [row.origin, row.path, row.more] {
                out.write_all(&number.to_le_bytes())?;
            }
            out.write_all(&[row.kind as u8])?;
        }
        for origin in &self.origins {
            out.write_all(origin.id.as_bytes())?;
            out.write_all(&origin.order.to_le_bytes())?;
            out.write_all(&origin.seconds.to_le_bytes())?;
            out.write_all(&origin.offset_seconds.to_le_bytes())?;
            out.write_all(&origin.author.to_le_bytes())?;
        }
        for number in &self.more {
            out.write_all(&number.to_le_bytes())?;
        }
        let mut end = 0_u64;
        for text in &self.texts {
            end += text.len() as u64;
            out.write_all(&end.to_le_bytes())?;
        }
        for text in &self.texts {
            out.write_all(text)?;
        }
        for id in self.tips.iter().chain(&self.shallow) {
            out.write_all(id.as_bytes())?;
        }
        Ok(())
    }
}

/// Hashes what it writes.
struct Hashing<W> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.hasher.update(bytes);
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
