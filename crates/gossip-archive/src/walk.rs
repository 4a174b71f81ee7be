//! Walking through an archive and those inside of it.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use sevenz_rust2::{Archive, ArchiveEntry, BlockDecoder, Password};
use zip::read::Config;
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;
use zip::{SUPPORTED_COMPRESSION_METHODS, ZipReadOptions};

use crate::meter::Meter;
use crate::path::stem;
use crate::tar::{self, Kind};
use crate::{
    Format, HEAD_SIZE, InnerPath, Limits, NotRead, Source, Stop, VisitError, Visitor, ar, seven_zip,
};

/// Bytes passed over between two calls of [`Visitor::tick`].
const PASS: usize = 16 << 10;

/// Shows `visitor` every file of the archive `source`, which has `size` bytes, the format `format`
/// and the file name `name`. An error is the visitor's.
pub fn unpack(
    source: &mut dyn Source,
    size: u64,
    name: &[u8],
    format: Format,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<(), Stop> {
    let meter = Meter::new(limits, size);
    let mut walk = Walk { limits, meter: &meter, visitor, memory: limits.memory };
    let top = InnerPath::default();
    match walk.archive(Input::Anywhere(source), format, &top, name, 1) {
        Ok(()) => {}
        Err(Halt::Stop) => return Err(Stop),
        Err(Halt::TooMuch) => walk.visitor.not_read(&top, NotRead::TooMuch),
        Err(Halt::Broken { reported: true }) => {}
        Err(Halt::Broken { reported: false }) => walk.visitor.not_read(&top, NotRead::Damaged),
    }
    Ok(())
}

/// Why a walk does not go on.
enum Halt {
    /// The visitor wants an end.
    Stop,
    /// A limit is reached.
    TooMuch,
    /// The bytes are not what they should be, from here on; whether the visitor knows.
    Broken { reported: bool },
}

impl From<Stop> for Halt {
    fn from(_: Stop) -> Self {
        Self::Stop
    }
}

/// An archive's bytes.
enum Input<'i> {
    Anywhere(&'i mut dyn Source),
    InOrder(&'i mut dyn Read),
}

impl<'i> Input<'i> {
    fn in_order(self) -> Box<dyn Read + 'i> {
        match self {
            Self::Anywhere(source) => Box::new(source),
            Self::InOrder(bytes) => Box::new(bytes),
        }
    }
}

struct Walk<'w> {
    limits: &'w Limits,
    meter: &'w Meter,
    visitor: &'w mut dyn Visitor,
    /// What is left for copies of archives.
    memory: usize,
}

impl Walk<'_> {
    /// An archive at `at`, in a file called `name`, the `layer`th of those within each other.
    fn archive(
        &mut self,
        input: Input<'_>,
        format: Format,
        at: &InnerPath,
        name: &[u8],
        layer: u32,
    ) -> Result<(), Halt> {
        match format {
            Format::Tar => self.tar(&mut *input.in_order(), at, layer),
            Format::Ar => self.ar(&mut *input.in_order(), at, layer),
            Format::Zip | Format::SevenZip => match input {
                Input::Anywhere(source) => self.indexed(source, format, at, layer),
                Input::InOrder(bytes) => {
                    let Some(copy) = self.in_memory(bytes)? else {
                        self.visitor.not_read(at, NotRead::TooMuch);
                        return Ok(());
                    };
                    let size = copy.len();
                    self.memory -= size;
                    let walked = self.indexed(&mut Cursor::new(copy), format, at, layer);
                    self.memory += size;
                    walked
                }
            },
            _ => {
                debug_assert!(format.is_stream());
                let bytes = self.decoder(format, input.in_order()).map_err(|_| self.broken())?;
                let stem = stem(name);
                // What is compressed as a whole has no name of its own, unless it is a file.
                self.entry(at, &at.join(&stem), &stem, &mut self.meter.measure(bytes), layer)
            }
        }
    }

    fn decoder<'i>(
        &self,
        format: Format,
        input: Box<dyn Read + 'i>,
    ) -> io::Result<Box<dyn Read + 'i>> {
        Ok(match format {
            Format::Gzip => Box::new(MultiGzDecoder::new(input)),
            Format::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(input)),
            Format::Xz => {
                let memory_kib = u32::try_from(self.limits.memory >> 10).unwrap_or(u32::MAX);
                Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, memory_kib))
            }
            _ => {
                let mut decoder = zstd::stream::read::Decoder::new(input)?;
                decoder.window_log_max(self.limits.memory.ilog2())?;
                Box::new(decoder)
            }
        })
    }

    /// Something inside an archive: a file at `file`, or an archive at `at`.
    fn entry(
        &mut self,
        at: &InnerPath,
        file: &InnerPath,
        name: &[u8],
        bytes: &mut dyn Read,
        layer: u32,
    ) -> Result<(), Halt> {
        if !self.meter.add_file() {
            return Err(Halt::TooMuch);
        }
        let mut head = [0; HEAD_SIZE];
        let len = read_full(bytes, &mut head).map_err(|_| self.broken())?;
        let head = &head[..len];
        let mut bytes = head.chain(bytes);
        let Some(format) = Format::detect(head) else {
            let visited = self.visitor.file(file, &mut bytes);
            // What the visitor leaves is read as well: how much came out, and whether it is damaged,
            // does not depend on what it reads (A2).
            return match visited {
                Ok(()) => self.pass(&mut bytes),
                Err(VisitError::Stop) => Err(Halt::Stop),
                Err(VisitError::Read(_)) => Err(self.broken()),
            }
            .map_err(|halt| match halt {
                Halt::Broken { .. } => {
                    self.visitor.not_read(file, NotRead::Damaged);
                    Halt::Broken { reported: true }
                }
                halt => halt,
            });
        };
        if layer == self.limits.layers {
            self.visitor.not_read(file, NotRead::TooMuch);
            return self.pass(&mut bytes);
        }
        match self.archive(Input::InOrder(&mut bytes), format, at, name, layer + 1) {
            Ok(()) => self.pass(&mut bytes),
            Err(Halt::Broken { reported }) => match self.pass(&mut bytes) {
                // Its bytes can be read to their end: it is broken, and not what it is in.
                Ok(()) => {
                    self.report_damaged(file, reported);
                    Ok(())
                }
                Err(Halt::Broken { .. }) => Err(Halt::Broken { reported }),
                Err(halt) => Err(halt),
            },
            Err(halt) => Err(halt),
        }
    }

    fn report_damaged(&mut self, path: &InnerPath, reported: bool) {
        if !reported {
            self.visitor.not_read(path, NotRead::Damaged);
        }
    }

    /// A member of an archive whose members are independent of each other (A4).
    fn member(&mut self, path: &InnerPath, bytes: &mut dyn Read, layer: u32) -> Result<(), Halt> {
        match self.entry(path, path, path.shown(), bytes, layer) {
            Err(Halt::Broken { reported }) => {
                self.report_damaged(path, reported);
                Ok(())
            }
            walked => walked,
        }
    }

    /// An archive that says at its end what is in it.
    fn indexed(
        &mut self,
        source: &mut dyn Source,
        format: Format,
        at: &InnerPath,
        layer: u32,
    ) -> Result<(), Halt> {
        match format {
            Format::Zip => self.zip(source, at, layer),
            _ => self.seven_zip(source, at, layer),
        }
    }

    fn zip(&mut self, source: &mut dyn Source, at: &InnerPath, layer: u32) -> Result<(), Halt> {
        // Record after record: what has the same name as another is read as well, and no list of them
        // all is kept in memory.
        let mut archive =
            ZipIterable::try_new(source, Config::default()).map_err(|_| self.broken())?;
        let entries = archive.files().map_err(|_| self.broken())?;
        while let Some(entry) = entries.next() {
            self.visitor.tick()?;
            let entry = entry.map_err(|_| self.broken())?;
            let path = at.join(entry.name_raw());
            // A name that ends as that of a directory may still have bytes.
            if entry.is_dir() && entry.size() == 0 && entry.compressed_size() == 0 {
                continue;
            }
            // The reader itself tells only when bytes are read, as if they were damaged.
            let is_supported = SUPPORTED_COMPRESSION_METHODS.contains(&entry.compression());
            let not_read = if entry.encrypted() {
                Some(NotRead::Encrypted)
            } else if entry.is_symlink() {
                Some(NotRead::Link)
            } else {
                (!is_supported).then_some(NotRead::Unsupported)
            };
            if let Some(why) = not_read {
                self.visitor.not_read(&path, why);
                continue;
            }
            match entry.with_reader(entries.reader_mut(), ZipReadOptions::new()) {
                Ok(bytes) => self.member(&path, &mut self.meter.measure(bytes), layer)?,
                Err(ZipError::UnsupportedArchive(_)) => {
                    self.visitor.not_read(&path, NotRead::Unsupported);
                }
                Err(_) => self.visitor.not_read(&path, NotRead::Damaged),
            }
        }
        Ok(())
    }

    fn seven_zip(
        &mut self,
        mut source: &mut dyn Source,
        at: &InnerPath,
        layer: u32,
    ) -> Result<(), Halt> {
        if !seven_zip::header_fits(source, self.limits.memory).map_err(|_| self.broken())? {
            self.visitor.not_read(at, NotRead::TooMuch);
            return Ok(());
        }
        let password = Password::empty();
        let archive = match Archive::read(&mut source, &password) {
            Ok(archive) => archive,
            Err(error) => return self.refused(at, &error),
        };
        for (index, block) in archive.blocks.iter().enumerate() {
            self.visitor.tick()?;
            if seven_zip::dictionaries(block) > self.limits.memory as u64 {
                self.visitor.not_read(at, NotRead::TooMuch);
                continue;
            }
            let mut halted = Ok(());
            let walked = BlockDecoder::new(1, index, &archive, &password, &mut source)
                .for_each_entries(&mut |entry, bytes| {
                    halted = self.seven_zip_entry(entry, bytes, at, layer);
                    Ok(halted.is_ok())
                });
            let walked = halted.and_then(|()| match walked {
                Ok(_) => Ok(()),
                Err(error) => self.refused(at, &error),
            });
            match walked {
                // Blocks are independent of each other.
                Err(Halt::Broken { reported }) => self.report_damaged(at, reported),
                walked => walked?,
            }
        }
        let blocks = &archive.stream_map.file_block_index;
        for (entry, _) in archive.files.iter().zip(blocks).filter(|(_, block)| block.is_none()) {
            self.seven_zip_entry(entry, &mut io::empty(), at, layer)?;
        }
        Ok(())
    }

    fn seven_zip_entry(
        &mut self,
        entry: &ArchiveEntry,
        bytes: &mut dyn Read,
        at: &InnerPath,
        layer: u32,
    ) -> Result<(), Halt> {
        if !entry.has_stream() {
            return Ok(());
        }
        let path = at.join(entry.name().as_bytes());
        let bytes = LastByteAlone { inner: bytes, left: entry.size() };
        self.entry(&path, &path, path.shown(), &mut self.meter.measure(bytes), layer)
    }

    /// What a 7z archive has at `at` cannot be read.
    fn refused(&mut self, at: &InnerPath, error: &sevenz_rust2::Error) -> Result<(), Halt> {
        let sevenz_rust2::Error::UnsupportedCompressionMethod(method) = error else {
            return Err(self.broken());
        };
        // Encryption is one of the methods of a block.
        let is_encrypted = method.contains("AES");
        let why = if is_encrypted { NotRead::Encrypted } else { NotRead::Unsupported };
        self.visitor.not_read(at, why);
        Ok(())
    }

    fn tar(&mut self, input: &mut dyn Read, at: &InnerPath, layer: u32) -> Result<(), Halt> {
        let mut headers = tar::Headers::default();
        loop {
            self.visitor.tick()?;
            let member = match headers.next(input).map_err(|_| self.broken())? {
                tar::Next::Member(member) => member,
                tar::Next::Header => continue,
                tar::Next::End => return Ok(()),
            };
            let path = at.join(&member.name);
            let mut bytes = Read::take(&mut *input, member.len);
            match member.kind {
                Kind::File => self.entry(&path, &path, path.shown(), &mut bytes, layer)?,
                Kind::Directory => {}
                Kind::Link => self.visitor.not_read(&path, NotRead::Link),
                Kind::Special => self.visitor.not_read(&path, NotRead::Special),
            }
            self.pass_rest(bytes)?;
            let padding = tar::padding(member.len);
            self.pass_rest(Read::take(&mut *input, padding))?;
        }
    }

    fn ar(&mut self, input: &mut dyn Read, at: &InnerPath, layer: u32) -> Result<(), Halt> {
        let mut headers = ar::Headers::begin(input).map_err(|_| self.broken())?;
        while let Some(entry) = headers.next(input).map_err(|_| self.broken())? {
            self.visitor.tick()?;
            let mut bytes = Read::take(&mut *input, entry.len);
            if let Some(name) = &entry.name {
                let path = at.join(name);
                self.entry(&path, &path, path.shown(), &mut bytes, layer)?;
            }
            self.pass_rest(bytes)?;
            if entry.is_padded {
                ar::pad(input).map_err(|_| self.broken())?;
            }
        }
        Ok(())
    }

    /// All of the bytes, unless they are too many.
    fn in_memory(&mut self, bytes: &mut dyn Read) -> Result<Option<Vec<u8>>, Halt> {
        let mut copy = Vec::new();
        let mut buf = [0; PASS];
        loop {
            let read = read_full(bytes, &mut buf).map_err(|_| self.broken())?;
            if read == 0 {
                return Ok(Some(copy));
            }
            if copy.len() + read > self.memory {
                return Ok(None);
            }
            copy.extend_from_slice(&buf[..read]);
            self.visitor.tick()?;
        }
    }

    /// Passes over what is left of a member, all of which must be there.
    fn pass_rest(&mut self, mut bytes: io::Take<impl Read>) -> Result<(), Halt> {
        self.pass(&mut bytes)?;
        if bytes.limit() > 0 { Err(Halt::Broken { reported: false }) } else { Ok(()) }
    }

    fn pass(&mut self, bytes: &mut dyn Read) -> Result<(), Halt> {
        let mut buf = [0; PASS];
        loop {
            match bytes.read(&mut buf) {
                Ok(0) => return Ok(()),
                Ok(_) => self.visitor.tick()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(self.broken()),
            }
        }
    }

    /// Why bytes could not be read.
    fn broken(&self) -> Halt {
        if self.meter.is_over() { Halt::TooMuch } else { Halt::Broken { reported: false } }
    }
}

/// The bytes of a file of a 7z archive. Its reader compares the checksum in the read that reaches the
/// end, and gives an error in place of that read's bytes: so the last byte is read by itself.
struct LastByteAlone<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for LastByteAlone<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let before_last = usize::try_from(self.left.saturating_sub(1)).unwrap_or(usize::MAX);
        let room = buf.len().min(before_last.max(1));
        let read = self.inner.read(&mut buf[..room])?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// Fills `buf`, or as much of it as can be read: an error counts only if nothing was read before it.
/// The next read of what a [`Visitor`] is given fails with that error again.
pub fn read_full(bytes: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buf.len() {
        match bytes.read(&mut buf[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) if len > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
