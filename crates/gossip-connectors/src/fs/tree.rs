//! The tree that is listed, and what of it is left out.

use std::os::fd::OwnedFd;

use gossip_contracts::connector::SkipReason;
use rustix::fs::Stat;

use super::FsOptions;
use super::beneath::Beneath;

pub(super) struct Tree {
    pub(super) beneath: Beneath,
    device: u64,
    options: FsOptions,
}

impl Tree {
    pub(super) fn new(root: OwnedFd, stat: &Stat, options: FsOptions) -> Self {
        Self { beneath: Beneath::new(root), device: device(stat), options }
    }

    /// Why the directory with this key is not entered, as far as its key tells.
    pub(super) fn excludes_dir(&self, key: &[u8]) -> Option<SkipReason> {
        let is_git_objects = key == b".git/objects/" || key.ends_with(b"/.git/objects/");
        (is_git_objects && !self.options.git_objects).then_some(SkipReason::Ignored)
    }

    /// Why what looks like this is left out.
    pub(super) fn excludes_stat(&self, stat: &Stat) -> Option<SkipReason> {
        (self.options.one_file_system && device(stat) != self.device)
            .then_some(SkipReason::OtherFileSystem)
    }
}

#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}
