//! The crate's tests from outside.

mod backend;
mod cas;
mod faults;
mod nats;
mod proxy;
mod reads;
mod server;
mod suite;
mod ttl;
mod watches;
