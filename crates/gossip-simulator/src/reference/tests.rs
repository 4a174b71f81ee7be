//! The model against the scenario book, and against the coordinator in memory on requests drawn
//! at random.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{
    LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    AcquireScratch, CoordinatorRuntimeConfig, InMemoryCoordinator, Lease, ParkReason, RunConfig,
    RunManagement, ShardClaiming, ShardFilter, SplitCaps,
};

use super::*;
use crate::op::{Bytes, Effect, OwnedCursor, OwnedRange, OwnedShardInput};
use crate::perform::{ToAnswer, perform};

fn bytes(text: &[u8]) -> Bytes {
    text.into()
}

fn range(start: &[u8], end: &[u8]) -> OwnedRange {
    OwnedRange { start: bytes(start), end: bytes(end), metadata: bytes(b"") }
}

fn cursor(key: &[u8]) -> OwnedCursor {
    OwnedCursor { last_key: Some(bytes(key)), token: None }
}

/// A small generator: the requests of a seed are always the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }

    fn key(&mut self) -> Bytes {
        let first = b'a' + self.roll(8) as u8;
        match self.roll(3) {
            0 => bytes(&[first]),
            _ => bytes(&[first, b'a' + self.roll(4) as u8]),
        }
    }

    fn pick<'p, T>(&mut self, pool: &'p [T]) -> Option<&'p T> {
        (!pool.is_empty()).then(|| &pool[self.roll(pool.len() as u64) as usize])
    }
}

/// The range of the shard that a lease names.
fn range_of(model: &Reference, lease: &Lease) -> OwnedRange {
    let run = model.runs.get(&(lease.tenant(), lease.run()));
    let shard = run.and_then(|run| run.shards.get(&lease.shard()));
    shard.map_or_else(|| range(b"a", b"c"), |shard| shard.range.clone())
}

/// Callers without manners: any lease they ever had, any operation id, keys all over the place.
struct Callers {
    dice: Dice,
    now: u64,
    leases: Vec<Lease>,
    shards: Vec<ShardKey>,
    asked: Vec<Operation>,
}

impl Callers {
    fn tenant(&mut self) -> TenantId {
        TenantId::from_bytes([1 + u8::from(self.dice.one_in(4)); 32])
    }

    fn run(&mut self) -> RunId {
        RunId::from_raw(1 + self.dice.roll(2))
    }

    fn op_id(&mut self) -> OpId {
        let wide = if self.dice.one_in(2) { 12 } else { 100_000 };
        OpId::from_raw(1 + self.dice.roll(wide))
    }

    fn lease(&mut self) -> Option<Lease> {
        let recent = self.leases.len().saturating_sub(if self.dice.one_in(4) { 50 } else { 4 });
        self.dice.pick(&self.leases[recent..]).copied()
    }

    fn shard(&mut self) -> ShardKey {
        match self.dice.pick(&self.shards) {
            Some(key) if !self.dice.one_in(20) => *key,
            _ => ShardKey::new(self.run(), ShardId::from_raw(self.dice.roll(4))),
        }
    }

    /// A cursor that starts with `prefix` more often than not.
    fn cursor(&mut self, prefix: &[u8]) -> OwnedCursor {
        let within = [prefix, &[b'a' + self.dice.roll(6) as u8]].concat();
        let key = if self.dice.one_in(4) { self.dice.key() } else { bytes(&within) };
        let last_key = (!self.dice.one_in(20)).then_some(key);
        let token = self.dice.one_in(4).then(|| self.dice.key());
        OwnedCursor { last_key, token }
    }

    /// A manifest, mostly valid.
    fn manifest(&mut self) -> Vec<OwnedShardInput> {
        let (count, faulty) = (1 + self.dice.roll(3), self.dice.one_in(4));
        let row = |n: u64| {
            let at = |n: u64| [b'a' + n as u8 * 2];
            let range = range(&at(n), &at(n + 1));
            OwnedShardInput { shard: ShardId::from_raw(n), range, cursor: OwnedCursor::default() }
        };
        let mut rows: Vec<_> = (0..count).map(row).collect();
        if faulty {
            match self.dice.roll(6) {
                0 => rows.clear(),
                1 => rows[0].shard = ShardId::derived_from_raw(1),
                2 => rows.push(rows[0].clone()),
                3 => rows[0].range = range(b"", b"b"),
                4 => rows[0].range.end = self.dice.key(),
                _ => rows[0].cursor = self.cursor(b"a"),
            }
        }
        rows
    }

    /// Parts of a shard's range, mostly covering it.
    fn parts(&mut self, model: &Reference, lease: &Lease) -> Vec<OwnedRange> {
        let whole = range_of(model, lease);
        let mut points = vec![whole.start.clone(), whole.end.clone()];
        for _ in 0..1 + self.dice.roll(2) {
            let mut point = whole.start.clone();
            point.push(b'a' + self.dice.roll(4) as u8);
            points.push(if self.dice.one_in(10) { self.dice.key() } else { point });
        }
        points.sort_by(|a, b| a[..].cmp(&b[..]));
        points.windows(2).map(|pair| range(&pair[0], &pair[1])).collect()
    }

    fn operation(&mut self, model: &Reference) -> Operation {
        let recent = self.asked.len().saturating_sub(30);
        match self.dice.pick(&self.asked[recent..]) {
            Some(again) if self.dice.one_in(6) => again.clone(),
            _ => self.new_operation(model),
        }
    }

    fn learn(&mut self, operation: &Operation, answer: &Answer) {
        self.asked.push(operation.clone());
        let run = match operation {
            Operation::RegisterShards { run, .. } => *run,
            Operation::SplitReplace { lease, .. } | Operation::SplitResidual { lease, .. } => {
                lease.run()
            }
            _ => RunId::from_raw(0),
        };
        let made = match (answer, operation) {
            (Answer::Acquired(acquired), _) => return self.leases.push(acquired.lease),
            (Answer::Executed(Effect::Children(children)), _) => children.clone(),
            (Answer::Executed(Effect::Residual(residual)), _) => vec![*residual],
            (Answer::Executed(_), Operation::RegisterShards { shards, .. }) => {
                shards.iter().map(|row| row.shard).collect()
            }
            _ => return,
        };
        self.shards.extend(made.into_iter().map(|id| ShardKey::new(run, id)));
    }

    fn new_operation(&mut self, model: &Reference) -> Operation {
        let (tenant, run, op_id) = (self.tenant(), self.run(), self.op_id());
        let lease = self.lease();
        let tenant = lease.filter(|_| !self.dice.one_in(10)).map_or(tenant, |lease| lease.tenant());
        let start = lease.map_or(bytes(b"a"), |lease| range_of(model, &lease).start);
        let rare = self.dice.one_in(12);
        match (self.dice.roll(if rare { 10 } else { 9 }), lease) {
            (0, Some(lease)) => Operation::Renew { tenant, lease },
            (1, Some(lease)) if self.dice.one_in(2) => Operation::Release { tenant, lease },
            (2 | 3, Some(lease)) => Operation::Checkpoint {
                tenant,
                lease,
                cursor: self.cursor(&start),
                renews: self.dice.one_in(3),
                op_id,
            },
            (4, Some(lease)) if self.dice.one_in(3) => {
                Operation::Complete { tenant, lease, cursor: self.cursor(&start), op_id }
            }
            (5, Some(lease)) if self.dice.one_in(3) => {
                let reason = ParkReason::from_raw(self.dice.roll(5) as u8).unwrap();
                Operation::Park { tenant, lease, reason, op_id }
            }
            (6, Some(lease)) if self.dice.one_in(2) => {
                let children = self.parts(model, &lease);
                Operation::SplitReplace { tenant, lease, children, op_id }
            }
            (6 | 7, Some(lease)) => {
                let mut parts = self.parts(model, &lease);
                let residual = parts.pop().unwrap();
                let kept = OwnedRange { end: residual.start.clone(), ..parts[0].clone() };
                Operation::SplitResidual { tenant, lease, kept, residual, op_id }
            }
            (8, _) => Operation::Unpark { tenant, key: self.shard(), op_id },
            (9, _) => match self.dice.roll(8) {
                0 => {
                    let result = self.dice.one_in(2).then(|| RunResult::from_bytes([3; 32]));
                    Operation::CompleteRun { tenant, run, result, op_id }
                }
                1 => Operation::FailRun { tenant, run, op_id },
                2 => Operation::CancelRun { tenant, run, op_id },
                3 => Operation::CreateRun { tenant, run, config: self.config() },
                4 => {
                    let shards = self.manifest();
                    Operation::RegisterShards { tenant, run, shards, op_id }
                }
                5 => Operation::GetRun { tenant, run },
                6 => Operation::GetRunProgress { tenant, run },
                _ => {
                    let filters = [
                        ShardFilter::all(),
                        ShardFilter::available(),
                        ShardFilter::parked(),
                        ShardFilter::all().roots(),
                    ];
                    let filter = *self.dice.pick(&filters).unwrap();
                    Operation::ListShards { tenant, run, filter }
                }
            },
            _ => {
                let worker = WorkerId::from_raw(self.dice.roll(3));
                Operation::Acquire { tenant, key: self.shard(), worker }
            }
        }
    }

    fn config(&mut self) -> RunConfig {
        RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: if self.dice.one_in(10) { 0 } else { 100 },
            max_shard_retries: self.dice.roll(4) as u32,
        }
    }

    /// Mostly forward, sometimes far, sometimes back.
    fn tick(&mut self) -> LogicalTime {
        self.now = match self.dice.roll(40) {
            0 => self.now + 100,
            1 => self.now.saturating_sub(60).max(1),
            _ => self.now + self.dice.roll(8),
        };
        LogicalTime::from_raw(self.now)
    }
}

/// A lease keeps others out for so long after its deadline.
const SKEW: u64 = 3;
/// Few children, and so few bytes that a plan with some metadata is too large.
const SPLIT: SplitCaps = SplitCaps { max_children: 3, max_bytes: 40 };

/// A coordinator and the model, side by side.
struct Pair {
    backend: InMemoryCoordinator,
    model: Reference,
    scratch: Box<AcquireScratch>,
}

impl Pair {
    fn new(slab_capacity: usize, claim_cooldown_interval: u64) -> Self {
        let limits = ShardLimits { per_tenant: 60, global: 90 };
        let backend = InMemoryCoordinator::new(CoordinatorRuntimeConfig {
            max_shards_per_tenant: limits.per_tenant,
            max_total_shards: limits.global,
            claim_cooldown_interval,
            slab_capacity,
            skew_allowance: SKEW,
            split_caps: SPLIT,
        });
        let model = Reference::new(Bounds {
            shards: limits,
            claim_cooldown: claim_cooldown_interval,
            byte_capacity: Some(slab_capacity),
            skew_allowance: SKEW,
            split: SPLIT,
            claims_in_turn: true,
            hints_of_all_max: usize::MAX,
        });
        Self { backend, model, scratch: Box::new(AcquireScratch::new()) }
    }

    #[track_caller]
    fn ask(&mut self, now: LogicalTime, operation: &Operation) -> Answer {
        let answer = perform(&mut self.backend, &mut self.scratch, now, operation);
        let verdict = self.model.check(now, operation, &answer);
        assert_eq!(verdict, Ok(()), "to {operation:?} the coordinator said {answer:?}");
        answer
    }

    #[track_caller]
    fn claim(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Option<Lease> {
        let scratch = &mut self.scratch;
        let claimed = self.backend.claim_next_available(now, tenant, run, worker, scratch);
        let hint = claimed.as_ref().ok().map(|view| view.capacity);
        let answer: ClaimAnswer = claimed.map(|view| match Ok(view).answer() {
            Answer::Acquired(acquired) => acquired,
            other => unreachable!("an acquired shard is not {other:?}"),
        });
        let mut shown = Vec::new();
        let parked = ShardFilter::parked();
        // A run that is not there has none.
        let _ = self.backend.list_shards_into(now, tenant, run, parked, &mut shown);
        let parked: Vec<ShardId> = shown.iter().map(|summary| summary.shard).collect();
        let verdict = self.model.check_claim(now, tenant, run, worker, &answer, &parked);
        assert_eq!(verdict, Ok(()), "a claim was answered {answer:?}");
        if let Some(hint) = hint {
            let granted = answer.as_ref().map(|acquired| acquired.lease.key());
            let key = granted.expect("a hint goes with a grant");
            assert_eq!(self.model.check_hint(now, tenant, key, hint), Ok(()));
        }
        answer.ok().map(|acquired| acquired.lease)
    }
}

fn drive(seed: u64, operations: u64) {
    let mut callers = Callers {
        dice: Dice(seed),
        now: 1,
        leases: Vec::new(),
        shards: Vec::new(),
        asked: Vec::new(),
    };
    let slab = if seed.is_multiple_of(4) { 400 } else { 1 << 20 };
    let mut pair = Pair::new(slab, if seed.is_multiple_of(3) { 20 } else { 0 });
    let now = callers.tick();
    for tenant in [1, 1, 2].map(|n| TenantId::from_bytes([n; 32])) {
        let (run, op_id, config) = (callers.run(), callers.op_id(), callers.config());
        pair.ask(now, &Operation::CreateRun { tenant, run, config });
        let register = Operation::RegisterShards { tenant, run, shards: callers.manifest(), op_id };
        let answer = pair.ask(now, &register);
        callers.learn(&register, &answer);
    }
    for step in 0..operations {
        let now = callers.tick();
        if callers.dice.one_in(6) {
            let (tenant, run) = (callers.tenant(), callers.run());
            let worker = WorkerId::from_raw(callers.dice.roll(3));
            callers.leases.extend(pair.claim(now, tenant, run, worker));
            continue;
        }
        let operation = callers.operation(&pair.model);
        let answer = pair.ask(now, &operation);
        callers.learn(&operation, &answer);
        if step.is_multiple_of(50) {
            let runs: Vec<_> = pair.model.runs.keys().copied().collect();
            for (tenant, run) in runs {
                pair.ask(now, &Operation::GetRun { tenant, run });
                pair.ask(now, &Operation::ListShards { tenant, run, filter: ShardFilter::all() });
            }
        }
    }
}

/// The scenario book in short, answers written out by hand.
#[test]
fn the_model_tells_the_scenario_of_the_book() {
    let at = LogicalTime::from_raw;
    let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(2026));
    let key = ShardKey::new(run, ShardId::from_raw(0));
    let (ada, bob) = (WorkerId::from_raw(1), WorkerId::from_raw(2));
    let mut model = Reference::new(Bounds::of_shards(ShardLimits { per_tenant: 10, global: 10 }));
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 30_000,
        max_shard_retries: 2,
    };
    let done = Answer::Executed(Effect::Nothing);
    let mut ask = |now, operation: Operation| model.answer(at(now), &operation);
    assert_eq!(ask(1, Operation::CreateRun { tenant, run, config }), Answer::Accepted);
    let shards = vec![OwnedShardInput {
        shard: key.shard,
        range: range(b"src/", b"src0"),
        cursor: OwnedCursor::default(),
    }];
    let op_id = OpId::from_raw(1);
    assert_eq!(ask(2, Operation::RegisterShards { tenant, run, shards, op_id }), done);
    let acquire = |worker| Operation::Acquire { tenant, key, worker };
    let Answer::Acquired(first) = ask(10, acquire(ada)) else { panic!("a free shard is granted") };
    assert_eq!((first.lease.fence().as_raw(), first.lease.deadline()), (2, at(30_010)));
    let checkpoint = |lease, last_key, op| Operation::Checkpoint {
        renews: false,
        tenant,
        lease,
        cursor: cursor(last_key),
        op_id: OpId::from_raw(op),
    };
    assert_eq!(ask(20, checkpoint(first.lease, b"src/lib.rs", 2)), done);
    let held = Refusal::AlreadyLeased { owner: ada, deadline: at(30_010) };
    assert_eq!(ask(30_009, acquire(bob)), Answer::Refused(held));
    let Answer::Acquired(second) = ask(30_010, acquire(bob)) else { panic!("an expired lease") };
    assert_eq!(second.cursor, cursor(b"src/lib.rs"));
    // The zombie is refused, and still told what it had done.
    let stale =
        Refusal::StaleFence { presented: first.lease.fence(), current: second.lease.fence() };
    assert_eq!(ask(30_020, checkpoint(first.lease, b"src/zoo.rs", 3)), Answer::Refused(stale));
    let replayed = Answer::Replayed(Effect::Nothing);
    assert_eq!(ask(30_020, checkpoint(first.lease, b"src/lib.rs", 2)), replayed);
    // A shard that kills two workers in a row is parked.
    let Answer::Acquired(_) = ask(70_000, acquire(ada)) else { panic!("one try is left") };
    let parked =
        Refusal::ShardTerminal { shard: key, status: gossip_coordination::ShardStatus::Parked };
    assert_eq!(ask(110_000, acquire(bob)), Answer::Refused(parked));
    let remaining = Answer::Refused(Refusal::ShardsRemaining { active: 0, parked: 1 });
    let op_id = OpId::from_raw(4);
    assert_eq!(
        ask(110_001, Operation::CompleteRun { tenant, run, result: None, op_id }),
        remaining
    );
    assert_eq!(ask(110_002, Operation::Unpark { tenant, key, op_id }), done);
    let Answer::Acquired(third) = ask(110_003, acquire(ada)) else { panic!("it goes again") };
    assert_eq!(third.lease.fence().as_raw(), 6);
}

#[test]
fn the_model_and_the_coordinator_in_memory_agree() {
    for seed in 0..400 {
        drive(seed, 400);
    }
}

#[test]
fn a_backend_with_room_that_says_it_has_none_is_contradicted() {
    let at = LogicalTime::from_raw;
    let (tenant, run, worker) =
        (TenantId::from_bytes([1; 32]), RunId::from_raw(1), WorkerId::from_raw(1));
    let limits = ShardLimits { per_tenant: 10, global: 10 };
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 100,
        max_shard_retries: 2,
    };
    let row = OwnedShardInput {
        shard: ShardId::from_raw(0),
        range: range(b"a", b"z"),
        cursor: OwnedCursor::default(),
    };
    let no_room = Answer::Refused(Refusal::ResourceExhausted);
    // One record of 16 bytes is stored, and a cursor takes another: two stretches that are shorter
    // have 30 bytes at most.
    for (capacity, is_believed) in [(None, false), (Some(48), false), (Some(47), true)] {
        let mut model =
            Reference::new(Bounds { byte_capacity: capacity, ..Bounds::of_shards(limits) });
        model.answer(at(1), &Operation::CreateRun { tenant, run, config });
        let (shards, op_id) = (vec![row.clone()], OpId::from_raw(1));
        model.answer(at(1), &Operation::RegisterShards { tenant, run, shards, op_id });
        let key = ShardKey::new(run, row.shard);
        let Answer::Acquired(held) =
            model.answer(at(2), &Operation::Acquire { tenant, key, worker })
        else {
            panic!("a free shard is granted")
        };
        let (lease, op_id) = (held.lease, OpId::from_raw(2));
        let checkpoint =
            Operation::Checkpoint { tenant, lease, cursor: cursor(b"m"), renews: false, op_id };
        let verdict = model.check(at(3), &checkpoint, &no_room);
        assert_eq!(verdict.is_ok(), is_believed, "{capacity:?}: {verdict:?}");
        // What stores nothing always fits.
        let renew = Operation::Renew { tenant, lease };
        assert!(model.check(at(3), &renew, &no_room).is_err());
    }
}

/// What else there is to do may be missing where it could not be read, and nowhere else.
#[test]
fn a_checkpoint_is_answered_without_its_hint_only_while_the_store_fails() {
    let mut model = Reference::new(Bounds::of_shards(ShardLimits { per_tenant: 9, global: 9 }));
    let (tenant, run, now) =
        (TenantId::from_bytes([1; 32]), RunId::from_raw(1), LogicalTime::from_raw(50));
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 100,
        max_shard_retries: 3,
    };
    let shard = ShardId::from_raw(1);
    let row = OwnedShardInput { shard, range: range(b"a", b"c"), cursor: OwnedCursor::default() };
    let (key, worker, op_id) =
        (ShardKey::new(run, shard), WorkerId::from_raw(1), OpId::from_raw(1));
    model.answer(now, &Operation::CreateRun { tenant, run, config });
    model.answer(now, &Operation::RegisterShards { tenant, run, shards: vec![row], op_id });
    let Answer::Acquired(acquired) = model.answer(now, &Operation::Acquire { tenant, key, worker })
    else {
        panic!("it is free")
    };
    let (lease, op_id) = (acquired.lease, OpId::from_raw(2));
    let cursor = cursor(b"b");
    let operation = Operation::Checkpoint { tenant, lease, cursor, renews: true, op_id };
    let said = |idle| {
        let deadline = LogicalTime::from_raw(150);
        Answer::Executed(Effect::Renewed { deadline, idle })
    };
    let (bare, whole) = (said(None), said(Some(0)));
    assert_eq!(model.clone().check(now, &operation, &whole), Ok(()));
    assert_eq!(model.clone().check(now, &operation, &bare), Err(whole));
    model.hints_may_fail = true;
    assert_eq!(model.check(now, &operation, &bare), Ok(()));
}
