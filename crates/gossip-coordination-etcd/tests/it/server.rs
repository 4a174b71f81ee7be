//! Real etcd members, owned by one test.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use etcd_client::{Client, ConnectOptions};
use gossip_coordination_etcd::EtcdConfig;
use tempfile::TempDir;
use tokio::runtime::Builder;

/// Killed (by its pid) and removed with all its data when dropped.
pub(crate) struct EtcdServer {
    child: Child,
    scheme: &'static str,
    client_port: u16,
    /// How it is asked whether it is ready.
    options: Option<ConnectOptions>,
    // Declared last: the process ends before its directory goes.
    dir: TempDir,
}

impl EtcdServer {
    /// One member by itself.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with `arguments` of its own.
    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let [server] = start_all("http", None, arguments);
        server
    }

    /// One that is reached over TLS, with `arguments` that name its certificates.
    pub(crate) fn start_tls(options: ConnectOptions, arguments: &[&str]) -> Self {
        let [server] = start_all("https", Some(&options), arguments);
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.client_port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.client_port
    }

    /// A configuration whose namespace nobody else uses.
    pub(crate) fn config(&self) -> EtcdConfig {
        config([self.url()])
    }

    /// Whether it is a member of a cluster that answers, rather than having ended because a port was
    /// taken.
    fn is_ready(&mut self) -> bool {
        let give_up_at = Instant::now() + Duration::from_secs(60);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        while Instant::now() < give_up_at {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            let (url, options) = (self.url(), self.options.clone());
            let asked = runtime.block_on(async {
                let mut client = Client::connect([url], options).await?;
                client.get("ready", None).await
            });
            if asked.is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("etcd is not ready:\n{}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default()
    }

    /// Whether it leads its cluster.
    fn leads(&self) -> bool {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut client = Client::connect([self.url()], None).await.unwrap();
            let status = client.status().await.unwrap();
            status.leader() == status.header().unwrap().member_id()
        })
    }

    /// `kill -SIGNAL`, by its pid.
    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
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
    config.backoff_max = Duration::from_millis(20);
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

/// Three members. Their elections wait for longer than two loaded cores may stand still.
pub(crate) struct Cluster {
    members: Vec<EtcdServer>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let patient = ["--heartbeat-interval", "200", "--election-timeout", "2000"];
        let members: [EtcdServer; 3] = start_all("http", None, &patient);
        Self { members: members.into() }
    }

    pub(crate) fn config(&self) -> EtcdConfig {
        let mut config = config(self.members.iter().map(EtcdServer::url));
        config.request_timeout = Duration::from_secs(2);
        config.attempts = 100;
        config.operation_timeout = Duration::from_secs(30);
        config
    }

    pub(crate) fn ports(&self) -> Vec<u16> {
        self.members.iter().map(EtcdServer::port).collect()
    }

    /// Between two elections there is none.
    fn leader(&self) -> usize {
        let give_up_at = Instant::now() + Duration::from_secs(60);
        while Instant::now() < give_up_at {
            if let Some(at) = self.members.iter().position(EtcdServer::leads) {
                return at;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no member leads");
    }

    /// `kill -9`, for good.
    pub(crate) fn kill_leader(&mut self) {
        drop(self.members.swap_remove(self.leader()));
    }

    /// Stops the leader for so long, and lets it go on.
    pub(crate) fn pause_leader(&mut self, time: Duration) {
        let leader = &self.members[self.leader()];
        leader.signal("-STOP");
        std::thread::sleep(time);
        leader.signal("-CONT");
    }
}

/// Members of one cluster on free ports.
fn start_all<const N: usize>(
    scheme: &'static str,
    options: Option<&ConnectOptions>,
    arguments: &[&str],
) -> [EtcdServer; N] {
    // A port that is free now may be taken when etcd comes to it.
    for _ in 0..10 {
        let (clients, peers) = (free_ports::<N>(), free_ports::<N>());
        let peer_url = |at: usize| format!("m{at}=http://127.0.0.1:{}", peers[at]);
        let cluster = (0..N).map(peer_url).collect::<Vec<_>>().join(",");
        let mut servers: [EtcdServer; N] = std::array::from_fn(|at| {
            let dir = scratch_dir();
            let client_url = format!("{scheme}://127.0.0.1:{}", clients[at]);
            let child = spawn(dir.path(), at, &client_url, peers[at], &cluster, arguments);
            EtcdServer { child, scheme, client_port: clients[at], options: options.cloned(), dir }
        });
        if servers.iter_mut().all(EtcdServer::is_ready) {
            return servers;
        }
    }
    panic!("etcd finds no free port");
}

fn spawn(
    dir: &Path,
    at: usize,
    client: &str,
    peer_port: u16,
    cluster: &str,
    arguments: &[&str],
) -> Child {
    let program = std::env::var_os("GOSSIP_ETCD").expect(
        "GOSSIP_ETCD is not set: run `cargo xtask test`, or set what `cargo xtask servers etcd` prints",
    );
    let log = File::options().create(true).append(true).open(dir.join("server.log")).unwrap();
    let peer = format!("http://127.0.0.1:{peer_port}");
    Command::new(program)
        .args(["--name", &format!("m{at}"), "--log-level", "warn", "--logger", "zap"])
        .arg("--data-dir")
        .arg(dir.join("data"))
        .args(["--listen-client-urls", client, "--advertise-client-urls", client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", cluster, "--initial-cluster-state", "new"])
        .args(arguments)
        // Tests are short: memory is cheaper than collecting it.
        .env("GOGC", "400")
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("etcd does not start")
}
