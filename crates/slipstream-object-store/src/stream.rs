//! Payloads on their way: between a thread that reads or writes files and requests to a store, through
//! a queue, so that memory stays the same however long they are.

use std::io::{self, BufWriter, Read, Write};
use std::path::Path as FilePath;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetResult, ObjectStore, ObjectStoreExt, WriteMultipart};
use slipstream::artifact::{ArtifactError, ExportManifest};
use slipstream::payload::{SourceFailed, write_payload};
use slipstream::transport::TransportError;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use crate::{OnProgress, failed};

/// Bytes of a part, and how many are sent at once.
const PART: usize = 8 << 20;
const PARTS_IN_FLIGHT: usize = 8;

/// Bytes that go through the queue at once, and how many of them may wait.
const CHUNK: usize = 1 << 18;
const QUEUE: usize = 8;

/// Counts what goes by, and holds it back.
pub(crate) struct Pace {
    bytes_per_second: Option<u64>,
    progress: Option<OnProgress>,
    of: Option<u64>,
    began: Instant,
    done: u64,
}

impl Pace {
    pub(crate) fn new(
        bytes_per_second: Option<u64>,
        progress: Option<OnProgress>,
        of: Option<u64>,
    ) -> Self {
        Self { bytes_per_second, progress, of, began: Instant::now(), done: 0 }
    }

    async fn passed(&mut self, bytes: usize) {
        self.done += bytes as u64;
        if let Some(limit) = self.bytes_per_second {
            sleep_until(self.began + Duration::from_secs_f64(self.done as f64 / limit as f64))
                .await;
        }
        if let Some(progress) = &self.progress {
            progress(self.done, self.of);
        }
    }
}

/// Uploads the payload of an artifact, in parts; all of it, or none.
pub(crate) async fn send(
    store: &dyn ObjectStore,
    to: &Path,
    mut pace: Pace,
    artifact: &FilePath,
    manifest: &ExportManifest,
) -> Result<(), TransportError> {
    let uploading = || failed("uploading the payload");
    let (queue, mut chunks) = mpsc::channel(QUEUE);
    let (artifact, manifest) = (artifact.to_owned(), manifest.clone());
    let upload = store.put_multipart(to).await.map_err(uploading())?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
    let writing = tokio::task::spawn_blocking(move || {
        let mut to = BufWriter::with_capacity(CHUNK, Queue(queue));
        write_payload(&artifact, &manifest, &mut to)?;
        to.flush().map_err(|source| ArtifactError::Io { doing: "writing the payload", source })
    });
    while let Some(chunk) = chunks.recv().await {
        let chunk: Bytes = chunk;
        let len = chunk.len();
        if let Err(error) = upload.wait_for_capacity(PARTS_IN_FLIGHT).await {
            abort(upload).await;
            return Err(uploading()(error));
        }
        upload.put(chunk);
        pace.passed(len).await;
    }
    if let Err(error) = writing.await.expect("it does not panic") {
        abort(upload).await;
        return Err(error.into());
    }
    upload.finish().await.map(drop).map_err(uploading())
}

async fn abort(upload: WriteMultipart) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "the parts of a payload were not removed");
    }
}

/// Has an object read on a thread that may block; what the reader says, if the store did not fail.
pub(crate) async fn receive<T, E>(
    got: GetResult,
    mut pace: Pace,
    read: impl FnOnce(&mut dyn Read) -> Result<T, E> + Send + 'static,
) -> Result<Result<T, E>, TransportError>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let (queue, chunks) = mpsc::channel(QUEUE);
    let reading = tokio::task::spawn_blocking(move || {
        let mut from = Chunks { chunks, rest: Bytes::new() };
        read(&mut from)
    });
    let mut stream = got.into_stream();
    let mut lost = None;
    while let Some(chunk) = stream.next().await {
        let len = chunk.as_ref().map_or(0, Bytes::len);
        let chunk = chunk.map_err(|error| {
            let said = error.to_string();
            lost = Some(failed("downloading the payload")(error));
            SourceFailed(said)
        });
        // Whoever has read enough takes no more.
        if queue.send(chunk).await.is_err() {
            break;
        }
        pace.passed(len).await;
    }
    drop(queue);
    let answer = reading.await.expect("it does not panic");
    match lost {
        Some(lost) => Err(lost),
        None => Ok(answer),
    }
}

struct Queue(mpsc::Sender<Bytes>);

impl Write for Queue {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Bytes::copy_from_slice(bytes));
        sent.map_err(|_| io::Error::other("the upload has ended"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Chunks {
    chunks: mpsc::Receiver<Result<Bytes, SourceFailed>>,
    rest: Bytes,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.rest = chunk?,
                None => return Ok(0),
            }
        }
        let some = self.rest.len().min(into.len());
        into[..some].copy_from_slice(&self.rest.split_to(some));
        Ok(some)
    }
}
