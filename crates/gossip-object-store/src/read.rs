//! Reading an object: the beginning when it is opened, and then window by window, the next one ahead.

use bytes::Bytes;
use gossip_contracts::connector::{ConnectorError, ItemReader};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectMeta};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::Client;
use crate::error::{connector_error, status};

/// Bytes that opening an object fetches.
const FIRST: u64 = 1 << 20;
/// Bytes of each later request.
const WINDOW: u64 = 4 << 20;

/// The beginning of an object.
pub(crate) struct First {
    path: Path,
    size: u64,
    tag: Option<String>,
    bytes: Bytes,
}

/// Fetches the beginning of an object, and what there is to know of it.
pub(crate) async fn fetch_first(client: Client, key: Vec<u8>) -> Result<First, ConnectorError> {
    let not_found = ConnectorError::NotFound { operation: "open" };
    let name = str::from_utf8(&key).map_err(|_| not_found.clone())?;
    let path = Path::parse(name).ok().filter(|path| path.as_ref() == name).ok_or(not_found)?;
    let answer = match get(&client, &path, 0..FIRST, None).await {
        Err(error) if has_no_ranges(&error) => match head(&client, &path).await {
            Ok(meta) if meta.size == 0 => Ok((meta, Bytes::new())),
            _ => Err(error),
        },
        answer => answer,
    };
    let (meta, bytes) = answer.map_err(|error| connector_error("open", &error))?;
    Ok(First { path, size: meta.size, tag: meta.e_tag, bytes })
}

/// Whether a store answers so when a range of an empty object is asked for. Nothing is asked for without
/// a range: what cannot be had in parts may be too large.
fn has_no_ranges(error: &Error) -> bool {
    status(error) == Some(416) || error.to_string().contains("non-partial response")
}

async fn head(client: &Client, path: &Path) -> Result<ObjectMeta, Error> {
    let _permit = client.permits.acquire().await.expect("the semaphore is never closed");
    let options = GetOptions { head: true, ..GetOptions::default() };
    Ok(client.store.get_opts(path, options).await?.meta)
}

async fn get(
    client: &Client,
    path: &Path,
    range: std::ops::Range<u64>,
    tag: Option<String>,
) -> Result<(ObjectMeta, Bytes), Error> {
    let range = Some(GetRange::Bounded(range));
    let options = GetOptions { range, if_match: tag, ..GetOptions::default() };
    let _permit = client.permits.acquire().await.expect("the semaphore is never closed");
    let answer = client.store.get_opts(path, options).await?;
    let meta = answer.meta.clone();
    Ok((meta, answer.bytes().await?))
}

type Fetch = JoinHandle<Result<Bytes, ConnectorError>>;

/// Reads one version of an object by ranges, the next one while the last is scanned.
pub(crate) struct ObjectReader {
    client: Client,
    handle: Handle,
    path: Path,
    shown: Vec<u8>,
    size: u64,
    tag: Option<String>,
    version: Vec<u8>,
    bytes: Bytes,
    /// The offset of the first of them.
    base: u64,
    /// What follows, under way.
    next: Option<(u64, Fetch)>,
    /// Nobody will read behind this.
    ahead_to: u64,
}

impl ObjectReader {
    pub(crate) fn new(client: &Client, handle: &Handle, root: &str, first: First) -> Self {
        let First { path, size, tag, bytes } = first;
        let version = tag.as_deref().unwrap_or_default().as_bytes().to_vec();
        Self {
            client: client.clone(),
            handle: handle.clone(),
            shown: format!("{root}{path}").into_bytes(),
            path,
            size,
            tag,
            version,
            bytes,
            base: 0,
            next: None,
            ahead_to: size,
        }
    }

    fn fetch(&self, offset: u64) -> Fetch {
        let (client, path, tag) = (self.client.clone(), self.path.clone(), self.tag.clone());
        let end = if offset < self.ahead_to { self.ahead_to } else { self.size };
        let range = offset..(offset + WINDOW).min(end);
        self.handle.spawn(async move {
            let answer = get(&client, &path, range.clone(), tag).await;
            let (_, bytes) = answer.map_err(|error| connector_error("read", &error))?;
            if (bytes.len() as u64) < range.end - range.start {
                let message = "the store sent less than it said".to_owned();
                return Err(ConnectorError::Retryable { operation: "read", message });
            }
            Ok(bytes)
        })
    }

    /// What is at hand at this offset.
    fn at_hand(&self, offset: u64) -> &[u8] {
        let at = offset.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }
}

impl ItemReader for ObjectReader {
    fn size(&self) -> u64 {
        self.size
    }

    fn version(&self) -> &[u8] {
        &self.version
    }

    fn path(&self) -> Option<&[u8]> {
        Some(&self.shown)
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        if offset >= self.size {
            return Ok(0);
        }
        if self.at_hand(offset).is_empty() {
            let fetch = match self.next.take() {
                Some((at, fetch)) if at == offset => fetch,
                unwanted => {
                    abort(unwanted);
                    self.fetch(offset)
                }
            };
            let fetched = self.handle.block_on(fetch);
            let gone = |_| ConnectorError::Retryable {
                operation: "read",
                message: "the request was broken off".to_owned(),
            };
            self.bytes = fetched.map_err(gone)??;
            self.base = offset;
        }
        // While this is scanned the next window comes.
        let after = self.base + self.bytes.len() as u64;
        if self.next.is_none() && after < self.ahead_to {
            self.next = Some((after, self.fetch(after)));
        }
        let bytes = self.at_hand(offset);
        let len = bytes.len().min(buf.len());
        buf[..len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn limit_read_ahead(&mut self, end: u64) {
        self.ahead_to = end.min(self.size);
    }

    /// Every read asks for the tag of the first, so what was read is of that version.
    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(self.version.clone())
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        abort(self.next.take());
    }
}

/// What nobody will read need not come. Dropping the handle would let it.
fn abort(fetch: Option<(u64, Fetch)>) {
    if let Some((_, fetch)) = fetch {
        fetch.abort();
    }
}
