//! Running `gossip`, and something to run it on.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gossip_engine::template;
use serde_json::Value;

/// A token with a right checksum that nobody ever gave out.
pub(crate) fn token(seed: u64) -> String {
    template::expand("ghp_{base62:30}{crc32}", seed).unwrap().text
}

/// A tree, and a state directory that does not exist yet.
pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) tree: PathBuf,
    pub(crate) state: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let state = dir.path().join("state");
        Self { dir, tree, state }
    }

    /// The same tree with another state directory.
    pub(crate) fn with_state(other: &Self, state: &str) -> Self {
        let (tree, state) = (other.tree.clone(), other.path(state));
        Self { dir: tempfile::tempdir().unwrap(), tree, state }
    }

    /// With one token in `config/app.env`, and a file without.
    pub(crate) fn with_a_token() -> Self {
        let place = Self::new();
        place.write("config/app.env", format!("GITHUB_TOKEN={}\n", token(1)));
        place.write("notes.txt", "nothing to see here\n");
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// It runs in the tree, so paths are shown from there.
    pub(crate) fn command(&self) -> Command {
        let mut command = gossip(&self.state);
        command.current_dir(&self.tree);
        command
    }

    /// Runs it with these words; `TREE` is the tree.
    pub(crate) fn run(&self, words: &str) -> Ran {
        let mut command = self.command();
        for word in words.split_whitespace() {
            if word == "TREE" {
                command.arg(&self.tree)
            } else {
                command.arg(word)
            };
        }
        Ran::of(command.output().unwrap(), words)
    }
}

pub(crate) fn gossip(state: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gossip"));
    command.env("GOSSIP_STATE_DIR", state).env_remove("RUST_LOG");
    command
}

/// `PATH` with `gossip` on it.
pub(crate) fn path_with_gossip() -> std::ffi::OsString {
    let program = Path::new(env!("CARGO_BIN_EXE_gossip")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [program.to_owned()].into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(paths).unwrap()
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Ran {
    what: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output, what: &str) -> Self {
        Self {
            what: what.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "`gossip {}`: {self:?}", self.what);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "`{part}` is not in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "`{part}` is not in {self:?}");
        self
    }

    pub(crate) fn json(&self) -> Vec<Value> {
        match serde_json::from_str(&self.stdout).unwrap() {
            Value::Array(values) => values,
            other => panic!("{other}"),
        }
    }

    /// The lines of findings in a report for people; their contexts are indented.
    pub(crate) fn finding_lines(&self) -> Vec<&str> {
        finding_lines(&self.stdout)
    }

    pub(crate) fn jsonl(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A zip archive of these files.
pub(crate) fn zip_of(files: &[(impl AsRef<str>, impl AsRef<[u8]>)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in files {
        zip.start_file(name.as_ref(), zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_ref()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The lines of findings in a report for people.
pub(crate) fn finding_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with(' ')).collect()
}
