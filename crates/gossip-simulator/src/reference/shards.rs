//! What workers may do to one shard, read off the documents.
//!
//! Every lease-gated operation asks in this order: is the lease the tenant's, is there such a
//! shard, was the operation done before, is the run active, is the shard finished, is the fence
//! current, is the lease live, is the worker its owner; then what is the operation's own.

use gossip_contracts::coordination::{CursorInputError, SplitValidationError};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    DerivedShardKind, Lease, ParkReason, RunConfig, RunStatus, ShardStatus, derive_split_shard_id,
};

use super::plans::{holds, parts_fault, size_fault, size_of_parts_fault, spawn_fault};
use super::runs::NoRoom;
use super::state::{Holder, Known, Shard, ShardOp};
use super::{Decided, Reference};
use crate::op::{Acquired, Answer, Bytes, Effect, OwnedCursor, OwnedRange, Refusal};

impl Reference {
    pub(super) fn acquire(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
    ) -> Decided {
        let skew = self.bounds.skew_allowance;
        let run = self.runs.get_mut(&(tenant, key.run));
        let Some(run) = run.filter(|run| run.shards.contains_key(&key.shard)) else {
            return Err(Refusal::ShardNotFound);
        };
        if run.status != RunStatus::Active {
            return Err(Refusal::RunNotActive { run: key.run, status: run.status });
        }
        let config = run.config;
        let idle = &mut run.idle;
        let shard = run.shards.get_mut(&key.shard).expect("it was looked up above");
        if shard.status != ShardStatus::Active {
            return Err(Refusal::ShardTerminal { shard: key, status: shard.status });
        }
        // The owner may come back for its own shard; its earlier lease is dead then.
        if let Some(held) = shard.kept_from(worker, now) {
            return Err(Refusal::AlreadyLeased { owner: held.owner, deadline: held.keeps_until });
        }
        if shard.tries >= config.max_shard_retries {
            shard.park(ParkReason::Poisoned);
            return Err(Refusal::ShardTerminal { shard: key, status: ShardStatus::Parked });
        }
        let deadline = later(now, config.lease_duration);
        idle.remove(&worker);
        shard.tries += 1;
        shard.fence += 1;
        let keeps_until = later(deadline, skew);
        shard.holder = Some(Holder { owner: worker, deadline, keeps_until, is_silent: false });
        let fence = FenceEpoch::from_raw(shard.fence);
        Ok(Answer::Acquired(Box::new(Acquired {
            lease: Lease::new(tenant, key, worker, fence, deadline),
            status: shard.status,
            range: shard.range.clone(),
            cursor: shard.cursor.clone(),
            cursor_semantics: config.cursor_semantics,
            parent: shard.parent,
            spawned: shard.spawned.clone(),
        })))
    }

    pub(super) fn renew(&mut self, now: LogicalTime, tenant: TenantId, lease: &Lease) -> Decided {
        let skew = self.bounds.skew_allowance;
        let (run, shard) = self.leased(tenant, lease)?;
        may_work(&run, shard, now, lease)?;
        let holder = shard.holder.as_mut().expect("a live lease has a holder");
        holder.deadline = holder.deadline.max(later(now, run.config.lease_duration));
        (holder.keeps_until, holder.is_silent) = (later(holder.deadline, skew), false);
        Ok(Answer::Renewed { deadline: holder.deadline })
    }

    pub(super) fn release(&mut self, now: LogicalTime, tenant: TenantId, lease: &Lease) -> Decided {
        let (run, shard) = self.leased(tenant, lease)?;
        may_work(&run, shard, now, lease)?;
        shard.holder = None;
        // A worker that releases a shard was not killed by it.
        shard.tries = shard.tries.saturating_sub(1);
        let run = self.runs.get_mut(&(tenant, lease.run())).expect("the lease's run was found");
        run.line_up(lease.shard());
        Ok(Answer::Accepted)
    }

    pub(super) fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: &OwnedCursor,
        op_id: OpId,
    ) -> Decided {
        let op = ShardOp::Checkpoint(cursor.clone());
        self.move_cursor(now, tenant, lease, cursor, op_id, op)
    }

    pub(super) fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: &OwnedCursor,
        op_id: OpId,
    ) -> Decided {
        let skew = self.bounds.skew_allowance;
        let op = ShardOp::CheckpointAndRenew(cursor.clone());
        let outcome = self.move_cursor(now, tenant, lease, cursor, op_id, op)?;
        let key = lease.key();
        let run = self.runs.get_mut(&(tenant, key.run)).expect("it was found");
        let idle = run.idle.values().filter(|&&until| now < until).count() as u32;
        let shard = run.shards.get_mut(&key.shard).expect("it was found");
        if !matches!(outcome, Answer::Executed(_)) {
            // What the first time made of the lease, as far as the shard remembers, and the asker, if
            // it is the holder.
            let first = shard.memory.done.iter().find(|(id, ..)| *id == op_id);
            let (.., at) = first.expect("a replay is of something remembered");
            let renewed = later(*at, run.config.lease_duration);
            let is_holder = |held: &&Holder| {
                (held.owner, shard.fence) == (lease.owner(), lease.fence().as_raw())
            };
            let deadline = match shard.holder.as_ref().filter(is_holder) {
                Some(held) => lease.deadline().min(held.deadline).max(renewed),
                None => renewed,
            };
            return Ok(Answer::Replayed(Effect::Renewed { deadline, idle: Some(idle) }));
        }
        let holder = shard.holder.as_mut().expect("a live lease has a holder");
        holder.deadline = holder.deadline.max(later(now, run.config.lease_duration));
        holder.keeps_until = later(holder.deadline, skew);
        let deadline = holder.deadline;
        Ok(Answer::Executed(Effect::Renewed { deadline, idle: Some(idle) }))
    }

    pub(super) fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: &OwnedCursor,
        op_id: OpId,
    ) -> Decided {
        let op = ShardOp::Complete(cursor.clone());
        let outcome = self.move_cursor(now, tenant, lease, cursor, op_id, op)?;
        if matches!(outcome, Answer::Executed(_)) {
            let (_, shard) = self.leased(tenant, lease)?;
            shard.status = ShardStatus::Done;
            shard.holder = None;
        }
        Ok(outcome)
    }

    fn move_cursor(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: &OwnedCursor,
        op_id: OpId,
        op: ShardOp,
    ) -> Decided {
        let (run, shard) = self.leased(tenant, lease)?;
        if was_done(shard, op_id, &op)? {
            return Ok(Answer::Replayed(Effect::Nothing));
        }
        may_work(&run, shard, now, lease)?;
        let to = cursor.clone();
        check_cursor(shard, &to)?;
        if to != shard.cursor {
            shard.tries = 0;
        }
        shard.cursor = to;
        shard.holder.iter_mut().for_each(|holder| holder.is_silent = false);
        shard.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn park(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Decided {
        let (run, shard) = self.leased(tenant, lease)?;
        let op = ShardOp::Park(reason);
        if was_done(shard, op_id, &op)? {
            return Ok(Answer::Replayed(Effect::Nothing));
        }
        may_work(&run, shard, now, lease)?;
        shard.park(reason);
        shard.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        parts: &[OwnedRange],
        op_id: OpId,
    ) -> Decided {
        let caps = self.bounds.split;
        let (run, shard) = self.leased(tenant, lease)?;
        let op = ShardOp::Replace(parts.to_vec());
        if was_done(shard, op_id, &op)? {
            // Nothing is spawned after a replacement, so its children are the last.
            let before = shard.spawned.len() - parts.len();
            return Ok(Answer::Replayed(Effect::Children(shard.spawned[before..].to_vec())));
        }
        may_work(&run, shard, now, lease)?;
        let fault =
            parts_fault(&shard.range, parts, &caps).or_else(|| size_of_parts_fault(parts, &caps));
        if let Some(fault) = fault {
            return Err(Refusal::SplitInvalid(fault));
        }
        let spawned_before = shard.spawned.len();
        let ids: Vec<ShardId> = (spawned_before..spawned_before + parts.len())
            .map(|index| child_id(lease, op_id, DerivedShardKind::Child, index))
            .collect();
        self.spawn(tenant, lease.key(), &ids, parts)?;
        let (_, shard) = self.leased(tenant, lease)?;
        shard.status = ShardStatus::Split;
        shard.holder = None;
        shard.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Children(ids)))
    }

    pub(super) fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        [kept, residual]: [&OwnedRange; 2],
        op_id: OpId,
    ) -> Decided {
        let caps = self.bounds.split;
        let (run, shard) = self.leased(tenant, lease)?;
        let parts = [kept.clone(), residual.clone()];
        let op = ShardOp::Residual(parts.clone());
        let id = child_id(lease, op_id, DerivedShardKind::Residual, 0);
        if was_done(shard, op_id, &op)? {
            return Ok(Answer::Replayed(Effect::Residual(id)));
        }
        // The shard that it made outlives the memory of the operation. A plan that keeps less than
        // the parent has now cannot be the one that was carried out.
        if shard.spawned.contains(&id) {
            let has = &shard.range;
            let keeps_less = !kept.end.is_empty()
                && (has.end.is_empty() || kept.end[..] < has.end[..])
                || kept.start != has.start;
            return if keeps_less {
                Err(Refusal::SplitInvalid(SplitValidationError::DerivedIdCollision { shard: id }))
            } else {
                Ok(Answer::Replayed(Effect::Residual(id)))
            };
        }
        may_work(&run, shard, now, lease)?;
        let mut fault = parts_fault(&shard.range, &parts, &caps);
        if fault.is_none() && shard.cursor.last_key.as_ref().is_some_and(|key| !holds(kept, key)) {
            fault = Some(SplitValidationError::CursorNotKept);
        }
        if let Some(fault) = fault.or_else(|| size_of_parts_fault(&parts, &caps)) {
            return Err(Refusal::SplitInvalid(fault));
        }
        self.spawn(tenant, lease.key(), &[id], &parts[1..])?;
        let (_, shard) = self.leased(tenant, lease)?;
        shard.range = kept.clone();
        shard.holder.iter_mut().for_each(|holder| holder.is_silent = false);
        shard.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Residual(id)))
    }

    /// Makes the shards of a split, or none of them.
    fn spawn(
        &mut self,
        tenant: TenantId,
        parent: ShardKey,
        ids: &[ShardId],
        ranges: &[OwnedRange],
    ) -> Result<(), Refusal> {
        let no_room = self.no_room(tenant, ids.len());
        let run = self.runs.get_mut(&(tenant, parent.run)).expect("the parent was found");
        let spawned_before = run.shards[&parent.shard].spawned.len();
        let taken = ids.iter().find(|id| run.shards.contains_key(id));
        let fault = spawn_fault(spawned_before, ids.len())
            .or(no_room.map(|NoRoom { current, additional, max, scope }| {
                SplitValidationError::ShardLimitExceeded { current, additional, max, scope }
            }))
            .or(taken.map(|&shard| SplitValidationError::DerivedIdCollision { shard }));
        if let Some(fault) = fault {
            return Err(Refusal::SplitInvalid(fault));
        }
        for (&id, range) in ids.iter().zip(ranges) {
            // A part starts from nothing, wherever its parent stood.
            let part = Shard::new(Some(parent.shard), range.clone(), OwnedCursor::default());
            run.add(id, part);
        }
        run.shards.get_mut(&parent.shard).expect("it was found").spawned.extend(ids);
        Ok(())
    }

    /// The tenant's shard that a lease names, and a copy of what its run says.
    fn leased(&mut self, tenant: TenantId, lease: &Lease) -> Result<(Gate, &mut Shard), Refusal> {
        if lease.tenant() != tenant {
            return Err(Refusal::TenantMismatch { expected: tenant });
        }
        let key = lease.key();
        let not_found = Refusal::ShardNotFound;
        let run = self.runs.get_mut(&(tenant, key.run)).ok_or(not_found)?;
        let gate = Gate { status: run.status, config: run.config };
        let shard = run.shards.get_mut(&key.shard).ok_or(not_found)?;
        Ok((gate, shard))
    }
}

/// What a shard's operation asks of its run.
struct Gate {
    status: RunStatus,
    config: RunConfig,
}

fn was_done(shard: &Shard, op_id: OpId, op: &ShardOp) -> Result<bool, Refusal> {
    match shard.memory.knows(op_id, op) {
        Known::No => Ok(false),
        Known::Same => Ok(true),
        Known::Different => Err(Refusal::OpIdConflict { op_id }),
    }
}

/// Whether `lease` allows work on `shard` at `now`.
fn may_work(run: &Gate, shard: &Shard, now: LogicalTime, lease: &Lease) -> Result<(), Refusal> {
    let key = lease.key();
    if run.status != RunStatus::Active {
        return Err(Refusal::RunNotActive { run: key.run, status: run.status });
    }
    if shard.status != ShardStatus::Active {
        return Err(Refusal::ShardTerminal { shard: key, status: shard.status });
    }
    let (presented, current) = (lease.fence(), FenceEpoch::from_raw(shard.fence));
    let stale = Refusal::StaleFence { presented, current };
    let Some(holder) = shard.holder.filter(|_| presented == current) else {
        return Err(stale);
    };
    if now >= holder.deadline {
        return Err(Refusal::LeaseExpired { deadline: holder.deadline, now });
    }
    if holder.owner == lease.owner() { Ok(()) } else { Err(stale) }
}

/// Whether `shard` may move to `to`.
fn check_cursor(shard: &Shard, to: &OwnedCursor) -> Result<(), Refusal> {
    let Some(key) = &to.last_key else {
        return Err(Refusal::CheckpointMissingKey);
    };
    match size_fault(to) {
        Some(CursorInputError::KeyTooLarge { size, max }) => {
            return Err(Refusal::CursorKeyTooLarge { size, max });
        }
        Some(CursorInputError::TokenTooLarge { size, max }) => {
            return Err(Refusal::CursorTokenTooLarge { size, max });
        }
        _ => {}
    }
    let (old_token, new_token) = (shard.cursor.token.as_deref(), to.token.as_deref());
    let is_behind =
        |from: &&Bytes| key[..] < from[..] || (key[..] == from[..] && new_token < old_token);
    if let Some(from) = shard.cursor.last_key.as_ref().filter(is_behind) {
        let (old_key, new_key) = (Some(from.len()), Some(key.len()));
        return Err(Refusal::CursorRegression { old_key, new_key });
    }
    if !holds(&shard.range, key) {
        return Err(Refusal::CursorOutOfBounds {
            last_key: key.len(),
            start: shard.range.start.len(),
            end: shard.range.end.len(),
        });
    }
    Ok(())
}

fn later(time: LogicalTime, millis: u64) -> LogicalTime {
    LogicalTime::from_raw(time.as_raw().saturating_add(millis))
}

fn child_id(lease: &Lease, op_id: OpId, kind: DerivedShardKind, index: usize) -> ShardId {
    let index = u32::try_from(index).expect("a shard spawns at most 1024");
    derive_split_shard_id(lease.run(), lease.shard(), op_id, kind, index)
}
