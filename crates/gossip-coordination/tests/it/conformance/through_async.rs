//! The suite through the async delegate: both must open to the same rules.

use gossip_coordination::conformance::Caps;
use gossip_coordination::{
    AsyncCoordinationBackend, AsyncRunManagement, AsyncShardClaiming, Immediate,
    InMemoryCoordinator, claim_from_candidates_async,
};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use super::memory::Memory;
use crate::async_session::at_once;

pub(super) struct ThroughAsync(Immediate<InMemoryCoordinator>);

macro_rules! awaited {
    // Not the backend's own claim, but the one that fits every async backend.
    ($self:expr, ShardClaiming, $async_trait:ident, claim_next_available, $($arg:expr),*) => {
        at_once(claim_from_candidates_async(&mut $self.0, $($arg),*))
    };
    ($self:expr, ShardClaiming, AsyncShardClaiming, $name:ident, $($arg:expr),*) => {
        at_once(AsyncShardClaiming::$name(&mut $self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncCoordinationBackend, $name:ident, $($arg:expr),*) => {
        at_once(AsyncCoordinationBackend::$name(&mut $self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, get_run, $($arg:expr),*) => {
        at_once(AsyncRunManagement::get_run(&$self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, get_run_progress, $($arg:expr),*) => {
        at_once(AsyncRunManagement::get_run_progress(&$self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, list_runs_into, $($arg:expr),*) => {
        at_once(AsyncRunManagement::list_runs_into(&$self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, list_shards_page_into, $($arg:expr),*) => {
        at_once(AsyncRunManagement::list_shards_page_into(&$self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, list_shards_into, $($arg:expr),*) => {
        at_once(AsyncRunManagement::list_shards_into(&$self.0, $($arg),*))
    };
    ($self:expr, $trait:ident, AsyncRunManagement, $name:ident, $($arg:expr),*) => {
        at_once(AsyncRunManagement::$name(&mut $self.0, $($arg),*))
    };
}

methods! { delegate_traits { [] ThroughAsync, awaited } }

impl Holder for ThroughAsync {
    fn hold(coordinator: InMemoryCoordinator) -> Self {
        Self(Immediate(coordinator))
    }

    fn swap(&mut self, other: &mut InMemoryCoordinator) {
        std::mem::swap(&mut self.0.0, other);
    }

    /// The cooldown belongs to the sync claim.
    fn caps() -> Caps {
        Caps { claim_cooldown: false, ..Memory::CAPS }
    }
}

gossip_coordination::conformance_suite!(Held<ThroughAsync>);
