//! The suite through the async delegate: both must open to the same rules.

use gossip_coordination::{
    AsyncCoordinationBackend, AsyncRunManagement, AsyncShardClaiming, Immediate,
    InMemoryCoordinator,
};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use crate::async_session::at_once;

pub(super) struct ThroughAsync(Immediate<InMemoryCoordinator>);

macro_rules! awaited {
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
}

gossip_coordination::conformance_suite!(Held<ThroughAsync>);
