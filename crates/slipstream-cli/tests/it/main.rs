//! The program, on real servers.

mod artifacts;
mod cli;
mod credentials;
mod faults;
mod readme;

#[path = "../../../slipstream/tests/it/killed.rs"]
#[expect(dead_code, reason = "slipstream's tests kill folds of their own")]
mod killed;
#[path = "../../../slipstream/tests/it/server.rs"]
#[expect(dead_code, reason = "slipstream's tests do more with a server")]
mod server;
#[path = "../../../gossip-object-store/tests/it/server.rs"]
#[expect(dead_code, reason = "those of sources do more with a server")]
mod weed;
