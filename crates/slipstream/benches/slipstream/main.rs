//! Slipstream beside what it is made of, in one run.
//!
//! Values of 100 bytes under keys of 23, default settings. Subject and reference take turns.

mod fold;
mod nats;
#[path = "../../tests/it/server.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod server;

/// `cargo bench --bench slipstream -- nats-scan` runs the figures whose name starts so.
fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let wanted = |name: &str| name.starts_with(&wanted);
    nats::run(&wanted);
    fold::run(&wanted);
}
