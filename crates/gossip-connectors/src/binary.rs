//! A source whose binary content is scanned like text.
//!
//! The engine judges bytes and does not mind what is between them: what is printable in a program or a
//! database is found at its offset. Archives are unpacked as ever.

use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ContentKind, ItemReader, KeyRange, NewRun,
    Page,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, RunId};

/// Another source, all of whose content is called text.
pub struct WithBinaries(pub Box<dyn Connector>);

/// Calls everything text.
struct AllText;

impl Classifier for AllText {
    fn kind(&self, _key: &[u8], _head: &[u8]) -> ContentKind {
        ContentKind::Text
    }
}

impl CanonicalBytes for AllText {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value("all content is text");
    }
}

impl Connector for WithBinaries {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        self.0.begin(run)
    }

    fn resume(&self, run: RunId) -> Result<(), ConnectorError> {
        self.0.resume(run)
    }

    fn incremental_ranges(&self) -> Vec<KeyRange> {
        self.0.incremental_ranges()
    }

    fn path_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.path_of(key)
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        self.0.key_range()
    }

    fn classifier(&self) -> &dyn Classifier {
        &AllText
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        self.0.list(range, cursor, max_entries, page)
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        self.0.open(key)
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        self.0.is_settled(version, opened_at_ms)
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        self.0.split_points(range, cursor, want)
    }
}
