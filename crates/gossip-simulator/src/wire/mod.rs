//! Between the actors and the backend: requests that are lost, late, doubled or reordered, answers
//! that are lost or taken for those of later attempts, and the oracles that see everything that
//! arrives.

mod claims;
mod faults;
mod overdue;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId};
use gossip_coordination::{
    AcquireScratch, CapacityHint, EventCollector, InfraError, StateTransitionEvent,
};

use crate::op::{Answer, Operation, Refusal};
use crate::oracles::{Observation, Oracles, Violation};
use crate::perform::perform;
use crate::random::Random;
use crate::simulated::{Applicant, SimulatedBackend, StoreFault};
use crate::swarm::{Ingredient, Swarm};
use crate::trace::Trace;
pub(super) use claims::Grant;
pub use faults::Failures;
use overdue::Overdue;

/// Operations between two looks at all records.
const INSPECT_EVERY: u64 = 256;

/// Requests to remember for those who send them again.
const LATELY: usize = 32;

/// What becomes of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Lost,
    Late,
    Disturbed(StoreFault),
    Crash,
    Delivered { twice: bool, reply: ReplyFate },
}

/// What becomes of its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReplyFate {
    Delivered,
    Lost,
    Overdue,
}

/// A request that is under way.
#[derive(Clone, Debug)]
enum Request {
    Operation(Box<Operation>),
    Claim(Applicant),
    /// A worker that has come back asks for what it still holds.
    Reacquire(Applicant),
}

impl Request {
    /// Whether it takes room that nothing else has taken.
    fn adds_shards(&self) -> bool {
        let Self::Operation(operation) = self else { return false };
        matches!(
            **operation,
            Operation::RegisterShards { .. }
                | Operation::SplitReplace { .. }
                | Operation::SplitResidual { .. }
        )
    }

    fn tenant(&self) -> TenantId {
        match self {
            Self::Operation(operation) => operation.tenant(),
            Self::Claim(by) | Self::Reacquire(by) => by.tenant,
        }
    }
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
    /// What the last session to begin was granted.
    pub(super) granted: Option<Grant>,
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
    overdue: Vec<Overdue>,
    numbers: u64,
    inspected_at: u64,
    /// Something is stored that has not been judged yet.
    is_behind: bool,
    pub(super) failures: Failures,
}

impl<S: SimulatedBackend> Wire<S> {
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
            granted: None,
            op_ids: vec![0; tenants.len()],
            lately: Vec::with_capacity(LATELY),
            splits: Vec::with_capacity(LATELY),
            collectors: tenants.iter().map(|_| EventCollector::new()).collect(),
            tenants,
            events: Vec::new(),
            scratch: Some(Box::new(AcquireScratch::new())),
            late: BinaryHeap::new(),
            overdue: Vec::new(),
            numbers: 0,
            inspected_at: 0,
            is_behind: false,
            failures: Failures::default(),
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
        match &late.request {
            Request::Operation(operation) => drop(self.deliver_operation(late.now, operation)),
            Request::Claim(_) => drop(self.deliver_claim(&late.request)),
            Request::Reacquire(_) => drop(self.deliver_reacquire(&late.request)),
        }
        self.remember(late.request);
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

    /// Sends a request whose typed answer nobody needs. `None`: no answer came.
    pub(super) fn request(&mut self, now: LogicalTime, operation: Operation) -> Option<Answer> {
        let request = Request::Operation(Box::new(operation));
        self.send(now, request, |wire, request| match request {
            Request::Operation(operation) => wire.deliver_operation(now, operation),
            Request::Claim(_) | Request::Reacquire(_) => None,
        })
    }

    /// Tells the backend something that nobody waits for, and that is lost now and then.
    pub(super) fn tell(&mut self, now: LogicalTime, operation: &Operation) -> Option<Answer> {
        if self.draws(Ingredient::LoseRequest) {
            return None;
        }
        self.deliver_operation(now, operation)
    }

    /// Deletes a run. Its id is not used again: whatever is under way about it or could be asked again
    /// comes no more.
    pub(super) fn delete_run(&mut self, now: LogicalTime, tenant: TenantId, run: RunId) {
        let deleted = self.tell(now, &Operation::DeleteRun { tenant, run });
        if deleted != Some(Answer::Accepted) {
            return;
        }
        let is_other = |operation: &Operation| {
            let of = operation.run().or(operation.shard().map(|(of, key)| (of, key.run)));
            of.is_none_or(|(_, other)| other != run)
        };
        self.lately.retain(is_other);
        self.splits.retain(is_other);
        self.late.retain(|Reverse(late)| match &late.request {
            Request::Operation(operation) => is_other(operation),
            Request::Claim(by) | Request::Reacquire(by) => by.run != run,
        });
    }

    /// Sends a request; `ask` puts it to the backend and says what was answered.
    pub(super) fn call<T: Clone + 'static, E: From<InfraError> + Clone + 'static>(
        &mut self,
        now: LogicalTime,
        operation: Operation,
        ask: impl FnOnce(&mut S::Backend) -> (Answer, Option<CapacityHint>, Result<T, E>),
    ) -> Result<T, E> {
        let request = Request::Operation(Box::new(operation));
        let result = self.send(now, request, |wire, request| match request {
            Request::Operation(operation) => wire.deliver(now, operation, ask),
            Request::Claim(_) | Request::Reacquire(_) => None,
        });
        result.unwrap_or_else(|| Err(no_answer().into()))
    }

    /// Sends a request, which `deliver` puts to the backend. `None`: no answer came.
    fn send<R: Clone + 'static>(
        &mut self,
        now: LogicalTime,
        request: Request,
        deliver: impl FnOnce(&mut Self, &Request) -> Option<R>,
    ) -> Option<R> {
        if let Some(earlier) = self.take_overdue::<R>(&request) {
            // Its own answer comes second, and nobody waits for it any more.
            if self.random.chance(500) {
                deliver(self, &request);
                self.remember(request);
            } else {
                self.send_late(now, request);
            }
            return Some(earlier);
        }
        match self.fate(&request) {
            Fate::Delivered { twice, reply } => {
                let result = deliver(self, &request);
                if twice {
                    self.send_late(now, request.clone());
                }
                let received = match reply {
                    ReplyFate::Delivered => result,
                    ReplyFate::Lost => None,
                    ReplyFate::Overdue => {
                        self.hold_back(&request, result);
                        None
                    }
                };
                self.remember(request);
                received
            }
            Fate::Late => {
                self.send_late(now, request);
                None
            }
            Fate::Disturbed(fault) => {
                self.disturb(fault, now, &request);
                None
            }
            Fate::Crash => {
                self.crash_during(now, &request);
                None
            }
            Fate::Lost => {
                self.trace.note(|| format!("lost: {request:?}"));
                None
            }
        }
    }

    fn fate(&mut self, request: &Request) -> Fate {
        if self.is_over() {
            return Fate::Lost;
        }
        if self.is_calm {
            return Fate::Delivered { twice: false, reply: ReplyFate::Delivered };
        }
        if self.draws(Ingredient::LoseRequest) {
            return Fate::Lost;
        }
        if self.draws(Ingredient::Delay) {
            return Fate::Late;
        }
        if self.draws(Ingredient::StoreError) {
            return Fate::Disturbed(StoreFault::Busy);
        }
        if S::IS_DURABLE {
            if self.draws(Ingredient::Reopen) {
                return Fate::Crash;
            }
            if let Some(fault) = self.draw_fault(request) {
                return Fate::Disturbed(fault);
            }
        }
        let twice = self.draws(Ingredient::Duplicate);
        let reply = if self.draws(Ingredient::LoseReply) {
            ReplyFate::Lost
        } else if self.draws(Ingredient::LateReply) {
            ReplyFate::Overdue
        } else {
            ReplyFate::Delivered
        };
        Fate::Delivered { twice, reply }
    }

    fn draws(&mut self, ingredient: Ingredient) -> bool {
        self.random.chance(self.swarm.rate(ingredient))
    }

    fn send_late(&mut self, now: LogicalTime, request: Request) {
        // Mostly a little late, behind the next few; sometimes so late that its lease is over.
        let most = if self.random.chance(200) { 3 * self.swarm.lease_duration } else { 60 };
        let arrives = self.time + self.random.between(1, most);
        self.numbers += 1;
        self.late.push(Reverse(Late { arrives, number: self.numbers, now, request }));
    }

    fn deliver_operation(&mut self, now: LogicalTime, operation: &Operation) -> Option<Answer> {
        self.with_scratch(|wire, scratch| {
            wire.deliver(now, operation, |backend| {
                let answer = perform(backend, scratch, now, operation);
                (answer.clone(), None, answer)
            })
        })
    }

    fn remember(&mut self, request: Request) {
        let Request::Operation(operation) = request else { return };
        let operation = *operation;
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
        let events = std::mem::take(&mut self.events);
        let seen = Observation { now, operation, answer, events: &events };
        self.trace.end(seen);
        hint.iter().for_each(|hint| self.trace.add_hint(hint));
        let mut verdict = self.oracles.observe(seen);
        if let (Ok(()), Some(hint), Some((tenant, key))) = (&verdict, hint, operation.shard()) {
            verdict = self.oracles.observe_hint(now, tenant, key, &hint);
        }
        self.events = events;
        if self.is_calm && *answer == Answer::Refused(Refusal::ResourceExhausted) {
            self.oracles.excuse(operation);
        }
        self.conclude(verdict);
    }

    /// Keeps the first violation, and looks at all records when it is time to.
    pub(super) fn conclude(&mut self, verdict: Result<(), Violation>) {
        if let Err(violation) = verdict {
            self.violation.get_or_insert(violation);
        } else if !self.is_behind
            && (self.inspect_always || self.operations - self.inspected_at >= INSPECT_EVERY)
        {
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

fn no_answer() -> InfraError {
    InfraError::transient("sim", "no answer")
}
