//! A real store: SeaweedFS on loopback, and a proxy in front of it that answers some requests itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const ACCESS_KEY: &str = "tests";
const SECRET_KEY: &str = "of the tests";

/// A server of one's own, which ends with its value.
pub(crate) struct Weed {
    process: Child,
    s3: u16,
    filer: u16,
    dir: tempfile::TempDir,
}

/// Ports that the system gives to no outgoing connection: those of other tests would take one between the
/// choice and its use.
fn free_ports(count: usize) -> Vec<TcpListener> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut drawn = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 32;
    let mut draw = || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        10_000 + (drawn >> 33) as u16 % 22_000
    };
    let free = std::iter::from_fn(|| Some(TcpListener::bind(("127.0.0.1", draw()))));
    free.flatten().take(count).collect()
}

impl Weed {
    pub(crate) fn start() -> Self {
        let program = std::env::var_os("GOSSIP_WEED").expect(
            "GOSSIP_WEED is not set: run `cargo xtask test`, or set what `cargo xtask servers seaweedfs` prints",
        );
        // Another test may have drawn the same port.
        (0..3).find_map(|_| Self::try_start(Path::new(&program))).expect("the store starts")
    }

    fn try_start(program: &Path) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "admin.port",
            "admin.port.grpc",
            "filer.port",
            "filer.port.grpc",
            "master.port",
            "master.port.grpc",
            "s3.port",
            "s3.port.grpc",
            "s3.port.iceberg",
            "volume.port",
            "volume.port.grpc",
        ];
        // All held at once, so that they differ.
        let held = free_ports(names.len());
        let ports: BTreeMap<&str, u16> = names
            .into_iter()
            .zip(held.iter().map(|port| port.local_addr().unwrap().port()))
            .collect();
        drop(held);
        let process = Command::new(program)
            .arg("mini")
            .arg(format!("-dir={}", dir.path().display()))
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"])
            // Each bucket takes several volumes; by itself it allows as many as the disk has room for.
            // Lance's port would be the same for all that start at once.
            .args(["-webdav=false", "-admin.ui=false", "-s3.port.lance=0", "-volume.max=2000"])
            .args(ports.iter().map(|(name, port)| format!("-{name}={port}")))
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
            .stdout(Stdio::null())
            .stderr(File::create(dir.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let (s3, filer) = (ports["s3.port"], ports["filer.port"]);
        let mut weed = Self { process, s3, filer, dir };
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until && weed.process.try_wait().unwrap().is_none() {
            if weed.try_put("probe", "probe", b"probe").is_some_and(|status| status < 300)
                && http(weed.s3, "GET", "/healthz", b"").is_some_and(|status| status == 200)
            {
                return Some(weed);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let log = std::fs::read_to_string(weed.dir.path().join("log")).unwrap();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        eprintln!("the store did not start, last lines first: {last:#?}");
        None
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.s3)
    }

    /// What a program needs in its environment to talk to it at `endpoint`.
    pub(crate) fn variables(&self, endpoint: String) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// Writes an object behind the back of the S3 interface; makes its bucket. A store that has just
    /// started may have no room yet: it is asked again.
    pub(crate) fn put(&self, bucket: &str, key: &str, content: &[u8]) -> Option<()> {
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match self.try_put(bucket, key, content) {
                Some(200..300) => return Some(()),
                answer if Instant::now() > until => panic!("the store answers {answer:?}"),
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    fn try_put(&self, bucket: &str, key: &str, content: &[u8]) -> Option<u16> {
        http(self.filer, "PUT", &format!("/buckets/{bucket}/{}", encoded(key)), content)
    }

    pub(crate) fn delete(&self, bucket: &str, key: &str) {
        let path = format!("/buckets/{bucket}/{}", encoded(key));
        let status = http(self.filer, "DELETE", &path, b"");
        assert!(status.is_some_and(|status| status < 300), "{status:?}");
    }

    /// A proxy in front of it: `answer` decides by the head of a request and its number.
    pub(crate) fn proxy(
        &self,
        answer: impl Fn(&str, u64) -> Option<u16> + Send + Sync + 'static,
    ) -> String {
        let (listener, upstream) = (TcpListener::bind("127.0.0.1:0").unwrap(), self.s3);
        let address = listener.local_addr().unwrap();
        let (answer, requests) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                std::thread::spawn(move || {
                    let decide =
                        |head: &str| answer(head, requests.fetch_add(1, Ordering::Relaxed));
                    // A client that goes away is no matter.
                    let _ = serve(client, upstream, decide);
                });
            }
        });
        format!("http://{address}")
    }
}

impl Drop for Weed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One request of a connection, which then ends.
fn serve(
    client: TcpStream,
    upstream: u16,
    decide: impl Fn(&str) -> Option<u16>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line)? > 2 {
        head.push_str(&line);
        line.clear();
    }
    let mut client = client;
    if let Some(status) = decide(&head) {
        let answer =
            format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return client.write_all(answer.as_bytes());
    }
    let mut server = TcpStream::connect(("127.0.0.1", upstream))?;
    server.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes())?;
    std::io::copy(&mut server, &mut client).map(drop)
}

/// The status of an answer.
fn http(port: u16, method: &str, path: &str, body: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = String::new();
    stream.take(12).read_to_string(&mut answer).ok()?;
    answer.get(9..12)?.parse().ok()
}

fn encoded(key: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(encode).collect()
}
