//! Granting a shard: the part that an acquire and the claims share.

use gossip_contracts::identity::{LogicalTime, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{self, AcquireDecision};
use gossip_coordination::{AcquireError, AcquireScratch, Granted, Takeover};
use rusqlite::Transaction;

use crate::error::Steps;
use crate::shards::{Buffers, Shard, Stored};

/// Who wants a shard.
#[derive(Clone, Copy)]
pub(crate) struct Applicant {
    pub(crate) now: LogicalTime,
    pub(crate) tenant: TenantId,
    pub(crate) worker: WorkerId,
}

/// What storing the decision about an acquire led to. It must be committed either way.
pub(crate) struct Attempt {
    pub(crate) stored: Stored<'static>,
    /// `Err`: the shard has been parked instead.
    pub(crate) outcome: Result<Granted, AcquireError>,
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
    // One machine, one clock.
    let found_shard = found.as_ref().map(Shard::found);
    let decision =
        transition::acquire(found_shard, now, Takeover::AT_DEADLINE, tenant, key, worker)?;
    let shard = found.expect("transitions refuse to act on a shard that is not there");
    match decision {
        AcquireDecision::Grant { lease, update } => {
            shard.store(tx, steps, &update, encoded)?;
            scratch.write_record(&shard.view);
            shard.run.forget_idle(tx, steps.store, worker)?;
            let granted = Granted {
                lease,
                capacity: shard.run.capacity(tx, steps.load, now)?,
                status: update.state.status,
                cursor_semantics: shard.view.cursor_semantics,
                parent: shard.view.parent,
            };
            Ok(Attempt { stored: Stored::new(&shard, update), outcome: Ok(granted) })
        }
        AcquireDecision::Poison { update, refusal } => {
            shard.store(tx, steps, &update, encoded)?;
            Ok(Attempt { stored: Stored::new(&shard, update), outcome: Err(refusal) })
        }
    }
}
