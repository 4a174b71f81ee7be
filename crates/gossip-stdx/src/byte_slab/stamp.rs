//! Stamps: a number per record that no other record of the process ever had.
//!
//! A stamp stands for slab identity and generation in one: a slot is live exactly when its entry
//! carries the slot's stamp. Stamps only count up, so nothing wraps and no entry is ever retired:
//! 2^48 slabs, or a record per nanosecond for 500 years, use them up.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Stamps taken from the process at a time, so that slabs on different threads rarely meet.
const BATCH: u64 = 1 << 16;

static NEXT_BATCH: AtomicU64 = AtomicU64::new(1);

/// One slab's supply of stamps.
#[derive(Debug)]
pub(super) struct Stamps {
    batch: Range<u64>,
}

impl Stamps {
    pub(super) const fn new() -> Self {
        Self { batch: 0..0 }
    }

    pub(super) fn next(&mut self) -> NonZeroU64 {
        if self.batch.is_empty() {
            // Relaxed: only the uniqueness of the number matters.
            let start = NEXT_BATCH.fetch_add(BATCH, Ordering::Relaxed);
            let end = start.checked_add(BATCH).expect("the process ran out of slot stamps");
            self.batch = start..end;
        }
        let stamp = self.batch.next().expect("the batch was just refilled");
        NonZeroU64::new(stamp).expect("batches start at 1")
    }
}
