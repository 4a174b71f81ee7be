//! One resync beside a writer. Between any two of its steps the log may be written to, trimmed,
//! purged, re-created or rolled back, and the process may crash (P1, P2, P5, P6).
//!
//! A second world has a log that evicts current values, and is told to and not to. In a third one time
//! passes and tombstones expire under a fold of one key, beside a key of others; in a fourth somebody
//! waits for revisions.
//!
//! Three steps of the proposal that this resync comes from are not needed in it, which the worlds check
//! as well:
//!
//! - The log is compared with the position at the end (L at or after P), and its incarnation with that at
//!   the beginning. A log that went back or was made again has lost the consumer, and every marker ends by
//!   asking for it. Both comparisons stay, because they are free.
//! - A complete cursor says that everything was observed through the *beginning* of its listing. The
//!   time of the last message would do: the tombstones since the beginning are looked for when the
//!   resync ends, not only when the listing does.

mod steps;

use std::time::Duration;

use rstest::rstest;
use slipstream::protocol::{Cut, Position};
use slipstream::{LogInfo, Retention};
use stateright::{Model, Property};

/// Most keys of a world.
const KEYS: usize = 3;

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mutation {
    KeepsVersionsBelowPosition,
    KeepsTheOldCursor,
    InRepairIsNoCursor,
    SeenOutlivesItsConsumer,
    NoConsumerCheck,
    ClaimsTheHeadItBeganWith,
    NoFloorCheck,
    FloorCheckWhereValuesAreEvicted,
    FloorIsReadBeforeTheEnd,
    VanishedKeysAreFoundEarly,
    CursorBeforeTheLastDelete,
    CursorWithoutEnd,
    CursorWithoutWitnesses,
    WitnessesOfDroppedKeys,
    RetentionIsCheckedOnce,
    EvictionsAreForgotten,
    BatchCursorsInARepair,
    DropsBeforeReadingThrough,
    NoCount,
    NoEndCheck,
    NoIncarnationCheck,
    ObservedThroughTheLastMessage,
    NoTombstoneCheck,
    TombstoneCheckOfTheListingOnly,
    SweepsBeyondTheScope,
    WaitForIsAnsweredInARepair,
    /// A live watch does not look at the floor.
    Unguarded,
    /// Only the progress marker does.
    ProbesOnly,
}

#[derive(Clone, Copy)]
struct World {
    keys: usize,
    /// Both keys were written before, and there is a backup of that log.
    filled: bool,
    /// The process is away to begin with, and its fold has the one key that was written; and there is
    /// a backup of that log.
    asleep: bool,
    writes: u8,
    disasters: u8,
    crashes: u8,
    /// How often the log's limits change.
    changes: u8,
    /// How often a step of time passes; tombstones expire after two.
    ticks: u8,
    /// So many of the keys are folded. The store has an entry of its own under the others.
    scope: usize,
    /// Whether somebody waits for what was written.
    waits: bool,
    mutation: Option<Mutation>,
}

const STEP_MS: u64 = 4;
const TOMBSTONE_LIFE_MS: u64 = 2 * STEP_MS;

const KEEPING: World = World {
    keys: 2,
    filled: false,
    asleep: false,
    writes: 2,
    disasters: 1,
    crashes: 1,
    changes: 0,
    ticks: 0,
    scope: 2,
    waits: false,
    mutation: None,
};
const ASLEEP: World = World { asleep: true, writes: 3, crashes: 0, ..KEEPING };
/// A third key may take the place of one that the fold has and the log has lost.
const ASLEEP_OF_THREE: World = World { keys: 3, scope: 3, ..ASLEEP };
const EVICTING: World = World { disasters: 0, changes: 2, ..KEEPING };
const FILLED: World = World { filled: true, writes: 3, crashes: 0, ..KEEPING };
const EXPIRING: World = World { writes: 4, disasters: 0, ticks: 2, scope: 1, ..FILLED };
const WAITED_FOR: World = World { writes: 3, disasters: 0, crashes: 0, waits: true, ..ASLEEP };

/// `id` tells two messages of one revision apart, as the time of storing does.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Message {
    revision: u64,
    key: usize,
    put: bool,
    id: u8,
    at_ms: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Log {
    incarnation: u64,
    /// The last message of each key.
    messages: Vec<Message>,
    last: u64,
    evicts: bool,
    /// Whether tombstones expire.
    expires: bool,
    now_ms: u64,
    /// What each key has, as its writers see it.
    truth: [Option<u8>; KEYS],
    /// Where each was written last, for those who wait for that.
    written: [u64; KEYS],
}

impl Log {
    fn info(&self) -> LogInfo {
        let first = self.messages.first().map_or(self.last + 1, |message| message.revision);
        let max_messages = self.evicts.then_some(1);
        let marker_ttl = self.expires.then_some(Duration::from_millis(TOMBSTONE_LIFE_MS));
        let retention = Retention {
            max_messages,
            discards_oldest: self.evicts,
            per_message_ttl: self.expires,
            marker_ttl,
            ..Retention::default()
        };
        LogInfo {
            incarnation: self.incarnation,
            first,
            last: self.last,
            retention,
            subjects: self.messages.len() as u64,
            read_at_ms: self.now_ms,
        }
    }

    fn has_expired(&self, message: &Message) -> bool {
        self.expires && !message.put && self.now_ms - message.at_ms >= TOMBSTONE_LIFE_MS
    }

    fn values(&self) -> [Option<u8>; KEYS] {
        std::array::from_fn(|key| {
            let put = self.messages.iter().find(|message| message.key == key && message.put);
            put.map(|message| message.id)
        })
    }

    fn forget(&mut self, messages: impl Fn(&Message) -> bool) {
        self.messages.retain(|message| !messages(message));
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Consumer {
    /// The server has it.
    exists: bool,
    sent: u64,
    in_flight: Vec<Message>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Cursor {
    in_repair: bool,
    evicted: bool,
    at: Position,
    witnesses: Vec<Message>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Repair {
    /// The keys that a listing has brought, and whether with a value; `None` in an overrun.
    seen: Option<[Option<bool>; KEYS]>,
    cut: Option<Cut>,
    /// What the fold has when the vanished keys are gone; set when everything through the cut was
    /// received.
    claim: Option<u64>,
    keeps: bool,
    /// Mutations only.
    victims: Option<Vec<usize>>,
    floor_at_start: u64,
}

/// What the process has in memory.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct Run {
    /// As the log was read before the watch was made.
    began: Option<LogFacts>,
    consumer: Option<Consumer>,
    position: u64,
    frontier: u64,
    end: u64,
    /// Keys of the log, as they were counted.
    subjects: u64,
    evicted: bool,
    /// Up to when everything was observed, by the batches and by the watch's own cursor.
    observed_ms: u64,
    watch_observed_ms: u64,
    /// What `wait_for` compares with.
    applied: u64,
    repair: Option<Repair>,
    /// The newest messages of the keys, newest first.
    recent: Vec<Message>,
    /// The first half of a progress marker.
    asked: Option<Asked>,
    /// A progress marker of a complete fold has passed since anything happened.
    proven: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
struct Asked {
    head: u64,
    pending: u64,
    delivered: u64,
    read_at_ms: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct LogFacts {
    incarnation: u64,
    last: u64,
    evicts: bool,
    read_at_ms: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    log: Log,
    backup: Option<Log>,
    run: Option<Run>,
    fold: [Option<(u64, u8)>; KEYS],
    cursor: Option<Cursor>,
    writes: u8,
    disasters: u8,
    crashes: u8,
    changes: u8,
    ticks: u8,
    /// A value that its writers still have was dropped as vanished.
    lost: bool,
    /// Of a consumer that is gone, for the mutation.
    old_seen: Option<[Option<bool>; KEYS]>,
}

fn facts(info: &LogInfo) -> LogFacts {
    let evicts = info.retention.discards_oldest;
    let LogInfo { incarnation, last, read_at_ms, .. } = *info;
    LogFacts { incarnation, last, evicts, read_at_ms }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write {
        key: usize,
        put: bool,
    },
    /// The log drops its oldest message, if it is a tombstone or the log evicts.
    Trim,
    Tick,
    /// The log drops the tombstone of a key, which has expired.
    Expire(usize),
    SetEvicts(bool),
    Purge,
    PurgeKey(usize),
    Recreate,
    BackUp,
    RollBack,
    Crash,
    Arm,
    ReadLog,
    Watch,
    Send,
    Receive,
    Ask,
    Check,
    Sweep,
}

/// An entry that the store has from elsewhere.
const OWN: (u64, u8) = (1, u8::MAX);

impl World {
    fn is_unsent(&self, consumer: &Consumer, message: &Message) -> bool {
        message.revision > consumer.sent && message.key < self.scope
    }

    fn server(&self, state: &State, actions: &mut Vec<Action>) {
        if state.writes < self.writes {
            for key in 0..self.keys {
                actions.push(Action::Write { key, put: true });
                // What others delete makes no difference.
                if key < self.scope {
                    actions.push(Action::Write { key, put: false });
                }
            }
        }
        if state.ticks < self.ticks {
            actions.push(Action::Tick);
        }
        let expired = state.log.messages.iter().filter(|message| state.log.has_expired(message));
        actions.extend(expired.map(|message| Action::Expire(message.key)));
        let oldest = state.log.messages.first();
        let trims = |message: &Message| (!message.put && self.ticks == 0) || state.log.evicts;
        if oldest.is_some_and(trims) {
            actions.push(Action::Trim);
        }
        // Limits that come and go between two readings of the log are seen by nobody.
        let noticed = state.cursor.as_ref().is_some_and(|cursor| cursor.evicted);
        if state.changes < self.changes && (!state.log.evicts || noticed) {
            actions.push(Action::SetEvicts(!state.log.evicts));
        }
        if state.disasters < self.disasters {
            if !state.log.messages.is_empty() {
                actions.push(Action::Purge);
            }
            // It leaves no trace but the count of keys, which tells only while nobody writes.
            let listing = |run: &Run| {
                let repair = run.repair.as_ref();
                let quiet = run.began.as_ref().is_some_and(|began| began.last == state.log.last);
                quiet
                    && repair.is_some_and(|repair| repair.seen.is_some() && repair.claim.is_none())
            };
            if state.writes == self.writes && state.run.as_ref().is_some_and(listing) {
                actions.extend((0..self.keys).map(Action::PurgeKey));
            }
            actions.push(Action::Recreate);
            match &state.backup {
                None if state.log.last > 0 => actions.push(Action::BackUp),
                Some(backup) if *backup != state.log => actions.push(Action::RollBack),
                _ => {}
            }
        }
    }

    fn process(&self, run: &Run, actions: &mut Vec<Action>) {
        let Some(consumer) = &run.consumer else {
            return actions.push(if run.began.is_none() { Action::ReadLog } else { Action::Watch });
        };
        if !consumer.in_flight.is_empty() {
            actions.push(Action::Receive);
        }
        actions.push(if run.asked.is_none() { Action::Ask } else { Action::Check });
        if run.repair.as_ref().is_some_and(|repair| repair.claim.is_some()) {
            actions.push(Action::Sweep);
        }
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let truth = [None; KEYS];
        let log = Log {
            incarnation: 1,
            messages: Vec::new(),
            last: 0,
            evicts: false,
            expires: self.ticks > 0,
            now_ms: 0,
            truth,
            written: [0; KEYS],
        };
        let mut state = State {
            log,
            backup: None,
            run: None,
            fold: [None; KEYS],
            cursor: None,
            writes: 0,
            disasters: 0,
            crashes: 0,
            changes: 0,
            ticks: 0,
            lost: false,
            old_seen: None,
        };
        state.fold[self.scope..self.keys].fill(Some(OWN));
        if self.filled {
            let message = |revision, key, id| Message { revision, key, put: true, id, at_ms: 0 };
            state.log.messages = vec![message(1, 1, 1), message(2, 0, 2)];
            (state.log.last, state.log.truth, state.writes) = (2, [Some(2), Some(1), None], 2);
            state.backup = (self.disasters > 0).then(|| state.log.clone());
        }
        if self.asleep {
            let message = Message { revision: 1, key: 0, put: true, id: 1, at_ms: 0 };
            state.log.messages.push(message);
            (state.log.last, state.log.truth[0], state.writes) = (1, Some(1), 1);
            state.backup = Some(state.log.clone());
            state.fold[0] = Some((1, 1));
            let at = Position { subjects: 1, ..Position::at(1, 1) };
            let (in_repair, evicted, witnesses) = (false, false, vec![message]);
            state.cursor = Some(Cursor { in_repair, evicted, at, witnesses });
        }
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.server(state, actions);
        let Some(run) = &state.run else { return actions.push(Action::Arm) };
        if state.crashes < self.crashes {
            actions.push(Action::Crash);
        }
        let unsent = |consumer: &Consumer| {
            let mut messages = state.log.messages.iter();
            consumer.exists && messages.any(|message| self.is_unsent(consumer, message))
        };
        if run.consumer.as_ref().is_some_and(unsent) {
            actions.push(Action::Send);
        }
        self.process(run, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        if let Some(run) = &mut state.run {
            run.proven = false;
        }
        let log = &mut state.log;
        match action {
            Action::Write { key, put } => {
                state.writes += 1;
                let (revision, id) = (log.last + 1, state.writes);
                log.forget(|message| message.key == key);
                log.messages.push(Message { revision, key, put, id, at_ms: log.now_ms });
                (log.last, log.truth[key]) = (revision, put.then_some(id));
                if self.waits {
                    log.written[key] = revision;
                }
            }
            Action::Tick => {
                state.ticks += 1;
                log.now_ms += STEP_MS;
            }
            Action::Expire(key) => log.forget(|message| message.key == key && !message.put),
            Action::Trim => {
                log.messages.remove(0);
            }
            Action::SetEvicts(evicts) => {
                state.changes += 1;
                log.evicts = evicts;
            }
            Action::Purge => {
                state.disasters += 1;
                log.messages.clear();
                log.truth = [None; KEYS];
            }
            Action::PurgeKey(key) => {
                state.disasters += 1;
                log.forget(|message| message.key == key);
                log.truth[key] = None;
            }
            Action::Recreate => {
                state.disasters += 1;
                let (incarnation, truth) = (log.incarnation + 1, [None; KEYS]);
                *log = Log { incarnation, messages: Vec::new(), last: 0, truth, ..log.clone() };
                state.end_consumer();
            }
            Action::BackUp => state.backup = Some(log.clone()),
            Action::RollBack => {
                state.disasters += 1;
                *log = state.backup.take()?;
                state.end_consumer();
            }
            Action::Crash => {
                state.crashes += 1;
                state.run = None;
            }
            Action::Arm => state.arm(self),
            Action::ReadLog => {
                let facts = facts(&log.info());
                let run = state.run.as_mut()?;
                run.evicted |= facts.evicts;
                run.began = Some(facts);
                state.store(
                    true,
                    0,
                    self.mutation.filter(|one| *one != Mutation::KeepsTheOldCursor),
                );
                if self.mutation == Some(Mutation::KeepsTheOldCursor) {
                    state.cursor = last.cursor.clone();
                }
            }
            Action::Watch => {
                let (sent, in_flight) = (0, Vec::new());
                state.run.as_mut()?.watch_observed_ms = log.now_ms;
                state.run.as_mut()?.consumer = Some(Consumer { exists: true, sent, in_flight });
            }
            Action::Send => {
                let consumer = state.run.as_mut()?.consumer.as_mut()?;
                let next = log.messages.iter().find(|one| self.is_unsent(consumer, one))?;
                consumer.sent = next.revision;
                consumer.in_flight.push(*next);
            }
            Action::Receive => state.receive(self)?,
            Action::Ask => {
                let run = state.run.as_mut()?;
                let consumer = run.consumer.as_ref()?;
                let unchecked = self.mutation == Some(Mutation::NoConsumerCheck);
                let (head, read_at_ms) = (log.last, log.now_ms);
                if unchecked {
                    let (pending, delivered) = (0, run.position);
                    run.asked = Some(Asked { head, pending, delivered, read_at_ms });
                } else if !consumer.exists {
                    state.run = None;
                } else {
                    let left = log.messages.iter().filter(|one| self.is_unsent(consumer, one));
                    let pending = left.count() as u64;
                    let in_flight = consumer.in_flight.last();
                    let delivered = in_flight.map_or(run.position, |message| message.revision);
                    run.asked = Some(Asked { head, pending, delivered, read_at_ms });
                }
            }
            Action::Check => state.check(self)?,
            Action::Sweep => state.sweep(self)?,
        }
        // What nobody looks at need not be told apart.
        if self.mutation != Some(Mutation::SeenOutlivesItsConsumer) {
            state.old_seen = None;
        }
        if state.disasters >= self.disasters {
            state.backup = None;
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(EQUAL, |world: &World, state: &State| {
                let exists = |run: &Run| run.consumer.as_ref().is_some_and(|one| one.exists);
                let proven = state.run.as_ref().is_some_and(|run| run.proven && exists(run));
                let values = state.log.values();
                let equal = |key: &usize| {
                    let folded = state.fold[*key].map(|(_, id)| id);
                    folded == values[*key] || (values[*key].is_none() && world.changes > 0)
                };
                !proven || (0..world.scope).all(|key| equal(&key))
            }),
            // A log that goes back may have again what was dropped.
            Property::always(KEPT, |world: &World, state: &State| {
                !state.lost || world.disasters > 0
            }),
            Property::always(WAITED, |world: &World, state: &State| {
                let applied = state.run.as_ref().map_or(0, |run| run.applied);
                let found = |key: usize| state.fold[key].map(|(_, id)| id) == state.log.truth[key];
                let is_due = |key: &usize| state.log.written[*key] <= applied;
                !world.waits || (0..world.scope).filter(is_due).all(found)
            }),
            Property::always(LEFT, |world: &World, state: &State| {
                state.fold[world.scope..world.keys].iter().all(|entry| *entry == Some(OWN))
            }),
        ]
    }
}

impl State {
    fn end_consumer(&mut self) {
        if let Some(consumer) = self.run.as_mut().and_then(|run| run.consumer.as_mut()) {
            consumer.exists = false;
        }
    }
}

const EQUAL: &str = "a complete fold at the head is the bucket";
const KEPT: &str = "no value that its writers have is dropped";
const WAITED: &str = "who has waited for a write finds it";
const LEFT: &str = "entries of other keys stay";

#[test]
fn a_resync_beside_a_writer_ends_with_the_bucket() {
    super::holds(KEEPING, 355_532);
}

#[test]
fn a_fold_that_was_away_ends_with_the_bucket() {
    super::holds(ASLEEP, 75_560);
    super::holds(ASLEEP_OF_THREE, 149_742);
}

#[test]
fn a_resync_takes_nothing_that_the_log_evicted() {
    super::holds(EVICTING, 427_713);
}

#[test]
fn a_resync_under_which_tombstones_expire_ends_with_the_bucket() {
    super::holds(EXPIRING, 138_092);
}

#[test]
fn who_waits_for_a_write_finds_it_in_the_fold() {
    super::holds(WAITED_FOR, 10_571);
}

#[rstest]
#[case(World { mutation: Some(Mutation::NoEndCheck), ..ASLEEP }, 76_603)]
#[case(World { mutation: Some(Mutation::NoIncarnationCheck), ..FILLED }, 12_427)]
#[case(World { mutation: Some(Mutation::ObservedThroughTheLastMessage), ..EXPIRING }, 137_760)]
fn steps_of_the_proposal_that_others_make_needless(#[case] world: World, #[case] states: usize) {
    super::holds(world, states);
}

#[rstest]
#[case(Mutation::NoTombstoneCheck, EXPIRING, EQUAL)]
#[case(Mutation::TombstoneCheckOfTheListingOnly, EXPIRING, EQUAL)]
#[case(Mutation::SweepsBeyondTheScope, EXPIRING, LEFT)]
#[case(Mutation::WaitForIsAnsweredInARepair, WAITED_FOR, WAITED)]
fn a_resync_minds_time_scope_and_who_waits(
    #[case] mutation: Mutation,
    #[case] world: World,
    #[case] property: &'static str,
) {
    super::fails(World { mutation: Some(mutation), ..world }, property);
}

#[rstest]
fn every_step_of_a_resync_is_needed(
    #[values(
        Mutation::KeepsVersionsBelowPosition,
        Mutation::KeepsTheOldCursor,
        Mutation::SeenOutlivesItsConsumer,
        Mutation::NoConsumerCheck,
        Mutation::ClaimsTheHeadItBeganWith,
        Mutation::NoFloorCheck,
        Mutation::FloorIsReadBeforeTheEnd,
        Mutation::VanishedKeysAreFoundEarly,
        Mutation::CursorBeforeTheLastDelete,
        Mutation::CursorWithoutEnd,
        Mutation::CursorWithoutWitnesses,
        Mutation::WitnessesOfDroppedKeys,
        Mutation::BatchCursorsInARepair,
        Mutation::DropsBeforeReadingThrough,
        Mutation::NoCount,
        Mutation::Unguarded,
        Mutation::ProbesOnly
    )]
    mutation: Mutation,
) {
    let world = match mutation {
        Mutation::CursorWithoutWitnesses => ASLEEP_OF_THREE,
        Mutation::WitnessesOfDroppedKeys => ASLEEP,
        Mutation::ClaimsTheHeadItBeganWith => FILLED,
        Mutation::SeenOutlivesItsConsumer => World { writes: 3, crashes: 0, ..KEEPING },
        _ => KEEPING,
    };
    super::fails(World { mutation: Some(mutation), ..world }, EQUAL);
}

#[rstest]
fn a_log_that_evicts_takes_nothing_along(
    #[values(
        Mutation::InRepairIsNoCursor,
        Mutation::FloorCheckWhereValuesAreEvicted,
        Mutation::RetentionIsCheckedOnce,
        Mutation::EvictionsAreForgotten
    )]
    mutation: Mutation,
) {
    super::fails(World { mutation: Some(mutation), ..EVICTING }, KEPT);
}
