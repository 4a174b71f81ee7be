//! The small world in which a case plays: one backend, a tenant, a run, a clock.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, RestoredShardState, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};

use super::harness::{Harness, Limits};
use crate::lease::Lease;
use crate::record::ShardRecord;
use crate::run::{RunConfig, RunRecord, RunStatus};
use crate::scratch::{AcquireResultView, AcquireScratch, CapacityHint};
use crate::status::ParkReason;

/// How long leases last, in milliseconds.
pub(super) const LEASE: u64 = 10_000;
/// How often a shard may be tried without progress.
pub(super) const RETRIES: u32 = 3;

pub(super) struct World<H> {
    pub(super) harness: H,
    /// Who asks.
    pub(super) tenant: TenantId,
    /// About which run.
    pub(super) run: RunId,
    /// With which configuration runs are created.
    pub(super) config: RunConfig,
    /// When.
    pub(super) now: LogicalTime,
    /// Whether every call is audited. Off where there are thousands of shards.
    pub(super) audited: bool,
    /// Whether the backend is closed and opened again after every call.
    pub(super) reopening: bool,
    pub(super) scratch: Box<AcquireScratch>,
    ops: u64,
}

/// What an acquire brought, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acquired {
    pub(super) lease: Lease,
    pub(super) state: RestoredShardState,
    pub(super) spawned: Vec<ShardId>,
    pub(super) capacity: CapacityHint,
}

impl From<AcquireResultView<'_>> for Acquired {
    fn from(view: AcquireResultView<'_>) -> Self {
        Self {
            lease: view.lease,
            state: view.to_restored_state(),
            spawned: view.snapshot.spawned.to_vec(),
            capacity: view.capacity,
        }
    }
}

impl<H: Harness> World<H> {
    pub(super) fn open(limits: &Limits) -> Self {
        Self {
            harness: H::open(limits),
            tenant: tenant(1),
            run: RunId::from_raw(1),
            config: RunConfig {
                cursor_semantics: CursorSemantics::Completed,
                lease_duration: LEASE,
                max_shard_retries: RETRIES,
            },
            now: LogicalTime::from_raw(1_000_000),
            audited: true,
            reopening: false,
            scratch: Box::new(AcquireScratch::new()),
            ops: 0,
        }
    }

    /// A run with the shards 0 to `shards`, whose ranges touch.
    pub(super) fn new(shards: u64) -> Self {
        let mut world = Self::open(&Limits::default());
        world.begin(shards);
        world
    }

    /// Creates the run with the shards 0 to `shards`.
    pub(super) fn begin(&mut self, shards: u64) {
        self.create_run().expect("the run's id is free");
        let manifest = Manifest::of(0..shards);
        let op = self.op();
        self.register(&manifest.rows(), op).expect("the manifest is in order");
    }

    /// An operation id that was not used before.
    pub(super) fn op(&mut self) -> OpId {
        self.ops += 1;
        OpId::from_raw(self.ops)
    }

    pub(super) fn tick(&mut self, millis: u64) {
        self.now = self.now.checked_add(millis).expect("cases end before time does");
    }

    /// Moves the clock to where another worker may take the shard.
    pub(super) fn expire(&mut self, lease: &Lease) {
        self.now = self.now.max(H::caps().free_from(lease.deadline()));
    }

    pub(super) fn key(&self, shard: ShardId) -> ShardKey {
        ShardKey::new(self.run, shard)
    }

    /// A lease that must be granted.
    #[track_caller]
    pub(super) fn lease(&mut self, worker: u64, shard: u64) -> Lease {
        self.acquire(worker, id(shard)).expect("the shard is free").lease
    }

    /// The record of a shard as it is stored.
    #[track_caller]
    pub(super) fn shard(&mut self, shard: ShardId) -> ShardRecord {
        let (tenant, key) = (self.tenant, self.key(shard));
        self.harness.dump().shard(tenant, key).expect("the shard is stored")
    }

    /// The record of the run as it is stored.
    #[track_caller]
    pub(super) fn run_record(&mut self) -> RunRecord {
        self.harness.dump().run(self.tenant, self.run).expect("the run is stored")
    }

    /// Closes the backend, opens it again and checks that nothing is gone, where that can be.
    #[track_caller]
    pub(super) fn reopen(&mut self) {
        if !H::caps().durable {
            return;
        }
        let before = self.harness.dump();
        self.harness.reopen();
        let after = self.harness.dump();
        let changes = before.changes(&after);
        assert!(changes.is_empty(), "reopening changed {changes:?}");
    }

    /// Ends an active run whose shards may remain, or leaves it as it is.
    pub(super) fn bring_to(&mut self, status: RunStatus) {
        let op = self.op();
        match status {
            RunStatus::Initializing | RunStatus::Active => {}
            RunStatus::Done => drop(self.complete_run(op).expect("no shard remains")),
            RunStatus::Failed => drop(self.fail_run(op).expect("the run is active")),
            RunStatus::Cancelled => drop(self.cancel_run(op).expect("the run is active")),
        }
    }

    /// Parks a shard that is free.
    pub(super) fn parked(&mut self, shard: u64) {
        let lease = self.lease(1, shard);
        let op = self.op();
        self.park(&lease, ParkReason::TooManyErrors, op).expect("it is held");
    }
}

pub(super) fn tenant(number: u8) -> TenantId {
    TenantId::from_bytes([number; 32])
}

pub(super) fn id(shard: u64) -> ShardId {
    ShardId::from_raw(shard)
}

pub(super) fn worker(number: u64) -> WorkerId {
    WorkerId::from_raw(number)
}

/// Where a shard's range begins, and the one before it ends.
pub(super) fn start(shard: u64) -> Vec<u8> {
    format!("{shard:06}").into_bytes()
}

/// A key inside a shard's range; ordered by `tail`.
pub(super) fn within(shard: u64, tail: &str) -> Vec<u8> {
    format!("{shard:06}/{tail}").into_bytes()
}

/// The metadata with which a root shard is registered.
pub(super) fn about(shard: u64) -> Vec<u8> {
    format!("about {shard}").into_bytes()
}

/// The bytes of a manifest, so that rows can borrow them.
pub(super) struct Manifest {
    shards: Vec<ManifestShard>,
}

struct ManifestShard {
    shard: u64,
    start: Vec<u8>,
    end: Vec<u8>,
    metadata: Vec<u8>,
}

impl Manifest {
    pub(super) fn of(shards: impl IntoIterator<Item = u64>) -> Self {
        let shards = shards.into_iter().map(|shard| ManifestShard {
            shard,
            start: start(shard),
            end: start(shard + 1),
            metadata: about(shard),
        });
        Self { shards: shards.collect() }
    }

    pub(super) fn rows(&self) -> Vec<InitialShardInput<'_>> {
        self.shards
            .iter()
            .map(|ManifestShard { shard, start, end, metadata }| {
                let range = ShardSpecRef::new(start, end, metadata);
                InitialShardInput::new(id(*shard), range, CursorUpdate::initial())
            })
            .collect()
    }
}
