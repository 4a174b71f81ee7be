//! Fleets that share artifacts through an object store.

mod failing;
mod faults;
mod fleet;
mod payloads;
mod race;
mod restored;
mod restores;
mod rounds;
mod s3;
mod stores;
mod transfer;

#[path = "../../../slipstream/tests/it/server.rs"]
#[expect(dead_code, reason = "slipstream's tests do more with a server")]
mod nats;
#[path = "../../../gossip-object-store/tests/it/server.rs"]
#[expect(dead_code, reason = "those of sources do more with a server")]
mod weed;
