//! Faults of the backend itself: a store that fails, a process that ends.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{AcquireScratch, ClaimError, ShardFilter};

use super::claims::{Claimed, Returned, ask_claim, ask_own};
use super::{Request, Wire};
use crate::op::{Answer, Operation, Refusal};
use crate::oracles::Oracles;
use crate::perform::perform;
use crate::simulated::{Disturbed, Effective, Overtaken, Rival, SimulatedBackend, StoreFault};
use crate::swarm::Ingredient;
use crate::world::OPERATIONS;

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
    /// Another process carried out an operation on the same shard or run in the middle of one.
    pub overtaken: u64,
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
        self.overtaken += other.overtaken;
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

fn carry_out<S: SimulatedBackend>(
    backend: &mut S::Backend,
    scratch: &mut AcquireScratch,
    now: LogicalTime,
    request: &Request,
) -> Reply {
    match request {
        Request::Operation(operation) => Reply::Answer(perform(backend, scratch, now, operation)),
        &Request::Claim(by) => Reply::Claimed(ask_claim(backend, by, scratch)),
        &Request::Reacquire(by) => Reply::Returned(ask_own(backend, by, scratch)),
    }
}

impl<S: SimulatedBackend> Wire<S> {
    /// Crashes the backend and starts it again.
    pub(crate) fn reopen(&mut self) {
        self.trace.note(|| "the backend crashes".to_owned());
        self.subject.reopen();
        if S::IS_DURABLE {
            self.inspect();
        }
    }

    /// The store takes all processes of the backend for dead, and they live.
    pub(crate) fn fall_silent(&mut self) {
        self.trace.note(|| "the backend was silent for too long".to_owned());
        self.subject.end_silent_processes();
        self.oracles.note_silence();
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
        let rival = self.swarm.rate(Ingredient::Rival);
        let takes_steps = Self::effective(request).is_some_and(|it| it != Effective::WithItsChange);
        if self.random.chance(if takes_steps { 10 * rival } else { rival }) {
            // Before an operation has its lock is when another can come between.
            let is_early = self.random.chance(500);
            let after = if is_early { self.random.below(4) as u32 } else { self.draw_step() };
            return Some(StoreFault::Rival { after });
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
        if let (StoreFault::Rival { after }, Request::Operation(operation)) = (fault, request)
            && let Some(effect) = Self::effective(request)
        {
            return self.overtake(after, effect, now, operation);
        }
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
        self.oracles.note_store_fails(true);
        match (told.failure(), unsaid) {
            // Reading does not fail where only writing does, and what is over soon is not hit.
            (None, _) => self.judge_reply(now, request, &told),
            (Some(retryable), unsaid) => {
                if unsaid.is_none() && !S::CLAIMS_AT_ONCE && !self.events.is_empty() {
                    match request {
                        Request::Operation(_) => {}
                        &Request::Claim(by) => {
                            self.judge_failed_claim(by, Oracles::observe_part_of_failed_claim);
                        }
                        &Request::Reacquire(by) => {
                            self.judge_failed_claim(by, Oracles::observe_part_of_return);
                        }
                    }
                }
                // Another handle's change is no failure; what was stored after all is told below.
                let is_rival = matches!(fault, StoreFault::Rival { .. });
                let told = if unsaid.is_none() { &self.events[..] } else { &[] };
                let what = || format!("{fault:?}: {request:?}");
                let may_pass = match fault {
                    StoreFault::Full => retryable == S::FULL_MAY_PASS,
                    _ => retryable && !is_rival,
                };
                let verdict = self.oracles.observe_provoked(may_pass, told, what);
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
                    // What it would have said is said by a store that does not fail.
                    self.oracles.note_store_fails(false);
                    self.judge_reply(now, request, &reply);
                }
            }
        }
        self.oracles.note_store_fails(false);
        if fault != StoreFault::Busy {
            self.inspect();
        }
    }

    /// When a request takes effect in whose middle another can come.
    fn effective(request: &Request) -> Option<Effective> {
        let Request::Operation(operation) = request else { return None };
        match **operation {
            Operation::ListShards { .. } if S::WORKS_IN_STEPS => Some(Effective::AtItsBeginning),
            Operation::RegisterShards { .. } if S::WORKS_IN_STEPS => Some(Effective::AtItsEnd),
            _ => (!operation.only_reads()).then_some(Effective::WithItsChange),
        }
    }

    /// Puts a request to the backend and, through another handle, one about the same shard or run
    /// when the first has come so far. Who gets the lock first is served first, and judged first; who
    /// finds it taken may say so, if it is the second to come. All records are looked at right after.
    fn overtake(&mut self, after: u32, effect: Effective, now: LogicalTime, operation: &Operation) {
        let Some(rival) = self.draw_rival(operation) else { return };
        // Who reads may do so at any time; who changes something does it now.
        let rival_now = if operation.only_reads() { LogicalTime::from_raw(self.time) } else { now };
        self.trace.note(|| format!("after {after} steps another process sends {rival:?}"));
        let at = self.collector_of(operation.tenant());
        let mut collector = std::mem::take(&mut self.collectors[at]);
        let sent = rival.clone();
        let overtaken = self.with_scratch(|wire, scratch| {
            wire.subject.overtaken(
                &mut collector,
                after,
                effect,
                |backend| perform(backend, scratch, now, operation),
                move |backend| perform(backend, &mut Box::default(), rival_now, &sent),
            )
        });
        self.collectors[at] = collector;
        let Some(Overtaken { told, rival: came }) = overtaken else { return };
        let Some(Rival { told: rival_told, events, is_second }) = came else {
            self.take_events(at);
            self.judge_answer(now, operation, &told);
            return self.inspect();
        };
        // A registration that has begun is known by its id before it takes effect: who uses that for
        // another one comes second.
        let conflict = operation.op_id().map(|op_id| Refusal::OpIdConflict { op_id });
        let is_second = is_second
            || effect == Effective::AtItsEnd
                && matches!(&rival_told, Answer::Refused(why) if Some(why) == conflict.as_ref());
        // The records show both already.
        self.is_behind = true;
        if is_second {
            self.take_events(at);
            self.judge_answer(now, operation, &told);
        }
        self.events = events;
        if let Answer::Refused(Refusal::Backend { retryable }) = rival_told {
            let what = || format!("another process found the store busy: {rival:?}");
            let verdict = self.oracles.observe_provoked(retryable, &self.events, what);
            if verdict.is_err() {
                self.conclude(verdict);
            }
        } else {
            self.failures.overtaken += 1;
            self.judge_answer(rival_now, &rival, &rival_told);
        }
        if !is_second {
            self.take_events(at);
            self.judge_answer(now, operation, &told);
        }
        self.is_behind = false;
        self.inspect();
    }

    /// What another process asks of the same shard or run: the same once more, or something that was
    /// asked lately; while one reads, for a shard of the run.
    fn draw_rival(&mut self, operation: &Operation) -> Option<Operation> {
        if operation.only_reads() {
            let (tenant, run) = operation.run()?;
            let shard = self.oracles.some_shard(tenant, run, &mut self.random)?;
            let worker = WorkerId::from_raw(1 + self.random.below(self.swarm.workers));
            return Some(Operation::Acquire { tenant, key: ShardKey::new(run, shard), worker });
        }
        if let &Operation::RegisterShards { tenant, run, .. } = operation
            && S::WORKS_IN_STEPS
            && self.random.chance(300)
        {
            return Some(self.draw_onlooker(tenant, run));
        }
        let place = (operation.shard(), operation.run());
        let is_alike =
            |other: &&Operation| (other.shard(), other.run()) == place && !other.only_reads();
        let alike: Vec<&Operation> = self.lately.iter().filter(is_alike).collect();
        if alike.is_empty() || self.random.chance(500) {
            return Some(operation.clone());
        }
        Some((*self.random.pick(&alike)).clone())
    }

    /// What somebody asks who must not see the shards of a run that is not registered yet.
    fn draw_onlooker(&mut self, tenant: TenantId, run: RunId) -> Operation {
        let (key, worker) = (ShardKey::new(run, ShardId::from_raw(0)), WorkerId::from_raw(1));
        let filter = ShardFilter::all();
        let asks = [
            Operation::ListShards { tenant, run, filter },
            Operation::GetRunProgress { tenant, run },
            Operation::Acquire { tenant, key, worker },
        ];
        self.random.pick(&asks).clone()
    }

    fn judge_answer(&mut self, now: LogicalTime, operation: &Operation, answer: &Answer) {
        self.operations += 1;
        self.trace.begin(self.operations, now, operation);
        self.judge(now, operation, answer, None);
    }

    fn note_failure(&mut self, request: &Request, note: impl FnOnce(&mut Failures)) {
        self.failures.claims += u64::from(!matches!(request, Request::Operation(_)));
        note(&mut self.failures);
    }

    fn judge_reply(&mut self, now: LogicalTime, request: &Request, reply: &Reply) {
        match (request, reply) {
            (Request::Operation(operation), Reply::Answer(answer)) => {
                self.judge_answer(now, operation, answer);
            }
            (&Request::Claim(by), Reply::Claimed(claimed)) => {
                self.operations += 1;
                self.trace.begin_claim(self.operations, by, "claim");
                self.judge_claim(by, claimed);
            }
            (&Request::Reacquire(by), Reply::Returned(returned)) => {
                self.operations += 1;
                self.trace.begin_claim(self.operations, by, "reacquire");
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
