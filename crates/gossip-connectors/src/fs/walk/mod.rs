//! A walk through a tree in the order of its keys.
//!
//! - W1: keys come out strictly ascending: names are sorted with a directory's final `/`, and
//!   nothing below a directory sorts outside of it.
//! - W2: a walk is its position. Everything else that it holds (names that were read before) is
//!   dropped when the disk shows that it may no longer be true, and read again from the position.
//! - W3: one directory is open at a time, however deep the tree, and none between pages.

mod emit;
mod frame;

use gossip_contracts::connector::{ConnectorError, Page, SkipReason};
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

use frame::{Frame, ignores_of};

use super::KEY_SIZE_MAX;
use super::bounds::{Lower, Upper};
use super::dir_stamp::DirStamp;
use super::error::FsError;
use super::names::{Kind, Names, OpenDir, Wanted};
use super::tree::Tree;

pub(super) struct Walk {
    /// No name behind this is held. Empty is no end.
    end: Box<[u8]>,
    /// The last key given.
    position: Vec<u8>,
    /// The key of the directory on top; empty is the root.
    path: Vec<u8>,
    /// From the root down.
    frames: Vec<Frame>,
    /// The directory on top.
    top: Option<OpenDir>,
}

enum Step {
    Going,
    AtEnd,
}

impl Walk {
    /// A walk at the beginning of what `lower` admits.
    pub(super) fn start(tree: &Tree, lower: Lower<'_>, end: &[u8]) -> Result<Self, ConnectorError> {
        let mut walk = Self {
            end: end.into(),
            position: Vec::new(),
            path: Vec::new(),
            frames: Vec::new(),
            top: None,
        };
        let opened =
            walk.open_path(tree).and_then(|(dir, stat)| walk.read_dir(tree, dir, &stat, lower));
        let (dir, frame, _) = opened.map_err(|error| error.into_error("list"))?;
        walk.push(tree, dir, frame);
        Ok(walk)
    }

    /// Whether this walk can go on behind `position` up to `end`.
    pub(super) fn is_at(&self, position: &[u8], end: &[u8]) -> bool {
        let reaches = self.end.is_empty() || !end.is_empty() && end <= &*self.end;
        reaches && self.position == position
    }

    /// Bytes of names held.
    pub(super) fn held_size(&self) -> usize {
        self.frames.iter().flat_map(|frame| &frame.names).map(Names::held_size).sum()
    }

    /// Closes what is open until the next page.
    pub(super) fn rest(&mut self) {
        self.top = None;
    }

    /// Takes up a walk that rested, now up to `end`. After an error it is of no use.
    pub(super) fn resume(&mut self, end: &[u8], tree: &Tree) -> Result<(), FsError> {
        if end != &*self.end {
            self.end = end.into();
        }
        let name = self.position[self.path.len()..].to_vec();
        self.reopen(tree, Lower::behind(&name))
    }

    /// Appends entries until the page holds `max_entries`. Says whether the walk is at its end.
    pub(super) fn fill(
        &mut self,
        tree: &Tree,
        lower: Lower<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<bool, ConnectorError> {
        while page.len() < max_entries {
            if let Step::AtEnd = self.step(tree, lower, page)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Handles one name, which gives at most one entry.
    fn step(
        &mut self,
        tree: &Tree,
        lower: Lower<'_>,
        page: &mut Page,
    ) -> Result<Step, ConnectorError> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(Step::AtEnd);
        };
        let names = frame.names.as_mut().expect("the directory on top has its names");
        let Some((name, kind)) = names.peek() else {
            return self.leave(tree);
        };
        self.path.extend_from_slice(name);
        names.advance();
        if !Upper::of(&self.end).admits(&self.path) {
            return Ok(Step::AtEnd);
        }
        let name_start = frame.path_len;
        let is_ignored = frame.ignores.exclude(&self.path);
        match kind {
            _ if is_ignored => {
                if lower.admits(&self.path) {
                    self.emit_skipped(SkipReason::Ignored, page);
                }
                self.path.truncate(name_start);
            }
            Kind::Dir => self.enter(tree, lower, name_start, page)?,
            _ => {
                self.look_at(tree, kind, name_start, page)?;
                self.path.truncate(name_start);
            }
        }
        Ok(Step::Going)
    }

    /// Reads names behind a cut, or goes back to the directory above.
    fn leave(&mut self, tree: &Tree) -> Result<Step, ConnectorError> {
        let frame = self.frames.last().expect("there is a directory to leave");
        let names = frame.names.as_ref().expect("the directory on top has its names");
        let result = if let Some((last, kind)) = names.cut_behind() {
            let last = last.to_vec();
            self.read_behind(tree, last, kind)
        } else {
            self.frames.pop();
            let Some(above) = self.frames.last() else {
                return Ok(Step::AtEnd);
            };
            let name = self.path.split_off(above.path_len);
            self.reopen(tree, Lower::at(&behind_dir(name)))
        };
        match result {
            Ok(()) => {}
            // Everything is gone; that is not the same as nothing being left.
            Err(FsError::Gone) if self.path.is_empty() => {
                result.map_err(|error| error.into_error("list"))?;
            }
            Err(FsError::Gone) => {
                let frame = self.frames.last_mut().expect("a directory is on top");
                frame.names = Some(Names::none());
            }
            Err(FsError::Short(_)) => result.map_err(|error| error.into_error("list"))?,
            // A listing from the cursor meets it on its way down, where it can be reported.
            Err(FsError::Denied | FsError::Broken(_)) => Err(ConnectorError::Retryable {
                operation: "list",
                message: "a directory could no longer be read halfway through".to_owned(),
            })?,
        }
        Ok(Step::Going)
    }

    /// Reads what the directory on top holds behind its name `last`.
    fn read_behind(&mut self, tree: &Tree, last: Vec<u8>, kind: Kind) -> Result<(), FsError> {
        let mut dir = self.top.take().expect("a directory with names left is open");
        let stamp = DirStamp::now(&fstat(dir.fd()?)?);
        let behind = if kind == Kind::Dir { behind_dir(last.clone()) } else { Vec::new() };
        let lower = if kind == Kind::Dir { Lower::at(&behind) } else { Lower::behind(&last) };
        let (names, _) = self.read(tree, &mut dir, lower)?;
        let frame = self.frames.last_mut().expect("a directory is on top");
        (frame.stamp, frame.names, self.top) = (stamp, Some(names), Some(dir));
        Ok(())
    }

    /// Opens the directory on top anew. Names read before are used if they still hold; else those
    /// in `lower` are read.
    fn reopen(&mut self, tree: &Tree, lower: Lower<'_>) -> Result<(), FsError> {
        self.top = None;
        let (mut dir, stat) = self.open_path(tree)?;
        let stamp = DirStamp::now(&stat);
        let frame = self.frames.last().expect("a directory is on top");
        if !frame.still_holds(&stamp) {
            let (names, _) = self.read(tree, &mut dir, lower)?;
            let frame = self.frames.last_mut().expect("a directory is on top");
            (frame.stamp, frame.names) = (stamp, Some(names));
        }
        let (frame, above) = self.frames.split_last_mut().expect("a directory is on top");
        if !tree.ignores_still_hold(&frame.ignores, &dir, frame.path_len)? {
            frame.ignores = tree.ignores(ignores_of(above), &dir, frame.path_len)?;
        }
        self.top = Some(dir);
        Ok(())
    }

    fn open_path(&self, tree: &Tree) -> Result<(OpenDir, Stat), FsError> {
        let (dir, stat) = look_into(tree.beneath.open_dir(&self.path))?;
        let is_removed = self.path.is_empty() && tree.is_removed(&stat);
        if is_removed { Err(FsError::Gone) } else { Ok((dir, stat)) }
    }

    /// Reads the names of `dir`, which is the directory at `path`.
    fn read(
        &self,
        tree: &Tree,
        dir: &mut OpenDir,
        lower: Lower<'_>,
    ) -> Result<(Names, bool), FsError> {
        tree.count_read();
        let wanted = Wanted {
            lower,
            upper: Upper::of(&self.end).below(&self.path),
            len_max: KEY_SIZE_MAX - self.path.len(),
            window_size: tree.window_size(),
        };
        Ok(Names::read(dir, wanted)?)
    }

    /// Reads all that a walk wants to know of `dir`, which is the directory at `path`, below those
    /// on the way.
    fn read_dir(
        &self,
        tree: &Tree,
        mut dir: OpenDir,
        stat: &Stat,
        lower: Lower<'_>,
    ) -> Result<(OpenDir, Frame, bool), FsError> {
        let (stamp, path_len) = (DirStamp::now(stat), self.path.len());
        let (names, any_too_long) = self.read(tree, &mut dir, lower)?;
        let ignores = tree.ignores(ignores_of(&self.frames), &dir, path_len)?;
        Ok((dir, Frame { path_len, stamp, names: Some(names), ignores }, any_too_long))
    }

    fn push(&mut self, tree: &Tree, dir: OpenDir, frame: Frame) {
        self.top = Some(dir);
        self.frames.push(frame);
        let mut held = self.held_size();
        let on_the_way = self.frames.len() - 1;
        for frame in &mut self.frames[..on_the_way] {
            if held <= 2 * tree.window_size() {
                break;
            }
            held -= frame.names.take().map_or(0, |names| names.held_size());
        }
    }
}

fn look_into(opened: Result<std::os::fd::OwnedFd, Errno>) -> Result<(OpenDir, Stat), FsError> {
    let fd = opened?;
    let stat = fstat(&fd)?;
    Ok((OpenDir::new(fd)?, stat))
}

/// The least name behind all that the directory `name`, with its final `/`, holds.
fn behind_dir(mut name: Vec<u8>) -> Vec<u8> {
    debug_assert_eq!(name.last(), Some(&b'/'));
    *name.last_mut().expect("a directory's name ends with `/`") = b'/' + 1;
    name
}
