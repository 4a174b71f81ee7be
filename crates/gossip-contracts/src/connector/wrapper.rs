//! Sources around other sources.

use super::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, KeyRange, NewRun, Page,
    RunName,
};
use crate::coordination::{CursorUpdate, ShardSpecRef};

/// A source that is another one, but for what it overrides here. Keys and their order, versions and
/// runs are always the other's.
pub trait Wrapper: Send + Sync {
    /// The connector whose answers are handed on.
    fn inner(&self) -> &dyn Connector;

    /// What tells the kind of an item's bytes.
    fn classifier(&self) -> &dyn Classifier {
        self.inner().classifier()
    }

    /// [`Connector::begin`], for the same run.
    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        self.inner().begin(run)
    }

    /// [`Connector::list`], with the same keys.
    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        self.inner().list(range, cursor, max_entries, page)
    }

    /// [`Connector::open`], with the same bytes.
    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        self.inner().open(key)
    }
}

impl<W: Wrapper> Connector for W {
    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        Wrapper::begin(self, run)
    }

    fn resume(&self, run: RunName) -> Result<(), ConnectorError> {
        self.inner().resume(run)
    }

    fn has_newer(&self) -> Result<bool, ConnectorError> {
        self.inner().has_newer()
    }

    fn incremental_ranges(&self) -> Vec<KeyRange> {
        self.inner().incremental_ranges()
    }

    fn unlisted_ranges(&self) -> Vec<KeyRange> {
        self.inner().unlisted_ranges()
    }

    fn path_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner().path_of(key)
    }

    fn shown_path(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.inner().shown_path(key)
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        self.inner().key_range()
    }

    fn classifier(&self) -> &dyn Classifier {
        Wrapper::classifier(self)
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        Wrapper::list(self, range, cursor, max_entries, page)
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        Wrapper::open(self, key)
    }

    fn open_base(&self, key: &[u8]) -> Result<Option<Box<dyn ItemReader>>, ConnectorError> {
        self.inner().open_base(key)
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        self.inner().is_settled(version, opened_at_ms)
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        self.inner().split_points(range, cursor, want)
    }
}
