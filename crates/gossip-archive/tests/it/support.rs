//! Making archives, and a visitor that remembers.

use std::io::{Cursor, Read, Write};

use gossip_archive::{
    Format, InnerPath, Limits, NotRead, Stop, VisitError, Visitor, read_full, unpack,
};

/// What was seen in an archive.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) not_read: Vec<(String, NotRead)>,
}

impl Seen {
    pub(crate) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|(name, _)| name.as_str()).collect()
    }
}

struct Reader<R> {
    seen: Seen,
    /// Whether to read the file with this number.
    reads: R,
    numbers: usize,
}

impl<R: FnMut(usize) -> bool> Visitor for Reader<R> {
    fn file(&mut self, path: &InnerPath, bytes: &mut dyn Read) -> Result<(), VisitError> {
        let mut content = Vec::new();
        let number = self.numbers;
        self.numbers += 1;
        let read = if (self.reads)(number) { read_chunks(bytes, &mut content) } else { Ok(()) };
        let slashed = String::from_utf8_lossy(path.slashed()).into_owned();
        let shown = String::from_utf8_lossy(path.shown()).into_owned();
        assert_eq!(slashed.replace('!', "/"), shown.replace('!', "/"));
        self.seen.files.push((shown, content));
        Ok(read?)
    }

    fn not_read(&mut self, path: &InnerPath, why: NotRead) {
        self.seen.not_read.push((String::from_utf8_lossy(path.shown()).into_owned(), why));
    }

    fn tick(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Reads as a scan does.
fn read_chunks(bytes: &mut dyn Read, content: &mut Vec<u8>) -> std::io::Result<()> {
    let mut chunk = vec![0; 256 << 10];
    loop {
        match read_full(bytes, &mut chunk)? {
            0 => return Ok(()),
            read => content.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Reads everything.
pub(crate) fn see(name: &str, bytes: &[u8]) -> Seen {
    see_within(&Limits::default(), name, bytes)
}

pub(crate) fn see_within(limits: &Limits, name: &str, bytes: &[u8]) -> Seen {
    see_some(limits, name, bytes, |_| true)
}

/// Reads the files that `reads` wants.
pub(crate) fn see_some(
    limits: &Limits,
    name: &str,
    bytes: &[u8],
    reads: impl FnMut(usize) -> bool,
) -> Seen {
    let format = Format::detect(bytes).expect("it is an archive");
    let mut reader = Reader { seen: Seen::default(), reads, numbers: 0 };
    let size = bytes.len() as u64;
    unpack(&mut Cursor::new(bytes), size, name.as_bytes(), format, limits, &mut reader)
        .expect("this visitor does not stop");
    reader.seen
}

pub(crate) type Files<'f> = &'f [(&'f str, &'f [u8])];

pub(crate) fn zip_of(files: Files<'_>) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub(crate) fn tar_of(files: Files<'_>) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, *content).unwrap();
    }
    tar.into_inner().unwrap()
}

/// As `ar` writes it: short names end in `/`, long ones are in a table.
pub(crate) fn ar_of(files: Files<'_>) -> Vec<u8> {
    let mut names = Vec::new();
    let mut members = Vec::new();
    for (name, content) in files {
        let field = if name.len() < 16 {
            format!("{name}/")
        } else {
            let at = names.len();
            names.extend_from_slice(format!("{name}/\n").as_bytes());
            format!("/{at}")
        };
        members.push((field, content.to_vec()));
    }
    if !names.is_empty() {
        members.insert(0, ("//".to_owned(), names));
    }
    let mut ar = b"!<arch>\n".to_vec();
    for (field, content) in members {
        let header =
            format!("{field:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, content.len());
        ar.extend_from_slice(header.as_bytes());
        ar.extend_from_slice(&content);
        if !content.len().is_multiple_of(2) {
            ar.push(b'\n');
        }
    }
    ar
}

pub(crate) fn seven_zip_of(files: Files<'_>) -> Vec<u8> {
    let mut archive = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    for (name, content) in files {
        let entry = sevenz_rust2::ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(*content)).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Not compressed.
pub(crate) fn seven_zip_stored(files: Files<'_>) -> Vec<u8> {
    let mut archive = sevenz_rust2::ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
    archive.set_content_methods(vec![sevenz_rust2::EncoderMethod::COPY.into()]);
    for (name, content) in files {
        let entry = sevenz_rust2::ArchiveEntry::new_file(name);
        archive.push_archive_entry(entry, Some(*content)).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

pub(crate) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gz.write_all(bytes).unwrap();
    gz.finish().unwrap()
}

pub(crate) fn bz2(bytes: &[u8]) -> Vec<u8> {
    let mut bz2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bz2.write_all(bytes).unwrap();
    bz2.finish().unwrap()
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(3)).unwrap();
    xz.write_all(bytes).unwrap();
    xz.finish().unwrap()
}

pub(crate) fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).unwrap()
}
