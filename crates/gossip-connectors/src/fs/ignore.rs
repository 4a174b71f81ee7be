//! Which paths the `.gitignore` files of the tree exclude.
//!
//! The rules are git's: the file nearest to a path decides, the last line in it that matches wins,
//! and what lies below an excluded directory stays excluded, because nobody looks there. Only files
//! inside the tree count. Paths in `.git` are never excluded: git's rules are about the work tree,
//! and `.git/config` may hold a secret.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ::ignore::Match;
use ::ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, FileType, fstat, statat};

use super::beneath::open_child_file;
use super::error::FsError;
use super::names::OpenDir;
use super::version::{self, Version};

const FILE_NAME: &[u8] = b".gitignore";

/// A larger file is nobody's list of rules, and is not obeyed: to scan more is the safe side.
const FILE_SIZE_MAX: u64 = 1 << 20;

/// What holds in one directory and below it.
#[derive(Clone, Default)]
pub(super) struct Ignores(Option<Arc<Rules>>);

/// The rules of one file, and those above.
struct Rules {
    above: Ignores,
    /// Length of the key of the directory that holds the file.
    path_len: usize,
    version: Version,
    matcher: Gitignore,
}

impl Ignores {
    pub(super) const NONE: Self = Self(None);

    /// What holds in `dir`, whose key has `path_len` bytes, below directories where `above` holds.
    pub(super) fn read(above: &Self, dir: &OpenDir, path_len: usize) -> Result<Self, FsError> {
        let Some(file) = open(dir)? else {
            return Ok(above.clone());
        };
        let mut text = Vec::new();
        if (&file.file).take(FILE_SIZE_MAX).read_to_end(&mut text).is_err() {
            // As if it could not be opened: to scan more is the safe side.
            return Ok(above.clone());
        }
        let matcher = parse(&text);
        let rules = Rules { above: above.clone(), path_len, version: file.version, matcher };
        Ok(Self(Some(Arc::new(rules))))
    }

    /// Whether `dir`, whose key has `path_len` bytes and for which these were read, still says so.
    pub(super) fn still_hold(&self, dir: &OpenDir, path_len: usize) -> Result<bool, FsError> {
        let own = self.0.as_ref().filter(|rules| rules.path_len == path_len);
        let now = match statat(dir.fd()?, FILE_NAME, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_list(&stat) => Some(Version::of(&stat)),
            _ => None,
        };
        Ok(own.map(|rules| rules.version) == now)
    }

    /// Whether `key` is excluded; a directory's key ends in `/`.
    pub(super) fn exclude(&self, key: &[u8]) -> bool {
        if self.0.is_none() || is_in_git_dir(key) {
            return false;
        }
        let (path, is_dir) = match key.strip_suffix(b"/") {
            Some(path) => (path, true),
            None => (key, false),
        };
        let mut next = self.0.as_deref();
        while let Some(rules) = next {
            let below = Path::new(OsStr::from_bytes(&path[rules.path_len..]));
            match rules.matcher.matched(below, is_dir) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => next = rules.above.0.as_deref(),
            }
        }
        false
    }
}

struct ListFile {
    file: File,
    version: Version,
}

/// The file of rules in `dir`, if there is one that can be read. Not through a link: git does not
/// follow one here either.
fn open(dir: &OpenDir) -> Result<Option<ListFile>, FsError> {
    let fd = match open_child_file(dir.fd()?, FILE_NAME) {
        Ok(fd) => fd,
        Err(errno) => {
            return match FsError::from(errno) {
                short @ FsError::Short(_) => Err(short),
                // It is listed with the others; what it says cannot be known.
                _ => Ok(None),
            };
        }
    };
    let stat = fstat(&fd)?;
    Ok(is_list(&stat).then(|| ListFile { file: fd.into(), version: Version::of(&stat) }))
}

fn is_list(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && version::size(stat) <= FILE_SIZE_MAX
}

/// Lines that are no text or no pattern exclude nothing.
fn parse(text: &[u8]) -> Gitignore {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = str::from_utf8(line) {
            // A line that is no pattern is left out of the builder.
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn is_in_git_dir(key: &[u8]) -> bool {
    key.split(|&byte| byte == b'/').any(|name| name == b".git")
}
