//! Random lives of one shard: workers, zombies with old leases, foreign tenants, administrators
//! and a clock that jumps. After every request, what must never happen has not happened.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::op_log::OP_LOG_CAP;
use crate::testing::cases;

/// Keys that live as long as the program, so that requests can be kept and retried.
static KEYS: [[u8; 1]; 256] = {
    let mut keys = [[0]; 256];
    let mut at = 0;
    while at < keys.len() {
        keys[at] = [at as u8];
        at += 1;
    }
    keys
};

fn key(raw: u8) -> &'static [u8] {
    &KEYS[raw as usize]
}

fn range(start: u8, end: u8) -> ShardSpecRef<'static> {
    ShardSpecRef::new(key(start), key(end), b"")
}

#[derive(Clone, Debug)]
enum Step {
    /// The clock goes on, or back.
    Clock(i64),
    Gate(RunStatus),
    Acquire {
        worker: u64,
        tenant: TenantId,
    },
    Unpark {
        tenant: TenantId,
        id: u64,
    },
    /// With the lease granted so many grants ago. A key that is `near` is taken as a distance, so
    /// that most requests are sensible ones.
    Work {
        lease_back: usize,
        lease_tenant: TenantId,
        tenant: TenantId,
        work: Work,
        near: bool,
        id: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Work {
    Renew,
    Release,
    Checkpoint(u8),
    Complete(u8),
    Park(u8),
    /// At this key, of whatever range the shard has then.
    SplitReplace(u8),
    SplitResidual(u8),
}

impl Work {
    /// The same with its key counted from the cursor, or back from the end.
    fn near(self, cursor: u8, end: u8) -> Self {
        let ahead = |raw: u8| cursor.saturating_add(raw % 6);
        let back = |raw: u8| end.saturating_sub(1 + raw % 6);
        match self {
            Self::Checkpoint(raw) => Self::Checkpoint(ahead(raw)),
            Self::Complete(raw) => Self::Complete(ahead(raw)),
            Self::SplitReplace(raw) => Self::SplitReplace(back(raw)),
            Self::SplitResidual(raw) => Self::SplitResidual(back(raw)),
            Self::Renew | Self::Release | Self::Park(_) => self,
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let tenant = || prop_oneof![30 => Just(TENANT), 1 => Just(OTHER_TENANT)];
    let id = 0u64..60;
    let key = 0x0eu8..0xf2;
    let work = prop_oneof![
        20 => Just(Work::Renew),
        6 => Just(Work::Release),
        60 => key.clone().prop_map(Work::Checkpoint),
        1 => key.clone().prop_map(Work::Complete),
        6 => (0u8..5).prop_map(Work::Park),
        1 => key.clone().prop_map(Work::SplitReplace),
        20 => key.prop_map(Work::SplitResidual),
    ];
    let back = prop_oneof![8 => Just(0usize), 1 => 1..5usize];
    let near = prop::bool::weighted(0.9);
    let millis = prop_oneof![6 => 1..40i64, 1 => 100..200i64, 1 => -80..0i64];
    let status =
        prop_oneof![4 => Just(RunStatus::Active), 1 => prop::sample::select(&RunStatus::ALL[1..])];
    prop_oneof![
        6 => millis.prop_map(Step::Clock),
        1 => status.prop_map(Step::Gate),
        6 => (1u64..4, tenant()).prop_map(|(worker, tenant)| Step::Acquire { worker, tenant }),
        4 => (tenant(), id.clone()).prop_map(|(tenant, id)| Step::Unpark { tenant, id }),
        24 => (back, tenant(), tenant(), work, near, id).prop_map(
            |(lease_back, lease_tenant, tenant, work, near, id)| Step::Work {
                lease_back, lease_tenant, tenant, work, near, id,
            },
        ),
    ]
}

/// A request that can be kept: plans are the three keys between which they cut.
#[derive(Clone, Copy, Debug)]
struct Kept {
    tenant: TenantId,
    lease: Lease,
    work: Work,
    bounds: (u8, u8),
    id: u64,
}

impl Kept {
    fn with_request<R>(&self, f: impl FnOnce(&Request<'_>) -> R) -> R {
        let (start, end) = self.bounds;
        let (replace, residual);
        let op = match self.work {
            Work::Renew => Op::Renew,
            Work::Release => Op::Release,
            Work::Checkpoint(at) => Op::Checkpoint(CursorUpdate::at(key(at))),
            Work::Complete(at) => Op::Complete(CursorUpdate::at(key(at))),
            Work::Park(raw) => Op::Park(ParkReason::from_raw(raw).unwrap()),
            Work::SplitReplace(at) => {
                replace = SplitReplacePlan::new([range(start, at), range(at, end)]);
                Op::SplitReplace(&replace)
            }
            Work::SplitResidual(at) => {
                residual = SplitResidualPlan::new(range(start, at), range(at, end));
                Op::SplitResidual(&residual)
            }
        };
        f(&Request { tenant: self.tenant, lease: self.lease, op, op_id: operation(self.id) })
    }
}

/// What was carried out under an operation id, with the ids that it made.
#[derive(Clone, Debug)]
enum Logged {
    Work(Kept, Vec<ShardId>),
    Unpark(u64),
}

struct Life {
    world: World,
    leases: Vec<Lease>,
    /// As many as the op-log holds.
    logged: VecDeque<Logged>,
    residuals: Vec<(Kept, ShardId)>,
}

impl Life {
    fn new() -> Self {
        let mut world = World::new();
        world.shard.spec =
            gossip_contracts::coordination::ShardSpec::new(range(0x10, 0xf0)).unwrap();
        let forged = Lease::new(TENANT, KEY, WORKER, FenceEpoch::INITIAL, DEADLINE);
        Self { world, leases: vec![forged], logged: VecDeque::new(), residuals: vec![] }
    }

    fn take(&mut self, step: &Step) {
        let before = self.world.shard.clone();
        match *step {
            Step::Clock(millis) => {
                let now = self.world.now.as_raw().saturating_add_signed(millis).max(1);
                self.world.now = at(now);
            }
            Step::Gate(status) => self.world.gate.status = status,
            Step::Acquire { worker, tenant } => self.acquire(WorkerId::from_raw(worker), tenant),
            Step::Unpark { tenant, id } => self.unpark(tenant, id),
            Step::Work { lease_back, lease_tenant, tenant, work, near, id } => {
                let lease = self.leases[self.leases.len().saturating_sub(1 + lease_back)];
                let lease = Lease::new(
                    lease_tenant,
                    lease.key(),
                    lease.owner(),
                    lease.fence(),
                    lease.deadline(),
                );
                let spec = before.spec.as_ref();
                let bounds = (spec.start()[0], spec.end()[0]);
                let cursor = before.cursor.as_update().last_key().map_or(bounds.0, |key| key[0]);
                let work = if near { work.near(cursor, bounds.1) } else { work };
                self.work(Kept { tenant, lease, work, bounds, id });
            }
        }
        self.check_against(&before);
        self.check_replays();
    }

    fn acquire(&mut self, worker: WorkerId, tenant: TenantId) {
        let World { shard, now, gate, .. } = &self.world;
        let held = shard.state.holder_at(*now, Takeover::AT_DEADLINE);
        match self.world.ask_acquire(tenant, worker) {
            Ok(AcquireDecision::Grant { lease, update }) => {
                assert_eq!((tenant, gate.status), (TENANT, RunStatus::Active));
                assert!(held.is_none_or(|holder| holder.owner() == worker), "two live leases");
                assert_eq!(lease.fence(), shard.state.fence.next());
                self.world.shard.apply(&update);
                self.leases.push(lease);
            }
            Ok(AcquireDecision::Poison { update, .. }) => {
                assert_eq!(shard.state.acquires_since_progress, RETRIES);
                self.world.shard.apply(&update);
            }
            Err(_) => {}
        }
    }

    fn unpark(&mut self, tenant: TenantId, id: u64) {
        let world = &mut self.world;
        let decision =
            world.with_found(|found| unpark(found, world.now, tenant, KEY, operation(id)));
        if let Ok(Decision::Execute(update)) = decision {
            assert_eq!((tenant, world.shard.state.status), (TENANT, ShardStatus::Parked));
            world.shard.apply(&update);
            self.log(Logged::Unpark(id));
        }
    }

    fn work(&mut self, kept: Kept) {
        let (state, now) = (self.world.shard.state, self.world.now);
        let made = kept.with_request(|request| match self.world.perform(request) {
            Ok(Answer::Execute { shards, .. }) => Some(shards.iter().map(|new| new.id).collect()),
            _ => None,
        });
        let Some(made): Option<Vec<ShardId>> = made else { return };
        // Whoever gets this far holds the shard.
        assert_eq!((kept.tenant, kept.lease.tenant()), (TENANT, TENANT));
        assert_eq!(self.world.gate.status, RunStatus::Active);
        assert_eq!(kept.lease.fence(), state.fence, "a zombie wrote");
        let holder = state.holder_at(now, Takeover::AT_DEADLINE).expect("only a live lease writes");
        assert_eq!(holder.owner(), kept.lease.owner());
        match kept.work {
            Work::Renew | Work::Release => return,
            Work::SplitResidual(_) => self.residuals.push((kept, made[0])),
            _ => {}
        }
        self.log(Logged::Work(kept, made));
    }

    fn log(&mut self, logged: Logged) {
        if self.logged.len() == OP_LOG_CAP {
            self.logged.pop_front();
        }
        self.logged.push_back(logged);
    }

    fn check_against(&self, before: &ShardRecord) {
        let after = &self.world.shard;
        after.view().assert_invariants();
        assert_eq!(codec::decode_shard(&self.world.bytes()).as_ref(), Ok(after));
        assert!(after.state.fence >= before.state.fence, "the fence fell");
        assert!(after.spawned.starts_with(&before.spawned), "a spawned shard was forgotten");
        assert!(after.state.acquires_since_progress <= RETRIES);
        let (old, new) = (before.cursor.as_update(), after.cursor.as_update());
        assert!(old.may_advance_to(&new), "the cursor fell");
        assert!(new.is_within(after.spec.as_ref()), "the cursor left the range");
        let (from, to) = (before.state.status, after.state.status);
        if from.is_terminal() && from != to {
            assert_eq!((from, to), (ShardStatus::Parked, ShardStatus::Active));
            assert!(matches!(self.logged.back(), Some(Logged::Unpark(_))));
        }
    }

    /// The last operations are replayed, with their first results, in whatever state the shard is.
    fn check_replays(&mut self) {
        assert_eq!(self.logged.len(), self.world.shard.op_log.len());
        for logged in self.logged.clone() {
            match logged {
                Logged::Work(kept, made) => kept.with_request(|request| {
                    let expected = match kept.work {
                        Work::SplitReplace(_) | Work::SplitResidual(_) => Answer::Replay(made),
                        _ => Answer::REPLAY,
                    };
                    assert_eq!(self.world.perform(request), Ok(expected));
                }),
                Logged::Unpark(id) => {
                    let world = &self.world;
                    let again = world
                        .with_found(|found| unpark(found, world.now, TENANT, KEY, operation(id)));
                    assert_eq!(again, Ok(Decision::Replay(())));
                }
            }
        }
        // Residual splits for ever, unless the id has been used for something else since.
        for &(kept, residual) in &self.residuals {
            kept.with_request(|request| match self.world.perform(request) {
                Err(CoordError::OpIdConflict { .. }) => {}
                answer => assert_eq!(answer, Ok(Answer::Replay(vec![residual]))),
            });
        }
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn whatever_is_asked_of_a_shard_it_stays_sound(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut life = Life::new();
        for step in &steps {
            life.take(step);
        }
    }
}
