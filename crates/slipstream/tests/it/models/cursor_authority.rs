//! Received, applied, stored; failures of the store, lost watches and crashes in between (P4).

use slipstream::protocol::{Authority, Stored};
use stateright::{Model, Property};

const REVISIONS: u64 = 4;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Production,
    /// A batch that the store did not take is forgotten, and the watch goes on.
    DropFailedBatch,
    /// A lost watch is armed again after what was applied, stored or not.
    ResumeFromMemApplied,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    /// What the watch delivers next.
    next: u64,
    batch: Vec<u64>,
    /// The batch was applied, and waits to be stored.
    applied: Option<u64>,
    authority: Authority,
    /// The applier's side: everything up to here went through `apply`.
    mem_applied: u64,
    /// What is on disk.
    stored: Vec<u64>,
    cursor: u64,
    ended: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Receive { known: bool },
    Apply,
    Store { works: bool },
    LoseWatch,
    Crash,
}

struct CursorAuthority(Variant);

impl Model for CursorAuthority {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            next: 1,
            batch: Vec::new(),
            applied: None,
            authority: Authority::new(0),
            mem_applied: 0,
            stored: Vec::new(),
            cursor: 0,
            ended: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.ended {
            actions.push(Action::Crash);
            return;
        }
        match state.applied {
            None => {
                if state.next <= REVISIONS {
                    actions.extend([true, false].map(|known| Action::Receive { known }));
                }
                if !state.batch.is_empty() {
                    actions.push(Action::Apply);
                }
            }
            Some(_) => actions.extend([true, false].map(|works| Action::Store { works })),
        }
        actions.extend([Action::LoseWatch, Action::Crash]);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Receive { known } => {
                state.authority.receive(known.then_some(state.next));
                state.batch.push(state.next);
                state.next += 1;
            }
            Action::Apply => {
                state.applied = Some(state.authority.apply());
                state.mem_applied = state.mem_applied.max(*state.batch.last()?);
            }
            Action::Store { works } => match state.authority.store(works) {
                Stored::At(revision) => {
                    state.stored.append(&mut state.batch);
                    state.stored.sort_unstable();
                    state.stored.dedup();
                    state.cursor = revision;
                    state.applied = None;
                }
                Stored::RetryAfter(_) if self.0 == Variant::DropFailedBatch => {
                    state.batch.clear();
                    state.applied = None;
                }
                Stored::RetryAfter(_) => {}
                Stored::GiveUp => state.ended = true,
            },
            Action::LoseWatch => {
                let from = match self.0 {
                    Variant::ResumeFromMemApplied => state.mem_applied,
                    _ => state.authority.resume_at(),
                };
                state.batch.clear();
                state.applied = None;
                state.authority = Authority::new(from);
                state.next = from + 1;
            }
            Action::Crash => {
                state.batch.clear();
                state.applied = None;
                state.mem_applied = state.cursor;
                state.authority = Authority::new(state.cursor);
                state.next = state.cursor + 1;
                state.ended = false;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("the cursor names what is stored", |_, state: &State| {
            (1..=state.cursor).all(|revision| state.stored.contains(&revision))
        })]
    }
}

#[test]
fn a_stored_cursor_names_only_stored_updates() {
    super::holds(CursorAuthority(Variant::Production), 6979);
}

#[test]
fn dropping_a_failed_batch_leaves_a_hole() {
    super::fails(CursorAuthority(Variant::DropFailedBatch), "the cursor names what is stored");
}

#[test]
fn resuming_after_what_was_merely_applied_leaves_a_hole() {
    super::fails(CursorAuthority(Variant::ResumeFromMemApplied), "the cursor names what is stored");
}
