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

/// `None` after the last one: a thread that panics does not come to that.
type Chunk<T> = Result<Option<Vec<T>>, SnapshotError>;

/// What a thread reads. It ends when this is dropped, and has ended by then.
pub(super) struct Ahead<T> {
    chunks: Option<Receiver<Chunk<T>>>,
    chunk: vec::IntoIter<T>,
    is_over: bool,
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
                match queue.send(Ok(Some(std::mem::take(&mut chunk)))) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
            // Nobody may be there any more.
            let _ = queue.send(Ok(Some(chunk)));
            let _ = queue.send(read.map(|()| None));
        };
        let reading = thread::Builder::new().name("slipstream-ahead".into()).spawn(reading);
        let reading = Some(reading.map_err(io_error("starting a thread"))?);
        let (chunk, is_over) = (Vec::new().into_iter(), false);
        Ok(Self { chunks: Some(chunks), chunk, is_over, reading })
    }

    /// The next entry, which stays; `None` if all were read.
    ///
    /// # Errors
    /// They were not: what is left is not known.
    pub(super) fn peek(&mut self) -> Result<Option<&T>, SnapshotError> {
        while self.chunk.len() == 0 && !self.is_over {
            let chunk = self.chunks.as_ref().and_then(|chunks| chunks.recv().ok());
            let panicked = || SnapshotError::Corrupted("whatever reads it has panicked".into());
            match chunk.unwrap_or_else(|| Err(panicked()))? {
                Some(chunk) => self.chunk = chunk.into_iter(),
                None => self.is_over = true,
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
        // A panic was an error already, for whoever wanted to know the rest.
        let _ = self.reading.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ahead: &mut Ahead<u32>) -> (u32, Result<(), SnapshotError>) {
        for count in 0.. {
            match ahead.peek() {
                Ok(Some(entry)) => assert_eq!(*entry, count),
                Ok(None) => return (count, Ok(())),
                Err(error) => return (count, Err(error)),
            }
            ahead.take();
        }
        unreachable!()
    }

    fn numbers(count: u32, push: Push<'_, u32>) {
        // Each fills a chunk, so that the queue is full again and again.
        for at in 0..count {
            if push(at, CHUNK).is_break() {
                return;
            }
        }
    }

    #[test]
    fn everything_comes_in_order_and_then_the_end() {
        let mut ahead = Ahead::new(|push| {
            numbers(100, push);
            Ok(())
        })
        .unwrap();
        let (count, end) = all(&mut ahead);
        assert!(count == 100 && end.is_ok());
        assert!(ahead.peek().unwrap().is_none(), "and stays so");
    }

    /// Whoever took it for the end would delete what was not read.
    #[test]
    fn a_panic_is_not_the_end() {
        let mut ahead = Ahead::new(|push| {
            numbers(10, push);
            panic!("of the test");
        })
        .unwrap();
        let (count, end) = all(&mut ahead);
        assert!(count <= 10 && end.is_err(), "{count}");
    }

    #[test]
    fn an_error_comes_after_what_was_read() {
        let mut ahead = Ahead::new(|push| {
            numbers(10, push);
            Err(SnapshotError::EmptyKey)
        })
        .unwrap();
        assert!(matches!(all(&mut ahead), (10, Err(SnapshotError::EmptyKey))));
    }

    #[test]
    fn a_reader_ends_when_nobody_wants_the_rest() {
        let mut ahead = Ahead::new(|push| {
            numbers(u32::MAX, push);
            Ok(())
        })
        .unwrap();
        assert_eq!(ahead.peek().unwrap(), Some(&0));
        drop(ahead);
    }
}
