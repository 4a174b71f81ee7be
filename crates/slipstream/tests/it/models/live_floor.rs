//! A live watch of everything on a log that evicts its oldest messages (P2), and that goes on after
//! the fold was compared with the bucket (P7).

use slipstream::protocol::{
    Guard, Vanished, before_first_gap, has_vanished, live_guard, made_good_by_comparing,
};
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
    /// A comparison judges the fold, and not what is on its way.
    OnlyTheFoldIsJudged,
    /// A comparison judges what is on its way, however new.
    AllOnTheWayIsJudged,
    /// The log is read after the keys were listed.
    ListedFirst,
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
    comparison: Option<Comparison>,
    /// What was missed up to here was made good.
    compared: u64,
    /// With these keys, while something from before may be on its way.
    judge: Option<Judge>,
    /// A probe of a quiet watch has passed since anything happened.
    proven: bool,
}

/// A comparison of the fold with the bucket that goes on; nothing is received meanwhile.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Comparison {
    head: Option<u64>,
    keys: Option<[bool; KEYS as usize]>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Judge {
    up_to: u64,
    keys: [bool; KEYS as usize],
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

    fn made_good(&self) -> u64 {
        self.frontier.max(self.compared)
    }

    fn trip(&mut self, guard: Guard) -> bool {
        let Guard::Trip(why) = guard else { return false };
        assert!(made_good_by_comparing(why, Vanished::Delete), "{why}");
        self.comparison = Some(Comparison { head: None, keys: None });
        true
    }

    /// The fold loses what the bucket did not list, and the watch goes on.
    fn compared(&mut self, head: u64, keys: [bool; KEYS as usize], variant: Variant) {
        for (value, listed) in self.fold.iter_mut().zip(keys) {
            *value = value.filter(|_| listed);
        }
        self.comparison = None;
        self.compared = head;
        self.judge = match variant {
            Variant::OnlyTheFoldIsJudged => None,
            Variant::AllOnTheWayIsJudged => Some(Judge { up_to: u64::MAX, keys }),
            _ => Some(Judge { up_to: head, keys }),
        };
        self.apply();
    }

    fn apply(&mut self) {
        for message in std::mem::take(&mut self.batch) {
            let key = usize::from(message.key);
            let vanished = self.judge.is_some_and(|Judge { up_to, keys }| {
                has_vanished(keys[key], Some(message.revision), up_to)
            });
            self.fold[key] = (message.put && !vanished).then_some(message.revision);
            self.frontier = message.revision;
        }
        let frontier = self.frontier;
        self.judge.take_if(|judge| judge.up_to <= frontier);
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
    /// Reads the floor, if it must, and applies or compares.
    Flush,
    Probe,
    ReadHead,
    ListKeys,
    Sweep,
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
            comparison: None,
            compared: 0,
            judge: None,
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
        match (state.comparison, self.0) {
            (None, _) => {}
            (Some(Comparison { head: Some(_), keys: Some(_) }), _) => {
                return actions.push(Action::Sweep);
            }
            (Some(Comparison { keys: None, .. }), Variant::ListedFirst)
            | (Some(Comparison { head: Some(_), .. }), _) => return actions.push(Action::ListKeys),
            (Some(_), _) => return actions.push(Action::ReadHead),
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
                let gap = before_first_gap(state.made_good(), revisions);
                let received = state.batch.last()?.revision;
                let guard = match gap {
                    Some(before) => live_guard(1, before, received, &state.info()),
                    None => Guard::Pass,
                };
                let looks = !matches!(self.0, Variant::Unguarded | Variant::PeriodicOnly);
                if !looks || !state.trip(guard) {
                    state.apply();
                }
            }
            Action::Probe => {
                let quiet = state.in_flight.is_empty()
                    && state.batch.is_empty()
                    && state.log.iter().all(|message| message.revision <= state.sent);
                let guard = live_guard(1, state.made_good(), state.frontier, &state.info());
                if self.0 == Variant::Unguarded || !state.trip(guard) {
                    state.proven = quiet;
                }
            }
            Action::ReadHead => state.comparison.as_mut()?.head = Some(last.last),
            Action::ListKeys => {
                let keys = [0, 1].map(|key| last.value(key).is_some());
                state.comparison.as_mut()?.keys = Some(keys);
            }
            Action::Sweep => {
                let Comparison { head, keys } = state.comparison?;
                state.compared(head?, keys?, self.0);
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
    super::holds(LiveFloor(Variant::Production), 309_776);
}

#[test]
fn what_is_on_its_way_may_be_older_than_a_comparison() {
    super::fails(LiveFloor(Variant::OnlyTheFoldIsJudged), "a quiet watch is right");
}

#[test]
fn what_is_newer_than_a_comparison_is_not_judged_by_it() {
    super::fails(LiveFloor(Variant::AllOnTheWayIsJudged), "a quiet watch is right");
}

#[test]
fn a_listing_knows_nothing_of_what_was_written_after_it() {
    super::fails(LiveFloor(Variant::ListedFirst), "a quiet watch is right");
}

#[test]
fn an_unguarded_watch_diverges_in_silence() {
    super::fails(LiveFloor(Variant::Unguarded), "a quiet watch is right");
}

#[test]
fn a_probe_alone_comes_after_the_evidence_is_gone() {
    super::fails(LiveFloor(Variant::PeriodicOnly), "a quiet watch is right");
}
