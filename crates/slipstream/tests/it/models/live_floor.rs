//! A live watch of everything on a log that evicts its oldest messages (P2).

use slipstream::protocol::{Guard, before_first_gap, live_guard};
use slipstream::{LogInfo, Retention};
use stateright::{Model, Property};

const REVISIONS: u64 = 4;
const KEYS: u8 = 2;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Production,
    Unguarded,
    /// Only the probe looks; what is delivered is applied as it comes.
    PeriodicOnly,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Message {
    revision: u64,
    key: u8,
    put: bool,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    log: Vec<Message>,
    last: u64,
    first: u64,
    /// Each key's last message ever.
    truth: [Option<Message>; KEYS as usize],
    /// The server has sent all up to here that it had.
    sent: u64,
    in_flight: Vec<Message>,
    /// Received, not applied.
    batch: Vec<Message>,
    frontier: u64,
    fold: [Option<u64>; KEYS as usize],
    /// A probe of a quiet watch has passed since anything happened.
    proven: bool,
}

impl State {
    fn info(&self) -> LogInfo {
        let retention = Retention::default();
        LogInfo { incarnation: 1, first: self.first, last: self.last, retention, read_at_ms: 0 }
    }

    fn value(&self, key: u8) -> Option<u64> {
        self.truth[usize::from(key)].filter(|message| message.put).map(|message| message.revision)
    }

    fn is_right(&self) -> bool {
        (0..KEYS).all(|key| self.fold[usize::from(key)] == self.value(key))
    }

    /// Resync: what was deleted goes, the rest is listed.
    fn repair(&mut self) {
        self.fold = [0, 1].map(|key| self.value(key));
        (self.frontier, self.sent) = (self.last, self.last);
        self.in_flight.clear();
        self.batch.clear();
    }

    fn apply(&mut self) {
        for message in std::mem::take(&mut self.batch) {
            self.fold[usize::from(message.key)] = message.put.then_some(message.revision);
            self.frontier = message.revision;
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write {
        key: u8,
        put: bool,
    },
    Evict,
    Send,
    Receive,
    /// Reads the floor, if it must, and applies or repairs.
    Flush,
    Probe,
}

struct LiveFloor(Variant);

impl Model for LiveFloor {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            log: Vec::new(),
            last: 0,
            first: 1,
            truth: [None; KEYS as usize],
            sent: 0,
            in_flight: Vec::new(),
            batch: Vec::new(),
            frontier: 0,
            fold: [None; KEYS as usize],
            proven: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.last < REVISIONS {
            for key in 0..KEYS {
                actions.extend([true, false].map(|put| Action::Write { key, put }));
            }
        }
        // Retention takes markers, not current values: those a repair could not bring back (P5).
        if state.log.first().is_some_and(|message| !message.put) {
            actions.push(Action::Evict);
        }
        if state.log.iter().any(|message| message.revision > state.sent) {
            actions.push(Action::Send);
        }
        if !state.in_flight.is_empty() {
            actions.push(Action::Receive);
        }
        if !state.batch.is_empty() {
            actions.push(Action::Flush);
        }
        actions.push(Action::Probe);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = State { proven: false, ..last.clone() };
        match action {
            Action::Write { key, put } => {
                state.last += 1;
                let message = Message { revision: state.last, key, put };
                state.log.retain(|older| older.key != key);
                state.log.push(message);
                state.truth[usize::from(key)] = Some(message);
                state.first = state.log[0].revision;
            }
            Action::Evict => {
                state.log.remove(0);
                state.first = state.log.first().map_or(state.last + 1, |first| first.revision);
            }
            Action::Send => {
                let sent = state.sent;
                let message = *state.log.iter().find(|message| message.revision > sent)?;
                state.sent = message.revision;
                state.in_flight.push(message);
            }
            Action::Receive => {
                let message = state.in_flight.remove(0);
                state.batch.push(message);
            }
            Action::Flush => {
                let revisions = state.batch.iter().map(|message| message.revision);
                let gap = before_first_gap(state.frontier, revisions);
                let received = state.batch.last()?.revision;
                let guard = match gap {
                    Some(before) => live_guard(1, before, received, &state.info()),
                    None => Guard::Pass,
                };
                match guard {
                    Guard::Trip(_) if self.0 == Variant::Production => state.repair(),
                    _ => state.apply(),
                }
            }
            Action::Probe => {
                let quiet = state.in_flight.is_empty()
                    && state.batch.is_empty()
                    && state.log.iter().all(|message| message.revision <= state.sent);
                let guard = live_guard(1, state.frontier, state.frontier, &state.info());
                match guard {
                    Guard::Trip(_) if self.0 != Variant::Unguarded => state.repair(),
                    _ => state.proven = quiet,
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("a quiet watch is right", |_, state: &State| {
            !state.proven || state.is_right()
        })]
    }
}

#[test]
fn a_guarded_watch_that_is_quiet_has_missed_nothing() {
    super::holds(LiveFloor(Variant::Production), 17_938);
}

#[test]
fn an_unguarded_watch_diverges_in_silence() {
    super::fails(LiveFloor(Variant::Unguarded), "a quiet watch is right");
}

#[test]
fn a_probe_alone_comes_after_the_evidence_is_gone() {
    super::fails(LiveFloor(Variant::PeriodicOnly), "a quiet watch is right");
}
