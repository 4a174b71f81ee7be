//! Git repositories as targets.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gossip_git::{GitOptions, GitSource, Selection};
use gossip_runtime::StateDir;

use crate::failure::Failure;
use crate::say::escaped_bytes;
use crate::source::Target;

/// Where a repository's history is, if `root` is a repository's directory: its own, or that of its work
/// tree.
pub(crate) fn is_repository(root: &Path) -> bool {
    root.join(".git").exists() || is_bare(root)
}

/// Whether `root` is a repository without a work tree.
pub(crate) fn is_bare(root: &Path) -> bool {
    root.join("HEAD").is_file() && root.join("objects").is_dir() && root.join("refs").is_dir()
}

/// The objects of the repository at `root`.
pub(crate) fn open(
    root: &Path,
    selection: &Selection,
    threads: usize,
    state: &StateDir,
) -> Result<Target, Failure> {
    let mut options = GitOptions::default();
    options.selection = selection.clone();
    // As git has it: relative to where the command runs, and empty is as good as not set.
    let index = std::env::var_os("GIT_INDEX_FILE").filter(|path| !path.is_empty());
    options.index = index.map(PathBuf::from);
    options.threads = threads;
    // A run may have several repositories, and a manifest is named by the run.
    let manifests =
        state.path().join("git").join(&*blake3::hash(root.as_os_str().as_bytes()).to_hex());
    let source = GitSource::open(root, options, manifests)
        .map_err(|error| Failure::new(format!("{error}; --no-history scans its files alone")))?;
    Ok(Target {
        source: Box::new(source),
        name: name(root, selection),
        again: escaped_bytes(root.as_os_str().as_bytes()),
    })
}

/// What scans of it are remembered under: another selection is another target.
fn name(root: &Path, selection: &Selection) -> Vec<u8> {
    let text = |revision: &Option<String>| revision.clone().unwrap_or_default();
    let selection = match selection {
        Selection::Staged => "git+staged:".to_owned(),
        Selection::Diff(revision) => format!("git+diff:{revision}\0"),
        Selection::History { branch: None, since: None } => "git:".to_owned(),
        Selection::History { branch, since } => {
            format!("git+part:{}\0{}\0", text(branch), text(since))
        }
        other => unreachable!("{other:?} is not offered"),
    };
    [selection.as_bytes(), root.as_os_str().as_bytes()].concat()
}

/// The options that select this, each with a blank behind it.
pub(crate) fn options(selection: &Selection) -> String {
    let option = |name: &str, revision: &Option<String>| match revision {
        Some(revision) => format!("{name} {revision} "),
        None => String::new(),
    };
    match selection {
        Selection::Staged => "--staged ".to_owned(),
        Selection::Diff(revision) => format!("--diff {revision} "),
        Selection::History { branch, since } => {
            option("--branch", branch) + &option("--since", since)
        }
        other => unreachable!("{other:?} is not offered"),
    }
}

/// The repository and selection behind a remembered name.
pub(crate) fn parse_name(name: &[u8]) -> Option<(PathBuf, Selection)> {
    let path = |bytes| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    let word = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
    let split = |bytes: &'_ [u8]| {
        let at = bytes.iter().position(|&byte| byte == 0)?;
        Some((word(&bytes[..at])?, bytes[at + 1..].to_vec()))
    };
    if let Some(root) = name.strip_prefix(b"git:") {
        return Some((path(root), Selection::default()));
    }
    if let Some(root) = name.strip_prefix(b"git+staged:") {
        return Some((path(root), Selection::Staged));
    }
    if let Some(rest) = name.strip_prefix(b"git+diff:") {
        let (revision, root) = split(rest)?;
        return Some((path(&root), Selection::Diff(revision)));
    }
    let (branch, rest) = split(name.strip_prefix(b"git+part:")?)?;
    let (since, root) = split(&rest)?;
    let given = |revision: String| Some(revision).filter(|revision| !revision.is_empty());
    Some((path(&root), Selection::History { branch: given(branch), since: given(since) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repositorys_name_leads_back_to_it_and_to_what_of_it_is_scanned() {
        let root = Path::new("/some/where: \u{e9}");
        let history = |branch: Option<&str>, since: Option<&str>| Selection::History {
            branch: branch.map(str::to_owned),
            since: since.map(str::to_owned),
        };
        for selection in [
            history(None, None),
            history(Some("main"), None),
            history(None, Some("HEAD:x")),
            history(Some("a/b"), Some("v1")),
            Selection::Staged,
            Selection::Diff("HEAD~3".to_owned()),
        ] {
            let parsed = parse_name(&name(root, &selection));
            assert_eq!(parsed, Some((root.to_owned(), selection)));
        }
        assert_eq!(parse_name(b"fs:/x"), None);
    }
}
