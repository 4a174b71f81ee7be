//! Syncing and hashing a file while it is being written, on threads of their own, so that little is left to
//! do when all of it is there.

use std::fs::File;
use std::io;
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

/// Reads a file behind its only writer, who does nothing but append, and hashes it.
pub(crate) struct HashBehind {
    is_written: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Hashed>>>,
}

impl HashBehind {
    pub(crate) fn start(file: File) -> io::Result<Self> {
        let is_written = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_written);
        let thread = thread::Builder::new().name("slipstream-hash".into());
        let thread = thread.spawn(move || hash_behind(&file, &seen))?;
        Ok(Self { is_written, thread: Some(thread) })
    }

    /// All of it is written. Its length and its hash.
    pub(crate) fn finish(mut self) -> io::Result<Hashed> {
        self.is_written.store(true, Ordering::Release);
        let thread = self.thread.take().expect("finished once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for HashBehind {
    /// The writer has failed.
    fn drop(&mut self) {
        self.is_written.store(true, Ordering::Release);
    }
}

fn hash_behind(file: &File, is_written: &AtomicBool) -> io::Result<Hashed> {
    let early = EarlySync::start()?;
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        // Before the read: what is there then is all of it.
        let is_all = is_written.load(Ordering::Acquire);
        match file.read_at(&mut chunk, hasher.count()) {
            Ok(0) if is_all => break,
            Ok(0) => thread::sleep(PAUSE),
            Ok(some) => {
                early.wrote(file, hasher.count(), some as u64);
                hasher.update(&chunk[..some]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    early.finish()?;
    Ok((hasher.count(), *hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_grows_is_hashed_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        let hashing = HashBehind::start(file.try_clone().unwrap()).unwrap();
        let mut whole = Vec::new();
        for at in 0..50u8 {
            let part = vec![at; 10_000 * usize::from(at)];
            file.write_all(&part).unwrap();
            whole.extend(part);
            thread::sleep(PAUSE * u32::from(at % 3));
        }
        let hash = *blake3::hash(&whole).as_bytes();
        assert_eq!(hashing.finish().unwrap(), (whole.len() as u64, hash));
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
