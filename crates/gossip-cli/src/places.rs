//! Where a finding is: as seen from where the command runs, and from the root of its repository.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::source::Target;

/// Turns the paths of a target's items into those that reports show.
pub(crate) enum Places {
    /// A directory tree, or one file.
    Files {
        root: PathBuf,
        is_file: bool,
        /// Where the command runs.
        here: PathBuf,
        /// What paths in fingerprints and SARIF are relative to.
        base: PathBuf,
    },
    /// Something else, whose paths are names already.
    Named,
}

impl Places {
    /// For the target of this name.
    pub(crate) fn of(target: &[u8]) -> Self {
        let Some((root, _)) = Target::parse_name(target) else { return Self::Named };
        let is_file = root.is_file();
        let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).unwrap_or_default();
        let dir = if is_file { root.parent().unwrap_or(&root) } else { &root };
        let base = repository_of(dir).unwrap_or(dir).to_owned();
        Self::Files { root, is_file, here, base }
    }

    /// What was scanned, if that is a directory tree or a file.
    pub(crate) fn root(&self) -> Option<&Path> {
        match self {
            Self::Files { root, .. } => Some(root),
            Self::Named => None,
        }
    }

    /// The directories that may hold a configuration or ignore file: that of the target, and those
    /// above it up to the root of its repository.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        match self {
            Self::Files { root, .. } => directories_above(root),
            Self::Named => Vec::new(),
        }
    }

    /// As seen from where the command runs: relative if it is below that.
    pub(crate) fn as_seen(&self, path: &[u8]) -> Vec<u8> {
        match self {
            Self::Files { here, .. } => below(&self.whole(path), here),
            Self::Named => path.to_vec(),
        }
    }

    /// From the root of the repository, or of what was scanned: the same on every machine.
    pub(crate) fn in_repository(&self, path: &[u8]) -> Vec<u8> {
        match self {
            Self::Files { base, .. } => below(&self.whole(path), base),
            Self::Named => path.to_vec(),
        }
    }

    fn whole(&self, path: &[u8]) -> PathBuf {
        match self {
            Self::Files { root, is_file: true, .. } => {
                // The key is the name; what is behind it is inside of the file.
                let name = root.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
                let inside = path.strip_prefix(name).unwrap_or_default();
                let whole = [root.as_os_str().as_bytes(), inside].concat();
                PathBuf::from(std::ffi::OsString::from_vec(whole))
            }
            Self::Files { root, .. } => root.join(std::ffi::OsStr::from_bytes(path)),
            Self::Named => PathBuf::from(std::ffi::OsStr::from_bytes(path)),
        }
    }
}

fn below(path: &Path, dir: &Path) -> Vec<u8> {
    path.strip_prefix(dir).unwrap_or(path).as_os_str().as_bytes().to_vec()
}

/// The nearest directory from `dir` upward that is the root of a git repository.
fn repository_of(dir: &Path) -> Option<&Path> {
    dir.ancestors().find(|dir| dir.join(".git").exists())
}

/// The directory of `root` and those above it, up to that of its repository; without a repository the
/// first alone, as what lies further up may be anybody's.
pub(crate) fn directories_above(root: &Path) -> Vec<PathBuf> {
    let dir = if root.is_file() { root.parent().unwrap_or(root) } else { root };
    let last = repository_of(dir).unwrap_or(dir);
    let mut directories: Vec<_> = dir.ancestors().map(Path::to_owned).collect();
    directories.truncate(dir.ancestors().take_while(|above| *above != last).count() + 1);
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_where_they_can_be() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let tree = top.join("repository/sub");
        std::fs::create_dir_all(&tree).unwrap();
        std::fs::create_dir(top.join("repository/.git")).unwrap();
        std::fs::write(tree.join("a.env"), "").unwrap();
        let places = |root: &Path, here: &Path| match Places::of(
            &[b"fs:", root.as_os_str().as_bytes()].concat(),
        ) {
            Places::Files { root, is_file, base, .. } => {
                Places::Files { root, is_file, here: here.to_owned(), base }
            }
            Places::Named => unreachable!("it is a directory"),
        };
        let of_tree = places(&tree, &top);
        assert_eq!(of_tree.as_seen(b"a.env"), b"repository/sub/a.env");
        assert_eq!(of_tree.in_repository(b"a.env"), b"sub/a.env");
        assert_eq!(of_tree.directories(), [tree.clone(), top.join("repository")]);
        let of_file = places(&tree.join("a.env"), Path::new("/elsewhere"));
        assert_eq!(of_file.as_seen(b"a.env"), tree.join("a.env").as_os_str().as_bytes());
        assert_eq!(of_file.in_repository(b"a.env!inner"), b"sub/a.env!inner");
        assert_eq!(Places::of(b"s3:bucket").as_seen(b"key"), b"key");
    }
}
