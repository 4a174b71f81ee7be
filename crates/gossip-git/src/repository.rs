//! Opening a repository, and what a run over it begins with.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::refs::TargetRef;

use crate::objects::{ObjectError, Objects};
use crate::plan::{TipFile, Tips};
use crate::select::Selection;

/// Why a repository cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is none.
    #[error("{}: not a git repository: {message}", path.display())]
    NotARepository {
        /// The path as given.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// Its references are kept in a way that cannot be read.
    #[error(
        "{}: its references are in a reftable, which gossip cannot read; `git -C {} refs migrate \
         --ref-format=files` (git 2.46 or later) makes files of them", path.display(), path.display()
    )]
    Reftable {
        /// The path as given.
        path: PathBuf,
    },
    /// A revision does not exist, or is not what is needed here.
    #[error(
        "{revision}: there is no such revision, or more than one; `git rev-parse {revision}` says more"
    )]
    NoSuchRevision {
        /// The revision as given.
        revision: String,
    },
    /// Its references or its index cannot be read.
    #[error("the repository's {what}: {message}")]
    Damaged {
        /// What cannot be read.
        what: &'static str,
        /// What is wrong with it.
        message: String,
    },
    /// Its objects cannot be listed.
    #[error("the repository's objects: {0}")]
    Io(io::Error),
}

impl From<ObjectError> for OpenError {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Io(error) => Self::Io(error),
            error => Self::Damaged { what: "objects", message: error.to_string() },
        }
    }
}

/// A repository. References are read when they are asked for.
pub(crate) struct Repository {
    path: PathBuf,
    objects: Objects,
}

impl Repository {
    /// Opens the repository at `path`: a work tree, a git directory or a bare repository.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let repository = open(path)?;
        let store = repository.objects.store_ref();
        let damaged = |error: gix::Error| damaged("alternates", &error);
        let mut dirs = vec![store.path().to_owned()];
        dirs.extend(store.alternate_db_paths().map_err(damaged)?);
        dirs.dedup();
        let objects = Objects::open(dirs, repository.object_hash())?;
        Ok(Self { path: repository.git_dir().to_owned(), objects })
    }

    pub(crate) const fn objects(&self) -> &Objects {
        &self.objects
    }

    /// What a run begins with, as the references are now. `index` is in place of the repository's own.
    pub(crate) fn tips(
        &self,
        selection: &Selection,
        index: Option<&Path>,
    ) -> Result<Tips, OpenError> {
        // Packs may have come with the references.
        self.objects.refresh()?;
        let repository = open(&self.path)?;
        let mut tips = Tips { shallow: shallow(&repository)?, ..Tips::default() };
        match selection {
            Selection::History { branch, since } => {
                tips.include = match branch {
                    Some(branch) => vec![revision(&repository, branch)?],
                    None => references(&repository)?,
                };
                if let Some(since) = since {
                    tips.exclude.push(revision(&repository, since)?);
                    tips.excludes_by_request = true;
                }
            }
            Selection::Staged => {
                let path = index.map_or_else(|| repository.index_path(), Path::to_owned);
                let (hash, options) = (repository.object_hash(), Default::default());
                let index = gix::index::File::at_or_default(path, hash, false, options);
                let index = index.map_err(|error| damaged("index", &error))?;
                tips.files = changed(&head_files(&repository)?, &index);
            }
            Selection::Diff(since) => {
                let before = tree_files(&repository, since)?;
                tips.files = changed(&files_of(&before), &tree_files(&repository, "HEAD")?);
            }
        }
        Ok(tips)
    }
}

fn damaged(what: &'static str, error: &impl ToString) -> OpenError {
    OpenError::Damaged { what, message: error.to_string() }
}

/// Neither the environment nor the user's configuration decides what is read.
fn open(path: &Path) -> Result<gix::Repository, OpenError> {
    let opened = gix::open_opts(path, gix::open::Options::isolated());
    let repository = opened.map_err(|error| OpenError::NotARepository {
        path: path.to_owned(),
        message: error.to_string(),
    })?;
    let format = repository.config_snapshot().string("extensions.refStorage");
    match format {
        Some(format) if format.eq_ignore_ascii_case(b"reftable") => {
            Err(OpenError::Reftable { path: path.to_owned() })
        }
        _ => Ok(repository),
    }
}

fn revision(repository: &gix::Repository, revision: &str) -> Result<ObjectId, OpenError> {
    let parsed = repository.rev_parse_single(revision);
    // The library's own words repeat the input in its own notation.
    Ok(parsed.map_err(|_| no_such_revision(revision))?.detach())
}

fn no_such_revision(revision: &str) -> OpenError {
    OpenError::NoSuchRevision { revision: revision.to_owned() }
}

/// Where all references point, and the HEADs of all work trees.
fn references(repository: &gix::Repository) -> Result<Vec<ObjectId>, OpenError> {
    let failed = |error: gix::Error| damaged("references", &error);
    let mut ids = Vec::new();
    let platform = repository.references().map_err(failed)?;
    for reference in platform.all().map_err(failed)? {
        let reference = reference.map_err(|error| damaged("references", &error))?;
        // What a symbolic one names is a reference, too.
        if let TargetRef::Object(id) = reference.target() {
            ids.push(id.to_owned());
        }
    }
    let heads = repository.worktrees_including_main().map_err(failed)?;
    for worktree in heads.flatten().chain([repository.clone()]) {
        // One without commits has none.
        ids.extend(worktree.head_id().ok().map(gix::Id::detach));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

fn shallow(repository: &gix::Repository) -> Result<Vec<ObjectId>, OpenError> {
    let commits = repository.shallow_commits().map_err(|error| damaged("shallow file", &error))?;
    let mut commits: Vec<ObjectId> =
        commits.map(|commits| commits.iter().copied().collect()).unwrap_or_default();
    commits.sort_unstable();
    Ok(commits)
}

/// The files of a commit, or of what else has files.
fn tree_files(repository: &gix::Repository, spec: &str) -> Result<gix::index::State, OpenError> {
    let tree = revision(repository, &format!("{spec}^{{tree}}"));
    let tree = tree.map_err(|_| no_such_revision(spec))?;
    let files = repository.index_from_tree(&tree).map_err(|error| damaged("trees", &error))?;
    Ok(files.into())
}

/// None before the first commit.
fn head_files(repository: &gix::Repository) -> Result<HashMap<Vec<u8>, ObjectId>, OpenError> {
    if repository.head_id().is_err() {
        return Ok(HashMap::new());
    }
    Ok(files_of(&tree_files(repository, "HEAD")?))
}

fn files_of(index: &gix::index::State) -> HashMap<Vec<u8>, ObjectId> {
    let files = index.entries().iter();
    files.map(|entry| (entry.path(index).to_vec(), entry.id)).collect()
}

/// The files of `after` that are not the same in `before`.
fn changed(before: &HashMap<Vec<u8>, ObjectId>, after: &gix::index::State) -> Vec<TipFile> {
    use gix::index::entry::{Flags, Mode};
    let files = after.entries().iter().filter(|entry| {
        let has_content = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK);
        has_content && !entry.flags.contains(Flags::INTENT_TO_ADD)
    });
    let files = files.map(|entry| {
        let path = entry.path(after).to_vec();
        let base = before.get(&path).copied();
        (path, entry.id, base)
    });
    files.filter(|(_, id, base)| *base != Some(*id)).collect()
}
