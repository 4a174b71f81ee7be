//! Export rounds of a fleet, over a log that may lose its newest messages, or be made again with a higher
//! or a lower incarnation: the pointer never goes back (P7), what it names is there (P8), nobody begins with what the log does not continue (P9), and what may
//! lack evicted keys does not replace what lacks none (P11).
//!
//! Rounds are unbounded: a node begins another whenever it likes, stops anywhere, and payloads are
//! deleted without any grace. (Epochs are bounded: as long as there is no pointer, each round that is
//! given up after its upload leads to a higher one.) The lease is left out, as nothing depends on it. A
//! swap fails if the pointer was touched at all since it was read: that one was made, deleted payloads
//! and was lost again within this one request is left to the grace of deletions.

use std::collections::BTreeSet;

use slipstream::protocol::{
    Offer, PointerState, Position, Publish, Rank, Resume, Verdict, may_publish, next_epoch,
    payload_prunable, resume, verdict,
};
use slipstream::{CursorExpiry, LogInfo, Retention};
use stateright::{Model, Property};

use super::{fails, holds};

const EPOCH_MAX: u64 = 1;

/// Which rules are followed.
#[derive(Clone, Copy)]
struct Rules {
    /// The pointer is compared when it is swapped.
    compares: bool,
    /// It moves to what is newer only.
    monotone: bool,
    /// The candidate has to pass the resume guard.
    guards: bool,
    /// The epoch is chosen before the upload. If not, a dead pointer is replaced by whatever comes.
    chooses_before: bool,
    /// Without a pointer that can be read, the payloads are looked at again before it moves.
    looks_again: bool,
    /// A pointer of a newer program is told from rubbish.
    knows_newer: bool,
    /// The payload is uploaded before the pointer moves.
    payload_first: bool,
    /// Only what is older than the pointer is deleted.
    prunes_below: bool,
    /// What the pointer names is compared by what it may lack.
    keeps_complete: bool,
    /// A log that was made again is told from the one before.
    knows_recreated: bool,
}

const ALL: Rules = Rules {
    compares: true,
    monotone: true,
    guards: true,
    chooses_before: true,
    looks_again: true,
    knows_newer: true,
    payload_first: true,
    prunes_below: true,
    keeps_complete: true,
    knows_recreated: true,
};

/// Of the first log: one that is made again may have a lower one, by a clock that went back.
const INCARNATION: u64 = 2;

/// The messages that a fold has, by revision: what tells two at one revision apart.
type Fold = Vec<u8>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
struct Artifact {
    epoch: u64,
    incarnation: u64,
    fold: Fold,
    incomplete: bool,
}

impl Artifact {
    fn rank(&self) -> Rank {
        let (epoch, incarnation) = (self.epoch, self.incarnation);
        Rank { epoch, incarnation, revision: self.fold.len() as u64 }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
enum Pointer {
    Absent,
    Corrupt,
    /// Of a newer program.
    Newer,
    To(Artifact),
}

/// How far a node is in its round.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
enum Node {
    Idle,
    /// It has an artifact, and has chosen its epoch.
    Chosen(Artifact),
    Uploaded(Artifact),
    /// It is allowed to publish, unless the pointer was replaced since.
    Swaps {
        candidate: Artifact,
        replaced: bool,
    },
}

#[derive(Clone, Debug, Hash, PartialEq, Eq)]
struct State {
    log: Fold,
    incarnation: u64,
    writes: u8,
    lies: u8,
    losses: u8,
    upgrades: u8,
    nodes: Vec<Node>,
    payloads: BTreeSet<Artifact>,
    pointer: Pointer,
    /// The newest that the pointer has ever named.
    newest: Option<Rank>,
    went_back: bool,
    recreations: u8,
    /// How often an incomplete fold was exported.
    incompletes: u8,
    /// Whether one took the place of a complete one that nodes could begin with.
    lost_complete: bool,
    /// What a pruner is about to delete.
    doomed: Option<Artifact>,
}

impl State {
    /// By the production guard, with the newest message of the fold as witness.
    fn resume(&self, Artifact { incarnation, fold, .. }: &Artifact) -> Resume {
        let last = self.log.len() as u64;
        let log = LogInfo {
            incarnation: self.incarnation,
            first: 1,
            last,
            retention: Retention::default(),
            subjects: 0,
            read_at_ms: 0,
        };
        let message = |of: &Fold, at: u64| Some((at, *of.get(at as usize - 1)?));
        let revision = fold.len() as u64;
        let witness = message(fold, revision).expect("nothing empty is exported");
        let now: Vec<(u64, u8)> = (1..=last).filter_map(|at| message(&self.log, at)).collect();
        // Each message is of a key of its own.
        let found = super::find(&now, &witness, |(at, _)| (*at, *at));
        let position = Position::at(*incarnation, revision);
        match resume(position, &log, &[], 1) {
            Resume::NeedNextWitness => resume(position, &log, &[found], 1),
            decided => decided,
        }
    }

    fn set_pointer(&mut self, pointer: Pointer) {
        self.pointer = pointer;
        for node in &mut self.nodes {
            if let Node::Swaps { replaced, .. } = node {
                *replaced = true;
            }
        }
    }

    fn newest_payload(&self) -> Option<Rank> {
        self.payloads.iter().map(Artifact::rank).max()
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    Write,
    LoseAfter(usize),
    /// Somebody deletes the pointer, or puts rubbish in its place.
    Lose(Pointer),
    /// A newer program publishes.
    Upgrade,
    /// The log is made again, with this incarnation.
    Recreate(u64),
    Export(usize),
    /// By a node that was listed.
    ExportIncomplete(usize),
    Step(usize),
    Crash(usize),
    Doom(Artifact),
    Delete,
}

#[derive(Clone)]
struct Fleet {
    rules: Rules,
    nodes: usize,
    revisions: usize,
    writes: u8,
    lies: u8,
    losses: u8,
    upgrades: u8,
    incompletes: u8,
    recreations: u8,
}

impl Fleet {
    fn of(nodes: usize) -> Self {
        let (losses, upgrades, incompletes, recreations) = (0, 0, 0, 0);
        let (revisions, writes, lies) = (2, 3, 1);
        Self {
            rules: ALL,
            nodes,
            revisions,
            writes,
            lies,
            losses,
            upgrades,
            incompletes,
            recreations,
        }
    }

    /// What nodes think of an artifact.
    fn verdict(&self, state: &State, artifact: &Artifact) -> Verdict {
        match state.resume(artifact) {
            Resume::Expired(CursorExpiry::Recreated) if !self.rules.knows_recreated => {
                Verdict::Holds
            }
            decided => verdict(decided),
        }
    }

    fn offer(&self, state: &State, artifact: &Artifact) -> Offer {
        let verdict = self.verdict(state, artifact);
        Offer { verdict, may_be_incomplete: artifact.incomplete }
    }

    /// What a node takes the pointer for.
    fn seen(&self, pointer: &Pointer) -> PointerState {
        match pointer {
            Pointer::Absent => PointerState::Absent,
            Pointer::Newer if self.rules.knows_newer => PointerState::Newer,
            Pointer::Corrupt | Pointer::Newer => PointerState::Present { rank: None },
            Pointer::To(artifact) => PointerState::Present { rank: Some(artifact.rank()) },
        }
    }

    fn export(&self, state: &State, incomplete: bool) -> Node {
        let (incarnation, fold) = (state.incarnation, state.log.clone());
        let pointer = &state.pointer;
        let of_pointer = match pointer {
            Pointer::To(artifact) if self.rules.chooses_before => self.verdict(state, artifact),
            _ => Verdict::Expired,
        };
        let highest = state.newest_payload().map(|rank| rank.epoch);
        match next_epoch(&self.seen(pointer), of_pointer, highest) {
            Some(epoch) => Node::Chosen(Artifact { epoch, incarnation, fold, incomplete }),
            None => Node::Idle,
        }
    }

    /// What a node does next in its round.
    fn step(&self, state: &mut State, at: usize) -> Option<()> {
        state.nodes[at] = match state.nodes[at].clone() {
            Node::Idle => return None,
            Node::Chosen(candidate) => {
                if self.rules.payload_first {
                    state.payloads.insert(candidate.clone());
                }
                Node::Uploaded(candidate)
            }
            Node::Uploaded(candidate) => self.decide(state, candidate),
            Node::Swaps { candidate, replaced } => {
                if self.rules.compares && replaced {
                    Node::Uploaded(candidate)
                } else {
                    self.publish(state, candidate);
                    Node::Idle
                }
            }
        };
        Some(())
    }

    fn decide(&self, state: &State, candidate: Artifact) -> Node {
        let seen = &state.pointer;
        let mut offer = self.offer(state, &candidate);
        if !self.rules.guards {
            offer.verdict = Verdict::Holds;
        }
        let replaced = match seen {
            Pointer::To(artifact) if self.rules.keeps_complete => Some(self.offer(state, artifact)),
            _ => None,
        };
        let looks = self.rules.looks_again && self.rules.payload_first;
        let newest = if looks { state.newest_payload() } else { Some(candidate.rank()) };
        let mut publish = may_publish(&self.seen(seen), newest, candidate.rank(), offer, replaced);
        let is_dead = |artifact: &Artifact| self.verdict(state, artifact) == Verdict::Dead;
        let replaces_dead = !self.rules.chooses_before
            && matches!(seen, Pointer::To(artifact) if is_dead(artifact));
        if publish == Publish::SupersededByNewer && (!self.rules.monotone || replaces_dead) {
            publish = Publish::Allowed;
        }
        match publish {
            Publish::Allowed => Node::Swaps { candidate, replaced: false },
            _ => Node::Idle,
        }
    }

    fn publish(&self, state: &mut State, candidate: Artifact) {
        let rank = candidate.rank();
        let is_whole = |to: &Artifact| !to.incomplete && self.verdict(state, to) == Verdict::Holds;
        state.lost_complete |= candidate.incomplete
            && matches!(&state.pointer, Pointer::To(artifact) if is_whole(artifact));
        // What a newer program publishes is newer.
        state.went_back |=
            state.newest.is_some_and(|newest| rank < newest) || state.pointer == Pointer::Newer;
        state.newest = state.newest.max(Some(rank));
        state.set_pointer(Pointer::To(candidate));
    }

    fn may_delete(&self, state: &State, payload: &Artifact) -> bool {
        let Pointer::To(target) = &state.pointer else { return false };
        match self.rules.prunes_below {
            true => payload_prunable(Some(payload.rank()), target.rank(), payload == target, true),
            false => payload != target,
        }
    }
}

impl Model for Fleet {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            log: Vec::new(),
            incarnation: INCARNATION,
            writes: 0,
            lies: 0,
            losses: 0,
            upgrades: 0,
            incompletes: 0,
            recreations: 0,
            nodes: vec![Node::Idle; self.nodes],
            payloads: BTreeSet::new(),
            pointer: Pointer::Absent,
            newest: None,
            went_back: false,
            lost_complete: false,
            doomed: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.log.len() < self.revisions && state.writes < self.writes {
            actions.push(Action::Write);
        }
        if state.lies < self.lies {
            actions.extend((0..state.log.len()).map(Action::LoseAfter));
        }
        if state.losses < self.losses && matches!(state.pointer, Pointer::To(_)) {
            actions.extend([Pointer::Absent, Pointer::Corrupt].map(Action::Lose));
        }
        if state.upgrades < self.upgrades {
            actions.push(Action::Upgrade);
        }
        if state.recreations < self.recreations {
            actions.extend([INCARNATION - 1, INCARNATION + 1].map(Action::Recreate));
        }
        for (at, node) in state.nodes.iter().enumerate() {
            match node {
                Node::Idle if state.log.is_empty() => {}
                Node::Idle => {
                    actions.push(Action::Export(at));
                    if state.incompletes < self.incompletes {
                        actions.push(Action::ExportIncomplete(at));
                    }
                }
                _ => actions.extend([Action::Step(at), Action::Crash(at)]),
            }
        }
        match &state.doomed {
            Some(_) => actions.push(Action::Delete),
            None => {
                let doomed = state.payloads.iter().filter(|one| self.may_delete(state, one));
                actions.extend(doomed.cloned().map(Action::Doom));
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Write => {
                state.writes += 1;
                state.log.push(state.writes);
            }
            Action::LoseAfter(last) => {
                state.lies += 1;
                state.log.truncate(last);
            }
            Action::Lose(pointer) => {
                state.losses += 1;
                state.set_pointer(pointer);
            }
            Action::Upgrade => {
                state.upgrades += 1;
                state.set_pointer(Pointer::Newer);
            }
            Action::Recreate(incarnation) => {
                state.recreations += 1;
                state.incarnation = incarnation;
                state.log.clear();
            }
            Action::Export(at) => state.nodes[at] = self.export(&state, false),
            Action::ExportIncomplete(at) => {
                state.incompletes += 1;
                state.nodes[at] = self.export(&state, true);
            }
            Action::Step(at) => self.step(&mut state, at)?,
            Action::Crash(at) => state.nodes[at] = Node::Idle,
            Action::Doom(payload) => state.doomed = Some(payload),
            Action::Delete => {
                let doomed = state.doomed.take().expect("one is about to go");
                state.payloads.remove(&doomed);
            }
        }
        (state != *before).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.newest_payload().is_none_or(|newest| newest.epoch <= EPOCH_MAX)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("the pointer never goes back", |_, state: &State| !state.went_back),
            Property::always("what the pointer names is there", |_, state: &State| {
                match &state.pointer {
                    Pointer::To(artifact) => state.payloads.contains(artifact),
                    _ => true,
                }
            }),
            Property::always(
                "nobody begins with what the log does not continue",
                |model: &Self, state: &State| {
                    let Pointer::To(artifact) = &state.pointer else { return true };
                    let begins =
                        !model.rules.guards || model.verdict(state, artifact) == Verdict::Holds;
                    let continues = state.incarnation == artifact.incarnation
                        && state.log.starts_with(&artifact.fold);
                    !begins || continues
                },
            ),
            Property::always(
                "what lacks nothing is not replaced by what may",
                |_, state: &State| !state.lost_complete,
            ),
            // Not idle: pointers of dead logs are replaced.
            Property::sometimes(
                "a pointer of a log that is gone is replaced",
                |_, state: &State| matches!(&state.pointer, Pointer::To(artifact) if artifact.epoch > 0),
            ),
        ]
    }
}

#[test]
fn nodes_share_a_pointer_that_can_always_be_used() {
    holds(Fleet::of(2), 70_248);
    // Three take a quarter of a minute.
    if std::env::var_os("GOSSIP_SOAK_SCALE").is_some() {
        holds(Fleet { writes: 2, ..Fleet::of(3) }, 363_180);
    }
}

#[test]
fn a_pointer_that_is_lost_is_replaced_and_never_dangles() {
    holds(Fleet { losses: 1, lies: 0, writes: 2, ..Fleet::of(2) }, 19_588);
}

#[test]
fn a_log_that_is_made_again_is_published_and_its_artifacts_are_told_apart() {
    holds(Fleet { recreations: 1, lies: 0, ..Fleet::of(2) }, 77_353);
    // One that loses messages as well, before or after.
    if std::env::var_os("GOSSIP_SOAK_SCALE").is_some() {
        holds(Fleet { recreations: 1, ..Fleet::of(2) }, 569_668);
    }
}

#[test]
fn a_pointer_of_a_newer_program_stays() {
    holds(Fleet { upgrades: 1, ..Fleet::of(2) }, 131_749);
}

/// Without losses: what a node decided by is still so when it swaps.
#[test]
fn an_artifact_that_lacks_nothing_is_kept() {
    holds(Fleet { incompletes: 1, writes: 2, ..Fleet::of(2) }, 140_416);
}

#[test]
fn an_artifact_that_may_lack_keys_replaces_one_that_lacks_none_if_nobody_compares_them() {
    let fleet = without(|rules| rules.keeps_complete = false);
    fails(
        Fleet { incompletes: 1, writes: 2, ..fleet },
        "what lacks nothing is not replaced by what may",
    );
}

fn without(change: impl Fn(&mut Rules)) -> Fleet {
    let mut rules = ALL;
    change(&mut rules);
    Fleet { rules, ..Fleet::of(2) }
}

const BACK: &str = "the pointer never goes back";
const THERE: &str = "what the pointer names is there";

#[test]
fn without_a_comparison_the_pointer_goes_back() {
    fails(without(|rules| rules.compares = false), BACK);
}

#[test]
fn without_the_rule_of_ranks_the_pointer_goes_back() {
    fails(without(|rules| rules.monotone = false), BACK);
}

#[test]
fn what_is_deleted_whatever_its_rank_is_published_later() {
    fails(without(|rules| rules.prunes_below = false), THERE);
}

/// Whoever replaces a dead pointer has to be of an epoch that began after it died: its payload may have
/// been deleted while the pointer was alive.
#[test]
fn a_dead_pointer_replaced_by_what_was_uploaded_before_dangles() {
    fails(without(|rules| rules.chooses_before = false), THERE);
}

#[test]
fn a_pointer_that_was_lost_since_replaced_by_what_was_uploaded_before_dangles() {
    let fleet = without(|rules| rules.looks_again = false);
    fails(Fleet { losses: 1, lies: 0, writes: 2, ..fleet }, THERE);
}

#[test]
fn a_pointer_of_a_newer_program_taken_for_rubbish_goes_back() {
    let fleet = without(|rules| rules.knows_newer = false);
    fails(Fleet { upgrades: 1, ..fleet }, BACK);
}

#[test]
fn a_pointer_that_moves_before_its_payload_is_there_dangles() {
    let fleet = without(|rules| rules.payload_first = false);
    fails(fleet, THERE);
}

#[test]
fn a_node_begins_with_an_artifact_of_a_log_that_was_made_again_if_nobody_tells_them_apart() {
    let fleet = without(|rules| rules.knows_recreated = false);
    fails(
        Fleet { recreations: 1, lies: 0, ..fleet },
        "nobody begins with what the log does not continue",
    );
}

#[test]
fn without_the_guard_a_node_begins_with_what_the_log_does_not_continue() {
    let fleet = without(|rules| rules.guards = false);
    fails(fleet, "nobody begins with what the log does not continue");
}
