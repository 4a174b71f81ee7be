//! Faults of the backend itself: a store that fails, a process that ends.

use gossip_contracts::identity::LogicalTime;

use super::claims::{Claimed, Returned, ask_claim, ask_own};
use super::{Request, Wire};
use crate::error::ClaimError;
use crate::scratch::AcquireScratch;
use crate::sim::op::{Answer, Refusal};
use crate::sim::perform::perform;
use crate::sim::subject::{Disturbed, StoreFault, Subject};
use crate::sim::swarm::Ingredient;
use crate::sim::world::OPERATIONS;

/// How often the backend failed in the middle of something, so that it can be said that it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Failures {
    /// Its process ended in the middle of a change, and took it along.
    pub torn: u64,
    /// Of these, in the second half of the seed.
    pub torn_late: u64,
    /// Its store failed, and nothing was changed.
    pub failed: u64,
    /// Of these, for want of room.
    pub full: u64,
    /// Its store said that it failed, and the change was stored.
    pub unsaid: u64,
    /// Of all of these, claims and returns of workers.
    pub claims: u64,
}

impl Failures {
    /// Takes in those of another seed.
    pub const fn add(&mut self, other: &Self) {
        self.torn += other.torn;
        self.torn_late += other.torn_late;
        self.failed += other.failed;
        self.full += other.full;
        self.unsaid += other.unsaid;
        self.claims += other.claims;
    }
}

/// What a request was answered.
enum Reply {
    Answer(Answer),
    Claimed(Claimed),
    Returned(Returned),
}

impl Reply {
    /// Whether the backend says that it failed, and if so, whether trying again may help.
    fn failure(&self) -> Option<bool> {
        match self {
            &Self::Answer(Answer::Refused(Refusal::Backend { retryable })) => Some(retryable),
            Self::Claimed(Err(ClaimError::BackendError(error)))
            | Self::Returned(Err(ClaimError::BackendError(error))) => Some(error.is_retryable()),
            _ => None,
        }
    }
}

fn carry_out<S: Subject>(
    backend: &mut S::Backend,
    scratch: &mut AcquireScratch,
    now: LogicalTime,
    request: &Request,
) -> Reply {
    match request {
        Request::Operation(operation) => Reply::Answer(perform(backend, scratch, now, operation)),
        &Request::Claim(by) => Reply::Claimed(ask_claim(backend, by, scratch)),
        &Request::Reacquire(by) => Reply::Returned(ask_own::<S>(backend, by, scratch)),
    }
}

impl<S: Subject> Wire<S> {
    /// Crashes the backend and starts it again.
    pub(in crate::sim) fn reopen(&mut self) {
        self.trace.note(|| "the backend crashes".to_owned());
        self.subject.reopen();
        if S::IS_DURABLE {
            self.inspect();
        }
    }

    /// How the store fails in the middle of a request, if it does.
    pub(super) fn draw_fault(&mut self, request: &Request) -> Option<StoreFault> {
        let full = self.swarm.rate(Ingredient::Full);
        if self.random.chance(if request.adds_shards() { 10 * full } else { full }) {
            return Some(StoreFault::Full);
        }
        if self.draws(Ingredient::Interrupt) {
            return Some(StoreFault::Interrupted { after: self.draw_step() });
        }
        if self.draws(Ingredient::Rival) {
            return Some(StoreFault::Rival { after: self.draw_step() });
        }
        if !self.draws(Ingredient::CommitError) {
            return None;
        }
        Some(*self.random.pick(&[StoreFault::CommitRefused, StoreFault::CommitUnknown]))
    }

    /// Somewhere in an operation: some take a dozen steps, some many hundreds.
    fn draw_step(&mut self) -> u32 {
        let most = *self.random.pick(&[40, 200, 800]);
        self.random.below(most) as u32
    }

    /// Puts a request to a store that fails, where the backend has one. It must say so, and have
    /// changed nothing; only of a commit it may not know. All records are looked at right after.
    pub(super) fn disturb(&mut self, fault: StoreFault, now: LogicalTime, request: &Request) {
        self.trace.note(|| format!("the store fails, {fault:?}: {request:?}"));
        let at = self.collector_of(request.tenant());
        let mut collector = std::mem::take(&mut self.collectors[at]);
        let disturbed = self.with_scratch(|wire, scratch| {
            wire.subject.disturbed(&mut collector, fault, |backend| {
                carry_out::<S>(backend, scratch, now, request)
            })
        });
        self.collectors[at] = collector;
        let Some(Disturbed { told, unsaid }) = disturbed else { return };
        self.take_events(at);
        match (told.failure(), unsaid) {
            // Reading does not fail where only writing does, and what is over soon is not hit.
            (None, _) => self.judge_reply(now, request, &told),
            (Some(retryable), unsaid) => {
                // Another handle's change is no failure; what was stored after all is told below.
                let is_rival = matches!(fault, StoreFault::Rival { .. });
                let told = if unsaid.is_none() { &self.events[..] } else { &[] };
                let what = || format!("{fault:?}: {request:?}");
                let verdict = self.oracles.observe_provoked(retryable && !is_rival, told, what);
                // No look at the records yet: what was stored after all is judged first.
                if verdict.is_err() {
                    self.conclude(verdict);
                }
                self.note_failure(request, |failures| match (&unsaid, fault) {
                    (Some(_), _) => failures.unsaid += 1,
                    (None, StoreFault::Full) => {
                        failures.failed += 1;
                        failures.full += 1;
                    }
                    (None, _) => failures.failed += 1,
                });
                if let Some(reply) = unsaid {
                    self.trace.note(|| "and yet it is stored:".to_owned());
                    self.judge_reply(now, request, &reply);
                }
            }
        }
        if fault != StoreFault::Busy {
            self.inspect();
        }
    }

    fn note_failure(&mut self, request: &Request, note: impl FnOnce(&mut Failures)) {
        self.failures.claims += u64::from(!matches!(request, Request::Operation(_)));
        note(&mut self.failures);
    }

    fn judge_reply(&mut self, now: LogicalTime, request: &Request, reply: &Reply) {
        self.operations += 1;
        let number = self.operations;
        match (request, reply) {
            (Request::Operation(operation), Reply::Answer(answer)) => {
                self.trace.begin(number, now, operation);
                self.judge(now, operation, answer, None);
            }
            (&Request::Claim(by), Reply::Claimed(claimed)) => {
                self.trace.begin_claim(number, by, "claim");
                self.judge_claim(by, claimed);
            }
            (&Request::Reacquire(by), Reply::Returned(returned)) => {
                self.trace.begin_claim(number, by, "reacquire");
                self.judge_own(by, returned);
            }
            _ => unreachable!("a reply is of its request's kind"),
        }
    }

    /// The backend's process ends in the middle of a request: all of it is stored, or nothing. All
    /// records are looked at right after.
    pub(super) fn crash_during(&mut self, now: LogicalTime, request: &Request) {
        let at = self.collector_of(request.tenant());
        let mut collector = std::mem::take(&mut self.collectors[at]);
        let written = if self.random.chance(100) { 1000 } else { self.random.below(1001) };
        let crashed = self.with_scratch(|wire, scratch| {
            wire.subject.crash_during(&mut collector, written, |backend| {
                carry_out::<S>(backend, scratch, now, request)
            })
        });
        self.collectors[at] = collector;
        let Some((reply, is_stored)) = crashed else { return };
        self.trace.note(|| format!("the backend crashes with {written} of 1000 written:"));
        self.take_events(at);
        let changed = !self.events.is_empty();
        if is_stored || !changed {
            self.judge_reply(now, request, &reply);
        } else {
            self.trace.note(|| format!("{request:?} is lost"));
            let is_late = self.operations >= OPERATIONS / 2;
            self.note_failure(request, |failures| {
                failures.torn += 1;
                failures.torn_late += u64::from(is_late);
            });
        }
        self.inspect();
    }
}
