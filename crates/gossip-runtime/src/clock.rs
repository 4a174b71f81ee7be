//! The one place where the runtime asks what time it is.

use std::time::{SystemTime, UNIX_EPOCH};

use gossip_contracts::identity::LogicalTime;

/// Unix milliseconds.
pub(crate) fn now() -> LogicalTime {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Zero means "unset"; a clock before 1970 is as good as one at its start.
    LogicalTime::from_raw(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX).max(1))
}
