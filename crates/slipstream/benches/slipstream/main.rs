//! Slipstream beside what it is made of, in one run.
//!
//! Values of 100 bytes under keys of 23, default settings. Subject and reference take turns.

mod ack;
mod fold;
mod nats;
#[path = "../../tests/it/server.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod server;
mod store;

/// `cargo xtask bench slipstream -- nats-scan` runs the parts whose name starts so: `ack-read`,
/// `nats-scan`, `nats-keys`, `nats-get`, `fold-hydration`, `fold-gapped-resume`,
/// `fold-restart-hot-key`, `store-ascending`, `store-scattered`, `store-range`, `store-memory`,
/// `store-fjall`.
fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let wanted = args.next().unwrap_or_default();
    if let ("resident", Some(order), Some(how)) = (&*wanted, args.next(), args.next()) {
        return store::resident(&order, &how);
    }
    let wanted = |name: &str| name.starts_with(&wanted);
    ack::run(&wanted);
    nats::run(&wanted);
    fold::run(&wanted);
    store::run(&wanted);
}
