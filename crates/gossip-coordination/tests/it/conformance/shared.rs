//! The suite on one coordinator with many handles, which race, and which it outlives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gossip_coordination::InMemoryCoordinator;
use gossip_coordination::conformance::Caps;

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use super::memory::Memory;

pub(super) struct Shared(Arc<Mutex<InMemoryCoordinator>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, InMemoryCoordinator> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

macro_rules! locked {
    ($self:expr, $trait:ident, $async_trait:ident, $name:ident, $($arg:expr),*) => {
        $self.lock().$name($($arg),*)
    };
}

methods! { delegate_traits { [] Shared, locked } }

impl Holder for Shared {
    fn hold(coordinator: InMemoryCoordinator) -> Self {
        Self(Arc::new(Mutex::new(coordinator)))
    }

    fn swap(&mut self, other: &mut InMemoryCoordinator) {
        std::mem::swap(&mut *self.lock(), other);
    }

    /// The coordinator outlives its handles as a server would.
    fn caps() -> Caps {
        Caps { durable: true, ..Memory::CAPS }
    }

    fn reopen(&mut self) {
        *self = Self(Arc::clone(&self.0));
    }

    fn connect(&mut self) -> Option<Self> {
        Some(Self(Arc::clone(&self.0)))
    }
}

gossip_coordination::conformance_suite!(Held<Shared>);
