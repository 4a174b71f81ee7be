//! Running other programs: the line that is run is the line that is shown, so that a reader can
//! run it again by hand.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::{Failure, OrFail, Result};

/// A program with its arguments and what it gets beyond our own environment.
pub(crate) struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(String, OsString)>,
    unset: &'static [&'static str],
    dir: Option<PathBuf>,
}

/// What a program that ran to its end said.
pub(crate) struct Captured {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Cmd {
    pub(crate) fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), args: vec![], env: vec![], unset: &[], dir: None }
    }

    /// `cargo`, as a user would call it, so that `+nightly` works.
    pub(crate) fn cargo() -> Self {
        Self::new("cargo")
    }

    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub(crate) fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(crate) fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Hides these variables of our own environment from it.
    pub(crate) fn unset(mut self, names: &'static [&'static str]) -> Self {
        self.unset = names;
        self
    }

    pub(crate) fn dir(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        for name in self.unset {
            command.env_remove(name);
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    fn cannot_start(&self, error: &std::io::Error) -> Failure {
        Failure::new(format!("cannot start `{}`: {error}", self.program.display()))
    }

    /// Runs it on our own terminal. Whether it succeeded.
    pub(crate) fn succeeds(&self) -> Result<bool> {
        println!("$ {self}");
        self.command()
            .status()
            .map(|status| status.success())
            .map_err(|error| self.cannot_start(&error))
    }

    /// Runs it on our own terminal; not succeeding is a failure that names the line.
    pub(crate) fn run(&self) -> Result<()> {
        if self.succeeds()? { Ok(()) } else { Err(Failure::new(format!("failed: {self}"))) }
    }

    /// Runs it silently and takes what it says.
    pub(crate) fn capture(&self) -> Result<Captured> {
        let output = self
            .command()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.cannot_start(&error))?;
        Ok(Captured {
            success: output.status.success(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Runs it silently and takes its standard output; not succeeding is a failure that shows the
    /// end of its standard error.
    pub(crate) fn stdout(&self) -> Result<String> {
        let captured = self.capture()?;
        if captured.success {
            return Ok(captured.stdout);
        }
        Err(Failure::new(format!("failed: {self}\n{}", last_lines(&captured.stderr, 12))))
    }

    /// Runs it and passes both its outputs through, unmodified and as they come, while `see` gets
    /// every line. Whether it succeeded.
    pub(crate) fn watch(&self, see: impl FnMut(Stream, &str) + Send) -> Result<bool> {
        println!("$ {self}");
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| self.cannot_start(&error))?;
        let stdout = child.stdout.take().expect("stdout was piped");
        let stderr = child.stderr.take().expect("stderr was piped");
        let see = std::sync::Mutex::new(see);
        let pass = |stream, line: &str| (see.lock().expect("a watcher panicked"))(stream, line);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                copy_lines(stderr, std::io::stderr(), |line| pass(Stream::Stderr, line));
            });
            copy_lines(stdout, std::io::stdout(), |line| pass(Stream::Stdout, line));
        });
        child.wait().map(|status| status.success()).or_fail(|| format!("waiting for {self}"))
    }
}

/// Where a watched line came from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

fn copy_lines(from: impl std::io::Read, mut to: impl Write, mut see: impl FnMut(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A reader of ours that went away must not end the program that we watch.
        to.write_all(&line).and_then(|()| to.flush()).ok();
        see(String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}

/// The end of `text`.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The first executable called `name` on PATH.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|path| path.is_file())
}

/// As a shell would take it.
impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_shows_as_a_shell_line() {
        let command = Cmd::cargo().args(["test", "a b", "it's"]).env("RUSTFLAGS", "-D warnings");
        assert_eq!(command.to_string(), r"RUSTFLAGS='-D warnings' cargo test 'a b' 'it'\''s'");
    }

    #[test]
    fn watching_sees_every_line_of_both_outputs_and_the_status() {
        let mut seen = Vec::new();
        let script = "printf 'one\\ntwo'; echo three >&2; exit 3";
        let success = Cmd::new("sh")
            .args(["-c", script])
            .watch(|stream, line| seen.push((stream == Stream::Stdout, line.to_owned())))
            .unwrap();
        assert!(!success);
        seen.sort();
        let expected = [(false, "three"), (true, "one"), (true, "two")];
        assert_eq!(seen, expected.map(|(out, line)| (out, line.to_owned())));
    }

    #[test]
    fn a_failed_capture_shows_the_line_and_what_it_complained_of() {
        let failure = Cmd::new("sh").args(["-c", "echo broken >&2; exit 1"]).stdout().unwrap_err();
        assert!(failure.to_string().contains("sh -c") && failure.to_string().contains("broken"));
        let missing = Cmd::new("no-such-program").capture().err().expect("it cannot start");
        assert!(missing.to_string().contains("no-such-program"));
    }
}
