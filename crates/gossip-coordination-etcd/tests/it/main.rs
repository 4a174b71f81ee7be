//! The backend on real servers, and on the model of one.

mod conformance;
mod consistency;
mod differential;
mod proxy;
mod server;
mod support;
mod unanswered;
mod world;
