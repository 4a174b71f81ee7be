//! The crate's tests from outside.

mod applied;
mod artifacts;
mod backend;
mod bootstrap;
mod cas;
mod clock;
mod cluster;
mod cursors;
mod faults;
mod folds;
mod killed;
mod lease;
mod models;
mod nats;
mod proxy;
mod reads;
mod server;
mod snapshot;
mod suite;
mod tls;
mod ttl;
mod watches;
