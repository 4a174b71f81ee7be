//! A log that forgets deletes, under a fold that makes it good by comparing itself with the bucket,
//! goes away and comes back, and whose server comes back with an older copy of the log (P1, P2, P7).
//!
//! Each of these has a model of its own where it is looked at closely; here they meet.

use slipstream::protocol::{
    Guard, Position, Resume, Witness, before_first_gap, live_guard, resume,
};
use slipstream::{LogInfo, Retention};
use stateright::{Model, Property};

const REVISIONS: u64 = 4;
const KEYS: usize = 2;

#[derive(Clone, Copy)]
struct Checks {
    /// The floor is looked at before something is applied across a gap, and when all is quiet. (So
    /// that it is at a resume, too, saves a watch, and nothing else: without it all of this holds.)
    floor: bool,
    /// Across a gap the log is read, also where a comparison has made it good.
    read_what_was_compared: bool,
    /// What a comparison deletes is stored with the end that the log had.
    deletes_say_the_end: bool,
    /// A listing asks whether deletes were forgotten since the fold was compared.
    listings_look: bool,
}

const ALL: Checks = Checks {
    floor: true,
    read_what_was_compared: true,
    deletes_say_the_end: true,
    listings_look: true,
};

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Message {
    revision: u64,
    key: usize,
    put: bool,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    /// Everything that was written, for an older copy to bring back.
    history: Vec<Message>,
    /// Messages up to here are forgotten.
    floor: u64,
    /// The watch reads above this; `None` while the fold is away.
    next: Option<u64>,
    /// It lists what the log has up to here.
    listing: u64,
    compared: u64,
    /// A comparison has begun, when the log had gone so far.
    comparing: Option<u64>,
    /// As far as the watch knows the log to have gone.
    known: u64,
    fold: [Option<u64>; KEYS],
    cursor: Option<Position>,
    /// The newest applied message of each key, newest first.
    witnesses: Vec<Message>,
    rolled_back: bool,
}

impl State {
    fn log(&self) -> Vec<Message> {
        let newest = |one: &&Message| {
            let same = |other: &&Message| other.key == one.key && other.revision > one.revision;
            one.revision > self.floor && self.history.iter().find(same).is_none()
        };
        self.history.iter().filter(newest).copied().collect()
    }

    fn last(&self) -> u64 {
        self.history.last().map_or(0, |message| message.revision)
    }

    fn info(&self) -> LogInfo {
        let first = self.log().first().map_or(self.last() + 1, |message| message.revision);
        let retention = Retention::default();
        LogInfo { incarnation: 1, first, last: self.last(), retention, read_at_ms: 0 }
    }

    fn values(&self) -> [Option<u64>; KEYS] {
        let log = self.log();
        [0, 1].map(|key| {
            let put = log.iter().find(|message| message.key == key && message.put);
            put.map(|message| message.revision)
        })
    }

    fn find(&self, witness: &Message) -> Witness {
        super::find(&self.log(), witness, |message| (message.revision, message.key))
    }

    /// Lists the keys, and deletes those that are not there.
    fn sweep(&mut self, head: u64, end: u64) {
        let values = self.values();
        for (folded, value) in self.fold.iter_mut().zip(values) {
            *folded = folded.filter(|_| value.is_some());
        }
        self.compared = head;
        self.known = self.known.max(end);
    }

    /// Under a running watch: what it deletes is stored before anything else is.
    fn compare(&mut self, head: u64, checks: Checks) {
        self.sweep(head, self.last());
        if let Some(at) = &mut self.cursor
            && checks.deletes_say_the_end
        {
            at.end = at.end.max(self.known);
        }
    }

    fn repair(&mut self) {
        self.known = 0;
        self.sweep(self.last(), self.last());
        self.witnesses.clear();
        self.cursor = None;
        (self.next, self.listing) = (Some(0), self.last());
    }

    fn store(&mut self, revision: u64) {
        let end = self.known.max(revision);
        self.cursor = Some(Position { end, ..Position::at(1, revision) });
        self.next = Some(revision);
    }

    fn deliver(&mut self, checks: Checks) -> Option<()> {
        let next = self.next?;
        let message = self.log().into_iter().find(|message| message.revision > next)?;
        let gapped = before_first_gap(next, [message.revision]).is_some();
        let guarded = match next < self.listing {
            true => (gapped && checks.listings_look).then_some(self.compared),
            false => before_first_gap(next.max(self.compared), [message.revision]),
        };
        let guarded = guarded.filter(|_| checks.floor);
        let guard = guarded.map(|before| live_guard(1, before, message.revision, &self.info()));
        if guard.is_some_and(|guard| guard != Guard::Pass) {
            self.comparing = Some(self.last());
            return Some(());
        }
        if gapped && (next >= self.compared || checks.read_what_was_compared) {
            self.known = self.known.max(self.last());
        }
        self.fold[message.key] = message.put.then_some(message.revision);
        self.witnesses.retain(|witness| witness.key != message.key);
        self.witnesses.insert(0, message);
        self.store(message.revision);
        Some(())
    }

    /// Nothing is left to deliver, and the head is further.
    fn probe(&mut self, checks: Checks) -> Option<()> {
        let next = self.next?;
        let made_good = next.max(self.compared);
        match live_guard(1, made_good, next, &self.info()) {
            Guard::Trip(_) if checks.floor => self.comparing = Some(self.last()),
            _ => self.store(self.last()),
        }
        Some(())
    }

    fn resume(&mut self) {
        self.comparing = None;
        let Some(at) = self.cursor else { return self.repair() };
        let mut findings = Vec::new();
        let decision = loop {
            match resume(at, &self.info(), &findings, self.witnesses.len()) {
                Resume::NeedNextWitness => {
                    findings.push(self.find(&self.witnesses[findings.len()]));
                }
                decision => break decision,
            }
        };
        match decision {
            Resume::From(from) => {
                (self.next, self.listing) = (Some(from), 0);
                (self.compared, self.known) = (0, self.last());
            }
            _ => self.repair(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write {
        key: usize,
        put: bool,
    },
    /// Retention takes markers, not current values: those a repair could not bring back (P5).
    Forget,
    Deliver,
    Probe,
    /// Ends a comparison.
    Compare,
    Leave,
    Return,
    /// The server is back with an older copy; nobody writes before the fold is back, too.
    RollBack {
        kept: u64,
        /// It had forgotten as much.
        had_forgotten: bool,
    },
}

struct ForgetfulLog(Checks);

impl Model for ForgetfulLog {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            history: Vec::new(),
            floor: 0,
            next: Some(0),
            listing: 0,
            compared: 0,
            comparing: None,
            known: 0,
            fold: [None; KEYS],
            cursor: None,
            witnesses: Vec::new(),
            rolled_back: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.last() < REVISIONS {
            for key in 0..KEYS {
                actions.extend([true, false].map(|put| Action::Write { key, put }));
            }
        }
        let log = state.log();
        if log.first().is_some_and(|message| !message.put) {
            actions.push(Action::Forget);
        }
        match state.next {
            None => actions.push(Action::Return),
            Some(next) => {
                actions.push(Action::Leave);
                if state.comparing.is_some() {
                    actions.push(Action::Compare);
                } else if log.iter().any(|message| message.revision > next) {
                    actions.push(Action::Deliver);
                } else if next < state.last() {
                    actions.push(Action::Probe);
                }
            }
        }
        if !state.rolled_back {
            for kept in 0..state.last() {
                actions.push(Action::RollBack { kept, had_forgotten: false });
                if (1..=kept).contains(&state.floor) {
                    actions.push(Action::RollBack { kept, had_forgotten: true });
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Write { key, put } => {
                state.history.push(Message { revision: state.last() + 1, key, put });
            }
            Action::Forget => state.floor = state.log()[0].revision,
            Action::Deliver => state.deliver(self.0)?,
            Action::Probe => state.probe(self.0)?,
            Action::Compare => {
                let head = state.comparing.take()?;
                state.compare(head, self.0);
            }
            Action::Leave => {
                (state.next, state.listing, state.compared, state.known) = (None, 0, 0, 0);
                state.comparing = None;
            }
            Action::Return => state.resume(),
            Action::RollBack { kept, had_forgotten } => {
                state.history.retain(|message| message.revision <= kept);
                if !had_forgotten {
                    state.floor = 0;
                }
                state.rolled_back = true;
                state.resume();
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(PROPERTY, |_, state: &State| {
            let read = state.next.is_some_and(|next| next >= state.last());
            !read || state.fold == state.values()
        })]
    }
}

const PROPERTY: &str = "a fold that has read everything is the bucket";

#[test]
fn a_fold_of_a_forgetful_log_is_right_whenever_it_has_read_everything() {
    super::holds(ForgetfulLog(ALL), 282_858);
}

#[test]
fn a_watch_that_does_not_look_at_the_floor_keeps_deleted_keys() {
    super::fails(ForgetfulLog(Checks { floor: false, ..ALL }), PROPERTY);
}

#[test]
fn a_gap_that_was_made_good_may_still_hide_what_comes_back() {
    super::fails(ForgetfulLog(Checks { read_what_was_compared: false, ..ALL }), PROPERTY);
}

#[test]
fn a_key_that_a_comparison_deleted_may_come_back_with_an_older_log() {
    super::fails(ForgetfulLog(Checks { deletes_say_the_end: false, ..ALL }), PROPERTY);
}

#[test]
fn a_listing_that_is_cut_owes_what_was_forgotten_since_it_began() {
    super::fails(ForgetfulLog(Checks { listings_look: false, ..ALL }), PROPERTY);
}
