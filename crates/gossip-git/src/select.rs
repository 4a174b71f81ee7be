//! What of a repository is read.

/// What of a repository is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selection {
    /// Everything that is reachable.
    History {
        /// From this revision only, instead of from all references.
        branch: Option<String>,
        /// But not what this revision reaches.
        since: Option<String>,
    },
    /// Files of the index that HEAD does not have.
    Staged,
    /// Files of HEAD that this revision does not have.
    Diff(String),
}

impl Selection {
    /// Whether it grows and never shrinks, and is not some files as they are at one moment.
    pub(crate) const fn is_history(&self) -> bool {
        matches!(self, Self::History { .. })
    }
}

impl Default for Selection {
    fn default() -> Self {
        Self::History { branch: None, since: None }
    }
}
