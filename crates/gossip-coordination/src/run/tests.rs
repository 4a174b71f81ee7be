//! Statuses, counts, filters, and what must hold of a run.

use super::*;
use crate::lease::Takeover;
use crate::op_log::{OpLogEntry, RunOpKind};
use crate::record::ShardState;
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{OpId, ShardKey};

#[test]
fn discriminants_are_stable_and_unknown_bytes_are_none() {
    for raw in 0..=u8::MAX {
        assert_eq!(RunStatus::from_raw(raw).map(|s| s as u8), (raw < 5).then_some(raw));
    }
    assert_eq!(RunStatus::ALL.map(RunStatus::is_terminal), [false, false, true, true, true]);
}

#[test]
fn a_status_reads_as_one_word_and_lines_up_in_a_column() {
    let words = ["initializing", "active", "done", "failed", "cancelled"];
    assert_eq!(RunStatus::ALL.map(|status| status.to_string()), words);
    assert_eq!(format!("{:<6}|", RunStatus::Done), "done  |");
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let good = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 1,
        max_shard_retries: 1,
    };
    assert_eq!(good.validate(), Ok(()));
    assert_eq!(
        RunConfig { lease_duration: 0, ..good }.validate(),
        Err(RunConfigError::ZeroLeaseDuration)
    );
    assert_eq!(
        RunConfig { max_shard_retries: 0, ..good }.validate(),
        Err(RunConfigError::ZeroShardRetries)
    );
}

#[test]
fn evaluation_looks_at_active_then_parked() {
    let progress = |active, parked| RunProgress { active, parked, done: 3, split: 1, watermark: 4 };
    assert_eq!(evaluate_run_terminal(&progress(1, 1)), RunTerminalEvaluation::StillActive);
    assert_eq!(evaluate_run_terminal(&progress(0, 1)), RunTerminalEvaluation::HasFailures);
    assert_eq!(evaluate_run_terminal(&progress(0, 0)), RunTerminalEvaluation::AllDone);
    assert_eq!(evaluate_run_terminal(&RunProgress::default()), RunTerminalEvaluation::NoShards);
}

#[test]
fn counting_up_and_down_keeps_total_and_watermark() {
    let mut progress = RunProgress::default();
    for status in ShardStatus::ALL {
        progress.add(status);
        progress.add(status);
    }
    assert_eq!((progress.total(), progress.watermark), (8, 4));
    progress.remove(ShardStatus::Active);
    assert_eq!((progress.total(), progress.watermark, progress.active), (7, 4, 1));
    progress.add(ShardStatus::Done);
    assert_eq!((progress.total(), progress.watermark, progress.active), (8, 5, 1));
    assert_eq!((progress.done, progress.split, progress.parked), (3, 2, 2));
}

/// A store that lets counts be damaged must not make the program panic.
#[test]
fn damaged_counts_add_up_to_as_much_as_can_be_said() {
    let (most, parked) = (i64::MAX as u64, 1);
    let progress = RunProgress { active: most, done: most, split: most, parked, watermark: 0 };
    assert_eq!(progress.total(), u64::MAX);
}

#[test]
fn filters_admit_what_they_say() {
    let now = LogicalTime::from_raw(5);
    let shard = |status, shard: ShardId, parent| ShardRecordView {
        state: ShardState { status, ..ShardState::NEW },
        ..ShardRecordView::new_shard(
            TenantId::from_bytes([0; 32]),
            ShardKey::new(RunId::from_raw(1), shard),
            ShardSpecRef::new(b"a", b"b", b""),
            CursorUpdate::initial(),
            CursorSemantics::Completed,
            parent,
        )
    };
    let root = |status| shard(status, ShardId::from_raw(1), None);
    let child =
        shard(ShardStatus::Active, ShardId::derived_from_raw(1), Some(ShardId::from_raw(1)));
    let mut held = root(ShardStatus::Active);
    held.state.lease = Some(crate::lease::LeaseHolder::new(
        gossip_contracts::identity::WorkerId::from_raw(1),
        LogicalTime::from_raw(6),
    ));
    let row = |filter: ShardFilter| {
        [root(ShardStatus::Active), root(ShardStatus::Parked), root(ShardStatus::Done), child, held]
            .map(|shard| filter.admits(&shard, RunStatus::Active, now, Takeover::AT_DEADLINE))
    };
    assert_eq!(row(ShardFilter::all()), [true; 5]);
    assert_eq!(row(ShardFilter::active()), [true, false, false, true, true]);
    assert_eq!(row(ShardFilter::available()), [true, false, false, true, false]);
    assert_eq!(row(ShardFilter::parked()), [false, true, false, false, false]);
    assert_eq!(row(ShardFilter::all().roots()), [true, true, true, false, true]);
}

fn record() -> RunRecord {
    RunRecord {
        tenant: TenantId::from_bytes([0; 32]),
        run: RunId::from_raw(1),
        config: RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: 1,
            max_shard_retries: 1,
        },
        status: RunStatus::Initializing,
        created_at: LogicalTime::from_raw(1),
        completed_at: None,
        root_shards: vec![],
        op_log: RunOpLog::new(),
        registration: None,
        result: None,
    }
}

#[track_caller]
fn check(number: &str, change: impl FnOnce(&mut RunRecord)) {
    let mut bad = record();
    bad.assert_invariants();
    change(&mut bad);
    let panic = std::panic::catch_unwind(|| bad.assert_invariants()).expect_err(number);
    let message = panic.downcast::<String>().expect("a formatted message");
    assert!(message.starts_with(&format!("{number}:")), "{message}");
}

#[test]
fn every_run_invariant_is_noticed_under_its_number() {
    check("U1", |r| r.completed_at = Some(LogicalTime::from_raw(2)));
    check("U1", |r| r.status = RunStatus::Cancelled);
    check("U2", |r| r.status = RunStatus::Active);
    check("U2", |r| r.root_shards = vec![ShardId::from_raw(1)]);
    check("U3", |r| {
        for hash in [1, 2] {
            r.op_log.push_back_overwrite(OpLogEntry::new(
                OpId::from_raw(4),
                RunOpKind::Cancel,
                crate::op_log::OpResult::Completed,
                hash,
                LogicalTime::from_raw(1),
            ));
        }
    });
    check("U4", |r| r.registration = registration(0, 0, 0));
    check("U4", |r| r.registration = registration(2, 3, 0));
    check("U4", |r| r.registration = registration(2, 1, 1));
    check("U4", |r| r.registration = registration(10_001, 0, 0));
    check("U4", |r| r.registration = registration(1, 0, 10_001));
    for (staged, leftover) in [(1, 0), (0, 0)] {
        check("U4", |r| {
            (r.status, r.completed_at) = (RunStatus::Cancelled, Some(LogicalTime::from_raw(2)));
            r.registration = registration(2, staged, leftover);
        });
    }
    check("U4", |r| {
        (r.status, r.root_shards) = (RunStatus::Active, vec![ShardId::from_raw(1)]);
        r.registration = registration(2, 2, 0);
    });
    check("U5", |r| r.result = Some(RunResult::from_bytes([1; 32])));
}

fn registration(count: u32, staged: u32, leftover: u32) -> Option<Registration> {
    let (op_id, payload_hash) = (OpId::from_raw(1), 2);
    let stepped_at = LogicalTime::from_raw(5);
    Some(Registration { op_id, payload_hash, count, staged, leftover, stepped_at })
}

#[test]
#[should_panic(expected = "counted before it changes")]
fn taking_off_a_shard_that_was_not_counted_is_a_bug() {
    RunProgress::default().remove(ShardStatus::Parked);
}

#[test]
fn total_and_watermark_follow_what_is_taken_off() {
    let mut progress = RunProgress { active: 1, done: 3, split: 2, parked: 1, watermark: 5 };
    assert_eq!(progress.total(), 7);
    progress.remove(ShardStatus::Done);
    assert_eq!((progress.done, progress.split, progress.watermark), (2, 2, 4));
    progress.remove(ShardStatus::Split);
    assert_eq!((progress.done, progress.split, progress.watermark), (2, 1, 3));
}

#[test]
fn a_summary_tells_all_but_the_metadata_and_shows_no_key() {
    let spawned = [ShardId::derived_from_raw(5), ShardId::derived_from_raw(6)];
    let mut shard = ShardRecordView {
        spawned: &spawned,
        cursor: CursorUpdate::new(Some(b"hush/b"), Some(b"hush")),
        ..ShardRecordView::new_shard(
            TenantId::from_bytes([0; 32]),
            ShardKey::new(RunId::from_raw(1), ShardId::derived_from_raw(4)),
            ShardSpecRef::new(b"hush/a", b"hush/cc", b"hush"),
            CursorUpdate::initial(),
            CursorSemantics::Completed,
            Some(ShardId::from_raw(3)),
        )
    };
    shard.state.acquires_since_progress = 2;
    let owner = gossip_contracts::identity::WorkerId::from_raw(1);
    shard.state.lease = Some(crate::lease::LeaseHolder::new(owner, LogicalTime::from_raw(6)));
    let expected = ShardSummary {
        shard: ShardId::derived_from_raw(4),
        status: ShardStatus::Active,
        start: b"hush/a"[..].into(),
        end: b"hush/cc"[..].into(),
        last_key: Some(b"hush/b"[..].into()),
        token: Some(b"hush"[..].into()),
        lease_deadline: Some(LogicalTime::from_raw(6)),
        fence: FenceEpoch::INITIAL,
        acquires_since_progress: 2,
        parent: Some(ShardId::from_raw(3)),
        spawned_count: 2,
    };
    assert_eq!(ShardSummary::of(&shard), expected);
    let shown = format!("{expected:?}");
    assert!(shown.contains("[7 bytes]") && !shown.contains("hush"), "{shown}");
}
