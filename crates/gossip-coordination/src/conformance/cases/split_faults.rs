//! Plans that do not fit, and ids that are taken.

use gossip_contracts::coordination::{
    MAX_KEY_SIZE, MAX_METADATA_SIZE, ShardSpecInputError, SplitReplacePlan, SplitResidualPlan,
    SplitValidationError, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::OpId;

use super::prelude::*;
use crate::error::SplitError;
use crate::lease::Lease;
use crate::payload::{DerivedShardKind, derive_split_shard_id};

/// Tries both parts as a plan of the operation; the answer must be this fault.
#[track_caller]
fn assert_refused<H: Harness>(
    w: &mut World<H>,
    operation: Operation,
    lease: &Lease,
    parts: [ShardSpecRef<'_>; 2],
    fault: SplitValidationError,
) {
    let (op, refused) = (w.op(), SplitError::SplitInvalid(fault));
    match operation {
        Operation::SplitReplace => {
            let plan = SplitReplacePlan::new(parts);
            assert_eq!(w.split_replace(lease, &plan, op).unwrap_err(), refused);
        }
        Operation::SplitResidual => {
            let plan = SplitResidualPlan::new(parts[0], parts[1]);
            assert_eq!(w.split_residual(lease, &plan, op).unwrap_err(), refused);
        }
        other => unreachable!("{other:?} has no plan"),
    }
}

fn range<'a>(start: &'a [u8], end: &'a [u8]) -> ShardSpecRef<'a> {
    ShardSpecRef::new(start, end, b"")
}

pub(crate) fn coverage<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(3);
    let lease = w.lease(1, 1);
    let (a, z, m) = (start(1), start(2), within(1, "m"));
    let (before, behind, n) = (within(0, "z"), within(2, "a"), within(1, "n"));
    use SplitValidationError as Fault;
    for (parts, fault) in [
        ([range(&before, &m), range(&m, &z)], Fault::StartMismatch),
        ([range(&n, &z), range(&z, &behind)], Fault::StartMismatch),
        ([range(&a, &m), range(&n, &z)], Fault::Gap { index: 0 }),
        ([range(&a, &n), range(&m, &z)], Fault::Overlap { index: 0 }),
        ([range(&a, b""), range(&m, &z)], Fault::Overlap { index: 0 }),
        ([range(&a, &m), range(&m, &behind)], Fault::EndMismatch),
        ([range(&a, &m), range(&m, b"")], Fault::EndMismatch),
        ([range(&a, &m), range(&m, &n)], Fault::EndMismatch),
    ] {
        assert_refused(w, operation, &lease, parts, fault);
    }
}

pub(crate) fn parts_that_are_no_ranges<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(2);
    let lease = w.lease(1, 0);
    let (a, z, m) = (start(0), start(1), within(0, "m"));
    let long = within(0, &"k".repeat(MAX_KEY_SIZE));
    let metadata = vec![0; MAX_METADATA_SIZE + 1];
    let (size, max) = (long.len(), MAX_KEY_SIZE);
    let bytes = (MAX_METADATA_SIZE + 1, MAX_METADATA_SIZE);
    for (parts, index, source) in [
        (
            [range(&a, &a), range(&a, &z)],
            0,
            ShardSpecInputError::InvertedRange { start_len: 6, end_len: 6 },
        ),
        (
            [range(&a, &m), range(&z, &m)],
            1,
            ShardSpecInputError::InvertedRange { start_len: 6, end_len: 8 },
        ),
        ([range(&a, &long), range(&long, &z)], 0, ShardSpecInputError::EndTooLarge { size, max }),
        ([range(&a, &m), range(&long, &z)], 1, ShardSpecInputError::StartTooLarge { size, max }),
        (
            [range(&a, &m), range(&m, &z).with_metadata(&metadata)],
            1,
            ShardSpecInputError::MetadataTooLarge { size: bytes.0, max: bytes.1 },
        ),
    ] {
        let fault = SplitValidationError::ChildInvalid { index, source };
        assert_refused(w, operation, &lease, parts, fault);
    }
    // At the limits it works.
    let parts = [range(&a, &long[..MAX_KEY_SIZE]), range(&long[..MAX_KEY_SIZE], &z)];
    let op = w.op();
    let (last, plan) = (&metadata[1..], SplitResidualPlan::new(parts[0], parts[1]));
    match operation {
        Operation::SplitResidual => assert!(w.split_residual(&lease, &plan, op).is_ok()),
        _ => {
            let plan = SplitReplacePlan::new([parts[0], parts[1].with_metadata(last)]);
            assert!(w.split_replace(&lease, &plan, op).is_ok());
        }
    }
}

pub(crate) fn a_split_has_at_least_two_parts<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let whole = (start(0), start(1));
    for count in [0, 1] {
        let op = w.op();
        let plan = SplitReplacePlan::new(vec![range(&whole.0, &whole.1); count]);
        let fault = SplitValidationError::TooFewChildren { count };
        let refused = Err(SplitError::SplitInvalid(fault));
        assert_eq!(w.split_replace(&lease, &plan, op), refused);
    }
}

pub(crate) fn a_residual_split_keeps_the_cursor<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    let at = within(0, "m");
    w.checkpoint(&lease, CursorUpdate::at(&at), op).unwrap();
    let (from, until, about) = (start(0), start(1), about(0));
    let whole = ShardSpecRef::new(&from, &until, &about);
    for tail in ["m", "l", "a"] {
        let (op, point) = (w.op(), within(0, tail));
        let plan = plan_split_residual_at_point(whole, &point).unwrap();
        let refused = Err(SplitError::SplitInvalid(SplitValidationError::CursorNotKept));
        assert_eq!(w.split_residual(&lease, &plan, op), refused);
    }
    let (op, point) = (w.op(), within(0, "m\0"));
    let plan = plan_split_residual_at_point(whole, &point).unwrap();
    assert!(w.split_residual(&lease, &plan, op).is_ok());
}

/// A plan made before an earlier split does not fit any more.
pub(crate) fn a_stale_plan_is_refused<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::SplitResidual, &lease).unwrap();
    let (a, z, m) = (start(0), start(1), within(0, "m"));
    for operation in [Operation::SplitReplace, Operation::SplitResidual] {
        let parts = [range(&a, &m), range(&m, &z)];
        assert_refused(w, operation, &lease, parts, SplitValidationError::EndMismatch);
    }
}

/// In run 1, residual splitting shard 0 under the first id and replacing shard 1 under the second
/// make the same shard id. Found by a search of 2^31 steps; the only way to meet a collision.
const COLLIDING: [OpId; 2] =
    [OpId::from_raw(0x87c0_f7f0_439c_7237), OpId::from_raw(0xf68a_6cd5_093d_e19e)];

pub(crate) fn taken_id<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(2);
    let residual = derive_split_shard_id(w.run, id(0), COLLIDING[0], DerivedShardKind::Residual, 0);
    let child = derive_split_shard_id(w.run, id(1), COLLIDING[1], DerivedShardKind::Child, 0);
    assert_eq!(residual, child, "derived ids have changed: the colliding pair must be found anew");

    let leases = [w.lease(1, 0), w.lease(1, 1)];
    let bounds = [start(0), start(1), start(2)];
    let points = [within(0, "m"), within(1, "m")];
    let first = plan_split_residual_at_point(range(&bounds[0], &bounds[1]), &points[0]).unwrap();
    let second =
        plan_split_replace_at_points(range(&bounds[1], &bounds[2]), &[&points[1]]).unwrap();
    let taken = SplitValidationError::DerivedIdCollision { shard: residual };
    let refused = SplitError::SplitInvalid(taken);
    if operation == Operation::SplitReplace {
        w.split_residual(&leases[0], &first, COLLIDING[0]).unwrap();
        assert_eq!(w.split_replace(&leases[1], &second, COLLIDING[1]), Err(refused));
        // Another operation id makes other shard ids.
        let op = w.op();
        assert!(w.split_replace(&leases[1], &second, op).is_ok());
    } else {
        w.split_replace(&leases[1], &second, COLLIDING[1]).unwrap();
        assert_eq!(w.split_residual(&leases[0], &first, COLLIDING[0]), Err(refused));
        let op = w.op();
        assert!(w.split_residual(&leases[0], &first, op).is_ok());
    }
}
