//! The suite through the async delegate: both must open to the same rules.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gossip_coordination::conformance::Caps;
use gossip_coordination::{
    AsyncCoordinationBackend, AsyncRunManagement, Immediate, InMemoryCoordinator,
    claim_from_candidates,
};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use super::memory::Memory;

pub(super) struct ThroughAsync(Immediate<InMemoryCoordinator>);

/// [`Immediate`] answers at once; anything else would wait for ever.
fn at_once<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an immediate backend made its caller wait"),
    }
}

macro_rules! awaited {
    // There is no async claim: the one that fits every backend goes through the async delegate.
    ($self:expr, ShardClaiming, $async_trait:ident, $name:ident, $($arg:expr),*) => {
        claim_from_candidates($self, $($arg),*)
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
