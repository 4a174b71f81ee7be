//! A directory tree, or one file, as a source.
//!
//! A key is a file's path relative to the root: names as they are on the disk, whatever their
//! bytes, with `/` between. A directory has no entry of its own; where one must be reported (see
//! below) its key ends in `/`. So walking the tree in the order of names, a directory's with its
//! `/`, is walking it in the byte order of keys.
//!
//! **Left out, and reported as skipped entries**: links, whatever they point to; pipes, sockets and
//! devices; directories and files that cannot be read; what the options exclude. Files and
//! directories whose keys would be longer than
//! [`INNER_KEY_SIZE_MAX`](crate::many::INNER_KEY_SIZE_MAX) are reported once for the
//! directory that holds them, under its key.
//!
//! **Links are never followed**, not even if one takes the place of a directory while it is being
//! read. A root that is itself a link is resolved once, when the source is opened. Mount points are
//! entered unless [`FsOptions::one_file_system`] is set; a mount that shows its own parent ends
//! where keys get too long.
//!
//! **A changing tree**: a file that exists from before a listing reads its directory until after is
//! listed. Consecutive pages share what was read of a directory as long as it does not change (a
//! very large one that changes all the time is read again a bounded number of times). A call looks
//! at as many directories as it needs to fill its page; empty ones give no entry. A directory
//! that can no longer be read while a listing is inside of it is reported under the cursor's key
//! and a NUL byte.

mod beneath;
mod bounds;
mod dir_stamp;
mod error;
mod ignore;
mod names;
mod reader;
mod split;
mod tree;
mod version;
mod walk;
mod walk_cache;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page, PageEntry,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use rustix::fs::{AtFlags, FileType, fstat, statat};
use rustix::io::Errno;

use crate::content::HeadClassifier;
// A tree may be one of several sources, whose number is before its keys.
use crate::many::INNER_KEY_SIZE_MAX as KEY_SIZE_MAX;
use beneath::{open_child_file, open_root, open_root_parent};
use bounds::{Lower, Upper};
use error::FsError;
use reader::FsReader;
use tree::Tree;
use version::Version;
use walk::Walk;
use walk_cache::WalkCache;

pub use version::is_settled;

/// What of a tree is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FsOptions {
    /// Leave out what the `.gitignore` files in the tree exclude, except in `.git`. An excluded
    /// directory is reported once. A change of the rules holds for what is entered after it.
    pub gitignore: bool,
    /// Stay on the file system of the root.
    pub one_file_system: bool,
    /// List `.git/objects` too. Without, they are left to the source that understands them; the
    /// rest of `.git` is listed like everything else.
    pub git_objects: bool,
    /// The root is a repository without a work tree: its `objects` are left out like `.git/objects`.
    pub bare_repository: bool,
    /// How many bytes of names to hold of one directory; a larger one is read in several goes. A
    /// listing holds up to two such windows while it runs, and all that rest between their pages
    /// about four. 16 MiB, which is some half a million names, unless set.
    pub window_size: usize,
}

/// No path starts with a NUL, so every key lies behind this.
const FIRST_KEY: &[u8] = b"\0";
/// A name has at most 255 bytes, so every key lies before this.
const END_KEY: &[u8] = &[0xff; 256];

impl Default for FsOptions {
    fn default() -> Self {
        Self {
            gitignore: false,
            one_file_system: false,
            git_objects: false,
            bare_repository: false,
            window_size: 16 << 20,
        }
    }
}

/// A directory tree, or one file. See the [module](self) for its keys.
pub struct FsSource {
    root: PathBuf,
    target: Target,
    walk_cache: WalkCache,
}

enum Target {
    Tree(Tree),
    /// One file: the directory that holds it, and its name there.
    File {
        parent: OwnedFd,
        name: Box<[u8]>,
    },
}

/// Why a path cannot be a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsOpenError {
    /// It cannot be opened.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a pipe, a socket or a device.
    #[error("{}: neither a directory nor a regular file", path.display())]
    NotAFile {
        /// The path as given.
        path: PathBuf,
    },
}

impl FsSource {
    /// Opens the directory or file at `root`. Links on the way to it are followed, now and never
    /// again.
    pub fn open(root: impl AsRef<Path>, options: FsOptions) -> Result<Self, FsOpenError> {
        let given = root.as_ref();
        let io_error = |source| FsOpenError::Io { path: given.to_owned(), source };
        let not_a_file = || FsOpenError::NotAFile { path: given.to_owned() };
        let root = given.canonicalize().map_err(io_error)?;
        let target = match open_root(&root) {
            Ok(fd) => {
                let stat = fstat(&fd).map_err(|errno| io_error(errno.into()))?;
                Target::Tree(Tree::new(fd, &stat, options))
            }
            Err(Errno::NOTDIR) => {
                let parent = root.parent().ok_or_else(not_a_file)?;
                let name = root.file_name().ok_or_else(not_a_file)?.as_bytes();
                let parent = open_root_parent(parent).map_err(|errno| io_error(errno.into()))?;
                let stat = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(|errno| io_error(errno.into()))?;
                if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
                    return Err(not_a_file());
                }
                Target::File { parent, name: name.into() }
            }
            Err(errno) => return Err(io_error(errno.into())),
        };
        Ok(Self { root, target, walk_cache: WalkCache::default() })
    }

    /// What was opened, with all links resolved. The path of a key is this joined with it; that of
    /// a single file is this.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How often the names of a directory have been read so far, for measuring.
    #[must_use]
    pub fn directories_read(&self) -> u64 {
        match &self.target {
            Target::Tree(tree) => tree.reads(),
            Target::File { .. } => 0,
        }
    }

    fn list_tree(
        &self,
        tree: &Tree,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        let lower = Lower::of(range, cursor);
        let saved = cursor
            .last_key()
            .filter(|last| *last == lower.key())
            .and_then(|last| self.walk_cache.take(last, range.end()))
            .and_then(|mut walk| walk.resume(range.end(), tree).is_ok().then_some(walk));
        let mut walk = match saved {
            Some(walk) => walk,
            None => Walk::start(tree, lower, range.end())?,
        };
        let is_last = walk.fill(tree, lower, max_entries, page)?;
        page.finish(is_last, None);
        if !is_last && !page.is_empty() {
            self.walk_cache.put(walk, 4 * tree.window_size());
        }
        Ok(())
    }
}

impl Connector for FsSource {
    fn capabilities(&self) -> Capabilities {
        Capabilities { resume_tokens: false, range_reads: true, split_points: true, versions: true }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(FIRST_KEY, END_KEY, b"")
    }

    fn classifier(&self) -> &dyn Classifier {
        &HeadClassifier
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        page.clear();
        let listed = match &self.target {
            Target::Tree(tree) => self.list_tree(tree, range, cursor, max_entries, page),
            Target::File { parent, name } => {
                list_file(parent, name, range, cursor, max_entries, page)
            }
        };
        listed.inspect_err(|_| page.clear())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let opened = match &self.target {
            Target::Tree(tree) if is_path(key) => tree.beneath.open_file(key),
            Target::File { parent, name } if key == &**name => open_child_file(parent, name),
            _ => return Err(ConnectorError::NotFound { operation: "open" }),
        };
        Ok(Box::new(FsReader::new(opened)?))
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        is_settled(version, opened_at_ms)
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        let (lower, upper) = (Lower::of(range, cursor), Upper::of(range.end()));
        match &self.target {
            Target::Tree(tree) if want > 0 => split::split_points(tree, lower, upper, want)
                .map_err(|error| error.into_error("split_points")),
            _ => Ok(Vec::new()),
        }
    }
}

/// The kind of target and nothing private.
impl fmt::Debug for FsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.target {
            Target::Tree(_) => "directory",
            Target::File { .. } => "file",
        };
        f.debug_struct("FsSource").field("target", &kind).finish_non_exhaustive()
    }
}

/// The listing of a single file.
fn list_file(
    parent: &OwnedFd,
    name: &[u8],
    range: ShardSpecRef<'_>,
    cursor: CursorUpdate<'_>,
    max_entries: usize,
    page: &mut Page,
) -> Result<(), ConnectorError> {
    let is_inside = Lower::of(range, cursor).admits(name) && Upper::of(range.end()).admits(name);
    if is_inside && max_entries == 0 {
        page.finish(false, None);
        return Ok(());
    }
    if is_inside {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| FsError::from(errno).into_error("list"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(ConnectorError::NotFound { operation: "list" });
        }
        let version = Version::of(&stat);
        let (version, size) = (version.as_bytes(), version::size(&stat));
        page.push(PageEntry { key: name, version, size, skip: None });
    }
    page.finish(true, None);
    Ok(())
}

/// Whether a listing could give this key for a file: names between single slashes.
fn is_path(key: &[u8]) -> bool {
    !key.contains(&0)
        && key.split(|&byte| byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}
