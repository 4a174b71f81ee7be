//! Buckets on NATS JetStream.
//!
//! A bucket is the stream `KV_<name>` over the subjects `$KV.<name>.>`, as every NATS client has it,
//! and a revision is a sequence of that stream.
//!
//! Listings and watches are raw push consumers, without acknowledgements, with flow control and idle
//! heartbeats. The client library's own watches make themselves new when something is lost, and so
//! would pass by the proofs that a resume needs.
//!
//! - N1: messages that were lost between server and caller are noticed: each carries the consumer's
//!   count, and so does a heartbeat. Silence longer than three heartbeats is a loss too.
//! - N2: a consumer is subscribed to before it is made.
//! - N3: no question to a server waits longer than 30 s.

mod ack;
mod api;
mod bucket;
mod connection;
mod consumer;
mod message;
mod read;
mod settled;
mod watch;
mod write;

pub use self::connection::{ClientCert, NatsConnection, NatsConnectionConfig};
