//! The tree that is listed, and what of it is left out.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::connector::SkipReason;
use rustix::fs::Stat;

use super::FsOptions;
use super::beneath::Beneath;
use super::error::FsError;
use super::ignore::Ignores;
use super::names::OpenDir;

pub(super) struct Tree {
    pub(super) beneath: Beneath,
    device: u64,
    /// Whether this file system counts the links of a directory.
    counts_links: bool,
    options: FsOptions,
    reads: AtomicU64,
}

impl Tree {
    pub(super) fn new(root: OwnedFd, stat: &Stat, options: FsOptions) -> Self {
        Self {
            beneath: Beneath::new(root),
            device: device(stat),
            counts_links: stat.st_nlink > 0,
            options,
            reads: AtomicU64::new(0),
        }
    }

    /// Whether the root, which now looks like this, was removed while it was open. It would look
    /// like an empty one.
    pub(super) const fn is_removed(&self, root: &Stat) -> bool {
        self.counts_links && root.st_nlink == 0
    }

    /// Bytes of names to hold of one directory. Their places are counted in 32 bits.
    pub(super) fn window_size(&self) -> usize {
        self.options.window_size.clamp(1, 1 << 30)
    }

    /// Counts one reading of a directory's names.
    pub(super) fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Why the directory with this key is not entered, as far as its key tells.
    pub(super) fn excludes_dir(&self, key: &[u8]) -> Option<SkipReason> {
        if self.options.git_objects {
            return None;
        }
        // Those of the root are the source's that reads its history.
        let is_nested = key.ends_with(b"/.git/objects/");
        let is_own = key == b".git/objects/" || self.options.bare_repository && key == b"objects/";
        let nested = is_nested.then_some(SkipReason::NestedHistory);
        nested.or(is_own.then_some(SkipReason::Ignored))
    }

    /// What is ignored in `dir`, whose key has `path_len` bytes, below where `above` holds.
    pub(super) fn ignores(
        &self,
        above: &Ignores,
        dir: &OpenDir,
        path_len: usize,
    ) -> Result<Ignores, FsError> {
        if !self.options.gitignore {
            return Ok(Ignores::default());
        }
        Ignores::read(above, dir, path_len)
    }

    /// Whether [`Tree::ignores`] would say of `dir` what it said before.
    pub(super) fn ignores_still_hold(
        &self,
        ignores: &Ignores,
        dir: &OpenDir,
        path_len: usize,
    ) -> Result<bool, FsError> {
        Ok(!self.options.gitignore || ignores.still_hold(dir, path_len)?)
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
