//! Random lives of two runs, told to the reference coordinator and to this one: every answer, every
//! event and every listing must be the same, whatever is closed and opened in between.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, SplitReplacePlan,
    SplitResidualPlan,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireResultView, AcquireScratch, ClaimCandidates, CoordinationFacade,
    CoordinatorRuntimeConfig, EventCollector, InMemoryCoordinator, Lease, ParkReason, RunConfig,
    ShardFilter, ShardLimits,
};
use gossip_coordination_sqlite::{SqliteConfig, SqliteCoordinator};

use crate::support::{Place, assert_sound, key, number, random_below, scaled};

const SHARDS_MAX: usize = 40;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One call with all that it says. Drawn once, made twice.
#[derive(Clone, Debug)]
struct Call {
    kind: u64,
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    shard: ShardId,
    worker: WorkerId,
    op: OpId,
    lease: Option<Lease>,
    keys: [u64; 4],
}

impl Call {
    fn draw(random: &mut Random, step: u64, leases: &[Lease], shards: &[ShardId]) -> Self {
        let pick = |random: &mut Random, of: usize| random.below(of as u64) as usize;
        // The clock moves on, and now and then back; no two steps share a time.
        let tick = if random.below(20) == 0 { step.saturating_sub(40) } else { step };
        let mut keys = [0; 4].map(|_: u64| 1 + random.below(60));
        keys.sort_unstable();
        let recent = leases.len().saturating_sub(8);
        let lease = match leases.len() {
            0 => None,
            _ if random.below(6) == 0 => Some(leases[pick(random, leases.len())]),
            len => Some(leases[recent + pick(random, len - recent)]),
        };
        Self {
            kind: if step < 20 { step % 2 } else { random.below(40) },
            now: LogicalTime::from_raw(1_000_000 + tick * 1000 + step % 1000),
            tenant: TenantId::from_bytes([1 + (random.below(8) == 0) as u8; 32]),
            run: RunId::from_raw(1 + random.below(2)),
            shard: match shards.len() {
                0 => ShardId::from_raw(random.below(4)),
                len => shards[pick(random, len)],
            },
            worker: WorkerId::from_raw(1 + random.below(3)),
            op: OpId::from_raw(if random.below(4) == 0 { random.below(step + 1) } else { step }),
            lease,
            keys,
        }
    }

    /// Makes the call. What it answered, and the lease if it granted one.
    fn make(&self, backend: &mut impl CoordinationFacade) -> (String, Option<Lease>) {
        let Self { now, tenant, run, shard, worker, op, .. } = *self;
        let mut scratch = Box::new(AcquireScratch::new());
        let shard_key = ShardKey::new(run, shard);
        if let (10.., Some(lease)) = (self.kind, &self.lease) {
            // Rarely with somebody else's tenant.
            let tenant = if self.keys[0] > 40 { tenant } else { lease.tenant() };
            return (self.make_leased(backend, tenant, lease), None);
        }
        let said = match self.kind {
            0 => {
                let config = RunConfig {
                    cursor_semantics: CursorSemantics::Completed,
                    lease_duration: 60_000,
                    max_shard_retries: 3,
                };
                format!("{:?}", backend.create_run(now, tenant, run, config))
            }
            1 => {
                let bounds: Vec<_> = (0..4u64).map(|at| key(1 + at * 20)).collect();
                let row = |at: usize| {
                    let spec = ShardSpecRef::new(&bounds[at], &bounds[at + 1], b"about");
                    let shard = ShardId::from_raw(at as u64);
                    InitialShardInput::new(shard, spec, CursorUpdate::initial())
                };
                let rows = [row(0), row(1), row(2)];
                format!("{:?}", backend.register_shards(now, tenant, run, &rows, op))
            }
            2 => format!("{:?}", backend.complete_run(now, tenant, run, op)),
            3 if self.keys[0] > 50 => format!("{:?}", backend.fail_run(now, tenant, run, op)),
            4 if self.keys[0] > 50 => format!("{:?}", backend.cancel_run(now, tenant, run, op)),
            5 => format!("{:?}", backend.unpark_shard(now, tenant, shard_key, op)),
            6 => {
                let mut out = ClaimCandidates::new();
                let found =
                    backend.collect_claim_candidates_into(now, tenant, run, worker, &mut out);
                // How many are offered is each backend's own business; the best is not.
                let best = out.shards.first();
                format!("{found:?} {:?} {best:?} {:?}", out.status, out.earliest_deadline)
            }
            7 => {
                let acquired =
                    backend.acquire_and_restore_into(now, tenant, shard_key, worker, &mut scratch);
                return answer(acquired);
            }
            _ => {
                let claimed = backend.claim_next_available(now, tenant, run, worker, &mut scratch);
                return answer(claimed);
            }
        };
        (said, None)
    }

    /// Cursors and cuts are drawn around where the shard stands, so that they often fit.
    fn make_leased(
        &self,
        backend: &mut impl CoordinationFacade,
        tenant: TenantId,
        lease: &Lease,
    ) -> String {
        let Self { now, op, keys, .. } = *self;
        let mut listed = Vec::new();
        let _ = backend.list_shards_into(
            now,
            lease.tenant(),
            lease.run(),
            ShardFilter::all(),
            &mut listed,
        );
        let shard =
            listed.iter().find(|shard| shard.shard == lease.shard()).expect("it was leased");
        let (start, end) = (number(&shard.start), number(&shard.end));
        let stands = shard.last_key.as_deref().map_or(start, number);
        let at = key(stands + keys[0] % 4 - u64::from(stands > 1 && keys[1] % 8 == 0));
        let cursor = CursorUpdate::new(Some(&at), (keys[2] % 2 == 0).then_some(&b"token"[..]));
        let cut = stands + 1 + keys[3] % 6;
        let (first, cut, second, last) =
            (key(start), key(cut), key(cut + 1 + keys[1] % 4), key(end));
        match self.kind {
            10..=12 => format!("{:?}", backend.renew(now, tenant, lease)),
            13..=14 => format!("{:?}", backend.release(now, tenant, lease)),
            15..=26 => format!("{:?}", backend.checkpoint(now, tenant, lease, cursor, op)),
            27..=29 => format!("{:?}", backend.complete(now, tenant, lease, cursor, op)),
            30..=31 => {
                format!("{:?}", backend.park_shard(now, tenant, lease, ParkReason::Other, op))
            }
            32..=34 => {
                let plan = SplitReplacePlan::new([
                    ShardSpecRef::new(&first, &cut, b""),
                    ShardSpecRef::new(&cut, &second, b"some"),
                    ShardSpecRef::new(&second, &last, b""),
                ]);
                format!("{:?}", backend.split_replace(now, tenant, lease, &plan, op))
            }
            _ => {
                let plan = SplitResidualPlan::new(
                    ShardSpecRef::new(&first, &cut, b""),
                    ShardSpecRef::new(&cut, &last, b"rest"),
                );
                format!("{:?}", backend.split_residual(now, tenant, lease, &plan, op))
            }
        }
    }
}

fn answer<E: std::fmt::Debug>(
    acquired: Result<AcquireResultView<'_>, E>,
) -> (String, Option<Lease>) {
    match acquired {
        Ok(view) => (format!("{view:?} {:?}", view.to_restored_state()), Some(view.lease)),
        Err(error) => (format!("{error:?}"), None),
    }
}

fn look(backend: &impl CoordinationFacade, call: &Call) -> String {
    let mut listed = Vec::new();
    let Call { now, tenant, run, .. } = *call;
    let found = backend.list_shards_into(now, tenant, run, ShardFilter::available(), &mut listed);
    let progress = backend.get_run_progress(tenant, run);
    format!("{found:?} {listed:?} {progress:?} {:?}", backend.get_run(tenant, run))
}

fn events(collector: &mut EventCollector) -> String {
    format!("{:?}", collector.drain())
}

#[test]
fn every_answer_is_that_of_the_reference() {
    let mut executed = 0;
    for _ in 0..scaled(8) {
        let seed = 1 + random_below(u64::MAX - 1);
        println!("seed {seed}");
        executed += live(seed);
    }
    println!("{executed} calls changed something");
    assert!(executed > 200, "{executed}");
}

#[test]
fn a_claim_that_parks_an_expired_shard_takes_the_next_expired_one_before_a_free_one() {
    let place = Place::new();
    let mut sqlite = SqliteCoordinator::open(place.db(), SqliteConfig::default()).unwrap();
    assert_eq!(claimed_behind_poison(&mut sqlite), [1, 2]);
    let mut memory = InMemoryCoordinator::new(CoordinatorRuntimeConfig::default());
    assert_eq!(claimed_behind_poison(&mut memory), [1, 2]);
}

/// Of three shards the first is poisoned and the second has lost its worker later; the third is free.
/// Returns what two claims get.
fn claimed_behind_poison(backend: &mut impl CoordinationFacade) -> [u64; 2] {
    let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
    let (now, worker) = (LogicalTime::from_raw, WorkerId::from_raw);
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 100,
        max_shard_retries: 2,
    };
    backend.create_run(now(1), tenant, run, config).unwrap();
    let bounds: Vec<_> = (0..4).map(|at| key(1 + at)).collect();
    let rows = [0, 1, 2].map(|at: usize| {
        let spec = ShardSpecRef::new(&bounds[at], &bounds[at + 1], b"");
        InitialShardInput::new(ShardId::from_raw(at as u64), spec, CursorUpdate::initial())
    });
    backend.register_shards(now(1), tenant, run, &rows, OpId::from_raw(1)).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    for (at, shard) in [(2, 0), (3, 0), (4, 1)] {
        let shard = ShardKey::new(run, ShardId::from_raw(shard));
        backend.acquire_and_restore_into(now(at), tenant, shard, worker(1), &mut scratch).unwrap();
    }
    [2, 3].map(|by| {
        let claimed = backend.claim_next_available(now(500), tenant, run, worker(by), &mut scratch);
        claimed.unwrap().lease.shard().as_raw()
    })
}

/// Returns how many calls changed something.
fn live(seed: u64) -> u64 {
    let mut random = Random(seed);
    let mut reference = InMemoryCoordinator::new(CoordinatorRuntimeConfig {
        max_shards_per_tenant: SHARDS_MAX,
        max_total_shards: SHARDS_MAX + 10,
        slab_capacity: 1 << 20,
        ..CoordinatorRuntimeConfig::default()
    });
    let place = Place::new();
    let config = SqliteConfig {
        limits: ShardLimits { per_tenant: SHARDS_MAX, global: SHARDS_MAX + 10 },
        ..SqliteConfig::default()
    };
    let open = || SqliteCoordinator::open(place.db(), config.clone()).unwrap();
    let mut ours = open();
    let (mut leases, mut shards) = (Vec::new(), Vec::new());
    let mut executed = 0;
    for step in 1..400 {
        let call = Call::draw(&mut random, step, &leases, &shards);
        // One collector serves one tenant.
        let (mut expected_events, mut our_events) = (EventCollector::new(), EventCollector::new());
        let expected =
            reference.with_events(&mut expected_events, |reference| call.make(reference));
        let answered = ours.with_events(&mut our_events, |ours| call.make(ours));
        assert_eq!(answered, expected, "seed {seed}, step {step}: {call:?}");
        executed += u64::from(!our_events.is_empty());
        let (ours_said, expected_said) = (events(&mut our_events), events(&mut expected_events));
        assert_eq!(ours_said, expected_said, "seed {seed}, step {step}: {call:?}");
        let (seen, expected) = (look(&ours, &call), look(&reference, &call));
        assert_eq!(seen, expected, "seed {seed}, step {step}: {call:?}");

        leases.extend(answered.1);
        if step % 10 == 0 {
            let mut listed = Vec::new();
            let _ = gossip_coordination::RunManagement::list_shards_into(
                &reference,
                call.now,
                call.tenant,
                call.run,
                ShardFilter::all(),
                &mut listed,
            );
            shards = listed.iter().map(|shard| shard.shard).collect();
        }
        match random.below(25) {
            0 => assert_sound(&ours),
            1 => {
                drop(ours);
                ours = open();
            }
            // A second handle, while the first is open.
            2 => ours = open(),
            _ => {}
        }
    }
    assert_sound(&ours);
    reference.assert_consistent();
    executed
}
