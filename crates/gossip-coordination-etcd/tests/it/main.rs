//! The backend on real servers, and on the model of one.

mod bad_input;
mod children;
mod claims;
mod conformance;
mod differential;
mod faults;
mod leftovers;
mod operations;
mod owners;
mod patience;
mod proxy;
mod races;
mod server;
mod settled;
mod support;
mod tls;
mod unanswered;
mod world;
