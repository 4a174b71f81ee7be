//! Requests that no honest caller makes: all of them must be refused, or do what they say and no
//! harm. None claims progress that was not made, so whatever is accepted is true.

use gossip_contracts::coordination::{MAX_KEY_SIZE, MAX_TOKEN_SIZE};
use gossip_contracts::identity::{
    FenceEpoch, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{Lease, ParkReason};

use super::keys;
use super::op::{Bytes, Operation, OwnedCursor, OwnedRange, OwnedShardInput};
use super::random::Random;
use super::simulated::SimulatedBackend;
use super::wire::Wire;

/// Another request, made of one that was sent.
pub(super) fn twist<S: SimulatedBackend>(
    mut operation: Operation,
    wire: &mut Wire<S>,
    random: &mut Random,
) -> Operation {
    // Splits are remembered longer than anything else, so others under their ids are tried more.
    if matches!(operation, Operation::SplitResidual { .. }) && random.chance(400) {
        alter(&mut operation, random);
        return operation;
    }
    match random.below(9) {
        // Somebody else's tenant, with the lease as it is or forged to fit.
        0 | 1 => {
            let other = wire.another_tenant(operation.tenant(), random);
            set_tenant(&mut operation, other);
            if random.chance(500)
                && let Some(lease) = lease_mut(&mut operation)
            {
                // Far beyond what any shard reaches: a forgery that happened to fit would be obeyed,
                // and claim progress that nobody made.
                let fence = FenceEpoch::from_raw(lease.fence().as_raw() + 1_000_000);
                *lease = Lease::new(other, lease.key(), lease.owner(), fence, lease.deadline());
            }
        }
        // The same id with other parameters.
        2 => alter(&mut operation, random),
        // What was done again, under a new id: a zombie's work.
        3 => renumber(&mut operation, wire),
        // A lease that was never given.
        4 => {
            if let Some(lease) = lease_mut(&mut operation) {
                let (owner, fence) = match random.below(3) {
                    0 => (WorkerId::from_raw(999), lease.fence().as_raw()),
                    1 => (lease.owner(), lease.fence().as_raw() + 1),
                    _ => (lease.owner(), lease.fence().as_raw().saturating_sub(1).max(1)),
                };
                let fence = FenceEpoch::from_raw(fence);
                *lease = Lease::new(lease.tenant(), lease.key(), owner, fence, lease.deadline());
            }
            renumber(&mut operation, wire);
        }
        // What is not there.
        5 => {
            let tenant = operation.tenant();
            let key = ShardKey::new(RunId::from_raw(999), ShardId::from_raw(random.below(3)));
            let op_id = wire.next_op(tenant);
            operation = match random.below(3) {
                0 => Operation::Acquire { tenant, key, worker: WorkerId::from_raw(1) },
                1 => Operation::Unpark { tenant, key, op_id },
                _ => Operation::CancelRun { tenant, run: key.run, op_id },
            };
        }
        6 => {
            if let Some(edge) = edge_of(&mut operation, wire, random) {
                return edge;
            }
        }
        _ => {
            spoil(&mut operation, random);
            renumber(&mut operation, wire);
        }
    }
    operation
}

/// A cursor at the very edge of the leased shard, or a plan that does not quite fit it.
fn edge_of<S: SimulatedBackend>(
    operation: &mut Operation,
    wire: &mut Wire<S>,
    random: &mut Random,
) -> Option<Operation> {
    let (tenant, lease) = (operation.tenant(), *lease_mut(operation)?);
    // The edge of another tenant's shard lies inside this one's: twisted back, such a request would
    // be obeyed, and claim progress that nobody made.
    if lease.tenant() != tenant {
        return None;
    }
    let range = wire.oracles.range_of(tenant, lease.key())?;
    let op_id = wire.next_op(tenant);
    let completes = random.chance(300);
    let at = |last_key| {
        let cursor = OwnedCursor { last_key: Some(last_key), token: None };
        if completes {
            Operation::Complete { tenant, lease, cursor, op_id }
        } else {
            Operation::Checkpoint { tenant, lease, cursor, renews: false, op_id }
        }
    };
    Some(match random.below(4) {
        0 => at(range.end),
        1 => {
            let before = keys::first_item_from(&range.start).checked_sub(1)?;
            at(keys::key(before)[..].into())
        }
        2 => {
            let children = misfit(&range, random).into();
            Operation::SplitReplace { tenant, lease, children, op_id }
        }
        _ => {
            let [kept, residual] = misfit(&range, random);
            Operation::SplitResidual { tenant, lease, kept, residual, op_id }
        }
    })
}

/// Two parts of a range with a gap, an overlap, a wrong start or end; or cut right behind its start,
/// which may be behind the cursor.
fn misfit(range: &OwnedRange, random: &mut Random) -> [OwnedRange; 2] {
    let behind_start = |suffix| -> Bytes { [&range.start[..], &[suffix]].concat()[..].into() };
    let (start, end) = (range.start.clone(), range.end.clone());
    let (one, two) = (behind_start(1), behind_start(2));
    let part = |start: &Bytes, end: &Bytes| OwnedRange {
        start: start.clone(),
        end: end.clone(),
        metadata: Bytes::new(),
    };
    match random.below(5) {
        0 => [part(&start, &one), part(&two, &end)],
        1 => [part(&start, &two), part(&one, &end)],
        2 => [part(&one, &two), part(&two, &end)],
        3 => [part(&start, &one), part(&one, &two)],
        _ => [part(&start, &one), part(&one, &end)],
    }
}

fn set_tenant(operation: &mut Operation, other: TenantId) {
    match operation {
        Operation::CreateRun { tenant, .. }
        | Operation::RegisterShards { tenant, .. }
        | Operation::GetRun { tenant, .. }
        | Operation::GetRunProgress { tenant, .. }
        | Operation::ListShards { tenant, .. }
        | Operation::CompleteRun { tenant, .. }
        | Operation::FailRun { tenant, .. }
        | Operation::CancelRun { tenant, .. }
        | Operation::DeleteRun { tenant, .. }
        | Operation::RevokeLease { tenant, .. }
        | Operation::NoteIdle { tenant, .. }
        | Operation::Unpark { tenant, .. }
        | Operation::Acquire { tenant, .. }
        | Operation::Renew { tenant, .. }
        | Operation::Release { tenant, .. }
        | Operation::Checkpoint { tenant, .. }
        | Operation::Complete { tenant, .. }
        | Operation::Park { tenant, .. }
        | Operation::SplitReplace { tenant, .. }
        | Operation::SplitResidual { tenant, .. } => *tenant = other,
    }
}

fn lease_mut(operation: &mut Operation) -> Option<&mut Lease> {
    match operation {
        Operation::Renew { lease, .. }
        | Operation::Release { lease, .. }
        | Operation::Checkpoint { lease, .. }
        | Operation::Complete { lease, .. }
        | Operation::Park { lease, .. }
        | Operation::SplitReplace { lease, .. }
        | Operation::SplitResidual { lease, .. } => Some(lease),
        _ => None,
    }
}

fn renumber<S: SimulatedBackend>(operation: &mut Operation, wire: &mut Wire<S>) {
    let new = wire.next_op(operation.tenant());
    match operation {
        Operation::RegisterShards { op_id, .. }
        | Operation::CompleteRun { op_id, .. }
        | Operation::FailRun { op_id, .. }
        | Operation::CancelRun { op_id, .. }
        | Operation::Unpark { op_id, .. }
        | Operation::Checkpoint { op_id, .. }
        | Operation::Complete { op_id, .. }
        | Operation::Park { op_id, .. }
        | Operation::SplitReplace { op_id, .. }
        | Operation::SplitResidual { op_id, .. } => *op_id = new,
        _ => {}
    }
}

/// Changes what the request asks for, and claims no more than it did.
fn alter(operation: &mut Operation, random: &mut Random) {
    let change = |bytes: &mut Bytes| {
        if bytes.pop().is_none() {
            bytes.push(b'!');
        }
    };
    match operation {
        Operation::Complete { tenant, lease, cursor, op_id } if random.chance(500) => {
            let (tenant, lease, op_id) = (*tenant, *lease, *op_id);
            let cursor = cursor.clone();
            *operation = Operation::Checkpoint { tenant, lease, cursor, renews: false, op_id };
        }
        // The other kind of checkpoint at the same cursor.
        Operation::Checkpoint { renews, .. } if random.chance(300) => *renews = !*renews,
        Operation::Checkpoint { cursor, .. } | Operation::Complete { cursor, .. } => {
            change(cursor.token.get_or_insert_default());
        }
        Operation::Park { tenant, lease, op_id, .. } if random.chance(500) => {
            let (tenant, key, op_id) = (*tenant, lease.key(), *op_id);
            *operation = Operation::Unpark { tenant, key, op_id };
        }
        Operation::Park { reason, .. } => {
            *reason = if *reason == ParkReason::NotFound {
                ParkReason::Other
            } else {
                ParkReason::NotFound
            };
        }
        Operation::SplitReplace { children, .. } => {
            if let Some(child) = children.last_mut() {
                change(&mut child.metadata);
            }
        }
        // Another cut, right behind the start: it keeps less than the shard has.
        Operation::SplitResidual { kept, residual, .. } if random.chance(500) => {
            let point: Bytes = [&kept.start[..], &[1]].concat()[..].into();
            kept.end = point.clone();
            residual.start = point;
        }
        Operation::SplitResidual { residual, .. } => change(&mut residual.metadata),
        Operation::RegisterShards { shards, .. } => {
            if let Some(row) = shards.last_mut() {
                change(&mut row.range.metadata);
            }
        }
        Operation::CompleteRun { result, .. } if random.chance(500) => {
            *result = result.is_none().then_some(RunResult::from_bytes([7; 32]));
        }
        Operation::CompleteRun { tenant, run, op_id, .. } => {
            *operation = Operation::CancelRun { tenant: *tenant, run: *run, op_id: *op_id };
        }
        Operation::CancelRun { tenant, run, op_id } => {
            *operation = Operation::FailRun { tenant: *tenant, run: *run, op_id: *op_id };
        }
        Operation::Unpark { tenant, key, op_id } => {
            let (tenant, run, op_id) = (*tenant, key.run, *op_id);
            *operation = Operation::CompleteRun { tenant, run, result: None, op_id };
        }
        _ => {}
    }
}

/// Makes the request one that is never right, also when it is altered later.
fn spoil(operation: &mut Operation, random: &mut Random) {
    match operation {
        // A lease that has been checkpointed under is more likely live than one completed under.
        Operation::Checkpoint { tenant, lease, renews: false, op_id, .. } if random.chance(400) => {
            let (tenant, lease, op_id) = (*tenant, *lease, *op_id);
            *operation =
                Operation::Complete { tenant, lease, cursor: spoiled_cursor(random), op_id };
        }
        Operation::Checkpoint { cursor, .. } | Operation::Complete { cursor, .. } => {
            *cursor = spoiled_cursor(random);
        }
        Operation::SplitReplace { children, .. } => spoil_parts(children, random),
        Operation::SplitResidual { kept, residual, .. } => match random.below(3) {
            0 => std::mem::swap(kept, residual),
            1 => residual.start = kept.start.clone(),
            _ => kept.end = kept.start.clone(),
        },
        Operation::RegisterShards { shards, .. } => spoil_manifest(shards, random),
        Operation::CreateRun { config, .. } => match random.below(2) {
            0 => config.lease_duration = 0,
            _ => config.max_shard_retries = 0,
        },
        _ => {}
    }
}

fn spoiled_cursor(random: &mut Random) -> OwnedCursor {
    let long = |len: usize| -> Bytes { std::iter::repeat_n(b'k', len).collect() };
    // Behind every shard: with an item's key, a token that loses its last byte would make it right.
    let key: Bytes = b"z"[..].into();
    match random.below(5) {
        0 => OwnedCursor::default(),
        1 => OwnedCursor { last_key: Some(long(MAX_KEY_SIZE + 1)), token: None },
        2 => OwnedCursor { last_key: Some(key), token: Some(long(MAX_TOKEN_SIZE + 1)) },
        3 => OwnedCursor { last_key: Some(b"a"[..].into()), token: None },
        _ => OwnedCursor { last_key: Some(b"z"[..].into()), token: None },
    }
}

fn spoil_parts(parts: &mut Vec<OwnedRange>, random: &mut Random) {
    match random.below(6) {
        0 => parts.truncate(1),
        1 => drop(parts.pop()),
        2 => parts.reverse(),
        3 => {
            if let Some(first) = parts.first().cloned() {
                parts.insert(0, first);
            }
        }
        _ => {
            // A gap, or an empty part: twice as often, as few splits are still open when it comes.
            if let [first, ..] = parts.as_mut_slice() {
                first.end = first.start.clone();
            }
        }
    }
}

fn spoil_manifest(shards: &mut Vec<OwnedShardInput>, random: &mut Random) {
    let kind = random.below(6);
    let Some(first) = shards.first_mut() else { return };
    match kind {
        0 => shards.clear(),
        1 => first.shard = ShardId::derived_from_raw(5),
        2 => first.range.end = Bytes::new(),
        3 => first.cursor.last_key = Some(b"z"[..].into()),
        4 => {
            let copy = first.clone();
            shards.push(copy);
        }
        _ => {
            let mut copy = first.clone();
            copy.shard = ShardId::from_raw(500);
            shards.push(copy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spoiled_cursor_stays_wrong_whatever_becomes_of_its_token() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let key = spoiled_cursor(&mut random).last_key;
            let is_wrong = |key: &Bytes| {
                let outside =
                    key[..] < keys::key(0)[..] || key[..] > keys::key(u16::MAX.into())[..];
                outside || key.len() > MAX_KEY_SIZE
            };
            assert!(key.as_ref().is_none_or(is_wrong), "{key:?}");
        }
    }
}
