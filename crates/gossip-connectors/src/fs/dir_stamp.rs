//! Whether a directory is still the one whose names were read.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use super::version::{Version, is_settled};

/// A directory as it was just before its names were read.
#[derive(Clone, Copy)]
pub(super) struct DirStamp {
    device: u64,
    inode: u64,
    version: Version,
    /// Whether any later change must show in the version.
    is_settled: bool,
}

/// What may have happened to a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Unchanged,
    /// Names came or went, or may have.
    Changed,
    /// It is another directory.
    Replaced,
}

impl DirStamp {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn now(stat: &Stat) -> Self {
        let version = Version::of(stat);
        let is_settled = is_settled(version.as_bytes(), unix_ms());
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64, version, is_settled }
    }

    /// What happened to the directory, which now looks like `now`.
    pub(super) fn compare(&self, now: &Self) -> Since {
        if (self.device, self.inode) != (now.device, now.inode) {
            return Since::Replaced;
        }
        // One that had just changed when it was read may have changed once more in the same tick
        // of the clock. That tick is over when it has settled: then it is read once more.
        let may_hide_a_change = !self.is_settled && now.is_settled;
        if self.version != now.version || may_hide_a_change {
            return Since::Changed;
        }
        Since::Unchanged
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
