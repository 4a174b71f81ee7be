//! The suite on a coordinator with caps of its own, as one has whose store takes so much in one step
//! and whose workers have clocks that differ.

use gossip_coordination::conformance::{Caps, Limits};
use gossip_coordination::{CoordinatorRuntimeConfig, InMemoryCoordinator, SplitCaps};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use super::memory::Memory;

pub(super) struct Narrow(InMemoryCoordinator);

macro_rules! forwarded {
    ($self:expr, $trait:ident, $async_trait:ident, $name:ident, $($arg:expr),*) => {
        $self.0.$name($($arg),*)
    };
}

methods! { delegate_traits { [] Narrow, forwarded } }

const SPLIT: SplitCaps = SplitCaps { max_children: 8, max_bytes: 30_000 };
const SKEW: u64 = 4_000;

impl Holder for Narrow {
    fn hold(coordinator: InMemoryCoordinator) -> Self {
        Self(coordinator)
    }

    fn swap(&mut self, other: &mut InMemoryCoordinator) {
        std::mem::swap(&mut self.0, other);
    }

    fn caps() -> Caps {
        Caps {
            max_split_children: SPLIT.max_children,
            max_split_bytes: SPLIT.max_bytes,
            takeover_delay: SKEW,
            ..Memory::CAPS
        }
    }

    fn config(limits: &Limits) -> CoordinatorRuntimeConfig {
        CoordinatorRuntimeConfig {
            skew_allowance: SKEW,
            split_caps: SPLIT,
            ..Memory::config(limits)
        }
    }
}

gossip_coordination::conformance_suite!(Held<Narrow>);
