//! Other processes: this test binary again, as somebody else.
//!
//! A child is started with a role and a database, reports over its standard output in lines that
//! start with `@`, and waits for lines on its standard input where a test wants it to.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::{busy, caller_schema, kill, modes, processes, slots};

const ROLE: &str = "GOSSIP_SQLITE_CHILD_ROLE";
const DATABASE: &str = "GOSSIP_SQLITE_CHILD_DATABASE";

/// What every child runs. Without a role it is an empty test.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let database = std::env::var_os(DATABASE).expect("a child has a database");
    let database = Path::new(&database);
    match role.as_str() {
        "checkpoints" => kill::checkpoints_for_ever(database),
        "claims-and-waits" => slots::claims_and_waits(database),
        "works" => processes::works(database),
        "holds" => busy::holds(database),
        "opens-and-waits" => modes::opens_and_waits(database),
        "migrates" => caller_schema::migrates(database),
        other => panic!("there is no role {other}"),
    }
}

/// Says something to the parent at once.
pub(crate) fn say(line: &str) {
    let line = format!("@{line}\n");
    std::io::stdout().lock().write_all(line.as_bytes()).expect("the parent listens");
}

/// Waits for the parent to say something, or to close the pipe.
pub(crate) fn wait_for_parent() {
    std::io::stdin().read_line(&mut String::new()).expect("a pipe can be read");
}

/// A running child; killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(role: &str, database: &Path) -> Self {
        let binary = std::env::current_exe().unwrap();
        Self::spawn(Command::new(binary), role, database)
    }

    /// As a process with this umask.
    pub(crate) fn start_with_umask(umask: &str, role: &str, database: &Path) -> Self {
        let binary = std::env::current_exe().unwrap();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("umask {umask}; exec \"$0\" \"$@\"")).arg(binary);
        Self::spawn(command, role, database)
    }

    fn spawn(mut command: Command, role: &str, database: &Path) -> Self {
        command.args(["--exact", "children::child", "--nocapture", "--test-threads=1"]);
        command.env(ROLE, role).env(DATABASE, database);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        Self { child, stdin, stdout }
    }

    /// The child's next report, or `None` at its end. A line that was cut off does not count.
    pub(crate) fn next(&mut self) -> Option<String> {
        next_line(self.stdout.as_mut().expect("nobody else listens"))
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, line: &str) {
        assert_eq!(self.next().as_deref(), Some(line));
    }

    /// Whoever wants to read while the child is being killed.
    pub(crate) fn take_output(&mut self) -> BufReader<ChildStdout> {
        self.stdout.take().expect("nobody else listens")
    }

    /// Lets a waiting child go on.
    pub(crate) fn go(&mut self) {
        self.stdin.as_mut().expect("it waits").write_all(b"\n").unwrap();
    }

    /// SIGKILL, by process id.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Closes the pipe that the child waits on, and waits for its end.
    pub(crate) fn finish(mut self) {
        self.stdin = None;
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the child failed: {status}");
    }
}

pub(crate) fn next_line(stdout: &mut BufReader<ChildStdout>) -> Option<String> {
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        // The harness's own line may stand before ours.
        if let Some((_, said)) = line.split_once('@')
            && let Some(said) = said.strip_suffix('\n')
        {
            return Some(said.to_owned());
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
