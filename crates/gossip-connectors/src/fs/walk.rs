//! A walk through a tree in the order of its keys.
//!
//! - W1: keys come out strictly ascending: names are sorted with a directory's final `/`, and
//!   nothing below a directory sorts outside of it.
//! - W2: a walk is its position. Everything else that it holds (names that were read before) is
//!   dropped when the disk shows that it may no longer be true, and read again from the position.
//! - W3: one directory is open at a time, however deep the tree, and none between pages.

use gossip_contracts::connector::{ConnectorError, Page, PageEntry, SkipReason};
use gossip_contracts::coordination::MAX_KEY_SIZE;
use rustix::fs::{AtFlags, FileType, Stat, fstat, statat};
use rustix::io::Errno;

use super::beneath::open_child_dir;
use super::bounds::{Lower, Upper};
use super::names::{Kind, Names, OpenDir, WINDOW_SIZE, Wanted};
use super::stamp::{Since, Stamp};
use super::tree::Tree;
use super::trouble::Trouble;
use super::version::{self, Version};

/// Most bytes of names that a walk keeps of the directories on its way.
const HELD_SIZE_MAX: usize = 2 * WINDOW_SIZE;

/// Names may be used although their directory has changed since, if there are more than this and
/// only a small part of them has been passed: else a huge directory in which something happens all
/// the time would be read anew for every page.
const CHANGED_LEN_MIN: usize = 4096;
const CHANGED_PARTS: usize = 16;

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

/// A directory on the way.
struct Frame {
    /// Length of its key.
    path_len: usize,
    stamp: Stamp,
    /// None if they had to make room. The one on top has them.
    names: Option<Names>,
}

enum Step {
    Going,
    AtEnd,
}

/// What became of a directory that was to be entered.
enum Entered {
    Dir { dir: OpenDir, stamp: Stamp, names: Names, any_too_long: bool },
    Excluded(SkipReason),
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
        let opened = walk.open_path(tree).and_then(|(mut dir, stat)| {
            if stat.st_nlink == 0 {
                // Removed while it was open: it would look like an empty one.
                return Err(Trouble::Gone);
            }
            let stamp = Stamp::now(&stat);
            let (names, _) = walk.read(&mut dir, lower)?;
            Ok((dir, stamp, names))
        });
        let (dir, stamp, names) = opened.map_err(|trouble| trouble.into_error("list"))?;
        walk.push(dir, stamp, names);
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
    pub(super) fn resume(&mut self, end: &[u8], tree: &Tree) -> Result<(), Trouble> {
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
        match kind {
            Kind::Dir => self.enter(tree, lower, name_start, page)?,
            _ => {
                self.look_at(tree, kind, name_start, page)?;
                self.path.truncate(name_start);
            }
        }
        Ok(Step::Going)
    }

    /// Gives the entry of something at `path` that is not a directory.
    fn look_at(
        &mut self,
        tree: &Tree,
        kind: Kind,
        name_start: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        match kind {
            Kind::Link => self.give_skipped(SkipReason::Link, page),
            Kind::Special => self.give_skipped(SkipReason::Special, page),
            Kind::File | Kind::Dir => match self.stat(name_start) {
                Ok(stat) => self.give(tree, &stat, page),
                Err(trouble) => {
                    if let Some(reason) = trouble.skip()? {
                        self.give_skipped(reason, page);
                    }
                }
            },
        }
        Ok(())
    }

    fn stat(&self, name_start: usize) -> Result<Stat, Trouble> {
        let top = self.top.as_ref().expect("a directory with names left is open");
        Ok(statat(top.fd()?, &self.path[name_start..], AtFlags::SYMLINK_NOFOLLOW)?)
    }

    fn give(&mut self, tree: &Tree, stat: &Stat, page: &mut Page) {
        // Not what the directory said: something may have taken its place.
        match Kind::of(FileType::from_raw_mode(stat.st_mode)) {
            Kind::Link => self.give_skipped(SkipReason::Link, page),
            Kind::Special => self.give_skipped(SkipReason::Special, page),
            // The file is gone, and a directory has another key.
            Kind::Dir => {}
            Kind::File => {
                if let Some(reason) = tree.excludes_stat(stat) {
                    return self.give_skipped(reason, page);
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

    fn give_skipped(&mut self, reason: SkipReason, page: &mut Page) {
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
    fn enter(
        &mut self,
        tree: &Tree,
        lower: Lower<'_>,
        name_start: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        match self.open_child(tree, lower, name_start) {
            Ok(Entered::Dir { dir, stamp, names, any_too_long }) => {
                self.push(dir, stamp, names);
                // What has no key is reported once, under the directory's own.
                if any_too_long && lower.admits(&self.path) {
                    self.give_skipped(SkipReason::KeyTooLong, page);
                }
                return Ok(());
            }
            Ok(Entered::Excluded(reason)) => {
                if lower.admits(&self.path) {
                    self.give_skipped(reason, page);
                }
            }
            Err(trouble) => {
                if let Some(reason) = trouble.skip()? {
                    self.give_unreadable_dir(lower, reason, page);
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
    ) -> Result<Entered, Trouble> {
        if let Some(reason) = tree.excludes_dir(&self.path) {
            return Ok(Entered::Excluded(reason));
        }
        let top = self.top.as_ref().expect("a directory with names left is open");
        let name = &self.path[name_start..self.path.len() - 1];
        let (mut dir, stat) = look_into(open_child_dir(top.fd()?, name))?;
        if let Some(reason) = tree.excludes_stat(&stat) {
            return Ok(Entered::Excluded(reason));
        }
        let stamp = Stamp::now(&stat);
        let (names, any_too_long) = self.read(&mut dir, lower.below(&self.path))?;
        Ok(Entered::Dir { dir, stamp, names, any_too_long })
    }

    /// Reports the directory at `path`: under its own key, or, if the listing starts inside of it,
    /// under a key of no file directly behind that start.
    fn give_unreadable_dir(&mut self, lower: Lower<'_>, reason: SkipReason, page: &mut Page) {
        if lower.admits(&self.path) {
            return self.give_skipped(reason, page);
        }
        // No name holds a NUL: one in the cursor says that this was reported.
        let is_inside = lower.key().len() > self.path.len() && lower.key().len() < MAX_KEY_SIZE;
        if !is_inside || lower.key().contains(&0) {
            return;
        }
        self.path.clear();
        self.path.extend_from_slice(lower.key());
        self.path.push(0);
        if Upper::of(&self.end).admits(&self.path) {
            self.give_skipped(reason, page);
        }
    }

    /// Reads names behind a cut, or goes back to the directory above.
    fn leave(&mut self, tree: &Tree) -> Result<Step, ConnectorError> {
        let frame = self.frames.last().expect("there is a directory to leave");
        let names = frame.names.as_ref().expect("the directory on top has its names");
        let result = if let Some((last, kind)) = names.cut_behind() {
            let last = last.to_vec();
            self.read_behind(last, kind)
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
            Err(Trouble::Gone) => {
                let frame = self.frames.last_mut().expect("a directory is on top");
                frame.names = Some(Names::none());
            }
            Err(Trouble::Short(_)) => result.map_err(|trouble| trouble.into_error("list"))?,
            // A listing from the cursor meets it on its way down, where it can be reported.
            Err(Trouble::Denied | Trouble::Broken(_)) => Err(ConnectorError::Retryable {
                operation: "list",
                message: "a directory could no longer be read halfway through".to_owned(),
            })?,
        }
        Ok(Step::Going)
    }

    /// Reads what the directory on top holds behind its name `last`.
    fn read_behind(&mut self, last: Vec<u8>, kind: Kind) -> Result<(), Trouble> {
        let mut dir = self.top.take().expect("a directory with names left is open");
        let stamp = Stamp::now(&fstat(dir.fd()?)?);
        let behind = if kind == Kind::Dir { behind_dir(last.clone()) } else { Vec::new() };
        let lower = if kind == Kind::Dir { Lower::at(&behind) } else { Lower::behind(&last) };
        let (names, _) = self.read(&mut dir, lower)?;
        let frame = self.frames.last_mut().expect("a directory is on top");
        (frame.stamp, frame.names, self.top) = (stamp, Some(names), Some(dir));
        Ok(())
    }

    /// Opens the directory on top anew. Names read before are used if they still hold; else those
    /// in `lower` are read.
    fn reopen(&mut self, tree: &Tree, lower: Lower<'_>) -> Result<(), Trouble> {
        self.top = None;
        let (mut dir, stat) = self.open_path(tree)?;
        let stamp = Stamp::now(&stat);
        let frame = self.frames.last().expect("a directory is on top");
        if !frame.still_holds(&stamp) {
            let (names, _) = self.read(&mut dir, lower)?;
            let frame = self.frames.last_mut().expect("a directory is on top");
            (frame.stamp, frame.names) = (stamp, Some(names));
        }
        self.top = Some(dir);
        Ok(())
    }

    fn open_path(&self, tree: &Tree) -> Result<(OpenDir, Stat), Trouble> {
        look_into(tree.beneath.open_dir(&self.path))
    }

    /// Reads the names of `dir`, which is the directory at `path`.
    fn read(&self, dir: &mut OpenDir, lower: Lower<'_>) -> Result<(Names, bool), Trouble> {
        let wanted = Wanted {
            lower,
            upper: Upper::of(&self.end).below(&self.path),
            len_max: MAX_KEY_SIZE - self.path.len(),
            window_size: WINDOW_SIZE,
        };
        Ok(Names::read(dir, wanted)?)
    }

    fn push(&mut self, dir: OpenDir, stamp: Stamp, names: Names) {
        self.top = Some(dir);
        self.frames.push(Frame { path_len: self.path.len(), stamp, names: Some(names) });
        let mut held = self.held_size();
        let on_the_way = self.frames.len() - 1;
        for frame in &mut self.frames[..on_the_way] {
            if held <= HELD_SIZE_MAX {
                break;
            }
            held -= frame.names.take().map_or(0, |names| names.held_size());
        }
    }
}

impl Frame {
    fn still_holds(&self, now: &Stamp) -> bool {
        let Some(names) = &self.names else {
            return false;
        };
        match self.stamp.compare(now) {
            Since::Unchanged => true,
            Since::Replaced => false,
            Since::Changed => {
                names.len() > CHANGED_LEN_MIN && names.passed() < names.len() / CHANGED_PARTS
            }
        }
    }
}

fn look_into(opened: Result<std::os::fd::OwnedFd, Errno>) -> Result<(OpenDir, Stat), Trouble> {
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
