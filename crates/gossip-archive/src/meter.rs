//! Counting what comes out of an archive, and an end to it (A3).

use std::cell::Cell;
use std::io::{self, Read};

use crate::Limits;

/// What came out so far.
pub(crate) struct Meter {
    bytes_max: u64,
    files_max: u64,
    bytes: Cell<u64>,
    files: Cell<u64>,
    is_over: Cell<bool>,
}

impl Meter {
    /// For an archive of `size` bytes.
    pub(crate) fn new(limits: &Limits, size: u64) -> Self {
        let by_ratio = limits.ratio_from.max(size.saturating_mul(limits.ratio));
        Self {
            bytes_max: limits.bytes.min(by_ratio),
            files_max: limits.files,
            bytes: Cell::new(0),
            files: Cell::new(0),
            is_over: Cell::new(false),
        }
    }

    /// Whether a limit was reached.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Counts a file; `false` if that is one too many.
    pub(crate) fn add_file(&self) -> bool {
        self.files.set(self.files.get() + 1);
        if self.files.get() > self.files_max {
            self.is_over.set(true);
        }
        !self.is_over()
    }

    /// Counts what is read of `inner`, and fails beyond the limit.
    pub(crate) const fn measure<R: Read>(&self, inner: R) -> Measured<'_, R> {
        Measured { meter: self, inner, failed: None }
    }
}

/// Counts what is read. Once a read has failed, every later one fails as well: some decoders report a
/// wrong checksum once, and read on as if nothing had been wrong.
pub(crate) struct Measured<'m, R> {
    meter: &'m Meter,
    inner: R,
    failed: Option<io::ErrorKind>,
}

impl<R: Read> Read for Measured<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.meter.is_over() {
            return Err(io::Error::other("the archive reached a limit"));
        }
        if let Some(kind) = self.failed {
            return Err(kind.into());
        }
        // All that is allowed is given, and one byte more is tried.
        let left = self.meter.bytes_max - self.meter.bytes.get();
        let room = usize::try_from(left).map_or(buf.len(), |left| buf.len().min(left.max(1)));
        let read = self.inner.read(&mut buf[..room]).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failed = Some(error.kind());
            }
        })?;
        let bytes = self.meter.bytes.get() + read as u64;
        self.meter.bytes.set(bytes);
        if bytes > self.meter.bytes_max {
            self.meter.is_over.set(true);
            return Err(io::Error::other("the archive reached a limit"));
        }
        Ok(read)
    }
}
