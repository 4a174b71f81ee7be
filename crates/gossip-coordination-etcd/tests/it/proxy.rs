//! A wire between a client and a server that loses answers, or is cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request longer than this changes something: reads of one record are shorter, and the smallest
/// write compares and reads three keys of 100 bytes and puts one.
const WRITE_BYTES_MIN: usize = 700;

/// Forwards to a server on loopback.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct State {
    is_armed: AtomicBool,
    is_cut: AtomicBool,
    dropped: AtomicUsize,
}

impl Proxy {
    /// Forwards everything until told otherwise.
    pub(crate) async fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                tokio::spawn(forward(client, server, Arc::clone(&shared)));
            }
        });
        Self { port, state, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The server's answer to the next request that changes something is not forwarded, and the
    /// connection on which it came is closed a little later.
    pub(crate) fn drop_answer_to_next_write(&self) {
        self.state.dropped.store(0, Ordering::SeqCst);
        self.state.is_armed.store(true, Ordering::SeqCst);
    }

    /// Whether an answer was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.state.dropped.load(Ordering::SeqCst) > 0
    }
}

impl Proxy {
    /// Nothing passes any more, in either direction, while connections stay open; or it does again.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.state.is_cut.store(is_cut, Ordering::SeqCst);
    }
}

impl State {
    async fn while_cut(&self) {
        while self.is_cut.load(Ordering::SeqCst) {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, server: TcpStream, state: Arc<State>) {
    // Small messages do not wait for each other's acknowledgement.
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let drops = Arc::new(AtomicBool::new(false));
    let (up_state, up_drops) = (Arc::clone(&state), Arc::clone(&drops));
    let up = tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let is_write = read >= WRITE_BYTES_MIN;
            if is_write && up_state.is_armed.swap(false, Ordering::SeqCst) {
                up_drops.store(true, Ordering::SeqCst);
            }
            up_state.while_cut().await;
            if to_server.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    });
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        if drops.load(Ordering::SeqCst) {
            state.dropped.fetch_add(1, Ordering::SeqCst);
            // Whatever else comes with it is lost, too, and then the connection.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            break;
        }
        state.while_cut().await;
        if to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    up.abort();
}
