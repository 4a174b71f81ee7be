//! A wire between a client and a server that can be held or cut, and mended.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Whole,
    /// Nothing gets through, and nobody is told.
    Held,
    /// Connections are closed, and new ones too.
    Cut,
}

pub(super) struct Cable {
    port: u16,
    wire: watch::Sender<Wire>,
    accepting: JoinHandle<()>,
}

impl Cable {
    pub(super) async fn to(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (wire, state) = watch::channel(Wire::Whole);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *state.borrow() == Wire::Cut {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server_port)).await else {
                    continue;
                };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(carry(from_client, to_server, state.clone()));
                tokio::spawn(carry(from_server, to_client, state.clone()));
            }
        });
        Self { port, wire, accepting }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(super) fn set(&self, wire: Wire) {
        self.wire.send_replace(wire);
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Both halves are dropped, and so the connection closed, when either end closes or the wire is
/// cut.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut wire: watch::Receiver<Wire>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = wire.wait_for(|wire| *wire == Wire::Cut) => return,
        };
        let Ok(read @ 1..) = read else { return };
        match wire.wait_for(|wire| *wire != Wire::Held).await.map(|wire| *wire) {
            Ok(Wire::Whole) => {}
            _ => return,
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
