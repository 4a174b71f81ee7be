//! A real nats-server, owned by one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use slipstream::{Connection, NatsConnection, NatsConnectionConfig};
use tempfile::TempDir;

/// Killed (by its pid) and removed with all its data when dropped.
pub(crate) struct NatsServer {
    child: Child,
    port: u16,
    arguments: Vec<String>,
    // Declared last: the process ends before its directory goes.
    dir: TempDir,
}

impl NatsServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more arguments than those for JetStream on a free port.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>();
        let child = spawn(dir.path(), -1, &arguments);
        let port = port_of(dir.path(), child.id());
        Self { child, port, arguments, dir }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Where JetStream keeps its files.
    pub(crate) fn store_dir(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The files of a server that is down, as they are now.
    pub(crate) fn copy_store(&self) -> TempDir {
        let older = tempfile::tempdir().unwrap();
        copy(&self.store_dir(), older.path());
        older
    }

    /// The files of a server that is down become those of another time.
    pub(crate) fn go_back(&self, older: &TempDir) {
        fs::remove_dir_all(self.store_dir()).unwrap();
        copy(older.path(), &self.store_dir());
    }

    pub(crate) async fn connect(&self) -> NatsConnection {
        connect(&self.url()).await
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again where it was, on the same port.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(self.dir.path(), i32::from(self.port), &self.arguments);
        assert_eq!(port_of(self.dir.path(), self.child.id()), self.port);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn connect(url: &str) -> NatsConnection {
    let connection = NatsConnection::new(NatsConnectionConfig::new(url));
    connection.connect().await.unwrap();
    connection
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let target = to.join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(&file.path(), &target);
        } else {
            fs::copy(file.path(), target).unwrap();
        }
    }
}

fn spawn(dir: &Path, port: i32, arguments: &[String]) -> Child {
    let program = std::env::var_os("GOSSIP_NATS_SERVER").expect(
        "GOSSIP_NATS_SERVER is not set: run `cargo xtask test`, or set what `cargo xtask servers nats` prints",
    );
    let log = fs::File::options().create(true).append(true).open(dir.join("server.log")).unwrap();
    Command::new(program)
        .args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js"])
        .arg("-sd")
        .arg(dir.join("data"))
        .arg("--ports_file_dir")
        .arg(dir)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("nats-server does not start")
}

/// The port that the server wrote down once it was listening.
fn port_of(dir: &Path, pid: u32) -> u16 {
    let give_up_at = Instant::now() + Duration::from_secs(60);
    while Instant::now() < give_up_at {
        let written = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).find(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.ends_with(".ports") && name.contains(&format!("_{pid}."))
        });
        let text = written.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
        // Of `nats://` or `tls://`.
        if let Some(at) = text.find("://127.0.0.1:") {
            let digits = text[at + "://127.0.0.1:".len()..].chars();
            let port: String = digits.take_while(char::is_ascii_digit).collect();
            return port.parse().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let log = fs::read_to_string(dir.join("server.log")).unwrap_or_default();
    panic!("nats-server is not ready:\n{log}");
}
