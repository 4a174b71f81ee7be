//! A live watch of two keys among others: its frontier passes what it is not sent (P2, P3). Where a
//! guard trips a resync begins, which is another model's.

use slipstream::protocol::{Advance, Guard, advance, before_first_gap, live_guard};
use slipstream::{LogInfo, Progress, Retention};
use stateright::{Model, Property};

const REVISIONS: u64 = 3;
const KEYS: usize = 2;

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Production,
    /// The floor is read with the head, before the consumer is asked.
    WithoutLastRead,
    /// What the consumer has sent counts as received.
    WithoutDeliveredCheck,
    /// Deliveries are applied without looking at the floor.
    Unguarded,
}

/// A message of a watched key; the others' need not be told apart.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Message {
    revision: u64,
    key: usize,
    put: bool,
}

/// A progress marker that is being read.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Marker {
    head: u64,
    first: u64,
    consumer: Option<(u64, u64)>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    /// Revisions in the log; `None` is somebody else's.
    log: Vec<(u64, Option<Message>)>,
    last: u64,
    first: u64,
    truth: [Option<Message>; KEYS],
    sent: u64,
    /// The last message sent.
    delivered: u64,
    in_flight: Vec<Message>,
    received: u64,
    frontier: u64,
    fold: [Option<u64>; KEYS],
    marker: Option<Marker>,
}

impl State {
    fn info(&self) -> LogInfo {
        let retention = Retention::default();
        let (first, last) = (self.first, self.last);
        LogInfo { incarnation: 1, first, last, retention, subjects: 0, read_at_ms: 0 }
    }

    fn value(&self, key: usize) -> Option<u64> {
        self.truth[key].filter(|message| message.put).map(|message| message.revision)
    }

    /// What the frontier claims of a key.
    fn is_honest(&self, key: usize) -> bool {
        let passed = self.truth[key].is_none_or(|last| last.revision <= self.frontier);
        !passed || self.fold[key] == self.value(key)
    }

    fn apply(&mut self, message: Message) {
        let Message { revision, key, put } = message;
        self.fold[key] = put.then_some(revision);
        self.received = revision;
        self.frontier = self.frontier.max(revision);
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write { key: usize, put: bool },
    WriteElsewhere,
    Evict,
    Send,
    Receive,
    ReadHead,
    AskConsumer,
    ReadFloor,
}

struct PrefixMarker(Variant);

impl Model for PrefixMarker {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            log: Vec::new(),
            last: 0,
            first: 1,
            truth: [None; KEYS],
            sent: 0,
            delivered: 0,
            in_flight: Vec::new(),
            received: 0,
            frontier: 0,
            fold: [None; KEYS],
            marker: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.last < REVISIONS {
            for key in 0..KEYS {
                actions.extend([true, false].map(|put| Action::Write { key, put }));
            }
            actions.push(Action::WriteElsewhere);
        }
        // Markers and what is somebody else's; see the model of the unfiltered watch.
        let evictable = |(_, message): &(u64, Option<Message>)| message.is_none_or(|one| !one.put);
        if state.log.first().is_some_and(evictable) {
            actions.push(Action::Evict);
        }
        if state.log.iter().any(|(revision, _)| *revision > state.sent) {
            actions.push(Action::Send);
        }
        if !state.in_flight.is_empty() {
            actions.push(Action::Receive);
        }
        actions.push(match state.marker {
            None => Action::ReadHead,
            Some(Marker { consumer: None, .. }) => Action::AskConsumer,
            Some(_) => Action::ReadFloor,
        });
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Write { .. } | Action::WriteElsewhere => {
                state.last += 1;
                let message = match action {
                    Action::Write { key, put } => Some(Message { revision: state.last, key, put }),
                    _ => None,
                };
                if let Some(message) = message {
                    let same = |older: Option<Message>| older.is_some_and(|o| o.key == message.key);
                    state.log.retain(|(_, older)| !same(*older));
                    state.truth[message.key] = Some(message);
                }
                state.log.push((state.last, message));
                state.first = state.log[0].0;
            }
            Action::Evict => {
                state.log.remove(0);
                state.first = state.log.first().map_or(state.last + 1, |(first, _)| *first);
            }
            // The server walks over what is not for this watch.
            Action::Send => {
                let sent = state.sent;
                let (revision, message) =
                    *state.log.iter().find(|(revision, _)| *revision > sent)?;
                state.sent = revision;
                if let Some(message) = message {
                    state.delivered = revision;
                    state.in_flight.push(message);
                }
            }
            Action::Receive => {
                let message = state.in_flight.remove(0);
                let gap = before_first_gap(state.frontier, [message.revision]);
                let guard = match gap {
                    Some(before) => live_guard(1, before, message.revision, &state.info()),
                    None => Guard::Pass,
                };
                if self.0 != Variant::Unguarded && guard != Guard::Pass {
                    return None;
                }
                state.apply(message);
            }
            Action::ReadHead => {
                state.marker =
                    Some(Marker { head: state.last, first: state.first, consumer: None });
            }
            Action::AskConsumer => {
                let pending = state
                    .log
                    .iter()
                    .filter(|(revision, message)| *revision > state.sent && message.is_some());
                let answer = (pending.count() as u64, state.delivered);
                state.marker.as_mut()?.consumer = Some(answer);
            }
            Action::ReadFloor => {
                let marker = state.marker.take()?;
                let (pending, delivered) = marker.consumer?;
                let early = self.0 == Variant::WithoutLastRead;
                let blind = self.0 == Variant::WithoutDeliveredCheck;
                let progress = Progress {
                    head: marker.head,
                    pending,
                    delivered,
                    received: if blind { delivered } else { state.received },
                    log: LogInfo {
                        first: if early { marker.first } else { state.first },
                        ..state.info()
                    },
                };
                // A marker that was overtaken by deliveries is of no use; production asks when all
                // is quiet.
                if state.frontier <= marker.head {
                    match advance(1, state.frontier, &progress) {
                        Advance::To(head) => state.frontier = head,
                        Advance::Wait => {}
                        Advance::Trip(_) => return None,
                    }
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("the frontier is honest", |_, state: &State| {
            (0..KEYS).all(|key| state.is_honest(key))
        })]
    }
}

#[test]
fn a_filtered_watch_passes_only_what_was_not_for_it() {
    super::holds(PrefixMarker(Variant::Production), 63_110);
}

#[test]
fn a_floor_that_is_read_too_early_misses_what_was_evicted_while_pending() {
    super::fails(PrefixMarker(Variant::WithoutLastRead), "the frontier is honest");
}

#[test]
fn a_marker_that_does_not_wait_for_what_was_sent_passes_it() {
    super::fails(PrefixMarker(Variant::WithoutDeliveredCheck), "the frontier is honest");
}

#[test]
fn an_unguarded_filtered_watch_diverges() {
    super::fails(PrefixMarker(Variant::Unguarded), "the frontier is honest");
}
