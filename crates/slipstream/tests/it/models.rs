//! The protocol, model checked: every interleaving in a small world, through the production guards.
//!
//! Each model is also run with a guard taken out, and must then find a counterexample; otherwise
//! the guard, or the model, would be idle. State counts are pinned, so that a model which suddenly
//! explores something else is noticed.

mod cursor_authority;
mod fleet;
mod lying_log;
mod prefix_marker;
mod repair;
mod restore;

use std::fmt::Debug;
use std::hash::Hash;

use slipstream::protocol::{Finding, Witness};
use stateright::{Checker, HasDiscoveries, Model};

/// Checks that the property holds in every state, of which there are so many.
fn holds<M>(model: M, states: usize)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let checker = model.checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert_eq!(checker.unique_state_count(), states, "the model explores something else now");
}

/// Checks that the property does not hold.
fn fails<M>(model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
{
    let found = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().threads(2).finish_when(found).spawn_dfs().join();
    assert!(checker.discovery(property).is_some(), "no counterexample to `{property}`");
}

/// What a log says of a message that it once had; `place` is its revision and its key.
fn find<M: PartialEq, K: PartialEq>(
    log: &[M],
    witness: &M,
    place: impl Fn(&M) -> (u64, K),
) -> Witness {
    let (revision, key) = place(witness);
    let finding = match log.iter().find(|message| place(message).0 == revision) {
        Some(message) if message == witness => Finding::Same,
        Some(_) => Finding::Other,
        None => {
            let of_key = log.iter().map(place).find(|(_, other)| *other == key);
            Finding::Gone { key_last: of_key.map(|(revision, _)| revision) }
        }
    };
    Witness { revision, finding }
}
