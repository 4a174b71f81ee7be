//! For tests: every read of an item, written to the file that `GOSSIP_READ_TRACE` names.
//!
//! A line is a hash of the item's key, the offset and the number of bytes; neither keys nor content
//! are written. A line is written after its read and in one piece, so a process that is killed
//! leaves out one read of each worker at most.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::ItemId;

use crate::failure::Failure;

pub(crate) const VARIABLE: &str = "GOSSIP_READ_TRACE";

/// A source that tells what is read of it.
pub(crate) struct Traced<'s> {
    source: &'s dyn Connector,
    trace: Arc<File>,
}

/// `source`, traced if the environment asks for it.
pub(crate) fn wrap(source: &dyn Connector) -> Result<Option<Traced<'_>>, Failure> {
    let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Ok(None);
    };
    let trace = OpenOptions::new()
        .append(true)
        .create(true)
        .open(&path)
        .map_err(|error| Failure::file(&path, &error))?;
    Ok(Some(Traced { source, trace: Arc::new(trace) }))
}

struct TracedReader {
    reader: Box<dyn ItemReader>,
    item: ItemId,
    trace: Arc<File>,
}

impl Connector for Traced<'_> {
    fn capabilities(&self) -> Capabilities {
        self.source.capabilities()
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        self.source.key_range()
    }

    fn classifier(&self) -> &dyn Classifier {
        self.source.classifier()
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        self.source.list(range, cursor, max_entries, page)
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let reader = self.source.open(key)?;
        let item = ItemId::derive(b"trace", key);
        Ok(Box::new(TracedReader { reader, item, trace: Arc::clone(&self.trace) }))
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        self.source.is_settled(version, opened_at_ms)
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        self.source.split_points(range, cursor, want)
    }
}

impl ItemReader for TracedReader {
    fn size(&self) -> u64 {
        self.reader.size()
    }

    fn version(&self) -> &[u8] {
        self.reader.version()
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        let read = self.reader.read_at(offset, buf)?;
        let item: String =
            self.item.as_bytes()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("{item} {offset} {read}\n");
        (&*self.trace).write_all(line.as_bytes()).map_err(|error| ConnectorError::Permanent {
            operation: "trace",
            message: error.to_string(),
        })?;
        Ok(read)
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        self.reader.version_now()
    }
}
