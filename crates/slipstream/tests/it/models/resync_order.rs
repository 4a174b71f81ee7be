//! A repair beside a writer: listing, deletes, re-list (P6).

use slipstream::protocol::{Vanished, relist_may_start};
use stateright::{Model, Property};

const WRITES: usize = 3;
const KEYS: usize = 2;

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    /// What each key has in the bucket: the number of its write.
    bucket: [Option<u8>; KEYS],
    fold: [Option<u8>; KEYS],
    /// Live updates that the re-list's watch has yet to bring.
    queue: Vec<(usize, Option<u8>)>,
    listed: Option<[bool; KEYS]>,
    deleted: bool,
    relisting: bool,
    writes: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Put(usize),
    Delete(usize),
    List,
    StoreDeletes,
    StartRelist,
    Deliver,
}

struct ResyncOrder {
    barrier: bool,
}

impl Model for ResyncOrder {
    type State = State;
    type Action = Action;

    /// The fold has both keys; in the gap either may have been deleted without a trace.
    fn init_states(&self) -> Vec<State> {
        let all = [[Some(0), Some(0)], [None, Some(0)], [None, None]];
        let state = |bucket| State {
            bucket,
            fold: [Some(0); KEYS],
            queue: Vec::new(),
            listed: None,
            deleted: false,
            relisting: false,
            writes: 0,
        };
        all.into_iter().map(state).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.writes < WRITES {
            for key in 0..KEYS {
                actions.extend([Action::Put(key), Action::Delete(key)]);
            }
        }
        if state.listed.is_none() {
            actions.push(Action::List);
        } else if !state.deleted {
            actions.push(Action::StoreDeletes);
        }
        let may = relist_may_start(Vanished::Delete, state.deleted) || !self.barrier;
        if state.listed.is_some() && !state.relisting && may {
            actions.push(Action::StartRelist);
        }
        if !state.queue.is_empty() {
            actions.push(Action::Deliver);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Put(key) | Action::Delete(key) => {
                state.writes += 1;
                let put = matches!(action, Action::Put(_));
                state.bucket[key] = put.then_some(state.writes as u8);
                if state.relisting {
                    state.queue.push((key, state.bucket[key]));
                }
            }
            Action::List => state.listed = Some(state.bucket.map(|value| value.is_some())),
            Action::StoreDeletes => {
                for (value, listed) in state.fold.iter_mut().zip(state.listed?) {
                    *value = value.filter(|_| listed);
                }
                state.deleted = true;
            }
            // Deletes since the listing have left markers, which the re-list brings too.
            Action::StartRelist => {
                state.relisting = true;
                let marked = |key: &usize| state.listed.is_some_and(|listed| listed[*key]);
                let current = (0..KEYS).filter(|key| state.bucket[*key].is_some() || marked(key));
                state.queue = current.map(|key| (key, state.bucket[key])).collect();
            }
            Action::Deliver => {
                let (key, value) = state.queue.remove(0);
                state.fold[key] = value;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("a finished repair is right", |_, state: &State| {
            let finished = state.deleted && state.relisting && state.queue.is_empty();
            !finished || state.fold == state.bucket
        })]
    }
}

#[test]
fn a_repair_beside_a_writer_converges() {
    super::holds(ResyncOrder { barrier: true }, 1659);
}

#[test]
fn without_the_barrier_a_key_made_again_is_lost() {
    super::fails(ResyncOrder { barrier: false }, "a finished repair is right");
}
