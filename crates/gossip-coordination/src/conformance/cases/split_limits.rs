//! How far splitting goes: children of one split, spawned shards of one parent, ceilings, bytes.

use gossip_contracts::coordination::{
    MAX_METADATA_SIZE, MAX_SPAWNED_PER_SHARD, ShardLimitScope, SplitReplacePlan, SplitResidualPlan,
    SplitValidationError, plan_split_replace_at_points, plan_split_residual_at_point,
};

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::SplitError;
use crate::lease::Lease;

/// So many parts that cover shard 0.
fn parts(count: usize) -> Vec<Vec<u8>> {
    let inner = (1..count).map(|part| within(0, &format!("{part:04}")));
    std::iter::once(start(0)).chain(inner).chain([start(1)]).collect()
}

fn plan(bounds: &[Vec<u8>]) -> SplitReplacePlan<'_> {
    SplitReplacePlan::new(bounds.windows(2).map(|pair| ShardSpecRef::new(&pair[0], &pair[1], b"")))
}

fn refused<T>(fault: SplitValidationError) -> Result<T, SplitError> {
    Err(SplitError::SplitInvalid(fault))
}

pub(crate) fn as_many_children_as_the_backend_allows<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let max = H::caps().max_split_children;
    for count in [max + 1, max + 2] {
        let (op, bounds) = (w.op(), parts(count));
        let fault = SplitValidationError::TooManyChildren { count, max };
        assert_eq!(w.split_replace(&lease, &plan(&bounds), op), refused(fault));
    }
    let (op, bounds) = (w.op(), parts(max));
    let children = w.split_replace(&lease, &plan(&bounds), op).unwrap().into_inner().children;
    assert_eq!(children.len(), max);
    assert_eq!(
        w.split_replace(&lease, &plan(&bounds), op).unwrap().into_inner().children,
        children
    );
    assert_eq!(w.progress().unwrap().active, max as u64);
}

/// A plan of so many bytes, and one of a byte more, where a backend does not commit the largest plan
/// that the protocol has in one step. Keys and metadata count alike.
pub(crate) fn more_bytes_than_the_backend_allows<H: Harness>(operation: Operation) {
    let caps = H::caps();
    let count = if operation == Operation::SplitReplace { caps.max_split_children } else { 2 };
    let (bounds, max) = (parts(count), caps.max_split_bytes);
    let keys: usize = bounds.windows(2).map(|pair| pair[0].len() + pair[1].len()).sum();
    if keys + count * MAX_METADATA_SIZE <= max {
        return skip("the backend commits the largest split that there is");
    }
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    let metadata = vec![b'm'; MAX_METADATA_SIZE];
    let mut split = |size: usize| {
        let mut left = size.checked_sub(keys).expect("a backend has room for keys");
        let specs = bounds.windows(2).map(|pair| {
            let about = &metadata[..left.min(MAX_METADATA_SIZE)];
            left -= about.len();
            ShardSpecRef::new(&pair[0], &pair[1], about)
        });
        let specs: Vec<_> = specs.collect();
        if operation == Operation::SplitReplace {
            w.split_replace(&lease, &SplitReplacePlan::new(specs), op).map(drop)
        } else {
            w.split_residual(&lease, &SplitResidualPlan::new(specs[0], specs[1]), op).map(drop)
        }
    };
    let size = max + 1;
    assert_eq!(split(size), refused(SplitValidationError::PartsTooLarge { size, max }));
    assert_eq!(split(max), Ok(()));
}

/// Splits residuals off shard 0, each in front of the last, without auditing every step.
fn spawn<H: Harness>(w: &mut World<H>, lease: &Lease, count: usize) -> Vec<u8> {
    w.audited = false;
    let (from, mut until) = (start(0), start(1));
    for index in 0..count {
        let point = within(0, &format!("{:04}", 9_999 - index));
        let plan = plan_split_residual_at_point(ShardSpecRef::new(&from, &until, b""), &point);
        let op = w.op();
        w.split_residual(lease, &plan.unwrap(), op).unwrap();
        until = point;
    }
    w.audited = true;
    until
}

pub(crate) fn a_shard_spawns_no_more_than_it_may_by_residual_splits<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let until = spawn(w, &lease, MAX_SPAWNED_PER_SHARD);
    let (from, point) = (start(0), within(0, "0"));
    let range = ShardSpecRef::new(&from, &until, b"");
    let fault = |additional| SplitValidationError::SpawnLimitExceeded {
        current: MAX_SPAWNED_PER_SHARD,
        additional,
        max: MAX_SPAWNED_PER_SHARD,
    };
    let plan = plan_split_residual_at_point(range, &point).unwrap();
    let op = w.op();
    assert_eq!(w.split_residual(&lease, &plan, op), refused(fault(1)));
    let plan = plan_split_replace_at_points(range, &[&point]).unwrap();
    assert_eq!(w.split_replace(&lease, &plan, op), refused(fault(2)));
    // The next worker is told of all of them.
    w.release(&lease).unwrap();
    assert_eq!(w.acquire(2, id(0)).unwrap().spawned.len(), MAX_SPAWNED_PER_SHARD);
}

pub(crate) fn a_shard_spawns_no_more_than_it_may_by_a_replace_split<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let current = MAX_SPAWNED_PER_SHARD - 2;
    let until = spawn(w, &lease, current);
    let (from, points) = (start(0), [within(0, "0"), within(0, "1")]);
    let range = ShardSpecRef::new(&from, &until, b"");
    let three = plan_split_replace_at_points(range, &[&points[0], &points[1]]).unwrap();
    let op = w.op();
    let fault = SplitValidationError::SpawnLimitExceeded {
        current,
        additional: 3,
        max: MAX_SPAWNED_PER_SHARD,
    };
    assert_eq!(w.split_replace(&lease, &three, op), refused(fault));
    let two = plan_split_replace_at_points(range, &[&points[0]]).unwrap();
    assert!(w.split_replace(&lease, &two, op).is_ok());
    assert_eq!(w.shard(id(0)).spawned.len(), MAX_SPAWNED_PER_SHARD);
}

/// A world that has room for so many more shards under the ceiling, and a lease on shard 0.
fn crowded<H: Harness>(scope: ShardLimitScope, room: usize) -> (World<H>, Lease) {
    let limits = match scope {
        ShardLimitScope::Tenant => Limits { shards_per_tenant: 4 + room, ..Limits::default() },
        ShardLimitScope::Global => Limits { shards_total: 6 + room, ..Limits::default() },
    };
    let mut w = World::<H>::open(&limits);
    w.tenant = tenant(2);
    w.begin(2);
    w.tenant = tenant(1);
    w.begin(4);
    let lease = w.lease(1, 0);
    (w, lease)
}

fn over(scope: ShardLimitScope, room: usize, additional: usize) -> SplitValidationError {
    let current = match scope {
        ShardLimitScope::Tenant => 4,
        ShardLimitScope::Global => 6,
    };
    SplitValidationError::ShardLimitExceeded { current, additional, max: current + room, scope }
}

pub(crate) fn replace_under_a_ceiling<H: Harness>(scope: ShardLimitScope) {
    if !H::caps().shard_ceilings {
        return skip("the backend has no ceilings");
    }
    let (w, lease) = &mut crowded::<H>(scope, 3);
    let (op, four) = (w.op(), parts(4));
    assert_eq!(w.split_replace(lease, &plan(&four), op), refused(over(scope, 3, 4)));
    let three = parts(3);
    assert!(w.split_replace(lease, &plan(&three), op).is_ok());
    // The ceiling is reached; a retry is answered all the same.
    assert!(w.split_replace(lease, &plan(&three), op).unwrap().is_replay());
}

pub(crate) fn residual_under_a_ceiling<H: Harness>(scope: ShardLimitScope) {
    if !H::caps().shard_ceilings {
        return skip("the backend has no ceilings");
    }
    let (w, lease) = &mut crowded::<H>(scope, 0);
    let (from, until, point) = (start(0), start(1), within(0, "m"));
    let plan = plan_split_residual_at_point(ShardSpecRef::new(&from, &until, b""), &point).unwrap();
    let op = w.op();
    assert_eq!(w.split_residual(lease, &plan, op), refused(over(scope, 0, 1)));
    let (w, lease) = &mut crowded::<H>(scope, 1);
    assert!(w.split_residual(lease, &plan, op).is_ok());
    assert!(w.split_residual(lease, &plan, op).unwrap().is_replay());
}

/// The shards of another tenant count for the global ceiling only.
pub(crate) fn a_tenants_ceiling_is_its_own<H: Harness>() {
    if !H::caps().shard_ceilings {
        return skip("the backend has no ceilings");
    }
    let w = &mut World::<H>::open(&Limits { shards_per_tenant: 3, ..Limits::default() });
    for number in 1..=3 {
        w.tenant = tenant(number);
        w.begin(2);
        let lease = w.lease(1, 0);
        assert!(w.attempt_new(Operation::SplitResidual, &lease).is_ok());
    }
}

/// Wherever the bytes run out in the middle of a split, nothing of it is left.
pub(crate) fn a_split_without_room_for_its_bytes_is_undone<H: Harness>(operation: Operation) {
    if !H::caps().byte_capacity {
        return skip("the backend has no byte capacity");
    }
    let (mut refusals, mut successes) = (0, 0);
    for capacity in (128..4096).step_by(64) {
        let limits = Limits { byte_capacity: Some(capacity), ..Limits::default() };
        let w = &mut World::<H>::open(&limits);
        w.create_run().unwrap();
        let (manifest, op) = (Manifest::of(0..1), w.op());
        if w.register(&manifest.rows(), op).is_err() {
            continue;
        }
        let (lease, op, metadata) = (w.lease(1, 0), w.op(), [b'm'; 300]);
        let bounds = [start(0), within(0, "h"), within(0, "p"), start(1)];
        let part =
            |from: usize, to: usize| ShardSpecRef::new(&bounds[from], &bounds[to], &metadata);
        let answer = if operation == Operation::SplitReplace {
            let plan = SplitReplacePlan::new([part(0, 1), part(1, 2), part(2, 3)]);
            w.split_replace(&lease, &plan, op).map(drop)
        } else {
            let plan = SplitResidualPlan::new(part(0, 1), part(1, 3));
            w.split_residual(&lease, &plan, op).map(drop)
        };
        match answer {
            Ok(()) => successes += 1,
            Err(SplitError::ResourceExhausted(_)) => refusals += 1,
            Err(other) => panic!("{other}"),
        }
        // Either way work goes on.
        if w.shard(id(0)).state.status == ShardStatus::Active {
            assert!(w.attempt_new(Operation::Park, &lease).is_ok());
        }
    }
    assert!(refusals > 3 && successes > 3, "{refusals} refusals, {successes} successes");
}
