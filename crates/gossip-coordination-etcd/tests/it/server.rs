//! A real etcd, owned by one test.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gossip_coordination_etcd::EtcdConfig;
use tempfile::TempDir;

/// Killed (by its pid) and removed with all its data when dropped.
pub(crate) struct EtcdServer {
    child: Child,
    client_port: u16,
    // Declared last: the process ends before its directory goes.
    dir: TempDir,
}

impl EtcdServer {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// With more arguments than those for one member on free ports.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        // A port that is free now may be taken when etcd comes to it.
        for _ in 0..10 {
            let dir = scratch_dir();
            let [client_port, peer_port] = free_ports();
            let child = spawn(dir.path(), client_port, peer_port, &arguments);
            let mut server = Self { child, client_port, dir };
            if server.is_ready() {
                return server;
            }
        }
        panic!("etcd finds no free port");
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.client_port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.client_port
    }

    /// A configuration whose namespace nobody else uses.
    pub(crate) fn config(&self) -> EtcdConfig {
        config([self.url()])
    }

    /// Whether it listens, rather than having ended because a port was taken.
    fn is_ready(&mut self) -> bool {
        let address = SocketAddr::from(([127, 0, 0, 1], self.client_port));
        let give_up_at = Instant::now() + Duration::from_secs(60);
        while Instant::now() < give_up_at {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("etcd is not ready:\n{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default()
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration for tests: a namespace of its own, and no patience.
pub(crate) fn config(endpoints: impl IntoIterator<Item = String>) -> EtcdConfig {
    use std::hash::{BuildHasher, RandomState};
    let random = RandomState::new().hash_one(0_u8);
    let mut config = EtcdConfig::new(endpoints);
    config.namespace = format!("test-{random:016x}");
    config.backoff_min = Duration::from_millis(1);
    config
}

/// In memory, where there is such a file system: tests wait for no disk.
fn scratch_dir() -> TempDir {
    let shm = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("gossip-etcd-");
    if shm.is_dir() { builder.tempdir_in(shm) } else { builder.tempdir() }.unwrap()
}

pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

fn spawn(dir: &Path, client_port: u16, peer_port: u16, arguments: &[String]) -> Child {
    let program = std::env::var_os("GOSSIP_ETCD").expect(
        "GOSSIP_ETCD is not set: run `cargo xtask test`, or set what `cargo xtask servers etcd` prints",
    );
    let log = File::options().create(true).append(true).open(dir.join("server.log")).unwrap();
    let (client, peer) =
        (format!("http://127.0.0.1:{client_port}"), format!("http://127.0.0.1:{peer_port}"));
    Command::new(program)
        .args(["--name", "one", "--log-level", "warn", "--logger", "zap"])
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}")])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("etcd does not start")
}
