//! Payloads on their way: between a thread that reads or writes files and requests to a store, through
//! a queue, so that memory stays the same however long they are.

use std::convert::Infallible;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{GetOptions, GetResult, ObjectStore, ObjectStoreExt, WriteMultipart};
use slipstream::artifact::{ArtifactError, ExportManifest};
use slipstream::payload::{SourceFailed, write_payload};
use slipstream::transport::TransportError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::{OnProgress, failed};

/// Bytes of a part at least, and how many are sent at once.
const PART: usize = 8 << 20;
const PARTS_IN_FLIGHT: usize = 8;

/// So many parts of one object are allowed. Fewer are planned, as the headers of a tar and a compression
/// that does not help come on top of the files.
const PARTS_MAX: u64 = 10_000;
const PARTS_PLANNED: u64 = 9_000;
const _: () = assert!(PARTS_PLANNED < PARTS_MAX);

/// Bytes that one request asks for. Clients give up on a request after some minutes, however much has
/// come meanwhile.
const RANGE: u64 = 16 << 20;

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

/// Uploads the payload of an artifact, in parts; all of it, or none. Whoever stops waiting leaves no
/// parts behind: a store keeps those, and charges for them, until somebody removes them.
pub(crate) async fn send(
    store: &Arc<dyn ObjectStore>,
    to: &Path,
    pace: Pace,
    artifact: &FilePath,
    manifest: &ExportManifest,
) -> Result<(), TransportError> {
    // A task of its own, as what is dropped cannot remove anything.
    let (waiting, gone) = oneshot::channel();
    let (store, to) = (Arc::clone(store), to.clone());
    let (artifact, manifest) = (artifact.to_owned(), manifest.clone());
    let sending =
        tokio::spawn(async move { upload(&*store, &to, pace, artifact, manifest, gone).await });
    let sent = sending.await;
    drop::<oneshot::Sender<Infallible>>(waiting);
    sent.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))
}

async fn upload(
    store: &dyn ObjectStore,
    to: &Path,
    mut pace: Pace,
    artifact: PathBuf,
    manifest: ExportManifest,
    gone: oneshot::Receiver<Infallible>,
) -> Result<(), TransportError> {
    let uploading = || failed("uploading the payload");
    let (queue, chunks) = mpsc::channel(QUEUE);
    let part = part_len(manifest.total_size());
    let upload = store.put_multipart(to).await.map_err(uploading())?;
    let mut upload = WriteMultipart::new_with_chunk_size(upload, part);
    let writing = tokio::task::spawn_blocking(move || {
        let mut to = BufWriter::with_capacity(CHUNK, Queue(queue));
        write_payload(&artifact, &manifest, &mut to)?;
        to.flush().map_err(|source| ArtifactError::Io { doing: "writing the payload", source })
    });
    let fed = tokio::select! {
        fed = feed(&mut upload, chunks, &mut pace) => fed.map_err(uploading()),
        _ = gone => {
            let (doing, message) = ("uploading the payload", "nobody waits for it".to_owned());
            Err(TransportError::Store { doing, message })
        }
    };
    let written = match fed {
        Ok(()) => writing.await,
        Err(error) => {
            abort(upload).await;
            return Err(error);
        }
    };
    match written {
        Ok(Ok(())) => upload.finish().await.map(drop).map_err(uploading()),
        Ok(Err(error)) => {
            abort(upload).await;
            Err(error.into())
        }
        Err(panicked) => {
            abort(upload).await;
            std::panic::resume_unwind(panicked.into_panic())
        }
    }
}

/// Hands chunks to an upload until there are no more.
async fn feed(
    upload: &mut WriteMultipart,
    mut chunks: mpsc::Receiver<Bytes>,
    pace: &mut Pace,
) -> object_store::Result<()> {
    while let Some(chunk) = chunks.recv().await {
        let len = chunk.len();
        upload.wait_for_capacity(PARTS_IN_FLIGHT).await?;
        upload.put(chunk);
        pace.passed(len).await;
    }
    Ok(())
}

/// Bytes of a part of a payload whose files have so many: S3 takes no more than [`PARTS_MAX`].
fn part_len(total: u64) -> usize {
    let part = usize::try_from(total / PARTS_PLANNED).unwrap_or(usize::MAX);
    part.max(PART)
}

async fn abort(upload: WriteMultipart) {
    if let Err(error) = upload.abort().await {
        tracing::warn!(%error, "the parts of a payload were not removed");
    }
}

/// The size of an object, and its bytes, by requests of a range each.
pub(crate) async fn in_ranges(
    store: &Arc<dyn ObjectStore>,
    path: Path,
) -> Result<(u64, BoxStream<'static, object_store::Result<Bytes>>), TransportError> {
    let options = GetOptions { range: Some((0..RANGE).into()), ..GetOptions::default() };
    let first = store.get_opts(&path, options).await;
    let first = first.map_err(failed("downloading the payload"))?;
    let (size, if_match) = (first.meta.size, first.meta.e_tag.clone());
    let store = Arc::clone(store);
    let rest = stream::iter((RANGE..size).step_by(RANGE as usize)).then(move |from| {
        let range = Some((from..size.min(from + RANGE)).into());
        let options = GetOptions { range, if_match: if_match.clone(), ..GetOptions::default() };
        let (store, path) = (Arc::clone(&store), path.clone());
        async move { store.get_opts(&path, options).await.map(GetResult::into_stream) }
    });
    Ok((size, first.into_stream().chain(rest.try_flatten()).boxed()))
}

/// Has an object read on a thread that may block; what the reader says, if the store did not fail.
pub(crate) async fn receive<T, E>(
    mut from: BoxStream<'static, object_store::Result<Bytes>>,
    mut pace: Pace,
    read: impl FnOnce(&mut dyn Read) -> Result<T, E> + Send + 'static,
) -> Result<Result<T, E>, TransportError>
where
    T: Send + 'static,
    E: Send + 'static,
{
    let (queue, chunks) = mpsc::channel(QUEUE);
    let reading =
        tokio::task::spawn_blocking(move || read(&mut Chunks { chunks, rest: Bytes::new() }));
    let mut lost = None;
    while let Some(chunk) = from.next().await {
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

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    async fn read_all(store: &Arc<dyn ObjectStore>, path: &Path) -> object_store::Result<Bytes> {
        let (size, from) = in_ranges(store, path.clone()).await.unwrap();
        let bytes = from.try_fold(Vec::new(), |mut all, chunk| async move {
            all.extend_from_slice(&chunk);
            Ok(all)
        });
        let bytes = bytes.await?;
        assert_eq!(bytes.len() as u64, size);
        Ok(bytes.into())
    }

    #[tokio::test]
    async fn an_object_is_read_range_by_range() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("payload");
        for size in [1, RANGE - 1, RANGE, RANGE + 1, 2 * RANGE + 7] {
            let bytes: Bytes = (0..size).map(|at| (at % 251) as u8).collect();
            store.put(&path, bytes.clone().into()).await.unwrap();
            assert!(read_all(&store, &path).await.unwrap() == bytes, "{size}");
        }
        let (_, from) = in_ranges(&store, path.clone()).await.unwrap();
        // Somebody replaces it when its first range was asked for.
        store.put(&path, vec![0; 3 * RANGE as usize].into()).await.unwrap();
        let failed = from.try_for_each(|_| async { Ok(()) }).await;
        assert!(matches!(failed, Err(object_store::Error::Precondition { .. })), "{failed:?}");
    }

    #[test]
    fn a_payload_of_any_size_has_few_enough_parts() {
        assert_eq!(part_len(0), PART);
        assert_eq!(part_len(70 << 30), PART);
        for total in [80u64 << 30, 1 << 40, 20 << 40] {
            // With what a tar adds to files of a MiB each.
            let payload = total + total / 1024;
            let part = part_len(total) as u64;
            assert!(payload.div_ceil(part) <= PARTS_MAX && part <= 5 << 30, "{total}: {part}");
        }
    }
}
