//! Archives as the files inside them: read in order, nested, within limits.
//!
//! [`unpack`] walks an archive and hands every file in it to a [`Visitor`]: of zip (and jar, docx,
//! apk, whl, which are zip), tar, ar and deb, 7z, and of gzip, bzip2, xz and zstd streams. An archive
//! in an archive is walked as well. It pushes and is not pulled: nested archives borrow from each
//! other, and formats differ in where their next entry is known.
//!
//! - A1: nothing is written anywhere, and no name of an entry is used as a path.
//! - A2: the same bytes under the same limits give the same files in the same order, and the same
//!   reports, whatever the visitor reads of them: what it leaves is read to its end. Whoever was
//!   interrupted passes over as many files as it had seen.
//! - A3: what an archive costs is bounded by [`Limits`]: bytes that come out of it, also compared to
//!   those that go in, files, archives within archives, and memory.
//! - A4: what cannot be read is reported, once, and everything else is read.
//!
//! ```
//! use std::io::{Cursor, Read, Write};
//! use gossip_archive::{Format, InnerPath, Limits, NotRead, Stop, VisitError, Visitor, unpack};
//!
//! struct Sizes(Vec<(String, usize)>);
//!
//! impl Visitor for Sizes {
//!     fn file(&mut self, path: &InnerPath, bytes: &mut dyn Read) -> Result<(), VisitError> {
//!         let mut content = Vec::new();
//!         bytes.read_to_end(&mut content)?;
//!         self.0.push((String::from_utf8_lossy(path.shown()).into_owned(), content.len()));
//!         Ok(())
//!     }
//!     fn not_read(&mut self, _: &InnerPath, _: NotRead) {}
//!     fn tick(&mut self) -> Result<(), Stop> {
//!         Ok(())
//!     }
//! }
//!
//! let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
//! gz.write_all(b"12345")?;
//! let bytes = gz.finish()?;
//! let mut sizes = Sizes(Vec::new());
//! let format = Format::detect(&bytes).expect("it is gzip");
//! let size = bytes.len() as u64;
//! unpack(&mut Cursor::new(bytes), size, b"app.log.gz", format, &Limits::default(), &mut sizes)
//!     .expect("the visitor does not stop");
//! assert_eq!(sizes.0, [("app.log".to_owned(), 5)]);
//! # Ok::<(), std::io::Error>(())
//! ```

mod ar;
mod format;
mod meter;
mod path;
mod seven_zip;
mod tar;
mod walk;

use std::io::{self, Read, Seek};

pub use format::Format;
pub use path::InnerPath;
pub use walk::{read_full, unpack};

/// Raised when the same bytes give other files, other names or another order (A2).
pub const VERSION: u32 = 2;

/// How much of an archive's first bytes tells what it is.
pub const HEAD_SIZE: usize = 512;

/// What an archive may cost (A3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that come out, of all layers together.
    pub bytes: u64,
    /// Bytes that come out for each that goes in, once more than `ratio_from` have come out.
    pub ratio: u64,
    /// Bytes that may come out whatever goes in.
    pub ratio_from: u64,
    /// Files.
    pub files: u64,
    /// Archives and compressed streams within each other.
    pub layers: u32,
    /// Bytes of memory that dictionaries of one decoder may take, and all archives together that are
    /// read from their end and lie inside others. A header of a 7z archive may have a part of it.
    pub memory: usize,
}

impl Limits {
    /// Of an archive that nobody knows anything about.
    pub const DEFAULT: Self = Self {
        bytes: 256 << 30,
        ratio: 250,
        ratio_from: 64 << 20,
        files: 1_000_000,
        layers: 8,
        memory: 128 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why something in an archive is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotRead {
    /// A link: what it points to is not followed.
    Link,
    /// A device, a pipe, or what only the format's makers know.
    Special,
    /// It takes a password.
    Encrypted,
    /// It is compressed in a way that nothing here reads.
    Unsupported,
    /// Its bytes are not what its format says, or end too soon.
    Damaged,
    /// It reaches a limit (A3).
    TooMuch,
}

/// The visitor wants an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// Why a visitor did not go through with a file.
#[derive(Debug)]
pub enum VisitError {
    /// It wants an end.
    Stop,
    /// The file's bytes could not be read.
    Read(io::Error),
}

impl From<io::Error> for VisitError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

impl From<Stop> for VisitError {
    fn from(_: Stop) -> Self {
        Self::Stop
    }
}

/// Is shown what is in an archive.
pub trait Visitor {
    /// A file, from its first byte. It may be left unread, in part or as a whole; which files there
    /// are does not depend on it (A2).
    fn file(&mut self, path: &InnerPath, bytes: &mut dyn Read) -> Result<(), VisitError>;

    /// Something that is not read to its end (A4). An empty path is the archive itself. A file that is
    /// damaged was shown before; reaching a limit is reported for the archive.
    fn not_read(&mut self, path: &InnerPath, why: NotRead);

    /// Called now and then while bytes are passed over.
    fn tick(&mut self) -> Result<(), Stop>;
}

/// Bytes that can be read from any place.
pub trait Source: Read + Seek {}

impl<T: Read + Seek> Source for T {}
