//! `--read-log`: a line for every read of an item, to see what a scan that goes on reads again.
//!
//! A line is a hash of the item's key, the offset and the number of bytes; neither keys nor content
//! are written. A line is written after its read and in one piece, so a process that is killed
//! leaves out one read of each worker at most.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, ItemReader, Provenance, Wrapper};
use gossip_contracts::identity::ItemId;

use crate::failure::Failure;
use crate::say::say;

/// A source whose reads are logged.
pub(crate) struct Logged<'s> {
    source: &'s dyn Connector,
    log: Arc<Log>,
}

struct Log {
    file: File,
    has_failed: AtomicBool,
}

impl<'s> Logged<'s> {
    /// Appends to the file at `path`.
    pub(crate) fn new(source: &'s dyn Connector, path: &Path) -> Result<Self, Failure> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        let file = file.map_err(|error| Failure::file(path, &error))?;
        Ok(Self { source, log: Arc::new(Log { file, has_failed: AtomicBool::new(false) }) })
    }
}

struct LoggedReader {
    reader: Box<dyn ItemReader>,
    item: ItemId,
    log: Arc<Log>,
}

impl Wrapper for Logged<'_> {
    fn inner(&self) -> &dyn Connector {
        self.source
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let reader = self.source.open(key)?;
        let item = ItemId::derive(b"read log", key);
        Ok(Box::new(LoggedReader { reader, item, log: Arc::clone(&self.log) }))
    }
}

impl ItemReader for LoggedReader {
    fn size(&self) -> u64 {
        self.reader.size()
    }

    fn version(&self) -> &[u8] {
        self.reader.version()
    }

    fn path(&self) -> Option<&[u8]> {
        self.reader.path()
    }

    fn identity(&self) -> Option<&[u8]> {
        self.reader.identity()
    }

    fn provenance(&self) -> Option<Provenance> {
        self.reader.provenance()
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        let read = self.reader.read_at(offset, buf)?;
        let item: String =
            self.item.as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{item} {offset} {read}\n");
        // The scan does not depend on its log.
        if let Err(error) = (&self.log.file).write_all(line.as_bytes())
            && !self.log.has_failed.swap(true, Ordering::Relaxed)
        {
            say!("the read log is not complete: {error}");
        }
        Ok(read)
    }

    fn reads_anywhere(&self) -> bool {
        self.reader.reads_anywhere()
    }

    fn limit_read_ahead(&mut self, end: u64) {
        self.reader.limit_read_ahead(end);
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        self.reader.version_now()
    }
}
