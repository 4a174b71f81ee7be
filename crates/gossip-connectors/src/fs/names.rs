//! The names in one directory, in the order of the keys that they make.
//!
//! - N1: names come in byte order, a directory's with its final `/`, none twice.
//! - N2: however many names a directory has, no more than two windows of them are held. What lies
//!   behind the last one held is read again from there.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, statat};
use rustix::io::Errno;

use super::bounds::{Lower, Upper};

/// A directory that is open for reading names, and for looking at what they name.
pub(super) struct OpenDir {
    dir: Dir,
    was_read: bool,
}

impl OpenDir {
    pub(super) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        Ok(Self { dir: Dir::new(fd)?, was_read: false })
    }

    pub(super) fn fd(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.dir.fd()
    }

    /// Calls `each` with every name and its kind, in no order.
    pub(super) fn for_each(&mut self, mut each: impl FnMut(&[u8], Kind)) -> Result<(), Errno> {
        if std::mem::replace(&mut self.was_read, true) {
            self.dir.rewind();
        }
        while let Some(entry) = self.dir.read() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if let Some(kind) = self.kind(name, entry.file_type())? {
                each(name, kind);
            }
        }
        Ok(())
    }

    fn kind(&self, name: &[u8], listed: FileType) -> Result<Option<Kind>, Errno> {
        if listed != FileType::Unknown {
            return Ok(Some(Kind::of(listed)));
        }
        // Some file systems do not say it in the listing.
        match statat(self.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Kind::of(FileType::from_raw_mode(stat.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            // Whoever looks at the file meets the error again, and reports it.
            Err(_) => Ok(Some(Kind::File)),
        }
    }
}

/// What a name names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Dir,
    File,
    Link,
    Special,
}

impl Kind {
    pub(super) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::Directory => Self::Dir,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

#[derive(Clone, Copy)]
struct Span {
    start: u32,
    len: u16,
    kind: Kind,
}

/// Names of one directory, and which of them is next.
pub(super) struct Names {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    next: usize,
    /// How many names the directory had, wanted or not.
    seen: usize,
    /// Whether the directory has more behind the last of these.
    is_cut: bool,
}

/// Which names to take.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) lower: Lower<'a>,
    pub(super) upper: Upper<'a>,
    /// Longest name, with its final `/`, that still makes a key.
    pub(super) len_max: usize,
    pub(super) window_size: usize,
}

impl Names {
    pub(super) const fn none() -> Self {
        Self { bytes: Vec::new(), spans: Vec::new(), next: 0, seen: 0, is_cut: false }
    }

    /// Reads the names wanted. Also says whether any name in the directory, wanted or not, was too
    /// long.
    pub(super) fn read(dir: &mut OpenDir, wanted: Wanted<'_>) -> Result<(Self, bool), Errno> {
        let mut names = Self::none();
        let mut any_too_long = false;
        let mut ceiling: Option<Vec<u8>> = None;
        let mut name_buf = Vec::new();
        dir.for_each(|name, kind| {
            names.seen += 1;
            name_buf.clear();
            name_buf.extend_from_slice(name);
            let mut starts_in_reach = wanted.lower.admits(name);
            if kind == Kind::Dir {
                name_buf.push(b'/');
                starts_in_reach = wanted.lower.may_be_below(&name_buf);
            }
            if name_buf.len() > wanted.len_max {
                any_too_long = true;
            } else if starts_in_reach && wanted.upper.admits(&name_buf) {
                if ceiling.as_ref().is_some_and(|ceiling| *ceiling < name_buf) {
                    return;
                }
                names.push(&name_buf, kind);
                if names.held_size() > 2 * wanted.window_size {
                    ceiling = Some(names.halve());
                }
            }
        })?;
        names.sort();
        Ok((names, any_too_long))
    }

    /// The next name and its kind.
    pub(super) fn peek(&self) -> Option<(&[u8], Kind)> {
        let span = self.spans.get(self.next)?;
        Some((self.bytes_of(span), span.kind))
    }

    pub(super) const fn advance(&mut self) {
        self.next += 1;
    }

    /// The last name that was passed, if names follow that are not held.
    pub(super) fn cut_behind(&self) -> Option<(&[u8], Kind)> {
        let last = self.spans.last().filter(|_| self.is_cut)?;
        Some((self.bytes_of(last), last.kind))
    }

    /// How many names the directory had when it was read, held or not.
    pub(super) const fn seen(&self) -> usize {
        self.seen
    }

    pub(super) const fn passed(&self) -> usize {
        self.next
    }

    /// Bytes of memory in use.
    pub(super) const fn held_size(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<Span>()
    }

    fn bytes_of(&self, span: &Span) -> &[u8] {
        &self.bytes[span.start as usize..][..usize::from(span.len)]
    }

    fn push(&mut self, name: &[u8], kind: Kind) {
        let start = u32::try_from(self.bytes.len()).expect("two windows are far below 4 GiB");
        let len = u16::try_from(name.len()).expect("a name is part of a key");
        self.bytes.extend_from_slice(name);
        self.spans.push(Span { start, len, kind });
    }

    /// Keeps the lower half, and returns the last name of it.
    fn halve(&mut self) -> Vec<u8> {
        let middle = self.spans.len() / 2;
        let bytes = std::mem::take(&mut self.bytes);
        let name = |span: &Span| &bytes[span.start as usize..][..usize::from(span.len)];
        self.spans.select_nth_unstable_by(middle, |a, b| name(a).cmp(name(b)));
        let kept = std::mem::take(&mut self.spans);
        for span in &kept[..=middle] {
            self.push(name(span), span.kind);
        }
        self.is_cut = true;
        name(&kept[middle]).to_vec()
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        let name = |span: &Span| &bytes[span.start as usize..][..usize::from(span.len)];
        self.spans.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        // A directory that changes while it is read may show a name twice.
        self.spans.dedup_by(|a, b| name(a) == name(b));
        self.spans.shrink_to_fit();
        self.bytes.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn wanted(window_size: usize) -> Wanted<'static> {
        Wanted { lower: Lower::everything(), upper: Upper::of(b""), len_max: 300, window_size }
    }

    fn open(path: &std::path::Path) -> OpenDir {
        OpenDir::new(OwnedFd::from(File::open(path).unwrap())).unwrap()
    }

    fn drain(names: &mut Names) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((name, _)) = names.peek() {
            all.push(name.to_vec());
            names.advance();
        }
        all
    }

    #[test]
    fn a_directory_sorts_with_its_slash() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.", "a0", "a-", "b"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("a")).unwrap();
        let (mut names, too_long) = Names::read(&mut open(dir.path()), wanted(1 << 20)).unwrap();
        assert!(!too_long);
        assert_eq!(drain(&mut names), [&b"a-"[..], b"a.", b"a/", b"a0", b"b"]);
    }

    #[test]
    fn a_directory_larger_than_the_window_is_read_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let mut expected: Vec<_> = (0..1000).map(|i| format!("{:04}", i * 7919 % 10_000)).collect();
        expected.iter().for_each(|name| fs::write(dir.path().join(name), "").unwrap());
        expected.sort();

        let window_size = 1000;
        let (mut seen, mut reads) = (Vec::new(), 0);
        let mut open_dir = open(dir.path());
        let mut behind = Vec::new();
        loop {
            let want = Wanted { lower: Lower::behind(&behind), ..wanted(window_size) };
            let (mut names, _) = Names::read(&mut open_dir, want).unwrap();
            assert!(names.held_size() <= 2 * window_size);
            reads += 1;
            seen.extend(drain(&mut names));
            match names.cut_behind() {
                Some((last, Kind::File)) => behind = last.to_vec(),
                Some(_) => panic!("only files are here"),
                None => break,
            }
        }
        assert!(reads > 3, "{reads} reads");
        assert!(seen.iter().eq(expected.iter().map(String::as_bytes)));
    }
}
