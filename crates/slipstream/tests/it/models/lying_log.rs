//! A log that is made anew, or loses its newest messages and gives their numbers out again (P1).
//!
//! The log lies while the fold is at its head, or under a fold that is on its way there. In the
//! latter case there is more to lose: an older copy of the log may bring back messages that had been
//! superseded, by ones that the fold had not read, before it came to them. No witness tells, but the
//! cursor says how far the log had gone. (That is outdone by as many writes as were lost, before the
//! fold is back: here there are none.)

use slipstream::protocol::{Finding, MAX_WITNESSES, Position, Resume, Witness, resume};
use slipstream::{LogInfo, Retention};
use stateright::{Model, Property};

const REVISIONS: u64 = 4;
const WRITES: u8 = 6;
const KEYS: u8 = 3;

/// Which checks a resume makes.
#[derive(Clone, Copy)]
struct Checks {
    incarnation: bool,
    head: bool,
    witnesses: bool,
    /// The watch goes on from the witness that was in place, not from the cursor.
    from_witness: bool,
    /// A witness whose key has vanished ends the search.
    vanished: bool,
    /// The end that the log had is compared with the one that it has.
    known_end: bool,
    /// The log is read across a gap in a listing, too.
    read_in_listings: bool,
}

const ALL: Checks = Checks {
    incarnation: true,
    head: true,
    witnesses: true,
    from_witness: true,
    vanished: true,
    known_end: true,
    read_in_listings: true,
};

/// What happens to the log, once.
#[derive(Clone, Copy)]
struct Lies {
    made_anew: bool,
    loses_messages: bool,
    /// And is written to again afterwards.
    goes_on: bool,
    /// It loses messages while the fold has not read everything, and the fold is back before
    /// anybody writes.
    under_a_fold: bool,
}

const ANY: Lies =
    Lies { made_anew: true, loses_messages: true, goes_on: true, under_a_fold: false };
const UNDER_A_FOLD: Lies =
    Lies { made_anew: false, loses_messages: false, goes_on: true, under_a_fold: true };

/// `id` tells two messages of one revision apart, as the time of storing does.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Message {
    revision: u64,
    key: u8,
    id: u8,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    incarnation: u64,
    /// Everything that was written, for a rollback to bring back.
    history: Vec<Message>,
    writes: u8,
    /// The watch reads above this; `None` while the fold is away.
    next: Option<u64>,
    fold: [Option<u8>; KEYS as usize],
    cursor: Option<Position>,
    /// The newest applied message of each of the last keys, newest first.
    witnesses: Vec<Message>,
    /// As far as the watch knows the log to have gone.
    known: u64,
    /// The watch lists what the log has up to here.
    listing: u64,
    lies: u8,
}

impl State {
    /// Of the bucket, which keeps the last message of each key.
    fn log(&self) -> Vec<Message> {
        let newest = |one: &&Message| {
            !self.history.iter().any(|other| other.key == one.key && other.revision > one.revision)
        };
        self.history.iter().filter(newest).copied().collect()
    }

    fn last(&self) -> u64 {
        self.history.last().map_or(0, |message| message.revision)
    }

    fn info(&self) -> LogInfo {
        let first = self.log().first().map_or(self.last() + 1, |message| message.revision);
        let retention = Retention::default();
        LogInfo {
            incarnation: self.incarnation,
            first,
            last: self.last(),
            retention,
            subjects: 0,
            read_at_ms: 0,
        }
    }

    fn values(&self) -> [Option<u8>; KEYS as usize] {
        let log = self.log();
        [0, 1, 2].map(|key| log.iter().find(|message| message.key == key).map(|message| message.id))
    }

    fn find(&self, witness: &Message) -> Witness {
        super::find(&self.log(), witness, |message| (message.revision, message.key))
    }

    fn apply(&mut self, message: Message) {
        self.fold[usize::from(message.key)] = Some(message.id);
        self.witnesses.retain(|witness| witness.key != message.key);
        self.witnesses.insert(0, message);
        self.witnesses.truncate(MAX_WITNESSES);
        let (incarnation, revision) = (self.incarnation, message.revision);
        let end = self.known.max(revision);
        self.cursor = Some(Position { end, ..Position::at(incarnation, revision) });
    }

    /// Resync: what the log does not have goes, and the listing begins.
    fn repair(&mut self) {
        let values = self.values();
        for (folded, value) in self.fold.iter_mut().zip(values) {
            *folded = folded.filter(|_| value.is_some());
        }
        self.witnesses.clear();
        self.cursor = None;
        (self.known, self.listing) = (self.last(), self.last());
        self.next = Some(0);
    }

    fn resume(&mut self, checks: Checks) {
        let Some(mut at) = self.cursor else { return self.repair() };
        if !checks.known_end {
            at.end = at.revision;
        }
        let Position { incarnation, revision, .. } = at;
        let mut info = self.info();
        if !checks.incarnation {
            info.incarnation = incarnation;
        }
        if !checks.head {
            info.last = info.last.max(revision);
        }
        // Without its head, a log that lost everything seems to begin after it.
        if !checks.head || !checks.incarnation {
            info.first = info.first.min(revision + 1);
        }
        let mut witnesses = self.witnesses.clone();
        if !checks.vanished {
            witnesses
                .retain(|witness| self.find(witness).finding != Finding::Gone { key_last: None });
        }
        let mut findings = Vec::new();
        let decision = loop {
            match resume(at, &info, &findings, witnesses.len()) {
                Resume::NeedNextWitness if !checks.witnesses => {
                    break Resume::From(revision);
                }
                Resume::NeedNextWitness => findings.push(self.find(&witnesses[findings.len()])),
                decision => break decision,
            }
        };
        (self.known, self.listing) = (self.last(), 0);
        match decision {
            Resume::From(_) if !checks.from_witness => self.next = Some(revision),
            Resume::From(from) => self.next = Some(from),
            _ => self.repair(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write(u8),
    Deliver,
    Leave,
    Return,
    LoseAfter(u64),
    LoseUnderTheFold(u64),
    Recreate,
}

struct LyingLog(Checks, Lies);

impl Model for LyingLog {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            incarnation: 1,
            history: Vec::new(),
            writes: 0,
            next: Some(0),
            fold: [None; KEYS as usize],
            cursor: None,
            witnesses: Vec::new(),
            known: 0,
            listing: 0,
            lies: 0,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let written = state.lies == 0 || self.1.goes_on;
        if state.last() < REVISIONS && state.writes < WRITES && written {
            actions.extend((0..KEYS).map(Action::Write));
        }
        match state.next {
            Some(next) => {
                if state.last() > next {
                    actions.push(Action::Deliver);
                }
                actions.push(Action::Leave);
            }
            None => actions.push(Action::Return),
        }
        let at_head = state.cursor.map_or(0, |at| at.revision) == state.last();
        if state.lies < 1 && at_head {
            if self.1.loses_messages {
                actions.extend((0..state.last()).map(Action::LoseAfter));
            }
            if self.1.made_anew {
                actions.push(Action::Recreate);
            }
        }
        if state.lies < 1 && self.1.under_a_fold {
            actions.extend((0..state.last()).map(Action::LoseUnderTheFold));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Write(key) => {
                state.writes += 1;
                let (revision, id) = (state.last() + 1, state.writes);
                state.history.push(Message { revision, key, id });
            }
            Action::Deliver => {
                let next = state.next?;
                let follows = state.history.iter().find(|message| message.revision == next + 1);
                // Across a gap the log is read.
                let read = next >= state.listing || self.0.read_in_listings;
                if read && follows.is_some_and(|one| !state.log().contains(one)) {
                    state.known = state.known.max(state.last());
                }
                match state.log().into_iter().find(|message| message.revision > next) {
                    Some(message) => {
                        state.next = Some(message.revision);
                        state.apply(message);
                    }
                    None => state.next = Some(state.last()),
                }
            }
            Action::Leave => (state.next, state.known, state.listing) = (None, 0, 0),
            Action::Return => state.resume(self.0),
            // Either takes the server down, and so every watch.
            Action::LoseAfter(kept) => {
                state.history.retain(|message| message.revision <= kept);
                (state.lies, state.next) = (1, None);
            }
            Action::LoseUnderTheFold(kept) => {
                state.history.retain(|message| message.revision <= kept);
                state.lies = 1;
                state.resume(self.0);
            }
            Action::Recreate => {
                state.history.clear();
                state.incarnation += 1;
                (state.lies, state.next) = (1, None);
            }
        }
        // What nobody looks at need not be told apart.
        if state.next.is_none_or(|next| next >= state.listing) {
            state.listing = 0;
        }
        if !self.1.under_a_fold {
            (state.known, state.listing) = (0, 0);
            state.cursor = state.cursor.map(|at| Position::at(at.incarnation, at.revision));
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(
            "a fold that has read everything is the bucket",
            |_, state: &State| {
                let read = state.next.is_some_and(|next| next >= state.last());
                !read || state.fold == state.values()
            },
        )]
    }
}

const PROPERTY: &str = "a fold that has read everything is the bucket";

#[test]
fn a_fold_is_never_taken_in_by_another_log() {
    super::holds(LyingLog(ALL, ANY), 49_343);
}

#[test]
fn a_log_made_anew_is_told_by_its_incarnation_alone() {
    let lies = Lies { loses_messages: false, ..ANY };
    let checks = Checks { witnesses: false, head: false, ..ALL };
    super::holds(LyingLog(checks, lies), 13_761);
    super::fails(LyingLog(Checks { incarnation: false, ..checks }, lies), PROPERTY);
}

#[test]
fn a_log_that_only_lost_its_end_is_told_by_its_head_alone() {
    let lies = Lies { made_anew: false, goes_on: false, ..ANY };
    let checks = Checks { witnesses: false, incarnation: false, ..ALL };
    super::holds(LyingLog(checks, lies), 2254);
    super::fails(LyingLog(Checks { head: false, ..checks }, lies), PROPERTY);
}

#[test]
fn without_witnesses_a_log_that_was_written_on_is_believed() {
    super::fails(LyingLog(Checks { witnesses: false, ..ALL }, ANY), PROPERTY);
}

#[test]
fn a_witness_proves_nothing_above_itself() {
    super::fails(LyingLog(Checks { from_witness: false, ..ALL }, ANY), PROPERTY);
}

#[test]
fn a_witness_whose_key_has_vanished_cannot_be_passed_over() {
    super::fails(LyingLog(Checks { vanished: false, ..ALL }, ANY), PROPERTY);
}

#[test]
fn a_log_that_goes_back_under_a_fold_is_told_by_the_end_that_it_had() {
    super::holds(LyingLog(ALL, UNDER_A_FOLD), 48_904);
    super::fails(LyingLog(Checks { known_end: false, ..ALL }, UNDER_A_FOLD), PROPERTY);
}

/// What a listing comes to may have been superseded since it began.
#[test]
fn a_listing_that_does_not_read_the_log_again_does_not_know_its_end() {
    super::fails(LyingLog(Checks { read_in_listings: false, ..ALL }, UNDER_A_FOLD), PROPERTY);
}
