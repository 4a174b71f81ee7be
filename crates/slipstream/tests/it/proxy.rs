//! A wire between a client and a server that can be cut.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards to a server on loopback, and stops forwarding what the server sends after so many bytes;
/// the connection stays open.
pub(crate) struct Proxy {
    port: u16,
    left: Arc<AtomicU64>,
    trigger: Arc<Mutex<Option<Trigger>>>,
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
        let trigger = Arc::default();
        let wire = Wire { left: Arc::clone(&left), trigger: Arc::clone(&trigger) };
        let takes = swallow.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                tokio::spawn(forward(client, server, wire.clone(), takes.clone()));
            }
        });
        Self { port, left, trigger, swallow, accepting }
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

    /// The same, of the bytes that follow this text of the server's.
    pub(crate) fn stop_after_text(&self, text: &'static str, bytes: u64) {
        *self.trigger.lock().unwrap() = Some(Trigger { text, tail: Vec::new(), bytes });
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

/// When to stop.
#[derive(Clone)]
struct Wire {
    left: Arc<AtomicU64>,
    trigger: Arc<Mutex<Option<Trigger>>>,
}

/// A text of the server's, after which so many bytes are left.
struct Trigger {
    text: &'static str,
    /// The end of what came so far, which the text may have begun in.
    tail: Vec<u8>,
    bytes: u64,
}

impl Wire {
    /// Whether these bytes of the server's are still forwarded.
    fn carries(&self, bytes: &[u8]) -> bool {
        let mut budget = self.left.load(Ordering::SeqCst);
        if budget != u64::MAX {
            budget = budget.saturating_sub(bytes.len() as u64);
            self.left.store(budget, Ordering::SeqCst);
        }
        let mut trigger = self.trigger.lock().unwrap();
        if let Some(one) = &mut *trigger {
            one.tail.extend_from_slice(bytes);
            let text = one.text.as_bytes();
            if one.tail.windows(text.len()).any(|window| window == text) {
                self.left.store(one.bytes, Ordering::SeqCst);
                *trigger = None;
            } else {
                one.tail.drain(..(one.tail.len() + 1).saturating_sub(text.len()));
            }
        }
        budget > 0
    }
}

async fn forward(client: TcpStream, server: TcpStream, wire: Wire, swallow: Swallow) {
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
        if !wire.carries(&buffer[..read]) {
            // Silent, but not closed.
            std::future::pending::<()>().await;
        }
        if to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    up.abort();
}
