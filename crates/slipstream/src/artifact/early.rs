//! Syncing, reading back and hashing a file while it is being written, on threads of their own, so that
//! little is left to do when all of it is there.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A file is worth a sync after so many bytes.
const SYNC_EVERY: u64 = 16 << 20;

/// Files that wait to be synced.
const WAITING_MAX: usize = 16;

/// Bytes that are hashed at a time.
const CHUNK: usize = 1 << 18;

/// How long a reader waits for the writer.
const PAUSE: Duration = Duration::from_micros(200);

/// Syncs files as they are being written.
pub(super) struct EarlySync {
    files: SyncSender<File>,
    thread: JoinHandle<io::Result<()>>,
}

impl EarlySync {
    pub(super) fn start() -> io::Result<Self> {
        let (files, waiting) = sync_channel::<File>(WAITING_MAX);
        let syncing = move || waiting.iter().try_for_each(|file| file.sync_data());
        let thread = thread::Builder::new().name("slipstream-sync".into()).spawn(syncing)?;
        Ok(Self { files, thread })
    }

    /// `more` bytes of a file were written behind `before`.
    pub(super) fn wrote(&self, file: &File, before: u64, more: u64) {
        if before / SYNC_EVERY < (before + more) / SYNC_EVERY {
            self.sync(file);
        }
    }

    /// Has what was written to a file so far synced, unless there is enough to do already.
    pub(super) fn sync(&self, file: &File) {
        if let Ok(file) = file.try_clone() {
            let _ = self.files.try_send(file);
        }
    }

    /// A failure counts: whoever syncs the file later need not be told of it again.
    pub(super) fn finish(self) -> io::Result<()> {
        let Self { files, thread } = self;
        drop(files);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The length of a file, and the hash of its bytes.
type Hashed = (u64, [u8; 32]);

/// Reads a file behind its only writer, who does nothing but append, on a thread of its own.
pub(crate) struct ReadBehind<T> {
    is_written: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<(T, Hashed)>>>,
}

impl<T: Send + 'static> ReadBehind<T> {
    /// `read` is given the file, and what tells how long it is.
    pub(crate) fn start(
        file: File,
        read: impl FnOnce(&mut BufReader<Hashing>, &Growing) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let is_written = Arc::new(AtomicBool::new(false));
        let file = Growing { file: Arc::new(file), is_written: Arc::clone(&is_written) };
        let thread = thread::Builder::new().name("slipstream-read".into());
        let thread = thread.spawn(move || {
            let (hasher, early) = (blake3::Hasher::new(), EarlySync::start()?);
            let hashing = Hashing { file: file.clone(), hasher, early };
            let mut reader = BufReader::with_capacity(CHUNK, hashing);
            let read = read(&mut reader, &file);
            let Hashing { hasher, early, .. } = reader.into_inner();
            early.finish()?;
            Ok((read, (hasher.count(), *hasher.finalize().as_bytes())))
        })?;
        Ok(Self { is_written, thread: Some(thread) })
    }

    /// All of it is written. What was read, and the length and the hash of that.
    pub(crate) fn finish(mut self) -> io::Result<(T, Hashed)> {
        self.is_written.store(true, Ordering::Release);
        let thread = self.thread.take().expect("finished once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl<T> Drop for ReadBehind<T> {
    /// The writer has failed.
    fn drop(&mut self) {
        self.is_written.store(true, Ordering::Release);
    }
}

/// A file that somebody appends to.
#[derive(Clone)]
pub(crate) struct Growing {
    file: Arc<File>,
    is_written: Arc<AtomicBool>,
}

impl Growing {
    /// How long it is, once it has so many bytes or all that it will have.
    pub(crate) fn len(&self, wanted: u64) -> io::Result<u64> {
        let now = || Ok(self.file.metadata()?.len());
        let enough = || now().map(|len| Some(len).filter(|len| *len >= wanted));
        self.wait_for(enough)?.map_or_else(now, Ok)
    }

    /// Asks until there is an answer. `None` if all is written, and there is none.
    fn wait_for<A>(&self, mut ask: impl FnMut() -> io::Result<Option<A>>) -> io::Result<Option<A>> {
        loop {
            // Before it is asked: what is there then is all of it.
            let is_all = self.is_written.load(Ordering::Acquire);
            match ask()? {
                None if !is_all => thread::sleep(PAUSE),
                answer => return Ok(answer),
            }
        }
    }
}

/// Hashes a file as it is read, and has it synced.
pub(crate) struct Hashing {
    file: Growing,
    hasher: blake3::Hasher,
    early: EarlySync,
}

impl Read for Hashing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let at = self.hasher.count();
        let ask = || Ok(Some(self.file.file.read_at(into, at)?).filter(|some| *some > 0));
        let some = self.file.wait_for(ask)?.unwrap_or(0);
        self.early.wrote(&self.file.file, at, some as u64);
        self.hasher.update(&into[..some]);
        Ok(some)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_grows_is_read_and_hashed_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let read = |file: &mut BufReader<Hashing>, growing: &Growing| {
            assert!(growing.len(100_000).unwrap() >= 100_000, "it waits for them");
            let mut read = Vec::new();
            file.read_to_end(&mut read).map(|_| (read, growing.len(u64::MAX).unwrap()))
        };
        let reading = ReadBehind::start(file.try_clone().unwrap(), read).unwrap();
        let mut whole = Vec::new();
        for at in 0..50u8 {
            let part = vec![at; 10_000 * usize::from(at)];
            file.write_all(&part).unwrap();
            whole.extend(part);
            thread::sleep(PAUSE * u32::from(at % 3));
        }
        let (read, (len, hash)) = reading.finish().unwrap();
        assert!(read.unwrap() == (whole.clone(), whole.len() as u64));
        assert_eq!((len, hash), (whole.len() as u64, *blake3::hash(&whole).as_bytes()));
    }

    #[test]
    fn an_early_sync_that_fails_is_told() {
        // Nothing that could be synced.
        let (reader, _writer) = io::pipe().unwrap();
        let early = EarlySync::start().unwrap();
        early.wrote(&File::from(std::os::fd::OwnedFd::from(reader)), SYNC_EVERY - 1, 1);
        assert!(early.finish().is_err());
    }
}
