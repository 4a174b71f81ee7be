//! Trees on the disk, and listings of them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gossip_connectors::fs::{FsOptions, FsSource};
use gossip_contracts::connector::{Connector, ConnectorError, Page, PageEntry, SkipReason};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use proptest::test_runner::Config;
use tempfile::TempDir;

pub(crate) const EVERYTHING: ShardSpecRef<'static> = ShardSpecRef::new(b"", b"", b"");

/// A property's configuration: `cases` times `GOSSIP_SOAK_SCALE`, which is 1 unless a soak sets it.
pub(crate) fn cases(cases: u32) -> Config {
    let scale = std::env::var("GOSSIP_SOAK_SCALE")
        .map_or(1, |scale| scale.parse().expect("GOSSIP_SOAK_SCALE is a whole number"));
    Config { cases: cases.saturating_mul(scale), ..Config::default() }
}

/// A directory that goes away with its value.
pub(crate) struct Disk(TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Rather in memory, for tests of many files: what they test is the listing, not the disk.
    pub(crate) fn fast() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), Self)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of a key.
    pub(crate) fn at(&self, key: impl AsRef<[u8]>) -> PathBuf {
        self.0.path().join(OsStr::from_bytes(key.as_ref()))
    }

    /// Writes a file, with the directories that it needs.
    pub(crate) fn write(&self, key: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.at(key);
        fs::create_dir_all(path.parent().expect("a file has a parent")).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn write_empty(&self, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            self.write(key, "");
        }
    }

    pub(crate) fn source(&self) -> FsSource {
        self.source_with(FsOptions::default())
    }

    pub(crate) fn source_with(&self, options: FsOptions) -> FsSource {
        FsSource::open(self.path(), options).expect("the directory is there")
    }
}

/// An entry, for comparing: key and reason to skip it.
pub(crate) type Listed = (Vec<u8>, Option<SkipReason>);

pub(crate) fn listed(entry: PageEntry<'_>) -> Listed {
    (entry.key.to_vec(), entry.skip)
}

/// All of `range` behind `after`, in pages of `page_size`.
pub(crate) fn list(
    source: &impl Connector,
    range: ShardSpecRef<'_>,
    after: Option<&[u8]>,
    page_size: usize,
) -> Result<Vec<Listed>, ConnectorError> {
    let mut all: Vec<Listed> = Vec::new();
    let mut page = Page::new();
    loop {
        let last = all.last().map(|(key, _)| key.as_slice()).or(after);
        source.list(range, CursorUpdate::new(last, None), page_size, &mut page)?;
        assert!(page.len() <= page_size);
        all.extend(page.iter().map(listed));
        if page.is_last() {
            return Ok(all);
        }
        assert!(!page.is_empty(), "an empty page without a token leads nowhere");
    }
}

/// Everything, in one go.
pub(crate) fn list_all(source: &impl Connector) -> Vec<Listed> {
    list(source, EVERYTHING, None, 1000).expect("a listing")
}

/// A file that is to be opened.
pub(crate) fn file(key: impl AsRef<[u8]>) -> Listed {
    (key.as_ref().to_vec(), None)
}

pub(crate) fn skipped(key: impl AsRef<[u8]>, reason: SkipReason) -> Listed {
    (key.as_ref().to_vec(), Some(reason))
}

/// All bytes of an item.
pub(crate) fn read(source: &impl Connector, key: &[u8]) -> Vec<u8> {
    let mut reader = source.open(key).expect("it is there");
    let mut all = Vec::new();
    let mut buf = [0; 7];
    loop {
        match reader.read_at(all.len() as u64, &mut buf).expect("it can be read") {
            0 => return all,
            len => all.extend_from_slice(&buf[..len]),
        }
    }
}
