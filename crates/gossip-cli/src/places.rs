//! Where a finding is: as seen from where the command runs, and from the root of its repository.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use gossip_runtime::Versions;

use crate::git;
use crate::mask::masked;
use crate::source::{Target, parse_names};

/// Turns the paths of a target's items into those that reports show. What is no file has a name
/// already.
pub(crate) struct Places {
    roots: Vec<Root>,
    /// Items of several places carry theirs in their paths.
    is_one: bool,
    /// What the keys of files in a work tree begin with, if it is scanned with its history.
    work_trees: Vec<Vec<u8>>,
    /// Where the command runs.
    here: PathBuf,
}

/// A directory tree, or one file.
struct Root {
    path: PathBuf,
    is_file: bool,
    /// What paths in fingerprints and SARIF are relative to.
    base: PathBuf,
}

impl Places {
    /// For the target of this name.
    pub(crate) fn of(target: &[u8]) -> Self {
        let names = parse_names(target);
        let names = names.unwrap_or_else(|| vec![target]);
        // Files and history of one repository are one place.
        let is_one = names.len() == 1 || Target::is_one_place(&names);
        let root = |name| {
            let tree = Target::parse_name(name).map(|(root, _)| root);
            tree.or_else(|| git::parse_name(name).map(|(root, _)| root))
        };
        let histories: Vec<PathBuf> =
            names.iter().filter_map(|name| git::parse_name(name).map(|(root, _)| root)).collect();
        let is_work_tree = |name: &[u8]| {
            let root = Target::parse_name(name).map(|(root, _)| root);
            root.is_some_and(|root| histories.contains(&root) && !git::is_bare(&root))
        };
        let work_trees = names.iter().zip(0_u16..).filter(|(name, _)| is_work_tree(name));
        let work_trees = work_trees.map(|(_, part)| part.to_be_bytes().into()).collect();
        let roots = names.into_iter().filter_map(root);
        let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).unwrap_or_default();
        Self { roots: roots.map(Root::new).collect(), is_one, work_trees, here }
    }

    /// How versions of files are reported.
    pub(crate) fn versions(&self, is_each_reported: bool) -> Versions {
        Versions { is_each_reported, work_trees: self.work_trees.clone() }
    }

    /// The directory trees and files that were scanned.
    pub(crate) fn roots(&self) -> Vec<&Path> {
        self.roots.iter().map(|root| root.path.as_path()).collect()
    }

    /// The directories that may hold an ignore file: those of the roots, and those above them up to
    /// the roots of their repositories.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let mut directories: Vec<_> =
            self.roots.iter().flat_map(|root| directories_above(&root.path)).collect();
        directories.sort();
        directories.dedup();
        directories
    }

    /// As seen from where the command runs: relative if it is below that.
    pub(crate) fn as_seen(&self, path: &[u8]) -> Vec<u8> {
        match self.whole(path) {
            Some((whole, _)) => below(&whole, &self.here),
            None => path.to_vec(),
        }
    }

    /// From the root of the repository, or of what was scanned: the same on every machine.
    pub(crate) fn in_repository(&self, path: &[u8]) -> Vec<u8> {
        match self.whole(path) {
            Some((whole, root)) => below(&whole, &root.base),
            None => path.to_vec(),
        }
    }

    /// The same without secrets: what is made of it, and written, has none.
    pub(crate) fn masked_in_repository(&self, path: &[u8]) -> Vec<u8> {
        masked(&self.in_repository(path)).into_owned()
    }

    fn whole(&self, path: &[u8]) -> Option<(PathBuf, &Root)> {
        if self.is_one {
            let root = self.roots.first()?;
            return Some((root.whole(path), root));
        }
        let root = self.roots.iter().find(|root| {
            let rest = path.strip_prefix(root.path.as_os_str().as_bytes());
            rest.is_some_and(|rest| matches!(rest, [] | [b'/' | b'!', ..]))
        })?;
        Some((PathBuf::from(std::ffi::OsStr::from_bytes(path)), root))
    }
}

impl Root {
    fn new(path: PathBuf) -> Self {
        let is_file = path.is_file();
        let dir = if is_file { path.parent().unwrap_or(&path) } else { &path };
        let base = repository_of(dir).unwrap_or(dir).to_owned();
        Self { path, is_file, base }
    }

    fn whole(&self, key: &[u8]) -> PathBuf {
        if !self.is_file {
            return self.path.join(std::ffi::OsStr::from_bytes(key));
        }
        // The key is the name; what is behind it is inside of the file.
        let name = self.path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        let inside = key.strip_prefix(name).unwrap_or_default();
        let whole = [self.path.as_os_str().as_bytes(), inside].concat();
        PathBuf::from(std::ffi::OsString::from_vec(whole))
    }
}

fn below(path: &Path, dir: &Path) -> Vec<u8> {
    path.strip_prefix(dir).unwrap_or(path).as_os_str().as_bytes().to_vec()
}

/// The nearest directory from `dir` upward that is the root of a git repository.
pub(crate) fn repository_of(dir: &Path) -> Option<&Path> {
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
        let name = |root: &Path| [b"fs:", root.as_os_str().as_bytes()].concat();
        let places =
            |root: &Path, here: &Path| Places { here: here.to_owned(), ..Places::of(&name(root)) };
        let of_tree = places(&tree, &top);
        assert_eq!(of_tree.as_seen(b"a.env"), b"repository/sub/a.env");
        assert_eq!(of_tree.in_repository(b"a.env"), b"sub/a.env");
        assert_eq!(of_tree.directories(), [top.join("repository"), tree.clone()]);
        let of_file = places(&tree.join("a.env"), Path::new("/elsewhere"));
        assert_eq!(of_file.as_seen(b"a.env"), tree.join("a.env").as_os_str().as_bytes());
        assert_eq!(of_file.in_repository(b"a.env!inner"), b"sub/a.env!inner");
        assert_eq!(Places::of(b"s3:bucket").as_seen(b"key"), b"key");
        let other = top.join("other");
        std::fs::create_dir(&other).unwrap();
        let names = [name(&other), name(&tree)]
            .map(|name| [format!("{}:", name.len()).into_bytes(), name].concat());
        let both =
            Places { here: top, ..Places::of(&[b"many:", names.concat().as_slice()].concat()) };
        let path = tree.join("a.env");
        assert_eq!(both.as_seen(path.as_os_str().as_bytes()), b"repository/sub/a.env");
        assert_eq!(both.in_repository(path.as_os_str().as_bytes()), b"sub/a.env");
        assert_eq!(both.in_repository(other.join("b").as_os_str().as_bytes()), b"b");
        assert_eq!(both.as_seen(b"stdin"), b"stdin");
    }
}
