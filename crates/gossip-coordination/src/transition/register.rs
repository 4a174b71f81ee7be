//! Giving a run its shards, in steps that each fit a bounded transaction: begin, stage some, stage
//! some more, activate.
//!
//! Each step is decided from the run's record alone, and stored together with the shards that it
//! stages or deletes, provided that the record is still the one that was read. A backend that commits
//! everything at once takes all steps in one transaction ([`register_shards`]).
//!
//! V1 and V4 to V6, which this keeps, stand in `run.rs`.

use core::ops::Range;

use gossip_contracts::coordination::{InitialShardInput, validate_manifest};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId};

use super::Decision;
use super::run::{RunUpdate, entry, was_executed};
use crate::error::{InfraError, RegisterShardsError, RunOpIdConflict};
use crate::op_log::{OpLogEntry, OpResult, RunOpKind};
use crate::payload;
use crate::record::ShardRecordView;
use crate::run::{Registration, RunRecord, RunStatus};
use crate::shard_limits::ShardRoom;

/// What a registration asks for.
#[derive(Clone, Copy, Debug)]
pub struct RegisterRequest<'r> {
    tenant: TenantId,
    shards: &'r [InitialShardInput<'r>],
    op_id: OpId,
    payload_hash: u64,
}

impl<'r> RegisterRequest<'r> {
    /// A request. Hashes the manifest, once for all steps.
    #[must_use]
    pub fn new(tenant: TenantId, shards: &'r [InitialShardInput<'r>], op_id: OpId) -> Self {
        let payload_hash = payload::register_shards(shards);
        Self { tenant, shards, op_id, payload_hash }
    }

    /// Whose run it is about.
    #[must_use]
    pub const fn tenant(&self) -> TenantId {
        self.tenant
    }

    /// All shards that the run shall have.
    #[must_use]
    pub const fn shards(&self) -> &'r [InitialShardInput<'r>] {
        self.shards
    }

    /// Under which id.
    #[must_use]
    pub const fn op_id(&self) -> OpId {
        self.op_id
    }

    fn is_in(&self, registration: &Registration) -> bool {
        (registration.op_id, registration.payload_hash) == (self.op_id, self.payload_hash)
    }
}

/// One step of a registration: all of it is stored, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterStep {
    /// Note in the record what is to be registered.
    Begin(RunUpdate),
    /// Delete as many shards as this that are stored for the run, whichever. Fewer are damage: the
    /// record counts what is stored. After the last of these steps nothing is.
    Discard {
        /// The record's change.
        update: RunUpdate,
        /// How many.
        count: u32,
    },
    /// Store these rows of the manifest, each as [`root_shard`].
    Stage {
        /// The record's change.
        update: RunUpdate,
        /// The rows of the manifest that this step stores.
        rows: Range<usize>,
    },
    /// Make the run active, and with it its shards visible.
    Activate(RunUpdate),
}

impl RegisterStep {
    /// What the step changes in the run's record.
    #[must_use]
    pub const fn update(&self) -> &RunUpdate {
        match self {
            Self::Begin(update)
            | Self::Discard { update, .. }
            | Self::Stage { update, .. }
            | Self::Activate(update) => update,
        }
    }
}

/// Decides the next step of a registration; asked again after every step that was stored, until the
/// run is active. A step stores or deletes `chunk` shards at most. `room` counts what the
/// registration has reserved.
///
/// # Panics
/// If `chunk` is 0.
pub fn register_step(
    run: Option<&RunRecord>,
    now: LogicalTime,
    room: &ShardRoom,
    chunk: usize,
    request: &RegisterRequest<'_>,
) -> Result<Decision<RegisterStep, ()>, RegisterShardsError> {
    assert!(chunk > 0, "a step stores at least one shard");
    let run = run.ok_or(RegisterShardsError::RunNotFound)?;
    if run.tenant != request.tenant {
        return Err(RegisterShardsError::TenantMismatch { expected: request.tenant });
    }
    let hash = request.payload_hash;
    let was_overtaken = was_overtaken(run, request);
    if !was_overtaken && was_executed(run, request.op_id, hash)? {
        return Ok(Decision::Replay(()));
    }
    if run.status != RunStatus::Initializing {
        return Err(RegisterShardsError::WrongStatus { status: run.status });
    }
    let step = match run.registration {
        Some(registration) if request.is_in(&registration) => {
            if registration.count as usize != request.shards.len() {
                let message = "the record counts other shards than the manifest of its fingerprint";
                return Err(InfraError::corruption("register_shards.load", message).into());
            }
            next_step(registration, now, chunk, request)
        }
        Some(other) if other.op_id == request.op_id => {
            return Err(RunOpIdConflict::new(request.op_id, other.payload_hash, hash).into());
        }
        // V5. To begin again would take the place of whoever took this one's.
        Some(other) if was_overtaken => {
            return Err(RegisterShardsError::Overtaken { by: other.op_id });
        }
        other => begin(other, now, room, request)?,
    };
    Ok(Decision::Execute(step))
}

/// Whether the log says that another registration has taken this one's place.
fn was_overtaken(run: &RunRecord, request: &RegisterRequest<'_>) -> bool {
    run.op_log.iter().any(|entry| {
        (entry.op_id(), entry.payload_hash()) == (request.op_id, request.payload_hash)
            && entry.result() == OpResult::Superseded
    })
}

fn begin(
    earlier: Option<Registration>,
    now: LogicalTime,
    room: &ShardRoom,
    request: &RegisterRequest<'_>,
) -> Result<RegisterStep, RegisterShardsError> {
    validate_manifest(request.shards)?;
    let leftover = earlier.map_or(0, |earlier| earlier.hidden());
    let count = u32::try_from(request.shards.len()).expect("a manifest is limited");
    let (op_id, payload_hash) = (request.op_id, request.payload_hash);
    let registration =
        Registration { op_id, payload_hash, count, staged: 0, leftover, stepped_at: now };
    // The room is taken here for all steps, so that no later one is refused: two registrations that
    // do not fit together would otherwise stop each other half-way.
    let before = earlier.map_or(0, |earlier| earlier.places());
    room.check(registration.places().saturating_sub(before) as usize)?;
    // V5: whoever began before is refused from now on, so that two who retry come to an end.
    let log = earlier.map(|earlier| {
        let Registration { op_id, payload_hash, .. } = earlier;
        let (kind, result) = (RunOpKind::RegisterShards, OpResult::Superseded);
        OpLogEntry::new(op_id, kind, result, payload_hash, now)
    });
    Ok(RegisterStep::Begin(RunUpdate { log, ..in_progress(registration) }))
}

fn next_step(
    registration: Registration,
    now: LogicalTime,
    chunk: usize,
    request: &RegisterRequest<'_>,
) -> RegisterStep {
    let Registration { count, staged, leftover, .. } = registration;
    let chunk = u32::try_from(chunk).unwrap_or(u32::MAX);
    if leftover > 0 {
        let count = leftover.min(chunk);
        let left = Registration { leftover: leftover - count, stepped_at: now, ..registration };
        return RegisterStep::Discard { update: in_progress(left), count };
    }
    if staged < count {
        let until = staged + chunk.min(count - staged);
        let update = in_progress(Registration { staged: until, stepped_at: now, ..registration });
        return RegisterStep::Stage { update, rows: staged as usize..until as usize };
    }
    let (op_id, hash) = (request.op_id, request.payload_hash);
    RegisterStep::Activate(RunUpdate {
        status: RunStatus::Active,
        completed_at: None,
        root_shards: Some(request.shards.iter().map(|shard| shard.shard).collect()),
        registration: None,
        result: None,
        log: Some(entry(op_id, RunOpKind::RegisterShards, hash, now)),
    })
}

fn in_progress(registration: Registration) -> RunUpdate {
    RunUpdate {
        status: RunStatus::Initializing,
        completed_at: None,
        root_shards: None,
        registration: Some(registration),
        result: None,
        log: None,
    }
}

/// What remains to be deleted of a registration whose run was cancelled: the record's change, and how
/// many shards of the run to delete with it. `None` when nothing is left.
///
/// # Panics
/// If `chunk` is 0.
#[must_use]
pub fn discard_staged(run: &RunRecord, chunk: usize) -> Option<(RunUpdate, u32)> {
    assert!(chunk > 0, "a step deletes at least one shard");
    let registration = run.registration.filter(|_| run.status.is_terminal())?;
    let count = registration.leftover.min(u32::try_from(chunk).unwrap_or(u32::MAX));
    let left = Registration { leftover: registration.leftover - count, ..registration };
    let update = RunUpdate {
        status: run.status,
        completed_at: None,
        root_shards: None,
        registration: (left.leftover > 0).then_some(left),
        result: None,
        log: None,
    };
    Some((update, count))
}

/// Decides whether a run gets these shards, for a backend that stores all of them at once: every
/// step of the registration, and the last one's update. Each shard's record is [`root_shard`]. Such a
/// backend never stores a registration, so a record that has one is damaged, or another backend's.
pub fn register_shards(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    room: &ShardRoom,
    shards: &[InitialShardInput<'_>],
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RegisterShardsError> {
    if run.is_some_and(|run| run.registration.is_some()) {
        let message = "the run has a registration in progress, and this backend stores none";
        return Err(InfraError::corruption("register_shards.load", message).into());
    }
    let request = RegisterRequest::new(tenant, shards, op_id);
    let mut staged = None;
    loop {
        let record = staged.as_ref().or(run);
        let step = match register_step(record, now, room, usize::MAX, &request)? {
            Decision::Execute(step) => step,
            Decision::Replay(()) => return Ok(Decision::Replay(())),
        };
        match step {
            RegisterStep::Activate(update) => return Ok(Decision::Execute(update)),
            RegisterStep::Begin(update) | RegisterStep::Stage { update, .. } => {
                let mut next = record.expect("a step is about a run").clone();
                next.apply(update);
                staged = Some(next);
            }
            RegisterStep::Discard { .. } => unreachable!("nothing was staged before"),
        }
    }
}

/// The record with which a registered shard begins.
#[must_use]
pub fn root_shard<'a>(run: &RunRecord, input: &InitialShardInput<'a>) -> ShardRecordView<'a> {
    ShardRecordView::new_shard(
        run.tenant,
        ShardKey::new(run.run, input.shard),
        input.spec,
        input.cursor,
        run.config.cursor_semantics,
        None,
    )
}
