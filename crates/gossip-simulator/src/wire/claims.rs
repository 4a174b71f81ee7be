//! Requests in which the backend chooses the shard, taken apart into the acquires that they are made
//! of: some that parked a poisoned shard, then one that was granted, or none.

use gossip_contracts::identity::{ShardId, ShardKey};
use gossip_coordination::{
    AcquireResultView, AcquireScratch, CapacityHint, ClaimError, EventKind, ShardClaiming,
    ShardStatus,
};

use super::{Request, Wire, no_answer};
use crate::answer_kinds::{Application, Outcome};
use crate::op::{Acquired, Answer, Operation, Refusal};
use crate::oracles::{Claim, Observation, Oracles, Violation};
use crate::perform::ToAnswer;
use crate::simulated::{Applicant, SimulatedBackend};

/// How an oracle takes in one of the acquires.
pub(super) type Observe = fn(&mut Oracles, Observation<'_>) -> Result<(), Violation>;

/// What a claim was answered.
pub(super) type Claimed = Result<Grant, ClaimError>;

/// What a worker that came back was answered.
pub(super) type Returned = Result<Option<Grant>, ClaimError>;

/// A shard that was granted, as it travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) acquired: Box<Acquired>,
    pub(crate) capacity: CapacityHint,
}

impl Grant {
    pub(crate) fn of(view: &AcquireResultView<'_>) -> Self {
        let Answer::Acquired(acquired) = Ok(*view).answer() else {
            unreachable!("a grant is an acquired shard")
        };
        Self { acquired, capacity: view.capacity }
    }

    /// Unpacks it where its worker wanted it.
    pub(crate) fn restore<'s>(&self, scratch: &'s mut AcquireScratch) -> AcquireResultView<'s> {
        let Acquired { lease, status, range, cursor, cursor_semantics, parent, spawned } =
            &*self.acquired;
        scratch.write_spec(range.as_ref());
        scratch.write_cursor(cursor.as_update());
        scratch.write_spawned_iter(spawned.iter().copied());
        let snapshot = scratch.view(*status, *cursor_semantics, *parent);
        AcquireResultView { lease: *lease, snapshot, capacity: self.capacity }
    }
}

/// What the acquires came to.
struct Parts {
    verdict: Result<(), Violation>,
    parked: Vec<ShardId>,
}

impl<S: SimulatedBackend> Wire<S> {
    /// Sends a claim.
    pub(crate) fn claim(&mut self, by: Applicant) -> Claimed {
        let claimed = self.send(by.now, Request::Claim(by), Self::deliver_claim);
        claimed.unwrap_or_else(|| Err(no_answer().into()))
    }

    /// A worker that has come back asks for what it still holds.
    pub(crate) fn reacquire_own(&mut self, by: Applicant) -> Returned {
        let returned = self.send(by.now, Request::Reacquire(by), Self::deliver_reacquire);
        returned.unwrap_or_else(|| Err(no_answer().into()))
    }

    pub(super) fn deliver_claim(&mut self, request: &Request) -> Option<Claimed> {
        let &Request::Claim(by) = request else { return None };
        let (at, result) = self.put(by, "claim", ask_claim)?;
        self.take_events(at);
        self.judge_claim(by, &result);
        Some(result)
    }

    pub(super) fn deliver_reacquire(&mut self, request: &Request) -> Option<Returned> {
        let &Request::Reacquire(by) = request else { return None };
        let (at, result) = self.put(by, "reacquire", ask_own)?;
        self.take_events(at);
        self.judge_own(by, &result);
        Some(result)
    }

    /// Puts a claim to the backend. `None` once the simulation is over.
    fn put<R>(
        &mut self,
        by: Applicant,
        name: &str,
        ask: impl FnOnce(&mut S::Backend, Applicant, &mut AcquireScratch) -> R,
    ) -> Option<(usize, R)> {
        if self.is_over() {
            return None;
        }
        self.operations += 1;
        self.trace.begin_claim(self.operations, by, name);
        let at = self.collector_of(by.tenant);
        let result = self.with_scratch(|wire, scratch| {
            let collector = &mut wire.collectors[at];
            wire.subject.with_events(collector, |backend| ask(backend, by, scratch))
        });
        Some((at, result))
    }

    pub(super) fn judge_claim(&mut self, by: Applicant, result: &Claimed) {
        let Applicant { now, tenant, .. } = by;
        let granted = result.as_ref().ok();
        let parts = self.judge_parts(by, granted, Oracles::observe_part_of_claim);
        let outcome = result.as_ref().map(|_| Outcome::Granted);
        self.note_application(Application::Claim, &parts, outcome);
        let answer = match result {
            Ok(grant) => Ok(grant.acquired.clone()),
            Err(refusal) => {
                self.trace.end_claim(refusal);
                Err(refusal.clone())
            }
        };
        let claim = Claim { by, answer: &answer, parked: &parts.parked };
        let mut verdict = parts.verdict.and_then(|()| self.oracles.observe_claim(&claim));
        if let Some(Grant { capacity, acquired, .. }) = granted {
            self.trace.add_hint(capacity);
            let key = acquired.lease.key();
            verdict = verdict.and_then(|()| self.oracles.observe_hint(now, tenant, key, capacity));
        }
        self.conclude(verdict);
    }

    pub(super) fn judge_own(&mut self, by: Applicant, result: &Returned) {
        let granted = result.as_ref().ok().and_then(Option::as_ref);
        let parts = self.judge_parts(by, granted, Oracles::observe_part_of_return);
        let outcome = granted.map_or(Outcome::Nothing, |_| Outcome::Granted);
        self.note_application(Application::Reacquire, &parts, result.as_ref().map(|_| outcome));
        let verdict = parts.verdict.and_then(|()| match result {
            Ok(Some(Grant { capacity, acquired, .. })) => {
                self.trace.add_hint(capacity);
                self.oracles.observe_hint(by.now, by.tenant, acquired.lease.key(), capacity)
            }
            Ok(None) => self.oracles.observe_nothing_owned(by),
            Err(refusal) => {
                self.trace.end_claim(refusal);
                self.oracles.observe_refused_claim(by, refusal)
            }
        });
        self.conclude(verdict);
    }

    /// Shows the oracles what a claim did before it failed, where it is several transactions: shards
    /// that it parked, and nothing else.
    pub(super) fn judge_failed_claim(&mut self, by: Applicant, observe: Observe) {
        self.operations += 1;
        self.trace.begin_claim(self.operations, by, "claim that fails");
        if let Err(violation) = self.judge_parts(by, None, observe).verdict {
            self.conclude(Err(violation));
        }
        self.events.clear();
    }

    fn note_application(
        &mut self,
        application: Application,
        parts: &Parts,
        outcome: Result<Outcome, &ClaimError>,
    ) {
        if !parts.parked.is_empty() {
            self.trace.note_application(application, Ok(Outcome::Poisoned));
        }
        self.trace.note_application(application, outcome);
    }

    /// Shows the oracles the acquires behind the events of a request.
    fn judge_parts(&mut self, by: Applicant, granted: Option<&Grant>, observe: Observe) -> Parts {
        let Applicant { now, tenant, run, worker } = by;
        let events = std::mem::take(&mut self.events);
        let acquire = |shard| Operation::Acquire { tenant, key: ShardKey::new(run, shard), worker };
        let mut parts = Parts { verdict: Ok(()), parked: Vec::new() };
        let mut rest = &events[..];
        while let [first, others @ ..] = rest
            && let EventKind::ShardParked { shard, .. } = first.kind
        {
            let (key, status) = (ShardKey::new(run, shard), ShardStatus::Parked);
            let answer = Answer::Refused(Refusal::ShardTerminal { shard: key, status });
            let (operation, events) = (acquire(shard), std::slice::from_ref(first));
            let seen = Observation { now, operation: &operation, answer: &answer, events };
            self.trace.end_part(seen);
            parts.verdict = parts.verdict.and_then(|()| observe(&mut self.oracles, seen));
            parts.parked.push(shard);
            rest = others;
        }
        if granted.is_none() {
            parts.verdict = parts.verdict.and_then(|()| self.oracles.observe_silence(rest));
        }
        if let Some(Grant { acquired, .. }) = granted {
            let operation = acquire(acquired.lease.shard());
            let answer = Answer::Acquired(acquired.clone());
            let seen = Observation { now, operation: &operation, answer: &answer, events: rest };
            self.trace.end_part(seen);
            parts.verdict = parts.verdict.and_then(|()| observe(&mut self.oracles, seen));
        }
        self.events = events;
        parts
    }
}

/// Asks for any shard.
pub(super) fn ask_claim<B: ShardClaiming>(
    backend: &mut B,
    Applicant { now, tenant, run, worker }: Applicant,
    scratch: &mut AcquireScratch,
) -> Claimed {
    let claimed = backend.claim_next_available(now, tenant, run, worker, scratch);
    claimed.map(|view| Grant::of(&view))
}

/// Asks for the worker's own.
pub(super) fn ask_own<B: ShardClaiming>(
    backend: &mut B,
    Applicant { now, tenant, run, worker }: Applicant,
    scratch: &mut AcquireScratch,
) -> Returned {
    let own = backend.reacquire_own(now, tenant, run, worker, scratch);
    own.map(|own| own.map(|view| Grant::of(&view)))
}
