//! What a scan has done so far, for whoever draws a progress bar.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::connector::ConnectorError;

/// Counts that grow while a scan runs. They are for showing; the report is read from the database.
#[derive(Debug, Default)]
pub struct ScanStats {
    pub(crate) items: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) unchanged: AtomicU64,
    pub(crate) unchanged_bytes: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) findings: AtomicU64,
    parked_for: Mutex<BTreeSet<String>>,
}

impl ScanStats {
    /// Items handled.
    #[must_use]
    pub fn items(&self) -> u64 {
        self.items.load(Ordering::Relaxed)
    }

    /// Bytes read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Items that were known already and not read.
    #[must_use]
    pub fn unchanged(&self) -> u64 {
        self.unchanged.load(Ordering::Relaxed)
    }

    /// Bytes of those items.
    #[must_use]
    pub fn unchanged_bytes(&self) -> u64 {
        self.unchanged_bytes.load(Ordering::Relaxed)
    }

    /// Items that are not scanned.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Items that could not be read.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Secrets found in what was read.
    #[must_use]
    pub fn findings(&self) -> u64 {
        self.findings.load(Ordering::Relaxed)
    }

    /// Why shards were parked, in words that hold no key.
    #[must_use]
    pub fn parked_for(&self) -> Vec<String> {
        let reasons = self.parked_for.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        reasons.iter().cloned().collect()
    }

    pub(crate) fn parked(&self, error: &ConnectorError) {
        let mut reasons = self.parked_for.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        reasons.insert(error.to_string());
    }

    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
