//! From what the user typed to what a scan needs.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gossip_connectors::fs::{FsOptions, FsSource};
use gossip_runtime::StateDir;

use crate::args::Args;
use crate::failure::Failure;

/// A directory tree, and the name under which its scans are remembered.
pub(crate) struct Target {
    pub(crate) source: FsSource,
    pub(crate) name: Vec<u8>,
    pub(crate) root: PathBuf,
}

impl Target {
    pub(crate) fn open(path: &Path, gitignore: bool) -> Result<Self, Failure> {
        let root = path.canonicalize().map_err(|error| Failure::file(path, &error))?;
        let mut options = FsOptions::default();
        options.gitignore = gitignore;
        let source =
            FsSource::open(&root, options).map_err(|error| Failure::new(error.to_string()))?;
        // Leaving things out makes another target: its scans say nothing about this one's.
        let kind: &[u8] = if gitignore { b"fs+gitignore:" } else { b"fs:" };
        let name = [kind, root.as_os_str().as_bytes()].concat();
        Ok(Self { source, name, root })
    }

    /// The path and options behind a remembered name.
    pub(crate) fn parse_name(name: &[u8]) -> Option<(PathBuf, bool)> {
        let path = |bytes| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
        if let Some(rest) = name.strip_prefix(b"fs:") {
            return Some((path(rest), false));
        }
        name.strip_prefix(b"fs+gitignore:").map(|rest| (path(rest), true))
    }
}

pub(crate) fn state_dir(args: &Args) -> Result<StateDir, Failure> {
    let path = match &args.state_dir {
        Some(path) => path.clone(),
        None => default_state_dir().ok_or_else(|| {
            Failure::new("there is no home directory to remember scans in; give --state-dir DIR")
        })?,
    };
    Ok(StateDir::open(path)?)
}

fn default_state_dir() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let base = match variable("XDG_STATE_HOME") {
        Some(dir) => PathBuf::from(dir),
        None => Path::new(&variable("HOME")?).join(".local/state"),
    };
    Some(base.join("gossip"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_targets_name_leads_back_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for gitignore in [false, true] {
            let target = Target::open(dir.path(), gitignore).unwrap();
            assert_eq!(Target::parse_name(&target.name), Some((root.clone(), gitignore)));
        }
        assert_eq!(Target::parse_name(b"s3:bucket"), None);
    }
}
