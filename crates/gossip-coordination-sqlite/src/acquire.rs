//! Granting a shard: the part that an acquire and the claims share.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{FenceEpoch, LogicalTime, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{self, AcquireDecision};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CapacityHint, EventKind, Lease, ParkReason,
    ShardStatus,
};
use rusqlite::Transaction;

use crate::coordinator::SqliteCoordinator;
use crate::error::Steps;
use crate::shards::{Buffers, Shard};

/// Who wants a shard.
#[derive(Clone, Copy)]
pub(crate) struct Applicant {
    pub(crate) now: LogicalTime,
    pub(crate) tenant: TenantId,
    pub(crate) worker: WorkerId,
}

/// What storing the decision about an acquire led to. Both must be committed.
pub(crate) enum Attempt {
    Granted(Granted),
    /// The shard has been parked instead.
    Poisoned(AcquireError),
}

/// A granted shard, without what is in the caller's scratch.
pub(crate) struct Granted {
    lease: Lease,
    capacity: CapacityHint,
    status: ShardStatus,
    cursor_semantics: CursorSemantics,
    parent: Option<ShardId>,
}

impl Granted {
    pub(crate) fn fence(&self) -> FenceEpoch {
        self.lease.fence()
    }

    pub(crate) fn shard(&self) -> ShardId {
        self.lease.shard()
    }

    pub(crate) fn view<'s>(&self, scratch: &'s AcquireScratch) -> AcquireResultView<'s> {
        AcquireResultView {
            lease: self.lease,
            snapshot: scratch.view(self.status, self.cursor_semantics, self.parent),
            capacity: self.capacity,
        }
    }
}

/// Decides about an acquire and stores the decision.
pub(crate) fn attempt(
    tx: &Transaction<'_>,
    steps: &Steps,
    Applicant { now, tenant, worker }: Applicant,
    key: ShardKey,
    buffers: &mut Buffers,
    scratch: &mut AcquireScratch,
) -> Result<Attempt, AcquireError> {
    let Buffers { record, decoded, encoded } = buffers;
    let found = Shard::find(tx, steps, tenant, key, record, decoded)?;
    let decision = transition::acquire(found.as_ref().map(Shard::found), now, tenant, key, worker)?;
    let shard = found.expect("transitions refuse to act on a shard that is not there");
    match decision {
        AcquireDecision::Grant { lease, update } => {
            shard.store(tx, steps, &update, encoded)?;
            scratch.write_record(&shard.view);
            Ok(Attempt::Granted(Granted {
                lease,
                capacity: shard.run.capacity(tx, steps.load, now)?,
                status: update.state.status,
                cursor_semantics: shard.view.cursor_semantics,
                parent: shard.view.parent,
            }))
        }
        AcquireDecision::Poison { update, refusal } => {
            shard.store(tx, steps, &update, encoded)?;
            Ok(Attempt::Poisoned(refusal))
        }
    }
}

impl SqliteCoordinator {
    pub(crate) fn emit_granted(&mut self, by: Applicant, granted: &Granted) {
        let run = granted.lease.run();
        self.emit(by.tenant, run, by.now, || EventKind::ShardAcquired {
            shard: granted.shard(),
            worker: by.worker,
            fence_epoch: granted.fence(),
        });
    }

    pub(crate) fn emit_poisoned(&mut self, by: Applicant, key: ShardKey) {
        self.emit(by.tenant, key.run, by.now, || EventKind::ShardParked {
            shard: key.shard,
            reason: ParkReason::Poisoned,
        });
    }
}
