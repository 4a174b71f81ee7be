//! A bucket as a source of things to scan: S3 and what speaks it, Google Cloud Storage, Azure Blob
//! Storage.
//!
//! A key is an object's name in its bucket. A version is the object's entity tag, and never a time:
//! all reads of an object ask for the tag of the first, so what is read is of one version or refused.
//! Listings resume from the store's own token; one that is no longer good is ignored, and the listing
//! goes on behind the last key.
//!
//! Requests that the store throttles or does not answer are tried again with backoff, for less than
//! half the time that a lease lasts, the wait for others (O2) aside; what still fails is the caller's to try again. While objects are opened one
//! after the other, the next ones are fetched ahead.
//!
//! - O1: a page that is not strictly ascending is an error: a cursor in it would skip.
//! - O2: no more requests are under way at once than [`ObjectOptions::requests`].
//!
//! **Left out**: empty objects, among which are the markers by which some tools make folders. **Not
//! possible**: names with empty segments (`a//b`), `.` or `..` as a segment, or control characters; an
//! object that has one is listed as unreadable.
//!
//! ```
//! use gossip_object_store::{ObjectOptions, ObjectSource};
//!
//! assert!(ObjectSource::is_address("s3://bucket/prefix"));
//! // Credentials, regions and endpoints come from the environment.
//! let refused = ObjectSource::open("s3://", &ObjectOptions::default()).unwrap_err();
//! assert!(refused.to_string().contains("one looks like s3://bucket/prefix"));
//! ```

mod ahead;
mod error;
mod list;
mod open;
mod read;
mod split;

use std::fmt;
use std::sync::Arc;

use gossip_connectors::content::HeadClassifier;
use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use object_store::ObjectStore;
use object_store::list::PaginatedListStore;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use ahead::Ahead;

pub use error::OpenError;

/// How to talk to a store.
#[derive(Clone)]
#[non_exhaustive]
pub struct ObjectOptions {
    /// Requests under way at once, at most.
    pub requests: usize,
    /// What counts before the environment: names as there, in lower case, and values.
    pub settings: Vec<(String, String)>,
}

impl Default for ObjectOptions {
    fn default() -> Self {
        Self { requests: 32, settings: Vec::new() }
    }
}

/// Settings may be credentials.
impl fmt::Debug for ObjectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectOptions").field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// What a store offers here.
trait Store: ObjectStore + PaginatedListStore {}

impl<T: ObjectStore + PaginatedListStore> Store for T {}

/// What requests need.
#[derive(Clone)]
struct Client {
    store: Arc<dyn Store>,
    permits: Arc<Semaphore>,
}

/// The objects of a bucket whose names begin with a prefix.
pub struct ObjectSource {
    client: Client,
    runtime: Runtime,
    /// What is before a key in a report: scheme and bucket.
    root: String,
    prefix: String,
    start: Vec<u8>,
    end: Vec<u8>,
    ahead: Ahead,
}

impl ObjectSource {
    /// The address under which it was opened.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}{}", self.root, self.prefix)
    }
}

impl Connector for ObjectSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities { resume_tokens: true, range_reads: true, split_points: true, versions: true }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(&self.start, &self.end, b"")
    }

    fn shown_path(&self, key: &[u8]) -> Option<Vec<u8>> {
        Some([self.root.as_bytes(), key].concat())
    }

    fn classifier(&self) -> &dyn Classifier {
        &HeadClassifier
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        page.clear();
        let listed = self.runtime.block_on(list::list(
            &self.client,
            &self.prefix,
            range,
            cursor,
            max_entries,
            page,
        ));
        listed.inspect_err(|_| page.clear())?;
        self.ahead.page_listed(page);
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let handle = self.runtime.handle();
        let first = self.ahead.take(key, handle, &self.client);
        let first = match first {
            Some(fetched) => handle.block_on(fetched),
            None => handle.block_on(read::fetch_first(self.client.clone(), key.to_vec())),
        }?;
        Ok(Box::new(read::ObjectReader::new(&self.client, handle, &self.root, first)))
    }

    /// A tag names the content.
    fn is_settled(&self, version: &[u8], _: u64) -> bool {
        !version.is_empty()
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        self.runtime.block_on(split::points(&self.client, &self.prefix, range, cursor, want))
    }
}

/// Names may be private.
impl fmt::Debug for ObjectSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectSource").finish_non_exhaustive()
    }
}
