//! What a walk says about one name.

use gossip_contracts::connector::{ConnectorError, Page, PageEntry, SkipReason};
use rustix::fs::{AtFlags, FileType, Stat, statat};

use super::frame::Frame;
use super::{Walk, look_into};
use crate::fs::KEY_SIZE_MAX;
use crate::fs::beneath::open_child_dir;
use crate::fs::bounds::{Lower, Upper};
use crate::fs::error::FsError;
use crate::fs::names::{Kind, OpenDir};
use crate::fs::tree::Tree;
use crate::fs::version::{self, Version};

/// What became of a directory that was to be entered.
enum Entered {
    Dir { dir: OpenDir, frame: Frame, any_too_long: bool },
    Excluded(SkipReason),
}

impl Walk {
    /// Gives the entry of something at `path` that is not a directory.
    pub(super) fn look_at(
        &mut self,
        tree: &Tree,
        kind: Kind,
        name_start: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        match kind {
            Kind::Link => self.emit_skipped(SkipReason::Link, page),
            Kind::Special => self.emit_skipped(SkipReason::Special, page),
            Kind::File | Kind::Dir => match self.stat(name_start) {
                Ok(stat) => self.emit(tree, &stat, page),
                Err(error) => {
                    if let Some(reason) = error.skip()? {
                        self.emit_skipped(reason, page);
                    }
                }
            },
        }
        Ok(())
    }

    fn stat(&self, name_start: usize) -> Result<Stat, FsError> {
        let top = self.top.as_ref().expect("a directory with names left is open");
        Ok(statat(top.fd()?, &self.path[name_start..], AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn emit(&mut self, tree: &Tree, stat: &Stat, page: &mut Page) {
        // Not what the directory said: something may have taken its place.
        match Kind::of(FileType::from_raw_mode(stat.st_mode)) {
            Kind::Link => self.emit_skipped(SkipReason::Link, page),
            Kind::Special => self.emit_skipped(SkipReason::Special, page),
            // The file is gone, and a directory has another key.
            Kind::Dir => {}
            Kind::File => {
                if let Some(reason) = tree.excludes_stat(stat) {
                    return self.emit_skipped(reason, page);
                }
                let (version, size) = (Version::of(stat), version::size(stat));
                self.set_position_to_path();
                page.push(PageEntry {
                    key: &self.path,
                    version: version.as_bytes(),
                    size,
                    skip: None,
                });
            }
        }
    }

    pub(super) fn emit_skipped(&mut self, reason: SkipReason, page: &mut Page) {
        self.set_position_to_path();
        page.push(PageEntry { key: &self.path, version: b"", size: 0, skip: Some(reason) });
    }

    fn set_position_to_path(&mut self) {
        assert!(
            self.position < self.path,
            "W1: a key of {} bytes does not follow one of {}",
            self.path.len(),
            self.position.len()
        );
        self.position.clear();
        self.position.extend_from_slice(&self.path);
    }

    /// Goes into the directory at `path`, or reports why not.
    pub(super) fn enter(
        &mut self,
        tree: &Tree,
        lower: Lower<'_>,
        name_start: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        match self.open_child(tree, lower, name_start) {
            Ok(Entered::Dir { dir, frame, any_too_long }) => {
                self.push(tree, dir, frame);
                // What has no key is reported once, under the directory's own.
                if any_too_long && lower.admits(&self.path) {
                    self.emit_skipped(SkipReason::KeyTooLong, page);
                }
                return Ok(());
            }
            Ok(Entered::Excluded(reason)) => {
                if lower.admits(&self.path) {
                    self.emit_skipped(reason, page);
                }
            }
            Err(error) => {
                if let Some(reason) = error.skip()? {
                    self.emit_unreadable_dir(lower, reason, page);
                }
            }
        }
        self.path.truncate(name_start);
        Ok(())
    }

    fn open_child(
        &self,
        tree: &Tree,
        lower: Lower<'_>,
        name_start: usize,
    ) -> Result<Entered, FsError> {
        if let Some(reason) = tree.excludes_dir(&self.path) {
            return Ok(Entered::Excluded(reason));
        }
        let top = self.top.as_ref().expect("a directory with names left is open");
        let name = &self.path[name_start..self.path.len() - 1];
        let (dir, stat) = look_into(open_child_dir(top.fd()?, name))?;
        if let Some(reason) = tree.excludes_stat(&stat) {
            return Ok(Entered::Excluded(reason));
        }
        let (dir, frame, any_too_long) =
            self.read_dir(tree, dir, &stat, lower.below(&self.path))?;
        Ok(Entered::Dir { dir, frame, any_too_long })
    }

    /// Reports the directory at `path`: under its own key, or, if the listing starts inside of it,
    /// under a key of no file directly behind that start.
    fn emit_unreadable_dir(&mut self, lower: Lower<'_>, reason: SkipReason, page: &mut Page) {
        if lower.admits(&self.path) {
            return self.emit_skipped(reason, page);
        }
        // No name holds a NUL: one in the cursor says that this was reported.
        let is_inside = lower.key().len() > self.path.len() && lower.key().len() < KEY_SIZE_MAX;
        if !is_inside || lower.key().contains(&0) {
            return;
        }
        self.path.clear();
        self.path.extend_from_slice(lower.key());
        self.path.push(0);
        if Upper::of(&self.end).admits(&self.path) {
            self.emit_skipped(reason, page);
        }
    }
}
