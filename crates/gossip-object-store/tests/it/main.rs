//! A bucket of a real store.

mod bucket;
mod conformance;
mod names;
mod server;
