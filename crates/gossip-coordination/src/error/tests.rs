//! The routing matrix, and that nothing shows what it must not.

use std::fmt::{Debug, Display};
use std::panic::catch_unwind;

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ManifestValidationError, ShardLimitScope,
    ShardSpecInputError, ShardSpecRef, SplitReplacePlan, SplitValidationError,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_stdx::SlabFull;

use super::*;
use crate::codec::{CodecError, RecordKind};
use crate::invariants::InvariantViolation;
use crate::lease::{Lease, LeaseHolder, Takeover};
use crate::record::{FoundShard, ShardRecord, ShardRecordView, ShardState};
use crate::run::{Registration, RunConfig, RunConfigError, RunGate, RunStatus};
use crate::shard_limits::{ShardCounts, ShardLimits, ShardRoom, SplitCaps};
use crate::status::{ParkReason, ShardStatus};
use crate::transition;

const SHARD: ShardKey = ShardKey::new(RunId::from_raw(1), ShardId::from_raw(2));
const TENANT: TenantId = TenantId::from_bytes([0x11; 32]);

// What must never be shown.
const OTHER_TENANT: TenantId = TenantId::from_bytes([0xe7; 32]);
const WORKER: WorkerId = WorkerId::from_raw(0x5ec2_e75e_c2e7_5ec2);
const EARLIER_HASH: u64 = 0x4a54_4a54_4a54_4a54;
const HASH: u64 = 0x4b54_4b54_4b54_4b54;
const SECRET_KEY: &[u8] = b"hush-hush/key";

/// Every form in which a secret could show.
fn secrets() -> Vec<String> {
    let numbers = [WORKER.as_raw(), EARLIER_HASH, HASH];
    let numbers = numbers.iter().flat_map(|n| [format!("{n}"), format!("{n:x}"), format!("{n:X}")]);
    let list = |bytes: &[u8]| format!("{bytes:?}").trim_matches(['[', ']']).to_owned();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    numbers
        .chain([list(&SECRET_KEY[..4]), hex(&SECRET_KEY[..4]), "hush".to_owned()])
        .chain([list(&OTHER_TENANT.as_bytes()[..4]), hex(&OTHER_TENANT.as_bytes()[..4])])
        .collect()
}

#[track_caller]
fn check_hidden(shown: &str) {
    for secret in secrets() {
        let lower = shown.to_lowercase();
        assert!(!lower.contains(&secret.to_lowercase()), "{secret} shows in {shown}");
    }
}

/// Shows a value in every way, and everything that it gives as its source.
#[track_caller]
fn check_error(error: &(dyn std::error::Error + 'static)) {
    check_hidden(&format!("{error} {error:?} {error:#?}"));
    if let Some(source) = error.source() {
        check_error(source);
    }
}

/// Checks one value of every variant. Does not compile when a variant is not listed.
macro_rules! check_every_variant {
    ($ty:ident: $($variant:ident $(($($value:expr),*))? $({$($fields:tt)*})?;)*) => {{
        fn is_listed(error: &$ty) {
            match error {
                $($ty::$variant { .. } => {})*
            }
        }
        for error in [$($ty::$variant $(($($value),*))? $({$($fields)*})?),*] {
            is_listed(&error);
            check_error(&error);
        }
        stringify!($ty)
    }};
}

fn infra() -> InfraError {
    InfraError::transient("checkpoint.txn", "timed out")
}

fn conflict() -> RunOpIdConflict {
    RunOpIdConflict::new(OpId::from_raw(5), EARLIER_HASH, HASH)
}

const FULL: SlabFull = SlabFull { requested: 9, available: 8 };
const DETAIL: CursorOutOfBoundsDetail =
    CursorOutOfBoundsDetail { last_key: 13, spec_start: 1, spec_end: 1 };
const GAP: SplitValidationError = SplitValidationError::Gap { index: 1 };

/// One of every refusal, under its name.
fn refusals() -> Vec<(&'static str, CoordError)> {
    let all = vec![
        CoordError::ShardNotFound { shard: SHARD },
        CoordError::TenantMismatch { expected: TENANT },
        CoordError::StaleFence {
            presented: FenceEpoch::from_raw(3),
            current: FenceEpoch::from_raw(4),
        },
        CoordError::LeaseExpired {
            deadline: LogicalTime::from_raw(5),
            now: LogicalTime::from_raw(6),
        },
        CoordError::ShardTerminal { shard: SHARD, status: ShardStatus::Done },
        CoordError::RunNotActive { run: SHARD.run, status: RunStatus::Failed },
        CoordError::OpIdConflict {
            op_id: OpId::from_raw(5),
            expected_hash: EARLIER_HASH,
            actual_hash: HASH,
        },
        CoordError::CursorRegression { old_key: Some(7), new_key: None },
        CoordError::CursorOutOfBounds(DETAIL),
        CoordError::CursorKeyTooLarge { size: 9, max: 8 },
        CoordError::CursorTokenTooLarge { size: 11, max: 10 },
        CoordError::SplitInvalid(GAP),
        CoordError::CheckpointMissingKey,
    ];
    all.into_iter().map(|error| (name(&error), error)).collect()
}

fn name(error: &CoordError) -> &'static str {
    match error {
        CoordError::ShardNotFound { .. } => "ShardNotFound",
        CoordError::TenantMismatch { .. } => "TenantMismatch",
        CoordError::StaleFence { .. } => "StaleFence",
        CoordError::LeaseExpired { .. } => "LeaseExpired",
        CoordError::ShardTerminal { .. } => "ShardTerminal",
        CoordError::RunNotActive { .. } => "RunNotActive",
        CoordError::OpIdConflict { .. } => "OpIdConflict",
        CoordError::CursorRegression { .. } => "CursorRegression",
        CoordError::CursorOutOfBounds(_) => "CursorOutOfBounds",
        CoordError::CursorKeyTooLarge { .. } => "CursorKeyTooLarge",
        CoordError::CursorTokenTooLarge { .. } => "CursorTokenTooLarge",
        CoordError::SplitInvalid(_) => "SplitInvalid",
        CoordError::CheckpointMissingKey => "CheckpointMissingKey",
    }
}

/// `+` where an operation returns the refusal, `-` where routing it there is a bug.
const MATRIX: &str = "
                     renew release checkpoint complete park split
ShardNotFound          +      +        +         +      +     +
TenantMismatch         +      +        +         +      +     +
StaleFence             +      +        +         +      +     +
LeaseExpired           +      +        +         +      +     +
ShardTerminal          +      +        +         +      +     +
RunNotActive           +      +        +         +      +     +
OpIdConflict           -      -        +         +      +     +
CursorRegression       -      -        +         +      -     -
CursorOutOfBounds      -      -        +         +      -     -
CursorKeyTooLarge      -      -        +         +      -     -
CursorTokenTooLarge    -      -        +         +      -     -
SplitInvalid           -      -        -         -      -     +
CheckpointMissingKey   -      -        +         +      -     -
";

/// What an operation's own error says, once the refusal is routed there.
fn routed<E: From<CoordError> + Display + Debug>(refusal: CoordError) -> String {
    let error = E::from(refusal);
    check_hidden(&format!("{error} {error:?} {error:#?}"));
    error.to_string()
}

#[test]
fn refusals_are_routed_as_in_the_matrix() {
    let columns = [
        routed::<RenewError>,
        routed::<ReleaseError>,
        routed::<CheckpointError>,
        routed::<CompleteError>,
        routed::<ParkError>,
        routed::<SplitError>,
    ];
    let rows: Vec<Vec<&str>> =
        MATRIX.trim().lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let refusals = refusals();
    assert_eq!(rows.len(), refusals.len(), "the matrix has a row for every refusal");
    for (row, (name, refusal)) in rows.iter().zip(refusals) {
        assert_eq!(row[0], name);
        assert_eq!(row[1..].len(), columns.len());
        for (mark, route) in row[1..].iter().zip(columns) {
            let outcome = catch_unwind(|| route(refusal.clone()));
            match *mark {
                "+" => assert_eq!(outcome.expect(name), refusal.to_string()),
                "-" => assert!(outcome.is_err(), "{name} was accepted"),
                mark => panic!("{mark} in the matrix"),
            }
        }
    }
}

#[test]
fn routing_keeps_every_field() {
    let conflict = CoordError::OpIdConflict {
        op_id: OpId::from_raw(5),
        expected_hash: EARLIER_HASH,
        actual_hash: HASH,
    };
    let ParkError::OpIdConflict { op_id, expected_hash, actual_hash } = conflict.into() else {
        panic!()
    };
    assert_eq!((op_id.as_raw(), expected_hash, actual_hash), (5, EARLIER_HASH, HASH));
    let regression = CoordError::CursorRegression { old_key: Some(7), new_key: None };
    let routed = CompleteError::from(regression);
    assert_eq!(routed, CompleteError::CursorRegression { old_key: Some(7), new_key: None });
}

#[test]
fn errors_say_whether_trying_again_helps() {
    let (passing, damage) =
        (InfraError::transient("step", "busy"), InfraError::corruption("step", "damaged"));
    let refused = InfraError::refused("step", "no rights");
    macro_rules! follow_the_backend {
        ($($error:ident)*) => {$(
            assert!($error::BackendError(passing.clone()).is_retryable());
            assert!(!$error::BackendError(damage.clone()).is_retryable());
            assert!(!$error::BackendError(refused.clone()).is_retryable());
        )*};
    }
    follow_the_backend! {
        AcquireError ClaimError CreateRunError RegisterShardsError GetRunError RunTransitionError
        UnparkError DeleteRunError RevokeLeaseError RenewError ReleaseError CheckpointError
        CompleteError ParkError SplitError
    }
    let (run, at) = (SHARD.run, LogicalTime::from_raw(5));
    let not_active = |status| ClaimError::RunNotActive { run, status };
    assert!(ClaimError::NoneAvailable { earliest_deadline: None }.is_retryable());
    assert!(ClaimError::Throttled { retry_after: at }.is_retryable());
    assert!(not_active(RunStatus::Initializing).is_retryable());
    assert!(!not_active(RunStatus::Cancelled).is_retryable());
    assert!(!ClaimError::RunNotFound.is_retryable());
    let held = AcquireError::AlreadyLeased { current_owner: WORKER, lease_deadline: at };
    assert!(held.is_retryable());
    assert!(!AcquireError::ShardNotFound { shard: SHARD }.is_retryable());
    let full = RegisterShardsError::ResourceExhausted { resource: "room" };
    assert!(full.is_retryable() && CreateRunError::RegisterShardsFailed(full).is_retryable());
    assert!(CreateRunError::GetRunFailed(GetRunError::BackendError(passing)).is_retryable());
    assert!(!CreateRunError::RunAlreadyExists { run }.is_retryable());
    assert!(!RegisterShardsError::RunNotFound.is_retryable());
    let remaining = |active, parked| RunTransitionError::ShardsRemaining { active, parked };
    assert!(remaining(1, 1).is_retryable());
    assert!(!remaining(0, 1).is_retryable(), "parked shards stay parked");
    assert!(!RunTransitionError::RunNotFound.is_retryable());
}

#[test]
fn debug_of_a_refusal_names_its_variant() {
    for (name, error) in refusals() {
        assert!(format!("{error:?}").starts_with(&format!("CoordError::{name}(")), "{error:?}");
    }
}

#[test]
fn no_variant_of_any_error_shows_a_secret() {
    let (shard, run, status) = (SHARD, SHARD.run, RunStatus::Failed);
    let (op_id, expected) = (OpId::from_raw(5), TENANT);
    let (expected_hash, actual_hash) = (EARLIER_HASH, HASH);
    let (presented, current) = (FenceEpoch::from_raw(3), FenceEpoch::from_raw(4));
    let (now, deadline) = (LogicalTime::from_raw(6), LogicalTime::from_raw(5));
    let (old_key, new_key, size, max) = (Some(7), None, 9, 8);
    let done = ShardStatus::Done;
    let mut names = vec![
        check_every_variant!(AcquireError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            ShardTerminal { shard, status: done };
            AlreadyLeased { current_owner: WORKER, lease_deadline: deadline };
            RunNotActive { run, status };
            BackendError(infra());
        ),
        check_every_variant!(RenewError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            BackendError(infra());
        ),
        check_every_variant!(ReleaseError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            BackendError(infra());
        ),
        check_every_variant!(CheckpointError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            OpIdConflict { op_id, expected_hash, actual_hash };
            CursorRegression { old_key, new_key };
            CursorOutOfBounds(DETAIL);
            CursorKeyTooLarge { size, max };
            CursorTokenTooLarge { size, max };
            CheckpointMissingKey;
            ResourceExhausted(FULL);
            BackendError(infra());
        ),
        check_every_variant!(CompleteError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            OpIdConflict { op_id, expected_hash, actual_hash };
            CursorRegression { old_key, new_key };
            CursorOutOfBounds(DETAIL);
            CursorKeyTooLarge { size, max };
            CursorTokenTooLarge { size, max };
            CheckpointMissingKey;
            ResourceExhausted(FULL);
            BackendError(infra());
        ),
        check_every_variant!(ParkError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            OpIdConflict { op_id, expected_hash, actual_hash };
            BackendError(infra());
        ),
        check_every_variant!(SplitError:
            ShardNotFound { shard };
            TenantMismatch { expected };
            StaleFence { presented, current };
            LeaseExpired { deadline, now };
            ShardTerminal { shard, status: done };
            RunNotActive { run, status };
            OpIdConflict { op_id, expected_hash, actual_hash };
            SplitInvalid(GAP);
            ResourceExhausted(FULL);
            BackendError(infra());
        ),
        check_every_variant!(CreateRunError:
            InvalidConfig(RunConfigError::ZeroShardRetries);
            RunAlreadyExists { run };
            RegisterShardsFailed(RegisterShardsError::OpIdConflict(conflict()));
            GetRunFailed(GetRunError::RunNotFound);
            ConfigMismatch { run };
            BackendError(infra());
        ),
        check_every_variant!(RegisterShardsError:
            RunNotFound;
            TenantMismatch { expected };
            WrongStatus { status };
            ManifestInvalid(ManifestValidationError::Empty);
            OpIdConflict(conflict());
            Overtaken { by: op_id };
            ShardLimitExceeded {
                current: 9, additional: 2, max: 10, scope: ShardLimitScope::Tenant
            };
            ResourceExhausted { resource: "slab" };
            BackendError(infra());
        ),
        check_every_variant!(GetRunError:
            RunNotFound;
            TenantMismatch { expected };
            BackendError(infra());
        ),
        check_every_variant!(RunTransitionError:
            RunNotFound;
            TenantMismatch { expected };
            RunTerminal { status };
            WrongStatus { status, target: RunStatus::Done };
            ShardsRemaining { active: 1, parked: 2 };
            OpIdConflict(conflict());
            BackendError(infra());
        ),
        check_every_variant!(UnparkError:
            ShardNotFound;
            TenantMismatch { expected };
            RunTerminal { status };
            NotParked { status: done };
            OpIdConflict(conflict());
            BackendError(infra());
        ),
        check_every_variant!(DeleteRunError:
            RunNotFound;
            TenantMismatch { expected };
            RunNotEnded { status };
            BackendError(infra());
        ),
        check_every_variant!(RevokeLeaseError:
            ShardNotFound;
            TenantMismatch { expected };
            FenceNotGranted { presented: FenceEpoch::from_raw(3), current: FenceEpoch::INITIAL };
            RunTerminal { status };
            BackendError(infra());
        ),
        check_every_variant!(ClaimError:
            NoneAvailable { earliest_deadline: Some(deadline) };
            RunNotFound;
            TenantMismatch { expected };
            RunNotActive { run, status };
            Throttled { retry_after: deadline };
            BackendError(infra());
        ),
        check_every_variant!(InfraError:
            Transient { operation: "checkpoint.txn", message: "timed out".into() };
            Refused { operation: "checkpoint.txn", message: "the user has no rights".into() };
            Corruption { operation: "checkpoint.load", message: "ends inside fence".into() };
        ),
        check_every_variant!(RunConfigError: ZeroLeaseDuration; ZeroShardRetries;),
        check_every_variant!(CodecError:
            Truncated { field: "fence" };
            TrailingBytes { count: 3 };
            WrongKind { expected: RecordKind::Run, found: 1 };
            NewerVersion { kind: RecordKind::Run, found: 2, newest: 1 };
            UnknownVersion { found: 0 };
            ChecksumMismatch;
            BadDiscriminant { field: "status", value: 9 };
            LimitExceeded { field: "token", size, max };
            Zero { field: "fence" };
            SpecInvalid(ShardSpecInputError::InvertedRange { start_len: 13, end_len: 13 });
            CursorOutOfBounds;
            ConfigInvalid(RunConfigError::ZeroLeaseDuration);
            Invariant(InvariantViolation::SplitWithoutChildren { shard });
        ),
        check_every_variant!(InvariantViolation:
            ParkReason { shard, status: done, reason: Some(ParkReason::Other) };
            TerminalLease { shard, status: done };
            Fence { shard, fence: FenceEpoch::ZERO };
            OpLogLength { shard };
            SplitWithoutChildren { shard };
            Parent { shard, parent: Some(shard.shard) };
            SpawnedRoot { shard, child: shard.shard };
            RepeatedOp { shard, op_id };
            SpawnedCount { shard, count: 1025 };
            RunEnd { run, status, end: Some(deadline) };
            RunShards { run, status, count: 0 };
            RepeatedRunOp { run, op_id };
            Registration {
                run, status,
                registration: Registration {
                    op_id, payload_hash: HASH, count: 1, staged: 2, leftover: 0, stepped_at: deadline,
                }
            };
            RunResult { run, status };
        ),
    ];
    for (_, error) in refusals() {
        check_error(&error);
    }
    check_error(&conflict());
    // It shows what it wraps.
    check_error(&CommitError::<_, InfraError>::Refused(conflict()));
    check_error(&CommitError::<InfraError, _>::Caller(conflict()));
    names.extend(["CoordError", "RunOpIdConflict", "CommitError"]);
    check_all_types_are_listed(&names);
}

/// Every type of this crate that is an error, as its sources declare them.
fn check_all_types_are_listed(names: &[&str]) {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    let mut found = vec![];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let text = std::fs::read_to_string(&entry).unwrap();
            for derived in text.split("thiserror::Error)]\n").skip(1) {
                let mut lines = derived.lines().map(str::trim_start);
                let declaration = lines.find(|line| line.starts_with("pub ")).unwrap();
                let name = declaration.split_whitespace().nth(2).unwrap();
                let name = name.split('<').next().unwrap();
                // The macro of workers' operations, whose enums are in the matrix.
                if name != "$name" {
                    found.push(name.to_owned());
                }
            }
        }
    }
    assert!(found.len() >= 12, "{found:?}");
    for name in found {
        assert!(names.contains(&&*name), "{name} is an error that this test does not show");
    }
}

/// Refusals made from marked records and requests, as a worker would see them.
#[test]
fn refusals_of_marked_requests_show_no_secret() {
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 10,
        max_shard_retries: 1,
    };
    let run = RunGate { status: RunStatus::Active, config, hides_shards: false };
    let now = LogicalTime::from_raw(100);
    let fence = FenceEpoch::from_raw(2);
    let deadline = LogicalTime::from_raw(200);
    let view = ShardRecordView {
        state: ShardState {
            fence,
            lease: Some(LeaseHolder::new(WORKER, deadline)),
            ..ShardState::NEW
        },
        ..ShardRecordView::new_shard(
            TENANT,
            SHARD,
            ShardSpecRef::new(b"hush-hush/a", b"hush-hush/z", SECRET_KEY),
            CursorUpdate::new(Some(SECRET_KEY), Some(SECRET_KEY)),
            CursorSemantics::Completed,
            None,
        )
    };
    let foreign = ShardRecordView { tenant: OTHER_TENANT, ..view };
    let found = FoundShard { shard: &view, run: &run };
    let found_foreign = FoundShard { shard: &foreign, run: &run };
    let lease = Lease::new(TENANT, SHARD, WORKER, fence, deadline);
    let foreign_lease = Lease::new(OTHER_TENANT, SHARD, WORKER, fence, deadline);
    let at = |lease, cursor| transition::CursorRequest {
        tenant: TENANT,
        lease,
        cursor,
        op_id: OpId::from_raw(1),
    };
    let (before, behind) = (CursorUpdate::at(b"hush-hush/b"), CursorUpdate::at(b"hush-hush/zz"));
    for (found, request) in [
        (found, at(&lease, before)),
        (found, at(&lease, behind)),
        (found, at(&foreign_lease, before)),
        (found_foreign, at(&lease, before)),
    ] {
        let refusal = transition::checkpoint(Some(found), now, &request).unwrap_err();
        check_error(&refusal);
        check_error(&CheckpointError::from(refusal));
    }
    let request = at(&lease, before);
    check_hidden(&format!("{request:?} {request:#?}"));
    let plan = SplitReplacePlan::new([ShardSpecRef::new(SECRET_KEY, SECRET_KEY, SECRET_KEY)]);
    let request = transition::SplitReplaceRequest {
        tenant: TENANT,
        lease: &lease,
        plan: &plan,
        op_id: OpId::from_raw(1),
    };
    let room = ShardRoom {
        limits: ShardLimits { per_tenant: 1, global: 1 },
        counts: ShardCounts::default(),
        split: SplitCaps::PROTOCOL,
    };
    check_error(&transition::split_replace(Some(found), now, &room, &request).unwrap_err());
    check_hidden(&format!("{request:?} {request:#?}"));
    let other = WorkerId::from_raw(1);
    for found in [found, found_foreign] {
        check_error(
            &transition::acquire(Some(found), now, Takeover::AT_DEADLINE, TENANT, SHARD, other)
                .unwrap_err(),
        );
    }
    let granted =
        transition::acquire(Some(found), now, Takeover::AT_DEADLINE, TENANT, SHARD, WORKER)
            .unwrap();
    check_hidden(&format!("{granted:?} {granted:#?}"));
    let record = ShardRecord::from_view(&view);
    check_hidden(&format!("{view:?} {view:#?} {record:?} {record:#?} {lease:?} {lease:#?}"));
    let input = InitialShardInput::new(SHARD.shard, view.spec, view.cursor);
    check_hidden(&format!("{input:?} {input:#?}"));
}

/// A log that shows an error says which one it is.
#[test]
fn debug_names_the_variant() {
    let expired = CoordError::LeaseExpired {
        deadline: LogicalTime::from_raw(9),
        now: LogicalTime::from_raw(10),
    };
    let shown = format!("{:?}", CheckpointError::from(expired));
    assert_eq!(shown, "CheckpointError::LeaseExpired(the lease ended at 9; it is 10)");
    let missing = format!("{:?}", AcquireError::ShardNotFound { shard: SHARD });
    assert_eq!(missing, "AcquireError::ShardNotFound(there is no shard 1/2)");
}
