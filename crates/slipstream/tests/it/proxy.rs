//! A wire between a client and a server that can be cut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards to a server on loopback, and stops forwarding what the server sends after so many bytes;
/// the connection stays open.
pub(crate) struct Proxy {
    port: u16,
    left: Arc<AtomicU64>,
    swallow: Swallow,
    accepting: tokio::task::JoinHandle<()>,
}

impl Proxy {
    /// Forwards everything until told otherwise.
    pub(crate) async fn to(server_port: u16) -> Self {
        Self::without(server_port, "\0").await
    }

    /// Forwards everything but what has this text in it, in either direction, until told otherwise.
    pub(crate) async fn without(server_port: u16, text: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let swallow = Swallow { text, count: Arc::default(), done: Arc::default() };
        let (budget, takes) = (Arc::clone(&left), swallow.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                tokio::spawn(forward(client, server, Arc::clone(&budget), takes.clone()));
            }
        });
        Self { port, left, swallow, accepting }
    }

    /// How often something was not forwarded for its text.
    pub(crate) fn swallowed(&self) -> u64 {
        self.swallow.count.load(Ordering::SeqCst)
    }

    /// From now on the text makes no difference.
    pub(crate) fn swallow_no_more(&self) {
        self.swallow.done.store(true, Ordering::SeqCst);
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// From now on the server's next `bytes` are forwarded, and no more.
    pub(crate) fn stop_after(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Whether it has stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

#[derive(Clone)]
struct Swallow {
    text: &'static str,
    count: Arc<AtomicU64>,
    done: Arc<AtomicBool>,
}

impl Swallow {
    fn takes(&self, bytes: &[u8]) -> bool {
        let text = self.text.as_bytes();
        let found = !self.done.load(Ordering::SeqCst)
            && bytes.windows(text.len()).any(|window| window == text);
        self.count.fetch_add(u64::from(found), Ordering::SeqCst);
        found
    }
}

async fn forward(client: TcpStream, server: TcpStream, left: Arc<AtomicU64>, swallow: Swallow) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let also = swallow.clone();
    let up = tokio::spawn(async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let bytes = &buffer[..read];
            if !also.takes(bytes) && to_server.write_all(bytes).await.is_err() {
                break;
            }
        }
    });
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        if swallow.takes(&buffer[..read]) {
            continue;
        }
        let mut budget = left.load(Ordering::SeqCst);
        if budget != u64::MAX {
            budget = budget.saturating_sub(read as u64);
            left.store(budget, Ordering::SeqCst);
        }
        if budget == 0 {
            // Silent, but not closed.
            std::future::pending::<()>().await;
        }
        if to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    up.abort();
}
