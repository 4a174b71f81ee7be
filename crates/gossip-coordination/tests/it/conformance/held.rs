//! A harness for whatever holds a coordinator in memory and passes calls on to it.

use gossip_coordination::conformance::{Caps, Dump, Harness, Limits};
use gossip_coordination::{
    CoordinationFacade, CoordinatorRuntimeConfig, EventCollector, InMemoryCoordinator,
};

use super::memory::Memory;

pub(super) trait Holder: CoordinationFacade + Send + Sized {
    fn hold(coordinator: InMemoryCoordinator) -> Self;

    /// Exchanges the coordinator that is held.
    fn swap(&mut self, other: &mut InMemoryCoordinator);

    /// What differs from the coordinator itself.
    fn caps() -> Caps {
        Memory::CAPS
    }

    /// With what the coordinator is opened.
    fn config(limits: &Limits) -> CoordinatorRuntimeConfig {
        Memory::config(limits)
    }

    /// Called where [`Holder::caps`] says that the data are durable.
    fn reopen(&mut self) {}

    fn connect(&mut self) -> Option<Self> {
        None
    }
}

pub(super) struct Held<B>(B);

impl<B: Holder> Held<B> {
    /// Takes the coordinator out while `f` looks at it.
    fn inside<R>(&mut self, f: impl FnOnce(&mut B, &mut InMemoryCoordinator) -> R) -> R {
        let empty = CoordinatorRuntimeConfig { slab_capacity: 0, ..Default::default() };
        let mut inner = InMemoryCoordinator::new(empty);
        self.0.swap(&mut inner);
        let result = f(&mut self.0, &mut inner);
        self.0.swap(&mut inner);
        result
    }
}

impl<B: Holder> Harness for Held<B> {
    type Backend = B;

    fn caps() -> Caps {
        B::caps()
    }

    fn open(limits: &Limits) -> Self {
        Self(B::hold(InMemoryCoordinator::new(B::config(limits))))
    }

    fn backend(&mut self) -> &mut B {
        &mut self.0
    }

    fn reopen(&mut self) {
        self.0.reopen();
    }

    fn connect(&mut self) -> Option<B> {
        self.0.connect()
    }

    fn with_events<R>(&mut self, collector: &mut EventCollector, f: impl FnOnce(&mut B) -> R) -> R {
        self.inside(|holder, inner| {
            inner.with_events(collector, |inner| {
                // The coordinator goes back to its holder together with the collector in it.
                holder.swap(inner);
                let result = f(holder);
                holder.swap(inner);
                result
            })
        })
    }

    fn dump(&mut self) -> Dump {
        self.inside(|_, inner| Memory::dump_of(inner))
    }

    fn assert_consistent(&mut self) {
        self.inside(|_, inner| inner.assert_consistent());
    }
}
