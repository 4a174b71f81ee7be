//! Opens paths below one directory without ever following a link.
//!
//! - B1: no link is followed, at no place of a path, whoever swaps what is on the disk meanwhile.
//!
//! Where the kernel has `openat2` it resolves a path in one call; elsewhere the path is walked name
//! by name, each opened with `O_NOFOLLOW` relative to the one before.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

/// Opened for its names. Never blocks: a directory may be swapped for a pipe.
const DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);

/// Opened for its bytes, likewise.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opened only to go on from there, which needs no right to read it where the system can say so.
#[cfg(any(target_os = "linux", target_os = "android"))]
const PASS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const PASS: OFlags = DIR;

/// Longest path that the kernel takes in one call, without its final NUL.
const PATH_SIZE_MAX: usize = 4095;

/// A directory, and the way to what is below it.
pub(super) struct Beneath {
    root: OwnedFd,
    /// Whether the kernel resolves whole paths for us.
    whole_paths: bool,
}

impl Beneath {
    pub(super) fn new(root: OwnedFd) -> Self {
        // Asked, not looked up by version: sandboxes refuse the call with errors of their own.
        let whole_paths = resolve::open(&root, b".", PASS).is_ok();
        Self { root, whole_paths }
    }

    /// Walks name by name even if the kernel could do more.
    #[cfg(test)]
    pub(super) const fn name_by_name(root: OwnedFd) -> Self {
        Self { root, whole_paths: false }
    }

    /// Opens a directory by its key: empty for the root, else with a final `/`.
    pub(super) fn open_dir(&self, key: &[u8]) -> Result<OwnedFd, Errno> {
        match key.strip_suffix(b"/") {
            None => open_name(&self.root, b".", DIR),
            Some(path) => self.open(path, DIR),
        }
    }

    /// Opens the file at `path`. What was opened may turn out to be anything but a link.
    pub(super) fn open_file(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.open(path, FILE)
    }

    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut at = None;
        let mut rest = path;
        while let Some(slash) = self.next_stop(rest) {
            let next = self.step(at.as_ref(), &rest[..slash], PASS)?;
            at = Some(next);
            rest = &rest[slash + 1..];
        }
        self.step(at.as_ref(), rest, flags)
    }

    /// Where to stop on the way along `rest`, if it is too far for one step.
    fn next_stop(&self, rest: &[u8]) -> Option<usize> {
        if !self.whole_paths {
            return rest.iter().position(|&byte| byte == b'/');
        }
        let reach = rest.get(..=PATH_SIZE_MAX)?;
        reach.iter().rposition(|&byte| byte == b'/')
    }

    fn step(&self, from: Option<&OwnedFd>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let from = from.unwrap_or(&self.root);
        if !self.whole_paths {
            return open_name(from, path, flags);
        }
        resolve::open(from, path, flags)
    }
}

/// Opens the directory at `path`, which holds no link, as a root.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, DIR, Mode::empty())
}

/// Opens the directory that holds a root that is a file.
pub(super) fn open_root_parent(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, PASS, Mode::empty())
}

/// Opens the directory called `name` in `parent`.
pub(super) fn open_child_dir(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    open_name(parent, name, DIR)
}

/// Opens the file called `name` in `parent`.
pub(super) fn open_child_file(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    open_name(parent, name, FILE)
}

fn open_name(parent: impl AsFd, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    debug_assert!(!name.contains(&b'/'), "a name is one component");
    rustix::io::retry_on_intr(|| openat(parent.as_fd(), name, flags, Mode::empty()))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod resolve {
    use super::*;
    use rustix::fs::{ResolveFlags, openat2};

    const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

    pub(super) fn open(from: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::io::retry_on_intr(|| openat2(from, path, flags, Mode::empty(), RESOLVE))
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod resolve {
    use super::*;

    pub(super) fn open(_: &OwnedFd, _: &[u8], _: OFlags) -> Result<OwnedFd, Errno> {
        Err(Errno::NOSYS)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn both(dir: &Path) -> [Beneath; 2] {
        let root = || OwnedFd::from(File::open(dir).unwrap());
        let whole = Beneath::new(root());
        if !whole.whole_paths {
            println!("this kernel has no openat2: only the walk by name is tested");
        }
        [whole, Beneath::name_by_name(root())]
    }

    #[test]
    fn no_link_is_followed_anywhere_in_a_path() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), "text").unwrap();
        symlink("a", dir.path().join("link")).unwrap();
        symlink("c", dir.path().join("a/b/link")).unwrap();
        for beneath in both(dir.path()) {
            let mut text = String::new();
            File::from(beneath.open_file(b"a/b/c").unwrap()).read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
            assert!(beneath.open_dir(b"a/b/").is_ok() && beneath.open_dir(b"").is_ok());
            for path in [&b"link/b/c"[..], b"a/b/link"] {
                let errno = beneath.open_file(path).unwrap_err();
                assert!(matches!(errno, Errno::LOOP | Errno::NOTDIR), "{errno:?}");
            }
            assert!(beneath.open_dir(b"link/").is_err());
        }
    }

    #[test]
    fn paths_longer_than_the_kernel_takes_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let name = "n".repeat(250);
        let mut at = OwnedFd::from(File::open(dir.path()).unwrap());
        let mut path = Vec::new();
        while path.len() < 5000 {
            rustix::fs::mkdirat(&at, &*name, Mode::RWXU).unwrap();
            at = open_child_dir(&at, name.as_bytes()).unwrap();
            path.extend_from_slice(name.as_bytes());
            path.push(b'/');
        }
        let create = OFlags::CREATE | OFlags::WRONLY;
        openat(&at, "file", create, Mode::RWXU).unwrap();
        for beneath in both(dir.path()) {
            assert!(beneath.open_dir(&path).is_ok());
            assert!(beneath.open_file(&[&path, &b"file"[..]].concat()).is_ok());
        }
    }
}
