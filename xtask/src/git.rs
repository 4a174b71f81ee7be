//! What git knows about this checkout.

use std::path::{Path, PathBuf};

use crate::command::Cmd;
use crate::failure::Result;

/// Files in which commands of ours keep their results: changing them leaves the code the same.
const RESULTS: [&str; 1] = ["bench/results"];

/// `git` on the repository of `dir`, also inside a hook, where git names another one.
fn git(dir: &Path) -> Cmd {
    Cmd::new("git").unset(&["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"]).dir(dir)
}

/// Every file that is tracked, or is new and not ignored; sorted, relative to `root`.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let list = git(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
        .stdout()?;
    let files = list.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from);
    // A file that is tracked may be gone from the tree.
    let mut files: Vec<_> = files.filter(|file| root.join(file).is_file()).collect();
    files.sort();
    Ok(files)
}

/// The code as it stands: a commit, and whether the tree differs from it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) commit: String,
    pub(crate) dirty: bool,
}

impl Identity {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let commit =
            git(root).args(["rev-parse", "--short=12", "HEAD"]).stdout()?.trim().to_owned();
        let status = git(root)
            .args(["status", "--porcelain", "--", "."])
            .args(RESULTS.map(|path| format!(":!{path}")))
            .stdout()?;
        Ok(Self { commit, dirty: !status.trim().is_empty() })
    }
}

/// The commit, marked `-dirty` when the tree differs from it.
impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.commit, if self.dirty { "-dirty" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_tree_is_marked_unless_only_results_changed() {
        let root = std::env::temp_dir().join(format!("gossip-xtask-git-{}", std::process::id()));
        let git = |args: &[&str]| {
            let author = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
            git(&root).args(author).args(args.iter().copied()).stdout().unwrap()
        };
        std::fs::create_dir_all(root.join("bench/results")).unwrap();
        git(&["init", "-q"]);
        std::fs::write(root.join("code"), "1").unwrap();
        std::fs::write(root.join("bench/results/soaks.md"), "1").unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "first", "--no-gpg-sign"]);
        let clean = Identity::read(&root).unwrap();
        assert!(!clean.dirty && clean.to_string() == clean.commit);

        std::fs::write(root.join("bench/results/soaks.md"), "2").unwrap();
        assert!(Identity::read(&root).unwrap() == clean);
        std::fs::write(root.join("new"), "1").unwrap();
        let dirty = Identity::read(&root).unwrap();
        assert_eq!(dirty.to_string(), format!("{}-dirty", clean.commit));

        std::fs::remove_file(root.join("code")).unwrap();
        assert_eq!(files(&root).unwrap(), [Path::new("bench/results/soaks.md"), Path::new("new")]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
