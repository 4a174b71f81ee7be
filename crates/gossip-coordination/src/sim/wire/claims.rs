//! Requests in which the backend chooses the shard, taken apart into the acquires that they are made
//! of: some that parked a poisoned shard, then one that was granted, or none.

use gossip_contracts::identity::{ShardId, ShardKey};

use super::{Fate, Request, Wire, no_answer};
use crate::claim::ShardClaiming;
use crate::error::ClaimError;
use crate::events::EventKind;
use crate::scratch::{AcquireResultView, AcquireScratch};
use crate::sim::op::{Acquired, Answer, Operation, Refusal};
use crate::sim::oracles::{Claim, Observation, Oracles, Violation};
use crate::sim::perform::ToAnswer;
use crate::sim::subject::{Applicant, Subject};
use crate::status::ShardStatus;

/// How an oracle takes in one of the acquires.
type Observe = fn(&mut Oracles, Observation<'_>) -> Result<(), Violation>;

/// What the acquires came to.
struct Parts {
    verdict: Result<(), Violation>,
    parked: Vec<ShardId>,
    granted: Option<Box<Acquired>>,
}

impl<S: Subject> Wire<S> {
    /// Sends a claim.
    pub(in crate::sim) fn claim<'s>(
        &mut self,
        by: Applicant,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        match self.fate() {
            Fate::Delivered { twice, heard } => {
                let result = self.deliver_claim(by, scratch);
                if twice {
                    self.send_late(by.now, Request::Claim(by));
                }
                if heard { result } else { Err(no_answer().into()) }
            }
            fate => {
                self.fail(fate, by.now, Request::Claim(by));
                Err(no_answer().into())
            }
        }
    }

    pub(super) fn deliver_claim<'s>(
        &mut self,
        by: Applicant,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        if self.is_over() {
            return Err(no_answer().into());
        }
        let Applicant { now, tenant, run, worker } = by;
        self.operations += 1;
        self.trace.begin_claim(self.operations, by, "claim");
        let at = self.collector_of(tenant);
        let result = self.subject.with_events(&mut self.collectors[at], |backend| {
            backend.claim_next_available(now, tenant, run, worker, scratch)
        });
        self.take_events(at);
        let parts = self.judge_parts(by, result.as_ref().ok(), Oracles::observe_part_of_claim);
        let answer = match (&result, parts.granted) {
            (Err(refusal), _) => {
                self.trace.end_claim(refusal);
                Err(refusal.clone())
            }
            (Ok(_), granted) => Ok(granted.expect("what was granted was looked at")),
        };
        let claim = Claim { by, answer: &answer, parked: &parts.parked };
        let mut verdict = parts.verdict.and_then(|()| self.oracles.observe_claim(&claim));
        if let Ok(acquired) = &result {
            let hint = &acquired.capacity;
            self.trace.add_hint(hint);
            verdict = verdict.and_then(|()| self.oracles.observe_hint(now, tenant, run, hint));
        }
        self.conclude(verdict);
        result
    }

    /// A worker that has come back takes what it still holds. `None`: nothing, or no answer.
    pub(in crate::sim) fn reacquire_own<'s>(
        &mut self,
        by: Applicant,
        scratch: &'s mut AcquireScratch,
    ) -> Option<AcquireResultView<'s>> {
        if self.is_over() {
            return None;
        }
        let at = self.collector_of(by.tenant);
        let result = self.subject.with_events(&mut self.collectors[at], |backend| {
            S::reacquire_own(backend, by, scratch)
        })?;
        self.operations += 1;
        self.trace.begin_claim(self.operations, by, "reacquire");
        self.take_events(at);
        let granted = result.as_ref().ok().and_then(Option::as_ref);
        let parts = self.judge_parts(by, granted, Oracles::observe_part_of_return);
        let verdict = parts.verdict.and_then(|()| match &result {
            Ok(Some(own)) => {
                self.trace.add_hint(&own.capacity);
                self.oracles.observe_hint(by.now, by.tenant, by.run, &own.capacity)
            }
            Ok(None) => self.oracles.observe_nothing_owned(by),
            Err(refusal) => {
                self.trace.end_claim(refusal);
                self.oracles.observe_refused_claim(by, refusal)
            }
        });
        self.conclude(verdict);
        result.ok().flatten()
    }

    /// Shows the oracles the acquires behind the events of a request.
    fn judge_parts(
        &mut self,
        by: Applicant,
        granted: Option<&AcquireResultView<'_>>,
        observe: Observe,
    ) -> Parts {
        let Applicant { now, tenant, run, worker } = by;
        let events = std::mem::take(&mut self.events);
        let acquire = |shard| Operation::Acquire { tenant, key: ShardKey::new(run, shard), worker };
        let mut parts = Parts { verdict: Ok(()), parked: Vec::new(), granted: None };
        let mut rest = &events[..];
        while let [first, others @ ..] = rest
            && let EventKind::ShardParked { shard, .. } = first.kind
        {
            let (key, status) = (ShardKey::new(run, shard), ShardStatus::Parked);
            let answer = Answer::Refused(Refusal::ShardTerminal { shard: key, status });
            let (operation, events) = (acquire(shard), std::slice::from_ref(first));
            let seen = Observation { now, operation: &operation, answer: &answer, events };
            self.trace.end(seen);
            parts.verdict = parts.verdict.and_then(|()| observe(&mut self.oracles, seen));
            parts.parked.push(shard);
            rest = others;
        }
        if granted.is_none() {
            parts.verdict = parts.verdict.and_then(|()| self.oracles.observe_silence(rest));
        }
        if let Some(acquired) = granted {
            let operation = acquire(acquired.lease.shard());
            let answer = Ok(*acquired).answer();
            let seen = Observation { now, operation: &operation, answer: &answer, events: rest };
            self.trace.end(seen);
            parts.verdict = parts.verdict.and_then(|()| observe(&mut self.oracles, seen));
            if let Answer::Acquired(acquired) = answer {
                parts.granted = Some(acquired);
            }
        }
        self.events = events;
        parts
    }
}
