//! What of a git repository is scanned, as the user types it.

use gossip_git::Selection;

/// Without any of these, a repository is scanned as its files and its history.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Git repositories")]
pub(crate) struct GitArgs {
    /// Leaves the history out, and scans the files only
    #[arg(long)]
    pub(crate) no_history: bool,

    /// Scans the history only, and not the files of the work tree
    #[arg(long, conflicts_with = "no_history")]
    pub(crate) only_history: bool,

    /// Scans what REV reaches, not what all branches, tags and other references reach
    #[arg(long, value_name = "REV", conflicts_with = "no_history")]
    pub(crate) branch: Option<String>,

    /// Leaves out what REV reaches
    #[arg(long, value_name = "REV", conflicts_with = "no_history")]
    pub(crate) since: Option<String>,

    /// Scans only what is staged for the next commit
    #[arg(long, conflicts_with_all = ["no_history", "only_history", "branch", "since", "diff"])]
    pub(crate) staged: bool,

    /// Scans only files of HEAD that differ from REV
    #[arg(long, value_name = "REV",
          conflicts_with_all = ["no_history", "only_history", "branch", "since"])]
    pub(crate) diff: Option<String>,
}

impl GitArgs {
    /// What of a repository's objects is scanned; `None` if nothing.
    pub(crate) fn selection(&self) -> Option<Selection> {
        let Self { no_history, branch, since, staged, diff, .. } = self;
        if *no_history {
            return None;
        }
        Some(match diff {
            Some(diff) => Selection::Diff(diff.clone()),
            None if *staged => Selection::Staged,
            None => Selection::History { branch: branch.clone(), since: since.clone() },
        })
    }

    /// Whether the files of the work tree are scanned.
    pub(crate) fn wants_files(&self) -> bool {
        !self.is_given() || self.no_history
    }

    /// Whether only a repository will do.
    pub(crate) fn wants_repository(&self) -> bool {
        self.is_given() && !self.no_history
    }

    fn is_given(&self) -> bool {
        self.only_history
            || self.no_history
            || self.branch.is_some()
            || self.since.is_some()
            || self.staged
            || self.diff.is_some()
    }
}
