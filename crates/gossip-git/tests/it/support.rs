//! Repositories made by `git`, and what `git` says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gossip_contracts::connector::{Connector, ConnectorError, NewRun, Page, RunName};
use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::RunId;
use gossip_git::{GitOptions, GitSource, Selection};
use tempfile::TempDir;

/// A repository with a work tree, and a place for manifests.
pub(crate) struct Repo {
    dir: TempDir,
    pub(crate) path: PathBuf,
    /// The time of the last commit.
    pub(crate) clock: u64,
}

impl Repo {
    pub(crate) fn new() -> Self {
        Self::with_format("sha1")
    }

    pub(crate) fn with_format(format: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("repo");
        let repo = Self { dir, path, clock: START };
        fs::create_dir(&repo.path).unwrap();
        repo.git(&["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        repo
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        git_at(&self.path, args, self.clock)
    }

    /// Runs `git`; what it says.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let output = self.command(args).stderr(Stdio::inherit()).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Commits everything; its id.
    pub(crate) fn commit(&mut self, message: &str) -> String {
        self.clock += 60;
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn source(&self) -> GitSource {
        self.source_with(GitOptions::default())
    }

    pub(crate) fn source_with(&self, options: GitOptions) -> GitSource {
        open(&self.path, &self.at("manifests"), options)
    }

    /// A source whose run 1 is planned.
    pub(crate) fn planned(&self) -> GitSource {
        let source = self.source();
        begin(&source, 1).unwrap();
        source
    }

    pub(crate) fn select(&self, selection: Selection) -> GitSource {
        let mut options = GitOptions::default();
        options.selection = selection;
        let manifests = tempfile::tempdir_in(self.dir.path()).unwrap().keep();
        let source = open(&self.path, &manifests, options);
        begin(&source, 1).unwrap();
        source
    }

    /// Every blob that is reachable, with all its paths: from the files of every commit.
    pub(crate) fn blobs(&self) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
        let mut blobs = BTreeMap::<String, BTreeSet<Vec<u8>>>::new();
        for commit in self.git(&["rev-list", "--all"]).lines() {
            let listing = self.command(&["ls-tree", "-r", "-z", commit]).output().unwrap().stdout;
            for entry in listing.split(|&byte| byte == 0).filter(|entry| !entry.is_empty()) {
                let tab = entry.iter().position(|&byte| byte == b'\t').unwrap();
                let head: Vec<_> = std::str::from_utf8(&entry[..tab]).unwrap().split(' ').collect();
                if head[1] == "blob" {
                    let paths = blobs.entry(head[2].to_owned()).or_default();
                    paths.insert(entry[tab + 1..].to_vec());
                }
            }
        }
        blobs
    }

    /// The bytes of an object, as `git cat-file` has them.
    pub(crate) fn content(&self, kind: &str, id: &str) -> Vec<u8> {
        let output = self.command(&["cat-file", kind, id]).output().unwrap();
        assert!(output.status.success(), "{id}");
        output.stdout
    }
}

const START: u64 = 1_700_000_000;

/// `git` in another repository.
pub(crate) fn git_in(path: &Path, args: &[&str]) -> Command {
    git_at(path, args, START)
}

fn git_at(path: &Path, args: &[&str], clock: u64) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(path)
        .args(["-c", "commit.gpgsign=false", "-c", "gc.auto=0", "-c", "protocol.file.allow=always"])
        .args(["-c", "maintenance.auto=false"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", path)
        .env("GIT_AUTHOR_NAME", "A. U. Thor")
        .env("GIT_AUTHOR_EMAIL", "author@example.com")
        .env("GIT_AUTHOR_DATE", format!("{clock} +0200"))
        .env("GIT_COMMITTER_NAME", "C. O. Mitter")
        .env("GIT_COMMITTER_EMAIL", "committer@example.com")
        .env("GIT_COMMITTER_DATE", format!("{clock} +0200"));
    command
}

pub(crate) fn open(repo: &Path, manifests: &Path, options: GitOptions) -> GitSource {
    GitSource::open(repo, options, manifests.to_owned()).unwrap()
}

/// Begins a run of which no earlier one has settled anything.
pub(crate) fn begin(source: &GitSource, run: u64) -> Result<(), ConnectorError> {
    begin_named(source, name(run))
}

/// A run of this number.
pub(crate) fn name(run: u64) -> RunName {
    RunName { number: RunId::from_raw(run), nonce: [1; 16] }
}

/// The same for a run of this name.
pub(crate) fn begin_named(source: &GitSource, run: RunName) -> Result<(), ConnectorError> {
    let settled = &|_: &mut dyn FnMut(&[u8], &[u8])| Ok(());
    let is_left_out = &|_: &[u8]| false;
    source.begin(NewRun { run, last: None, settled, path_class: &path_class, is_left_out })
}

/// Rules that tell `test/` from everything else.
pub(crate) fn path_class(path: &[u8]) -> Vec<u8> {
    vec![u8::from(path.starts_with(b"test/"))]
}

/// A row of a plan, read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadRow {
    pub(crate) id: String,
    pub(crate) kind: String,
    /// The first, and then the others.
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) commit: Option<String>,
    pub(crate) content: Result<Vec<u8>, String>,
}

/// All rows of a planned source, in its order.
pub(crate) fn rows(source: &GitSource) -> Vec<ReadRow> {
    let mut rows = Vec::new();
    for (key, _, size) in keys(source) {
        let origin = source.origin(&key).unwrap().unwrap();
        let content = match source.open(&key) {
            Ok(mut reader) => {
                let mut bytes = vec![0; reader.size() as usize + 1];
                let mut len = 0;
                loop {
                    match reader.read_at(len as u64, &mut bytes[len..]) {
                        Ok(0) => break,
                        Ok(read) => len += read,
                        Err(error) => panic!("{error}"),
                    }
                }
                bytes.truncate(len);
                assert_eq!(size, len as u64, "the size of {:?}", origin.object);
                Ok(bytes)
            }
            Err(error) => Err(error.to_string()),
        };
        rows.push(ReadRow {
            id: origin.object.clone(),
            kind: format!("{:?}", origin.kind),
            paths: origin.path.into_iter().chain(origin.other_paths).collect(),
            commit: origin.commit,
            content,
        });
    }
    rows
}

/// All keys with versions and sizes, page by page.
pub(crate) fn keys(source: &GitSource) -> Vec<(Vec<u8>, Vec<u8>, u64)> {
    let (mut keys, mut page) = (Vec::new(), Page::new());
    let mut last: Option<Vec<u8>> = None;
    loop {
        let cursor = CursorUpdate::new(last.as_deref(), None);
        source.list(source.key_range(), cursor, 100, &mut page).unwrap();
        for entry in page.iter() {
            assert!(last.as_deref().is_none_or(|last| last < entry.key));
            last = Some(entry.key.to_vec());
            keys.push((entry.key.to_vec(), entry.version.to_vec(), entry.size));
        }
        if page.is_last() {
            return keys;
        }
    }
}

/// Small numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}
