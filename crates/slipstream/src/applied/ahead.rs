//! Entries in order, from a thread that reads them ahead: two folds are compared side by side, and
//! neither is in memory.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::vec;

use crate::snapshot::{SnapshotError, io_error};

/// Bytes of entries that go through the queue at once, and how many of them may wait.
const CHUNK: usize = 1 << 18;
const QUEUE: usize = 4;

type Chunk<T> = Result<Vec<T>, SnapshotError>;

/// What a thread reads. It ends when this is dropped, and has ended by then.
pub(super) struct Ahead<T> {
    chunks: Option<Receiver<Chunk<T>>>,
    chunk: vec::IntoIter<T>,
    reading: Option<JoinHandle<()>>,
}

/// Takes an entry, and how many bytes it has.
pub(super) type Push<'a, T> = &'a mut dyn FnMut(T, usize) -> ControlFlow<()>;

impl<T: Send + 'static> Ahead<T> {
    /// Of what `read` pushes.
    pub(super) fn new(
        read: impl FnOnce(Push<'_, T>) -> Result<(), SnapshotError> + Send + 'static,
    ) -> Result<Self, SnapshotError> {
        let (queue, chunks) = sync_channel(QUEUE);
        let reading = move || {
            let (mut chunk, mut bytes) = (Vec::new(), 0);
            let read = read(&mut |entry, len| {
                chunk.push(entry);
                bytes += len + size_of::<T>();
                if bytes < CHUNK {
                    return ControlFlow::Continue(());
                }
                bytes = 0;
                match queue.send(Ok(std::mem::take(&mut chunk))) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            // Nobody may be there any more.
            let _ = queue.send(Ok(chunk));
            if let Err(error) = read {
                let _ = queue.send(Err(error));
            }
        };
        let reading = thread::Builder::new().name("slipstream-ahead".into()).spawn(reading);
        let reading = Some(reading.map_err(io_error("starting a thread"))?);
        Ok(Self { chunks: Some(chunks), chunk: Vec::new().into_iter(), reading })
    }

    /// The next entry, which stays.
    pub(super) fn peek(&mut self) -> Result<Option<&T>, SnapshotError> {
        while self.chunk.len() == 0 {
            match self.chunks.as_ref().and_then(|chunks| chunks.recv().ok()) {
                Some(chunk) => self.chunk = chunk?.into_iter(),
                None => return Ok(None),
            }
        }
        Ok(self.chunk.as_slice().first())
    }

    /// The entry that was looked at.
    pub(super) fn take(&mut self) -> Option<T> {
        self.chunk.next()
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.chunks = None;
        if let Some(Err(panic)) = self.reading.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
