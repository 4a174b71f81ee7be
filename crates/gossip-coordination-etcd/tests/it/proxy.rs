//! A wire between a client and a server that loses messages, or is cut.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Forwards to a server on loopback.
pub(crate) struct Proxy {
    port: u16,
    state: Arc<State>,
    accepting: tokio::task::JoinHandle<()>,
}

/// Asks the server itself whether what a test waits for has been written.
type IsWritten = Box<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

/// Which of a request and its answer does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    Request,
    Answer,
}

#[derive(Default)]
struct State {
    is_written: tokio::sync::Mutex<Option<IsWritten>>,
    has_dropped: AtomicBool,
    /// Requests, and answers.
    is_cut: [AtomicBool; 2],
    cuts_at: Mutex<Option<(u64, Lost)>>,
    /// What the client sent, in pieces as they came.
    messages: AtomicU64,
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

    /// The first answer behind which `is_written` finds the write is not forwarded, and the connection
    /// on which it came is closed a little later. An answer is forwarded only if it came before the
    /// write did, so that it is the write's that is lost and not a read's.
    pub(crate) fn drop_answer_once<F>(&self, is_written: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = bool> + Send + 'static,
    {
        let boxed: IsWritten = Box::new(move || Box::pin(is_written()));
        *self.state.is_written.blocking_lock() = Some(boxed);
    }

    /// Whether an answer was dropped.
    pub(crate) fn has_dropped(&self) -> bool {
        self.state.has_dropped.load(Ordering::SeqCst)
    }

    /// Nothing passes any more, in either direction, while connections stay open; or it does again.
    pub(crate) fn cut(&self, is_cut: bool) {
        for direction in &self.state.is_cut {
            direction.store(is_cut, Ordering::SeqCst);
        }
    }

    /// Cuts the wire for good at a message of the client, counted from now: before it arrives, or
    /// behind it, so that nothing comes back.
    pub(crate) fn cut_at(&self, message: u64, lost: Lost) {
        let at = self.state.messages.load(Ordering::SeqCst) + message;
        *self.state.cuts_at.lock().unwrap() = Some((at, lost));
    }
}

impl State {
    async fn while_cut(&self, direction: Lost) {
        while self.is_cut[direction as usize].load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Whether the answer that has just come is the one to be lost.
    async fn loses_answer(&self) -> bool {
        let mut armed = self.is_written.lock().await;
        let loses = match &*armed {
            Some(is_written) => is_written().await,
            None => false,
        };
        if loses {
            *armed = None;
            self.has_dropped.store(true, Ordering::SeqCst);
        }
        loses
    }

    /// Counts a message of the client. Returns whether it is the last to arrive.
    fn count_message(&self) -> bool {
        let number = self.messages.fetch_add(1, Ordering::SeqCst);
        match *self.cuts_at.lock().unwrap() {
            Some((at, lost)) if at == number => {
                self.is_cut[Lost::Answer as usize].store(true, Ordering::SeqCst);
                self.is_cut[Lost::Request as usize].store(lost == Lost::Request, Ordering::SeqCst);
                lost == Lost::Answer
            }
            _ => false,
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
    let up_state = Arc::clone(&state);
    let up = tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(read @ 1..) = from_client.read(&mut buffer).await {
            let is_last = up_state.count_message();
            up_state.while_cut(Lost::Request).await;
            if to_server.write_all(&buffer[..read]).await.is_err() {
                break;
            }
            if is_last {
                up_state.is_cut[Lost::Request as usize].store(true, Ordering::SeqCst);
            }
        }
    });
    let mut buffer = vec![0; 1 << 20];
    while let Ok(read @ 1..) = from_server.read(&mut buffer).await {
        if state.loses_answer().await {
            // Whatever else comes with it is lost, too, and then the connection.
            tokio::time::sleep(Duration::from_millis(50)).await;
            break;
        }
        state.while_cut(Lost::Answer).await;
        if to_client.write_all(&buffer[..read]).await.is_err() {
            break;
        }
    }
    up.abort();
}
