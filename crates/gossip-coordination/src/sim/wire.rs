//! Between the actors and the backend: requests that are lost, late, doubled or reordered, answers
//! that are lost, and the oracles that see everything that arrives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};

use super::op::{Answer, Operation, Refusal};
use super::oracles::{Claim, Observation, Oracles, Violation};
use super::perform::{ToAnswer, perform};
use super::random::Random;
use super::subject::{Owner, Subject};
use super::swarm::{Ingredient, Swarm};
use super::trace::Trace;
use crate::claim::ShardClaiming;
use crate::error::{ClaimError, InfraError};
use crate::events::{EventCollector, EventKind, StateTransitionEvent};
use crate::scratch::{AcquireResultView, AcquireScratch, CapacityHint};
use crate::status::ShardStatus;

/// Operations between two looks at all records.
const INSPECT_EVERY: u64 = 256;

/// Requests to remember for those who send them again.
const LATELY: usize = 32;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Late,
    StoreError,
    Crash,
    Delivered { twice: bool, heard: bool },
}

/// A request that is under way.
#[derive(Clone, Debug)]
enum Request {
    Operation(Box<Operation>),
    Claim { tenant: TenantId, run: RunId, worker: WorkerId },
}

/// A late request, ordered by arrival.
struct Late {
    arrives: u64,
    number: u64,
    now: LogicalTime,
    request: Request,
}

impl PartialEq for Late {
    fn eq(&self, other: &Self) -> bool {
        (self.arrives, self.number) == (other.arrives, other.number)
    }
}

impl Eq for Late {}

impl PartialOrd for Late {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Late {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrives, self.number).cmp(&(other.arrives, other.number))
    }
}

/// The backend, what stands around it, and what watches it.
pub(super) struct Wire<S> {
    subject: S,
    pub(super) oracles: Oracles,
    pub(super) swarm: Swarm,
    pub(super) random: Random,
    pub(super) trace: Trace,
    /// The time, as nobody in the simulation knows it.
    pub(super) time: u64,
    /// No more faults.
    pub(super) is_calm: bool,
    /// Requests that reached the backend.
    pub(super) operations: u64,
    /// Where to stop, whatever comes.
    pub(super) operations_max: u64,
    /// Look at all records after every operation.
    pub(super) inspect_always: bool,
    pub(super) violation: Option<Violation>,
    /// The backend had no room since faults stopped.
    pub(super) ran_out: bool,
    tenants: Vec<TenantId>,
    collectors: Vec<EventCollector>,
    /// The last operation id of each tenant.
    op_ids: Vec<u64>,
    /// What reached the backend last, in no particular order.
    lately: Vec<Operation>,
    /// Residual splits, which are remembered longer than other operations.
    splits: Vec<Operation>,
    events: Vec<StateTransitionEvent>,
    /// Away while it is lent.
    scratch: Option<Box<AcquireScratch>>,
    late: BinaryHeap<Reverse<Late>>,
    numbers: u64,
    inspected_at: u64,
}

impl<S: Subject> Wire<S> {
    pub(super) fn new(
        subject: S,
        swarm: Swarm,
        random: Random,
        trace: Trace,
        tenants: Vec<TenantId>,
        oracles: Oracles,
    ) -> Self {
        Self {
            subject,
            oracles,
            swarm,
            random,
            trace,
            time: 1_000_000,
            is_calm: false,
            operations: 0,
            operations_max: u64::MAX,
            inspect_always: false,
            violation: None,
            ran_out: false,
            op_ids: vec![0; tenants.len()],
            lately: Vec::with_capacity(LATELY),
            splits: Vec::with_capacity(LATELY),
            collectors: tenants.iter().map(|_| EventCollector::new()).collect(),
            tenants,
            events: Vec::new(),
            scratch: Some(Box::new(AcquireScratch::new())),
            late: BinaryHeap::new(),
            numbers: 0,
            inspected_at: 0,
        }
    }

    /// Nothing more will happen.
    pub(super) fn is_over(&self) -> bool {
        self.violation.is_some() || self.operations >= self.operations_max
    }

    /// When the next late request arrives.
    pub(super) fn next_arrival(&self) -> Option<u64> {
        self.late.peek().map(|Reverse(late)| late.arrives)
    }

    /// Delivers the next late request.
    pub(super) fn deliver_late(&mut self) {
        let Some(Reverse(late)) = self.late.pop() else { return };
        self.trace.note(|| "late:".to_owned());
        match late.request {
            Request::Operation(operation) => drop(self.deliver_operation(late.now, *operation)),
            Request::Claim { tenant, run, worker } => {
                self.with_scratch(|wire, scratch| {
                    drop(wire.deliver_claim(late.now, tenant, run, worker, scratch));
                });
            }
        }
    }

    pub(super) fn tenants(&self) -> &[TenantId] {
        &self.tenants
    }

    pub(super) fn another_tenant(&self, than: TenantId, random: &mut Random) -> TenantId {
        let at = self.collector_of(than);
        self.tenants[(at + 1 + random.index(self.tenants.len() - 1)) % self.tenants.len()]
    }

    /// An operation id. Tenants count alike, so that each uses the others' ids.
    pub(super) fn next_op(&mut self, tenant: TenantId) -> OpId {
        let at = self.collector_of(tenant);
        self.op_ids[at] += 1;
        OpId::from_raw(self.op_ids[at])
    }

    /// A request that reached the backend lately, or a split of long ago.
    pub(super) fn recall(&self, random: &mut Random) -> Option<Operation> {
        if !self.splits.is_empty() && random.chance(60) {
            return Some(self.splits[random.index(self.splits.len())].clone());
        }
        if self.lately.is_empty() {
            return None;
        }
        Some(self.lately[random.index(self.lately.len())].clone())
    }

    /// A shard of a run, as somebody knows who has looked.
    pub(super) fn some_shard(
        &self,
        tenant: TenantId,
        run: RunId,
        random: &mut Random,
    ) -> Option<ShardId> {
        self.oracles.some_shard(tenant, run, random)
    }

    /// Crashes the backend and starts it again.
    pub(super) fn reopen(&mut self) {
        self.trace.note(|| "the backend crashes".to_owned());
        self.subject.reopen();
    }

    /// Sends a request whose typed answer nobody needs. `None`: no answer came.
    pub(super) fn request(&mut self, now: LogicalTime, operation: Operation) -> Option<Answer> {
        match self.fate() {
            Fate::Delivered { twice, heard } => {
                let copy = twice.then(|| operation.clone());
                let answer = self.deliver_operation(now, operation);
                self.repeat(now, copy);
                answer.filter(|_| heard)
            }
            fate => {
                self.fail(fate, now, Request::Operation(Box::new(operation)));
                None
            }
        }
    }

    /// Sends a request; `ask` puts it to the backend and says what was answered.
    pub(super) fn call<T, E: From<InfraError>>(
        &mut self,
        now: LogicalTime,
        operation: Operation,
        ask: impl FnOnce(&mut S::Backend) -> (Answer, Option<CapacityHint>, Result<T, E>),
    ) -> Result<T, E> {
        match self.fate() {
            Fate::Delivered { twice, heard } => {
                let copy = twice.then(|| operation.clone());
                let result = self.deliver(now, &operation, ask);
                self.remember(operation);
                self.repeat(now, copy);
                match result {
                    Some(result) if heard => result,
                    _ => Err(no_answer().into()),
                }
            }
            fate => {
                self.fail(fate, now, Request::Operation(Box::new(operation)));
                Err(no_answer().into())
            }
        }
    }

    /// Sends a claim.
    pub(super) fn claim<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        let request = Request::Claim { tenant, run, worker };
        match self.fate() {
            Fate::Delivered { twice, heard } => {
                let result = self.deliver_claim(now, tenant, run, worker, scratch);
                if twice {
                    self.send_late(now, request);
                }
                if heard { result } else { Err(no_answer().into()) }
            }
            fate => {
                self.fail(fate, now, request);
                Err(no_answer().into())
            }
        }
    }

    fn fate(&mut self) -> Fate {
        if self.is_over() {
            return Fate::Lost;
        }
        if self.is_calm {
            return Fate::Delivered { twice: false, heard: true };
        }
        let mut drawn = |ingredient| {
            let rate = self.swarm.rate(ingredient);
            self.random.chance(rate)
        };
        if drawn(Ingredient::LoseRequest) {
            Fate::Lost
        } else if drawn(Ingredient::Delay) {
            Fate::Late
        } else if drawn(Ingredient::StoreError) {
            Fate::StoreError
        } else if S::IS_DURABLE && drawn(Ingredient::Reopen) {
            Fate::Crash
        } else {
            let twice = drawn(Ingredient::Duplicate);
            Fate::Delivered { twice, heard: !drawn(Ingredient::LoseReply) }
        }
    }

    /// What becomes of a request that is not delivered now.
    fn fail(&mut self, fate: Fate, now: LogicalTime, request: Request) {
        match fate {
            Fate::Late => self.send_late(now, request),
            Fate::StoreError => self.obstruct(now, request),
            Fate::Crash => self.crash_during(now, request),
            _ => self.trace.note(|| format!("lost: {request:?}")),
        }
    }

    fn send_late(&mut self, now: LogicalTime, request: Request) {
        // Mostly a little late, behind the next few; sometimes so late that its lease is over.
        let most = if self.random.chance(200) { 3 * self.swarm.lease_duration } else { 60 };
        let arrives = self.time + self.random.between(1, most);
        self.numbers += 1;
        self.late.push(Reverse(Late { arrives, number: self.numbers, now, request }));
    }

    fn repeat(&mut self, now: LogicalTime, copy: Option<Operation>) {
        if let Some(copy) = copy {
            self.send_late(now, Request::Operation(Box::new(copy)));
        }
    }

    /// Puts a request to a store that fails, where the backend has one: it must be refused, and
    /// change nothing. The next look at the records would tell.
    fn obstruct(&mut self, now: LogicalTime, request: Request) {
        self.trace.note(|| format!("the store fails: {request:?}"));
        let Request::Operation(operation) = request else { return };
        let answer = self.with_scratch(|wire, scratch| {
            wire.subject.obstructed(|backend| perform(backend, scratch, now, &operation))
        });
        if let Some(answer) = answer
            && !answered_by_failing_store(&answer)
        {
            // Reading does not fail where only writing does.
            self.operations += 1;
            self.events.clear();
            self.trace.begin(self.operations, now, &operation);
            self.judge(now, &operation, &answer, None);
        }
    }

    /// The backend's process ends in the middle of a request: all of it is stored, or nothing. All
    /// records are looked at right after.
    fn crash_during(&mut self, now: LogicalTime, request: Request) {
        let Request::Operation(operation) = request else { return self.reopen() };
        let at = self.collector_of(operation.tenant());
        let mut collector = std::mem::take(&mut self.collectors[at]);
        let written = if self.random.chance(100) { 1000 } else { self.random.below(1001) };
        let crashed = self.with_scratch(|wire, scratch| {
            wire.subject.crash_during(&mut collector, written, |backend| {
                perform(backend, scratch, now, &operation)
            })
        });
        self.collectors[at] = collector;
        let Some((answer, is_stored)) = crashed else { return };
        self.operations += 1;
        self.trace.begin(self.operations, now, &operation);
        self.trace.note(|| format!("the backend crashes with {written} of 1000 written"));
        self.take_events(at);
        let changed = !self.events.is_empty();
        if is_stored || !changed {
            self.judge(now, &operation, &answer, None);
        }
        self.inspect();
    }

    /// A worker that has come back takes what it still holds. `None`: nothing, or no answer.
    pub(super) fn reacquire_own<'s>(
        &mut self,
        owner: Owner,
        scratch: &'s mut AcquireScratch,
    ) -> Option<AcquireResultView<'s>> {
        if self.is_over() {
            return None;
        }
        let Owner { now, tenant, run, worker } = owner;
        let at = self.collector_of(tenant);
        let result = self.subject.with_events(&mut self.collectors[at], |backend| {
            S::reacquire_own(backend, owner, scratch)
        })?;
        self.operations += 1;
        self.trace.begin_claim(self.operations, now, tenant, run, worker);
        self.trace.append_text("its own");
        self.take_events(at);
        let events = std::mem::take(&mut self.events);
        let acquire = |shard| Operation::Acquire { tenant, key: ShardKey::new(run, shard), worker };
        let mut verdict = Ok(());
        for (at, event) in events.iter().enumerate() {
            let EventKind::ShardParked { shard, .. } = event.kind else { continue };
            let (key, status) = (ShardKey::new(run, shard), ShardStatus::Parked);
            let answer = Answer::Refused(Refusal::ShardTerminal { shard: key, status });
            let operation = acquire(shard);
            let events = &events[at..=at];
            let seen = Observation { now, operation: &operation, answer: &answer, events };
            self.trace.end(&operation, &answer, seen.events);
            verdict = verdict.and_then(|()| self.oracles.observe(seen));
        }
        let got = match result {
            Ok(Some(acquired)) => {
                let operation = acquire(acquired.lease.shard());
                let answer = Ok(acquired).answer();
                let events = &events[events.len().saturating_sub(1)..];
                let seen = Observation { now, operation: &operation, answer: &answer, events };
                self.trace.end(&operation, &answer, seen.events);
                verdict = verdict.and_then(|()| self.oracles.observe(seen));
                Some(acquired)
            }
            Ok(None) => {
                verdict = verdict.and_then(|()| self.oracles.observe_nothing_owned(owner));
                None
            }
            Err(refusal) => {
                self.trace.end_claim(&refusal);
                None
            }
        };
        self.events = events;
        self.conclude(verdict);
        got
    }

    fn deliver_operation(&mut self, now: LogicalTime, operation: Operation) -> Option<Answer> {
        let answer = self.with_scratch(|wire, scratch| {
            wire.deliver(now, &operation, |backend| {
                let answer = perform(backend, scratch, now, &operation);
                (answer.clone(), None, answer)
            })
        });
        self.remember(operation);
        answer
    }

    fn remember(&mut self, operation: Operation) {
        if let Operation::SplitResidual { .. } = operation {
            let place = self.operations as usize % LATELY;
            match self.splits.get_mut(place) {
                Some(split) => *split = operation.clone(),
                None => self.splits.push(operation.clone()),
            }
        }
        if self.lately.len() < LATELY {
            self.lately.push(operation);
        } else {
            self.lately[self.operations as usize % LATELY] = operation;
        }
    }

    fn with_scratch<R>(&mut self, f: impl FnOnce(&mut Self, &mut AcquireScratch) -> R) -> R {
        let mut scratch = self.scratch.take().expect("the scratch is lent once");
        let result = f(self, &mut scratch);
        self.scratch = Some(scratch);
        result
    }

    /// `None` once the simulation is over.
    fn deliver<R>(
        &mut self,
        now: LogicalTime,
        operation: &Operation,
        ask: impl FnOnce(&mut S::Backend) -> (Answer, Option<CapacityHint>, R),
    ) -> Option<R> {
        if self.is_over() {
            return None;
        }
        self.operations += 1;
        self.trace.begin(self.operations, now, operation);
        let at = self.collector_of(operation.tenant());
        let (answer, hint, result) = self.subject.with_events(&mut self.collectors[at], ask);
        self.take_events(at);
        self.judge(now, operation, &answer, hint);
        Some(result)
    }

    fn deliver_claim<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        if self.is_over() {
            return Err(no_answer().into());
        }
        self.operations += 1;
        self.trace.begin_claim(self.operations, now, tenant, run, worker);
        let at = self.collector_of(tenant);
        let result = self.subject.with_events(&mut self.collectors[at], |backend| {
            backend.claim_next_available(now, tenant, run, worker, scratch)
        });
        self.take_events(at);
        self.judge_claim(now, tenant, run, worker, &result);
        result
    }

    fn collector_of(&self, tenant: TenantId) -> usize {
        self.tenants.iter().position(|&known| known == tenant).expect("a tenant of this world")
    }

    fn take_events(&mut self, at: usize) {
        self.events.clear();
        self.collectors[at].drain_with(|event| self.events.push(event));
    }

    fn judge(
        &mut self,
        now: LogicalTime,
        operation: &Operation,
        answer: &Answer,
        hint: Option<CapacityHint>,
    ) {
        self.trace.end(operation, answer, &self.events);
        let events = std::mem::take(&mut self.events);
        let seen = Observation { now, operation, answer, events: &events };
        let mut verdict = self.oracles.observe(seen);
        if let (Ok(()), Some(hint), Some((tenant, key))) = (&verdict, hint, operation.shard()) {
            verdict = self.oracles.observe_hint(now, tenant, key.run, &hint);
        }
        self.events = events;
        self.ran_out |= self.is_calm && *answer == Answer::Refused(Refusal::ResourceExhausted);
        self.conclude(verdict);
    }

    /// A claim is the acquires that it is made of: some that parked a poisoned shard, then one that
    /// was granted, or none.
    fn judge_claim(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        result: &Result<AcquireResultView<'_>, ClaimError>,
    ) {
        let events = std::mem::take(&mut self.events);
        let acquire = |shard| Operation::Acquire { tenant, key: ShardKey::new(run, shard), worker };
        let (mut verdict, mut parked) = (Ok(()), Vec::new());
        for (at, event) in events.iter().enumerate() {
            let EventKind::ShardParked { shard, .. } = event.kind else { continue };
            let (operation, key) = (acquire(shard), ShardKey::new(run, shard));
            let status = ShardStatus::Parked;
            let answer = Answer::Refused(Refusal::ShardTerminal { shard: key, status });
            let seen = Observation {
                now,
                operation: &operation,
                answer: &answer,
                events: &events[at..=at],
            };
            self.trace.end(&operation, &answer, seen.events);
            verdict = verdict.and_then(|()| self.oracles.observe_part_of_claim(seen));
            parked.push(shard);
        }
        let granted =
            events.iter().position(|event| !matches!(event.kind, EventKind::ShardParked { .. }));
        let answer = match result {
            Ok(acquired) => {
                let operation = acquire(acquired.lease.shard());
                let answer = Ok(*acquired).answer();
                let events = &events[granted.unwrap_or(events.len())..];
                let seen = Observation { now, operation: &operation, answer: &answer, events };
                self.trace.end(&operation, &answer, seen.events);
                verdict = verdict.and_then(|()| self.oracles.observe_part_of_claim(seen));
                let Answer::Acquired(acquired) = answer else { unreachable!("it was acquired") };
                Ok(acquired)
            }
            Err(refusal) => {
                self.trace.end_claim(refusal);
                Err(refusal.clone())
            }
        };
        let claim = Claim { now, tenant, run, worker, answer: &answer, parked: &parked };
        verdict = verdict.and_then(|()| self.oracles.observe_claim(&claim));
        if let Ok(acquired) = result {
            let hint = &acquired.capacity;
            verdict = verdict.and_then(|()| self.oracles.observe_hint(now, tenant, run, hint));
        }
        self.events = events;
        self.conclude(verdict);
    }

    /// Keeps the first violation, and looks at all records when it is time to.
    pub(super) fn conclude(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        } else if self.inspect_always || self.operations - self.inspected_at >= INSPECT_EVERY {
            self.inspect();
        }
    }

    pub(super) fn inspect(&mut self) {
        self.inspected_at = self.operations;
        if let Err(violation) = self.oracles.inspect(&mut self.subject) {
            self.violation.get_or_insert(violation);
        }
    }
}

fn answered_by_failing_store(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(Refusal::Backend { .. }))
}

fn no_answer() -> InfraError {
    InfraError::transient("sim", "no answer")
}
