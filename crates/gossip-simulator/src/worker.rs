//! A worker: claims a shard, looks at its items in order, says how far it has come, and now and then
//! does something else. It works through a [`WorkerSession`], as production code does, and it is
//! honest: a cursor that it sends lies behind items that it has looked at.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::slice::IterMut;

use gossip_contracts::coordination::{
    CursorUpdate, SplitResidualPlan, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireError, AcquireScratch, ClaimError, EndError, IdempotentOutcome, ParkReason,
    WorkerSession,
};

use super::admin::Admin;
use super::keys;
use super::misuse;
use super::op::{Bytes, Operation, OwnedCursor, OwnedRange, Refusal};
use super::oracles::session::Told;
use super::port::Port;
use super::random::Random;
use super::simulated::{Applicant, SimulatedBackend};
use super::swarm::{Ingredient, Swarm};
use super::wire::{Grant, Wire};

/// How often a request without an answer is sent again before its worker gives up.
const ATTEMPTS_MAX: u32 = 6;

pub(super) struct Worker<'p, 'w, S> {
    id: WorkerId,
    number: u64,
    /// How often it has begun under a new id.
    lives: u64,
    /// What its clock is ahead of the time.
    ahead: i64,
    /// When it acts next.
    pub(super) wakes: u64,
    state: WorkerState<'p, 'w, S>,
    swarm: Swarm,
    is_calm: bool,
    /// Where it last looked for work.
    last_run: Option<RunName>,
    /// Where it may hold shards that it does not know of: it has crashed, or a claim of its was not
    /// answered.
    may_own: Option<RunName>,
    /// A shard that it has asked for by name, without an answer.
    asked_for: Option<(TenantId, ShardKey)>,
    scratch: Box<AcquireScratch>,
}

enum WorkerState<'p, 'w, S> {
    Idle,
    Working(Box<Shift<'p, 'w, S>>),
}

/// A session and where it stands.
struct Shift<'p, 'w, S> {
    session: Session<'p, 'w, S>,
    told: Told,
    /// The next item to look at.
    next: u32,
    /// How far into it the work has come.
    part: u8,
    /// The first item behind the shard.
    end: u32,
    /// A request that was not answered. Until it is, nothing else is done.
    pending: Option<Pending>,
    attempts: u32,
    /// What it gave away, oldest first.
    splits: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Checkpoint { cursor: OwnedCursor, renews: bool, op_id: OpId },
    Residual { kept: OwnedRange, residual: OwnedRange, op_id: OpId },
    End(Ending),
}

/// A request that ends a session.
#[derive(Clone)]
enum Ending {
    Complete { cursor: OwnedCursor, op_id: OpId },
    Park { reason: ParkReason, op_id: OpId },
    Replace { points: Vec<Bytes>, op_id: OpId },
    Release,
}

impl Ending {
    /// Sends it. The session comes back unless it is over.
    fn send<'p, 'w, S: SimulatedBackend>(
        &self,
        session: Session<'p, 'w, S>,
        now: LogicalTime,
    ) -> (Reception, Option<Box<Session<'p, 'w, S>>>) {
        match self {
            Self::Complete { cursor, op_id } => {
                let writes = Writes::default();
                let ended =
                    session.complete_with(now, cursor.as_update(), *op_id, |_| writes.run());
                writes.check(ended.as_ref().ok());
                received(ended)
            }
            &Self::Park { reason, op_id } => received(session.park(now, reason, op_id)),
            Self::Replace { points, op_id } => {
                let range = OwnedRange::from(session.spec());
                let points: Vec<&[u8]> = points.iter().map(|point| &**point).collect();
                let plan = plan_split_replace_at_points(range.as_ref(), &points);
                let plan = plan.expect("the plan was made of this range before");
                received(session.split_replace(now, &plan, *op_id))
            }
            Self::Release => received(session.release(now)),
        }
    }
}

fn received<T, S, E>(ended: Result<T, EndError<S, E>>) -> (Reception, Option<Box<S>>)
where
    for<'e> &'e E: Into<Refusal>,
{
    match ended {
        Ok(_) => (Reception::Yes, None),
        Err(EndError { error, session }) => (Reception::of_error(&error), session),
    }
}

/// The caller's writes. What they would write is the backend's own to make, see `sqlite::Store`; here
/// it is checked that a session passes them on.
#[derive(Default)]
struct Writes(Cell<bool>);

impl Writes {
    fn run(&self) -> Result<(), Infallible> {
        self.0.set(true);
        Ok(())
    }

    /// W2: they run when the operation is executed, and only then.
    fn check<T: std::fmt::Debug>(&self, outcome: Option<&IdempotentOutcome<T>>) {
        let executed = outcome.is_some_and(IdempotentOutcome::is_executed);
        assert_eq!(self.0.get(), executed, "the caller's writes of {outcome:?}");
    }
}

type Session<'p, 'w, S> = WorkerSession<'p, Port<'w, S>>;

/// What a worker makes of an answer.
enum Reception {
    Yes,
    /// None came.
    Nothing,
    /// Refused, and the shard is still the worker's.
    No,
    /// The shard is not the worker's, or not as it thinks.
    Lost,
}

impl Reception {
    fn of<T, E>(result: &Result<T, E>) -> Self
    where
        for<'e> &'e E: Into<Refusal>,
    {
        match result {
            Ok(_) => Self::Yes,
            Err(error) => Self::of_error(error),
        }
    }

    fn of_error<E>(error: &E) -> Self
    where
        for<'e> &'e E: Into<Refusal>,
    {
        match error.into() {
            Refusal::Backend { .. } => Self::Nothing,
            Refusal::ResourceExhausted | Refusal::SplitInvalid(_) => Self::No,
            _ => Self::Lost,
        }
    }
}

impl<'p, 'w, S: SimulatedBackend> Worker<'p, 'w, S> {
    pub(super) fn new(number: u64, swarm: &Swarm, random: &mut Random) -> Self {
        let mut worker = Self {
            id: WorkerId::from_raw(number + 1),
            number,
            lives: 0,
            ahead: 0,
            wakes: 1_000_001 + random.below(swarm.think),
            state: WorkerState::Idle,
            swarm: swarm.clone(),
            is_calm: false,
            last_run: None,
            may_own: None,
            asked_for: None,
            scratch: Box::new(AcquireScratch::new()),
        };
        if swarm.has(Ingredient::Skew) {
            worker.shift_clock(u64::from(swarm.rate(Ingredient::Skew)), random);
        }
        worker
    }

    pub(super) fn calm_down(&mut self, time: u64) {
        self.is_calm = true;
        self.ahead = 0;
        self.wakes = time + 1 + self.number;
    }

    /// Milliseconds between its steps, at most. In calm it is live, and keeps its leases.
    fn pace(&self) -> u64 {
        if self.is_calm {
            self.swarm.think.min(self.swarm.lease_min() / 10)
        } else {
            self.swarm.think
        }
    }

    fn shift_clock(&mut self, permille: u64, random: &mut Random) {
        let most = (self.swarm.lease_duration * 2 * permille / 500).max(1);
        self.ahead += random.between(0, 2 * most) as i64 - most as i64;
    }

    fn now(&self, wire: &RefCell<Wire<S>>) -> LogicalTime {
        let time = wire.borrow().time as i64 + self.ahead;
        LogicalTime::from_raw(u64::try_from(time).unwrap_or(1).max(1))
    }

    pub(super) fn step(
        &mut self,
        wire: &'w RefCell<Wire<S>>,
        admin: &Admin,
        ports: &mut IterMut<'p, Port<'w, S>>,
        random: &mut Random,
    ) {
        self.wakes = wire.borrow().time + 1 + random.below(self.pace());
        if !self.is_calm {
            if random.chance(self.swarm.rate(Ingredient::Crash)) {
                return self.crash(wire, random);
            }
            if random.chance(self.swarm.rate(Ingredient::Pause)) {
                let lease = self.swarm.lease_duration;
                self.wakes += random.between(lease / 2, 3 * lease);
                return;
            }
            if random.chance(self.swarm.rate(Ingredient::Jump)) {
                self.shift_clock(1_000, random);
            }
            if self.misbehaves(wire, random) {
                return;
            }
        }
        match std::mem::replace(&mut self.state, WorkerState::Idle) {
            WorkerState::Idle => self.look_for_work(wire, admin, ports, random),
            WorkerState::Working(shift) => self.state = self.work(wire, shift, random),
        }
    }

    /// Everything is forgotten. Half of the time it comes back under the same id, as a process does
    /// that takes over a slot.
    fn crash(&mut self, wire: &RefCell<Wire<S>>, random: &mut Random) {
        wire.borrow_mut().trace.note(|| format!("w{} crashes", self.id.as_raw()));
        wire.borrow_mut().hang_up(self.id);
        self.state = WorkerState::Idle;
        (self.may_own, self.asked_for) = (None, None);
        if random.chance(500) {
            self.may_own = self.last_run;
        } else {
            self.lives += 1;
            self.id = WorkerId::from_raw(self.number + 1 + 100 * self.lives);
        }
        self.wakes += random.between(1, 2 * self.swarm.lease_duration);
    }

    /// A request again, or one that no honest caller makes.
    fn misbehaves(&self, wire: &RefCell<Wire<S>>, random: &mut Random) -> bool {
        let weights =
            [10, self.swarm.rate(Ingredient::Repeat), self.swarm.rate(Ingredient::Misuse)];
        let drawn = random.weighted(&weights);
        let mut wire = wire.borrow_mut();
        let Some(known) = wire.recall(random) else { return false };
        let request = match drawn {
            Some(1) => known,
            Some(2) => misuse::twist(known, &mut wire, random),
            _ => return false,
        };
        let time = wire.time as i64 + self.ahead;
        let mut now = u64::try_from(time).unwrap_or(1).max(1);
        // The first and the last of all times; a lease from then would outlive the simulation.
        if random.chance(30) && !matches!(request, Operation::Acquire { .. }) {
            now = *random.pick(&[1, u64::MAX]);
        }
        wire.request(LogicalTime::from_raw(now), request);
        true
    }

    fn look_for_work(
        &mut self,
        wire: &'w RefCell<Wire<S>>,
        admin: &Admin,
        ports: &mut IterMut<'p, Port<'w, S>>,
        random: &mut Random,
    ) {
        let Some((tenant, run)) = admin.some_run(self.is_calm, random) else { return };
        let now = self.now(wire);
        // Ports run out only in a calm that does not end, and S10 reports that.
        let Some(port) = ports.next() else { return };
        self.last_run = Some((tenant, run));
        // Who cannot know what it holds asks for that first, as `gossip scan` always does.
        let may_own = self.may_own.take().or_else(|| random.chance(200).then_some((tenant, run)));
        if let Some(run) = may_own {
            if let Some(own) = self.come_back(wire, now, run) {
                let session =
                    WorkerSession::from_acquire_result(port, &own.restore(&mut self.scratch));
                wire.borrow_mut().granted = Some(own);
                self.state = WorkerState::Working(Box::new(Shift::begin(wire, session)));
            }
            return;
        }
        let directed = self.swarm.rate(Ingredient::Directed);
        let again = self.asked_for.take().filter(|_| random.chance(800));
        if !self.is_calm && (again.is_some() || random.weighted(&[10, directed]) == Some(1)) {
            let (tenant, key) = again.unwrap_or_else(|| {
                let shard = wire.borrow().some_shard(tenant, run, random);
                (tenant, ShardKey::new(run, shard.unwrap_or(ShardId::from_raw(77))))
            });
            match WorkerSession::new(port, now, tenant, key, self.id) {
                Ok(session) => {
                    self.state = WorkerState::Working(Box::new(Shift::begin(wire, session)))
                }
                Err(AcquireError::BackendError(_)) => self.asked_for = Some((tenant, key)),
                Err(_) => {}
            }
            return;
        }
        match WorkerSession::claim(port, now, tenant, run, self.id) {
            Ok(session) => self.state = WorkerState::Working(Box::new(Shift::begin(wire, session))),
            // Others have it all, or the administrator has to do something first.
            Err(ClaimError::NoneAvailable { earliest_deadline }) if self.is_calm => {
                let later = self.wakes + self.swarm.lease_duration;
                self.wakes = earliest_deadline.map_or(later, |at| self.wakes.max(at.as_raw()));
            }
            Err(refusal) => {
                if matches!(refusal, ClaimError::NoneAvailable { .. }) && random.chance(300) {
                    let idle = Operation::NoteIdle { tenant, run, worker: self.id };
                    wire.borrow_mut().tell(now, &idle);
                }
                let is_unsure = matches!(refusal, ClaimError::BackendError(_));
                self.may_own = (is_unsure && random.chance(500)).then_some((tenant, run));
                self.wakes += random.below(4 * self.swarm.think);
            }
        }
    }

    /// Asks for what it may still hold.
    fn come_back(
        &mut self,
        wire: &RefCell<Wire<S>>,
        now: LogicalTime,
        run: RunName,
    ) -> Option<Grant> {
        let by = Applicant { now, tenant: run.0, run: run.1, worker: self.id };
        let returned = wire.borrow_mut().reacquire_own(by);
        // There may be more behind the first, or no answer came.
        let ask_again = matches!(returned, Ok(Some(_)) | Err(ClaimError::BackendError(_)));
        self.may_own = ask_again.then_some(run);
        returned.ok().flatten()
    }

    fn work(
        &self,
        wire: &RefCell<Wire<S>>,
        mut shift: Box<Shift<'p, 'w, S>>,
        random: &mut Random,
    ) -> WorkerState<'p, 'w, S> {
        let now = self.now(wire);
        if shift.pending.is_some() {
            return shift.settle(wire, now);
        }
        // A split again that a later one has overtaken.
        if shift.splits.len() > 1 && random.chance(20 * self.swarm.rate(Ingredient::Repeat)) {
            shift.pending = Some(shift.splits[0].clone());
            return shift.settle(wire, now);
        }
        let rate = |ingredient| if self.is_calm { 0 } else { self.swarm.rate(ingredient) };
        let weights = [
            10,
            rate(Ingredient::Renew),
            rate(Ingredient::Residual),
            rate(Ingredient::Replace),
            rate(Ingredient::Park),
            rate(Ingredient::Release),
        ];
        let choice = random.weighted(&weights).expect("the work itself has a weight");
        let op_id = wire.borrow_mut().next_op(shift.session.tenant());
        match choice {
            0 => self.advance(wire, shift, now, op_id, random),
            1 => {
                let renewed = shift.session.renew(now);
                if let Ok(renewed) = &renewed {
                    shift.told.renewed(renewed.new_deadline, renewed.capacity);
                    wire.borrow_mut().conclude(shift.told.check(&shift.session));
                }
                match Reception::of(&renewed) {
                    Reception::Lost => WorkerState::Idle,
                    _ => WorkerState::Working(shift),
                }
            }
            2 => match self.draw_residual(&shift, random) {
                Some((kept, residual)) => {
                    shift.pending = Some(Pending::Residual { kept, residual, op_id });
                    shift.settle(wire, now)
                }
                None => WorkerState::Working(shift),
            },
            3 => self.replace(wire, shift, now, op_id, random),
            4 => self.park(wire, shift, now, op_id, random),
            _ => shift.end(wire, now, Ending::Release),
        }
    }

    /// Looks at a few items; then says so, or that all are done.
    fn advance(
        &self,
        wire: &RefCell<Wire<S>>,
        mut shift: Box<Shift<'p, 'w, S>>,
        now: LogicalTime,
        op_id: OpId,
        random: &mut Random,
    ) -> WorkerState<'p, 'w, S> {
        if self.is_inside(&shift) {
            shift.part += 1;
            let token = Some(part_token(shift.next, shift.part));
            let cursor = OwnedCursor { last_key: Some(shift.reached()), token };
            let renews = self.renews(random);
            shift.pending = Some(Pending::Checkpoint { cursor, renews, op_id });
            return shift.settle(wire, now);
        }
        let (tenant, run) = (shift.session.tenant(), shift.session.shard_key().run);
        let mut until =
            shift.end.min(shift.next + random.between(1, u64::from(self.swarm.stride)) as u32);
        // A large item is begun by itself.
        if let Some(large) = (shift.next + 1..until).find(|&item| self.is_large(item)) {
            until = large;
        }
        (shift.next..until)
            .for_each(|item| wire.borrow_mut().oracles.note_scanned(tenant, run, item));
        let token = if until > shift.next {
            (shift.next, shift.part) = (until, 0);
            self.draw_token(random)
        } else {
            // The shard ends at the key where it stands: behind every token that there may be.
            Some([0xff][..].into())
        };
        let cursor = OwnedCursor { last_key: Some(shift.reached()), token };
        if shift.next < shift.end {
            let renews = self.renews(random);
            shift.pending = Some(Pending::Checkpoint { cursor, renews, op_id });
            return shift.settle(wire, now);
        }
        shift.end(wire, now, Ending::Complete { cursor, op_id })
    }

    /// Whether the next item is one that takes several checkpoints, and some are left to do. A cursor
    /// needs a key, so the first item of a shard is done at once; and in calm all are.
    fn is_inside(&self, shift: &Shift<'_, '_, S>) -> bool {
        let (first, _) = keys::items(&shift.session.spec().into());
        !self.is_calm
            && (first + 1..shift.end).contains(&shift.next)
            && self.is_large(shift.next)
            && u32::from(shift.part) < self.swarm.rate(Ingredient::LargeItems)
    }

    fn is_large(&self, item: u32) -> bool {
        self.swarm.has(Ingredient::LargeItems) && item % 5 == 2
    }

    /// Whether a checkpoint renews the lease.
    fn renews(&self, random: &mut Random) -> bool {
        self.swarm.has(Ingredient::Renew) && random.chance(500)
    }

    fn draw_token(&self, random: &mut Random) -> Option<Bytes> {
        if self.swarm.padding == 0 || random.chance(500) {
            return None;
        }
        // Before every token of a large item's parts, which may follow it at the same key.
        Some(std::iter::repeat_n(b'a', random.index(self.swarm.padding)).collect())
    }

    /// A key inside the shard and behind all that was looked at, if there is one.
    fn draw_point(shift: &Shift<'_, '_, S>, random: &mut Random) -> Option<Bytes> {
        let range = shift.session.spec();
        if shift.next >= shift.end {
            return None;
        }
        let item = random.between(u64::from(shift.next), u64::from(shift.end)) as u32;
        let point: Bytes = if item > 0 && random.chance(300) {
            keys::behind(item - 1, random.below(3) as u8)[..].into()
        } else {
            keys::key(item)[..].into()
        };
        (range.start() < &*point && &*point < range.end()).then_some(point)
    }

    fn draw_residual(
        &self,
        shift: &Shift<'_, '_, S>,
        random: &mut Random,
    ) -> Option<(OwnedRange, OwnedRange)> {
        let point = Self::draw_point(shift, random)?;
        let plan = plan_split_residual_at_point(shift.session.spec(), &point).ok()?;
        let metadata = self.draw_token(random).unwrap_or_default();
        Some((plan.parent.into(), plan.residual.with_metadata(&metadata).into()))
    }

    fn replace(
        &self,
        wire: &RefCell<Wire<S>>,
        shift: Box<Shift<'p, 'w, S>>,
        now: LogicalTime,
        op_id: OpId,
        random: &mut Random,
    ) -> WorkerState<'p, 'w, S> {
        let mut points: Vec<Bytes> =
            (0..random.between(1, 3)).filter_map(|_| Self::draw_point(&shift, random)).collect();
        points.sort_unstable_by(|a, b| a.as_slice().cmp(b.as_slice()));
        points.dedup();
        let cuts: Vec<&[u8]> = points.iter().map(|point| &**point).collect();
        if plan_split_replace_at_points(shift.session.spec(), &cuts).is_err() {
            return WorkerState::Working(shift);
        }
        shift.end(wire, now, Ending::Replace { points, op_id })
    }

    fn park(
        &self,
        wire: &RefCell<Wire<S>>,
        shift: Box<Shift<'p, 'w, S>>,
        now: LogicalTime,
        op_id: OpId,
        random: &mut Random,
    ) -> WorkerState<'p, 'w, S> {
        let reasons = [ParkReason::PermissionDenied, ParkReason::TooManyErrors, ParkReason::Other];
        let reason = *random.pick(&reasons);
        shift.end(wire, now, Ending::Park { reason, op_id })
    }
}

/// A token that says how far into an item the work has come.
fn part_token(item: u32, part: u8) -> Bytes {
    [&keys::key(item)[..], &[part]].concat()[..].into()
}

/// How far a token says that the work has come into `item`.
fn part_in(token: &[u8], item: u32) -> u8 {
    token.strip_prefix(&keys::key(item)).and_then(|rest| rest.first()).copied().unwrap_or(0)
}

impl<'p, 'w, S: SimulatedBackend> Shift<'p, 'w, S> {
    fn begin(wire: &RefCell<Wire<S>>, session: Session<'p, 'w, S>) -> Self {
        let mut wire = wire.borrow_mut();
        let told = Told::of(wire.granted.take().expect("a session begins with a grant"));
        wire.conclude(told.check(&session));
        let (first, end) = keys::items(&session.spec().into());
        let next = session.cursor().last_key().map_or(first, |key| {
            // An empty shard's cursor may stand on a key that is no item's.
            keys::first_item_from(key) + u32::from(key.len() == keys::key(0).len())
        });
        let part = session.cursor().token().map_or(0, |token| part_in(token, next));
        Self { session, told, next, part, end, pending: None, attempts: 0, splits: Vec::new() }
    }

    /// The key of the last item looked at; of a shard without items, where it stands or begins.
    fn reached(&self) -> Bytes {
        let (first, _) = keys::items(&self.session.spec().into());
        if self.next > first {
            return keys::key(self.next - 1)[..].into();
        }
        self.session.cursor().last_key().unwrap_or(self.session.spec().start()).into()
    }

    /// Sends a request that ends the session. If no answer comes, it is sent again.
    fn end(
        self: Box<Self>,
        wire: &RefCell<Wire<S>>,
        now: LogicalTime,
        ending: Ending,
    ) -> WorkerState<'p, 'w, S> {
        let Self { session, told, next, part, end, attempts, splits, .. } = *self;
        match ending.send(session, now) {
            (Reception::Nothing, Some(session)) if attempts < ATTEMPTS_MAX => {
                wire.borrow_mut().conclude(told.check(&session));
                let (session, attempts) = (*session, attempts + 1);
                let pending = Some(Pending::End(ending));
                let shift = Self { session, told, next, part, end, pending, attempts, splits };
                WorkerState::Working(Box::new(shift))
            }
            (Reception::Nothing, None) => panic!("a session without an answer did not come back"),
            // It is over, or refused for good: whoever claims the shard next may have more luck.
            _ => WorkerState::Idle,
        }
    }

    /// Sends what is pending, and goes by the answer.
    fn settle(
        mut self: Box<Self>,
        wire: &RefCell<Wire<S>>,
        now: LogicalTime,
    ) -> WorkerState<'p, 'w, S> {
        let pending = self.pending.take().expect("something is pending");
        let received = match &pending {
            Pending::Checkpoint { cursor, renews: true, op_id } => {
                let writes = Writes::default();
                let cursor = cursor.as_update();
                let moved =
                    self.session.checkpoint_and_renew_with(now, cursor, *op_id, |_| writes.run());
                writes.check(moved.as_ref().ok());
                if let Ok(moved) = &moved {
                    let renewal = moved.as_ref().into_inner();
                    self.told.renewed(renewal.new_deadline, renewal.capacity);
                    wire.borrow_mut().conclude(self.told.check(&self.session));
                }
                Reception::of(&moved)
            }
            Pending::Checkpoint { cursor, renews: false, op_id } => {
                let cursor: CursorUpdate<'_> = cursor.as_update();
                let writes = Writes::default();
                let moved = self.session.checkpoint_with(now, cursor, *op_id, |_| writes.run());
                writes.check(moved.as_ref().ok());
                Reception::of(&moved)
            }
            Pending::End(ending) => return self.end(wire, now, ending.clone()),
            Pending::Residual { kept, residual, op_id } => {
                let plan = SplitResidualPlan::new(kept.as_ref(), residual.as_ref());
                let split = self.session.split_residual(now, &plan, *op_id);
                if let Ok(split) = &split {
                    self.told.split(kept, split.as_ref().into_inner().residual);
                    wire.borrow_mut().conclude(self.told.check(&self.session));
                    self.splits.push(pending.clone());
                }
                Reception::of(&split)
            }
        };
        match received {
            Reception::Yes => {
                self.attempts = 0;
                self.end = keys::first_item_from(self.session.spec().end());
                WorkerState::Working(self)
            }
            Reception::No => WorkerState::Working(self),
            Reception::Nothing if self.attempts < ATTEMPTS_MAX => {
                self.attempts += 1;
                self.pending = Some(pending);
                WorkerState::Working(self)
            }
            Reception::Nothing | Reception::Lost => WorkerState::Idle,
        }
    }
}

/// Whom a run is for, and which.
pub(super) type RunName = (TenantId, RunId);
