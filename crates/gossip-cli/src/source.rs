//! From what the user typed to what a scan needs.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use gossip_connectors::binary::WithBinaries;
use gossip_connectors::bytes::Bytes;
use gossip_connectors::fs::{FsOptions, FsSource};
use gossip_connectors::many::{Many, Part};
use gossip_contracts::connector::Connector;
use gossip_contracts::identity::PIPED_BYTES_KEY_V1;
use gossip_object_store::{ObjectOptions, ObjectSource};
use gossip_runtime::StateDir;

use crate::args::Args;
use crate::failure::Failure;
use crate::git;
use crate::items::shown_as;
use crate::places::repository_of;
use crate::say::{escaped_bytes, shown};
use crate::source_args::SourceArgs;

/// What is scanned, and the name under which its scans are remembered.
pub(crate) struct Target {
    pub(crate) source: Box<dyn Connector>,
    pub(crate) name: Vec<u8>,
    /// What to type after `gossip scan` to scan it again. Whoever shows it masks it.
    pub(crate) again: String,
}

/// The word for standard input.
const STDIN: &str = "-";
/// What reports call it.
const SHOWN_STDIN: &str = "stdin";

impl Target {
    pub(crate) fn is_bucket(&self) -> bool {
        ObjectSource::is_address(&self.again)
    }

    /// All that the user names, as one target. `state` has room for what comes through pipes, and `pipes`
    /// what came when it was opened before.
    pub(crate) fn open_all(
        source: &SourceArgs,
        gitignore: bool,
        threads: usize,
        pipes: &Pipes,
        state: impl Fn() -> Result<StateDir, Failure>,
    ) -> Result<Self, Failure> {
        let SourceArgs { git, .. } = source;
        let mut roots = Vec::new();
        let mut parts = Vec::new();
        let (mut buckets, mut piped) = (BTreeSet::new(), BTreeSet::new());
        for path in &source.paths {
            let word = path.to_str().unwrap_or_default();
            let is_stdin = word == STDIN || word == "/dev/stdin";
            if is_stdin || pipes.has(path) || is_pipe(path) {
                let path = if is_stdin { Path::new(SHOWN_STDIN) } else { path };
                if piped.insert(path) {
                    parts.push(Self::of_pipe(pipes.read(path, is_stdin, &state)?));
                }
            } else if ObjectSource::is_address(word) {
                buckets.insert(word);
            } else {
                let path =
                    Path::new(word.strip_prefix("file://").map_or(path.as_os_str(), OsStr::new));
                roots.push(path.canonicalize().map_err(|error| not_there(path, &error))?);
            }
        }
        let mut options = ObjectOptions::default();
        options.requests = source.requests.map_or(options.requests, usize::from);
        for url in buckets {
            parts.push(Self::open_bucket(url, &options)?);
        }
        // The files of what lies in another of them are scanned with that, once. A directory sorts before
        // what is in it.
        roots.sort();
        roots.dedup();
        let mut outermost: Option<&PathBuf> = None;
        for root in &roots {
            let is_inside = outermost.is_some_and(|above| root.starts_with(above));
            if !is_inside {
                outermost = Some(root);
            }
            let is_repository = git::is_repository(root);
            if git.wants_repository() && !is_repository {
                let inside = repository_of(root).map_or(String::new(), |repository| {
                    format!("; it is inside of {}: name that", shown(repository))
                });
                return Err(Failure::new(format!(
                    "{} is not a git repository{inside}",
                    shown(root)
                )));
            }
            let selection = git.selection().filter(|_| is_repository);
            if git.wants_files() && !is_inside {
                parts.push(Self::open(root, gitignore)?);
            }
            if let Some(selection) = selection {
                parts.push(git::open(root, &selection, threads, &state()?)?);
            }
        }
        let target = Self::of_parts(parts);
        Ok(if source.binary { target.with_binaries() } else { target })
    }

    /// Directories of repositories that the user names, each with its repository, whose history they do not
    /// name.
    pub(crate) fn parts_of_repositories(source: &SourceArgs) -> Vec<(PathBuf, PathBuf)> {
        let roots: Vec<PathBuf> =
            source.paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let wants_history = source.git.selection().is_some();
        let parts = roots.iter().filter(|root| wants_history && root.is_dir());
        let parts = parts.filter(|root| !git::is_repository(root));
        let parts = parts.filter_map(|root| Some((root.clone(), repository_of(root)?.to_owned())));
        parts.filter(|(_, repository)| !roots.contains(repository)).collect()
    }

    /// The same with binary files scanned like text.
    pub(crate) fn with_binaries(mut self) -> Self {
        self.source = Box::new(WithBinaries(self.source));
        self.again.insert_str(0, "--binary ");
        self
    }

    /// A directory tree or a file.
    pub(crate) fn open(path: &Path, gitignore: bool) -> Result<Self, Failure> {
        let root = path.canonicalize().map_err(|error| Failure::file(path, &error))?;
        let mut options = FsOptions::default();
        options.gitignore = gitignore;
        options.bare_repository = git::is_bare(&root);
        let source =
            FsSource::open(&root, options).map_err(|error| Failure::new(error.to_string()))?;
        // Leaving things out makes another target: its scans say nothing about this one's.
        let kind: &[u8] = if gitignore { b"fs+gitignore:" } else { b"fs:" };
        let name = [kind, root.as_os_str().as_bytes()].concat();
        Ok(Self {
            source: Box::new(source),
            name,
            again: escaped_bytes(root.as_os_str().as_bytes()),
        })
    }

    /// The objects of a bucket.
    fn open_bucket(url: &str, options: &ObjectOptions) -> Result<Self, Failure> {
        let source =
            ObjectSource::open(url, options).map_err(|error| Failure::new(error.to_string()))?;
        // A bucket of the same name elsewhere is another.
        let name = match endpoint() {
            Some(endpoint) => format!("{}{AT}{endpoint}", source.url()),
            None => source.url(),
        };
        let again = source.url();
        Ok(Self { source: Box::new(source), name: name.into_bytes(), again })
    }

    /// The target that a scan of before remembers under this name.
    pub(crate) fn reopen(name: &[u8], threads: usize, state: &StateDir) -> Result<Self, Failure> {
        if let Some((path, gitignore)) = Self::parse_name(name) {
            return Self::open(&path, gitignore);
        }
        if let Some((root, selection)) = git::parse_name(name) {
            return git::open(&root, &selection, threads, state);
        }
        if name.starts_with(b"stdin:") {
            return Err(Failure::new(
                "it scanned standard input, which is gone; pipe the same into `gossip scan -`, \
                 and it goes on",
            ));
        }
        if let Some(name) = str::from_utf8(name).ok().filter(|name| ObjectSource::is_address(name))
        {
            let (url, at) = name.rsplit_once(AT).map_or((name, None), |(url, at)| (url, Some(at)));
            if endpoint().as_deref() != at {
                let at = at.unwrap_or("the vendor's own");
                return Err(Failure::new(format!("its store was at another endpoint: {at}")));
            }
            return Self::open_bucket(url, &ObjectOptions::default());
        }
        let names = parse_names(name).ok_or_else(|| Failure::new("it scanned something else"))?;
        let parts = names.into_iter().map(|name| Self::reopen(name, threads, state));
        let parts: Result<Vec<Self>, Failure> = parts.collect();
        Ok(Self::of_parts(parts?))
    }

    /// Several as one, in one order.
    fn of_parts(mut parts: Vec<Self>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        parts.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&[u8]> = parts.iter().map(|part| &part.name[..]).collect();
        let is_one_place = Self::is_one_place(&names);
        let mut name = MANY.to_vec();
        let mut again = Vec::new();
        let mut sources = Vec::new();
        for part in parts {
            name.extend_from_slice(format!("{}:", part.name.len()).as_bytes());
            name.extend_from_slice(&part.name);
            let shown = shown_as(&part.name, is_one_place);
            if !again.contains(&part.again) {
                again.push(part.again);
            }
            sources.push(Part { source: part.source, shown });
        }
        Self { source: Box::new(Many::new(sources)), name, again: again.join(" ") }
    }

    /// What came through a pipe.
    fn of_pipe(bytes: Bytes) -> Self {
        // The bytes are all that makes one piped scan the same as another.
        let name = format!("stdin:{}", bytes.hash()).into_bytes();
        Self { source: Box::new(bytes), name, again: STDIN.to_owned() }
    }

    /// Whether targets of these names are of one directory: the files and the history of a repository.
    pub(crate) fn is_one_place(names: &[&[u8]]) -> bool {
        let roots: BTreeSet<_> = names.iter().map(|name| Self::root_of(name)).collect();
        roots.len() == 1
    }

    /// The directory or file behind a remembered name, if it has one.
    pub(crate) fn root_of(name: &[u8]) -> Option<PathBuf> {
        let root = Self::parse_name(name).map(|(root, _)| root);
        root.or_else(|| git::parse_name(name).map(|(root, _)| root))
    }

    /// The path and options behind the remembered name of a directory tree or a file.
    pub(crate) fn parse_name(name: &[u8]) -> Option<(PathBuf, bool)> {
        let path = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
        if let Some(rest) = name.strip_prefix(b"fs:") {
            return Some((path(rest), false));
        }
        name.strip_prefix(b"fs+gitignore:").map(|rest| (path(rest), true))
    }
}

/// What came through pipes: it comes once, however often a target is opened.
#[derive(Default)]
pub(crate) struct Pipes(RefCell<Vec<(PathBuf, Bytes)>>);

impl Pipes {
    fn has(&self, path: &Path) -> bool {
        self.0.borrow().iter().any(|(known, _)| known == path)
    }

    /// All that comes through the pipe that reports call `path`.
    fn read(
        &self,
        path: &Path,
        is_stdin: bool,
        state: impl Fn() -> Result<StateDir, Failure>,
    ) -> Result<Bytes, Failure> {
        let mut known = self.0.borrow_mut();
        if let Some((_, bytes)) = known.iter().find(|(known, _)| known == path) {
            return Ok(bytes.clone());
        }
        let failed = |error| Failure::file(path, &error);
        let state = state()?;
        let spill = || tempfile::tempfile_in(state.path());
        let key = state.tenant_key()?.derive(&PIPED_BYTES_KEY_V1);
        let mut pipe: Box<dyn Read> = if is_stdin {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(std::fs::File::open(path).map_err(failed)?)
        };
        let bytes = Bytes::read(path.as_os_str().as_bytes(), &key, &mut *pipe, spill);
        let bytes = bytes.map_err(failed)?;
        known.push((path.to_owned(), bytes.clone()));
        Ok(bytes)
    }
}

/// Whether this is a named pipe, or one that a shell has made: its bytes come once.
fn is_pipe(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Why what the user named is not scanned.
fn not_there(path: &Path, error: &std::io::Error) -> Failure {
    let word = path.to_string_lossy();
    if word.contains("://") || word.starts_with("git@") {
        let word = shown(path);
        return Failure::new(format!("{word}: an address; `git clone` it, and scan the clone"));
    }
    Failure::file(path, error)
}

/// Between the address of a bucket and the endpoint of its store.
const AT: &str = " at ";

/// An address without the user and password in it: what is remembered is shown.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Where the environment says that stores are, if it does.
fn endpoint() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let endpoint = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT"].into_iter().find_map(variable);
    endpoint.map(|endpoint| without_user(&endpoint))
}

/// Before the names of several targets that are scanned as one, each with its length.
const MANY: &[u8] = b"many:";

/// The names of the targets that are scanned as one under this name.
pub(crate) fn parse_names(name: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = name.strip_prefix(MANY)?;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let colon = rest.iter().position(|byte| *byte == b':')?;
        let len: usize = str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
        let (name, later) = rest[colon + 1..].split_at_checked(len)?;
        names.push(name);
        rest = later;
    }
    Some(names)
}

/// The target of this name as people write it after `gossip scan`.
pub(crate) fn as_typed(name: &[u8]) -> Vec<u8> {
    let names = parse_names(name).unwrap_or_else(|| vec![name]);
    let files: Vec<PathBuf> =
        names.iter().filter_map(|name| Target::parse_name(name)).map(|(root, _)| root).collect();
    let mut words: Vec<Vec<u8>> = Vec::new();
    for name in names {
        let word = if let Some((root, gitignore)) = Target::parse_name(name) {
            let option: &[u8] = if gitignore { b"--gitignore " } else { b"" };
            [option, root.as_os_str().as_bytes()].concat()
        } else if let Some((root, selection)) = git::parse_name(name) {
            let option = git::options(&selection);
            // The history is scanned with the files, unless that is all that is.
            let alone = if option.is_empty() { "--only-history " } else { "" };
            let alone = if files.contains(&root) { "" } else { alone };
            if option.is_empty() && alone.is_empty() {
                continue;
            }
            [option.as_bytes(), alone.as_bytes(), root.as_os_str().as_bytes()].concat()
        } else if name.starts_with(b"stdin:") {
            STDIN.as_bytes().to_vec()
        } else {
            name.to_vec()
        };
        words.push(word);
    }
    words.join(&b' ')
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
    use crate::git_args::GitArgs;

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

    #[test]
    fn targets_are_shown_as_they_are_typed() {
        let many = |names: &[&str]| -> Vec<u8> {
            let parts = names.iter().map(|name| format!("{}:{name}", name.len()));
            format!("many:{}", parts.collect::<String>()).into_bytes()
        };
        for (name, typed) in [
            (b"fs:/tmp/r".to_vec(), "/tmp/r"),
            (many(&["fs:/tmp/r", "git:/tmp/r"]), "/tmp/r"),
            (b"git:/tmp/r".to_vec(), "--only-history /tmp/r"),
            (
                many(&["fs+gitignore:/a", "git:/a", "git:/b.git"]),
                "--gitignore /a --only-history /b.git",
            ),
            (b"git+staged:/r".to_vec(), "--staged /r"),
            (b"git+diff:main\0/r".to_vec(), "--diff main /r"),
            (b"git+part:main\0v1\0/r".to_vec(), "--branch main --since v1 /r"),
            (b"stdin:00".to_vec(), "-"),
            (b"s3://b/x at http://localhost:9000".to_vec(), "s3://b/x at http://localhost:9000"),
        ] {
            assert_eq!(String::from_utf8(as_typed(&name)).unwrap(), typed);
        }
    }

    #[test]
    fn the_name_of_several_targets_leads_back_to_them_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        std::fs::create_dir_all(a.join("inner")).unwrap();
        std::fs::write(&b, "one file").unwrap();
        let open = |paths: &[&PathBuf]| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| (*path).clone()).collect();
            let source =
                SourceArgs { paths, git: GitArgs::default(), binary: false, requests: None };
            let no_state = || Err(Failure::new("no state"));
            Target::open_all(&source, false, 1, &Pipes::default(), no_state).unwrap()
        };
        let both = open(&[&a, &b]);
        assert_eq!(open(&[&b, &a.join("inner"), &a, &b]).name, both.name);
        let state = StateDir::open(dir.path().join("state")).unwrap();
        assert_eq!(Target::reopen(&both.name, 1, &state).unwrap().name, both.name);
        assert_eq!(open(&[&a.join("inner"), &a]).name, open(&[&a]).name);
        let typed = as_typed(&both.name);
        let [a, b] = [a, b].map(|path| path.canonicalize().unwrap());
        assert_eq!(typed, format!("{} {}", a.display(), b.display()).into_bytes());
        for cut in [&both.name[..both.name.len() - 1], b"many:", b"many:9:x", b"other"] {
            assert!(parse_names(cut).is_none_or(|names| names.is_empty()));
        }
    }
}
