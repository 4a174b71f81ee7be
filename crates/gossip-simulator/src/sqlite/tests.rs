//! What the simulator does to SQLite, and that it does so.

// The small world of the backend's own tests.
#[allow(dead_code, reason = "these tests need a part of it")]
#[path = "../../../gossip-coordination-sqlite/tests/it/support.rs"]
mod support;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, ClaimError, CoordinationBackend, EventCollector,
    IdempotentOutcome, Lease, ShardClaiming, ShardLimits,
};
use gossip_coordination_sqlite::{SqliteConfig, SqliteCoordinator};

use self::support::{NOW, Place, RUN, TENANT, assert_sound, begin, key, number, shards};
use super::Sqlite;
use super::faults::{Armed, Rival};
use super::store::{PAGES, Store};
use crate::{
    BackendLimits, Effective, Failures, OPERATIONS, Options, SimulatedBackend, StoreFault, run_seed,
};

type Outcome = Result<IdempotentOutcome<()>, CheckpointError>;

struct World {
    place: Place,
    coordinator: SqliteCoordinator,
    lease: Lease,
}

impl World {
    fn new() -> Self {
        let place = Place::new();
        let config = SqliteConfig { caller_schemas: vec![PAGES], ..SqliteConfig::default() };
        let mut coordinator = SqliteCoordinator::open(place.db(), config).unwrap();
        begin(&mut coordinator, 2, 1_000, 60_000);
        let mut scratch = Box::new(AcquireScratch::new());
        let worker = WorkerId::from_raw(1);
        let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
        let lease = claimed.unwrap().lease;
        Self { place, coordinator, lease }
    }

    fn checkpoint(&mut self, at: u64) -> Outcome {
        let (cursor, op) = (key(at), OpId::from_raw(at));
        self.coordinator.checkpoint(NOW, TENANT, &self.lease, CursorUpdate::at(&cursor), op)
    }

    fn checkpoint_while(&mut self, fault: StoreFault, at: u64) -> Outcome {
        let rival = Rival::open(&self.place.db());
        let armed = Armed::new(&mut self.coordinator, fault, &rival);
        let outcome = self.checkpoint(at);
        armed.disarm(&mut self.coordinator);
        outcome
    }

    fn cursor(&self) -> Option<u64> {
        shards(&self.coordinator)[0].last_key.as_deref().map(number)
    }
}

#[track_caller]
fn assert_may_pass(outcome: &Outcome) {
    let Err(CheckpointError::BackendError(error)) = outcome else { panic!("{outcome:?}") };
    assert!(error.is_retryable(), "{error}");
}

#[test]
fn an_operation_that_is_interrupted_anywhere_is_done_or_not_and_can_be_retried() {
    let mut world = World::new();
    let (mut undone, mut unsaid, mut at) = (0, 0, 0);
    for after in 0.. {
        at += 1;
        let before = world.cursor();
        let outcome = world.checkpoint_while(StoreFault::Interrupted { after }, at);
        if outcome.is_ok() {
            break;
        }
        assert_may_pass(&outcome);
        assert_sound(&world.coordinator);
        let is_stored = world.cursor() == Some(at);
        assert!(is_stored || world.cursor() == before);
        if is_stored {
            unsaid += 1;
        } else {
            undone += 1;
        }
        assert_eq!(world.checkpoint(at).unwrap().is_replay(), is_stored, "after {after} steps");
    }
    assert!(undone > 50 && unsaid > 0, "{undone} times nothing was stored, {unsaid} times it was");
}

/// A worker that does not know whether it got a shard asks for its own first.
#[test]
fn a_claim_that_is_interrupted_anywhere_loses_no_shard_and_holds_none_unseen() {
    let mut world = World::new();
    let (db, coordinator) = (world.place.db(), &mut world.coordinator);
    let rival = Rival::open(&db);
    let (mut free, mut held) = (0, 0);
    for after in 0.. {
        let worker = WorkerId::from_raw(2 + u64::from(after));
        let armed = Armed::new(coordinator, StoreFault::Interrupted { after }, &rival);
        let mut scratch = Box::new(AcquireScratch::new());
        let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
        let claimed = claimed.map(|acquired| acquired.lease);
        armed.disarm(coordinator);
        assert_sound(coordinator);
        if claimed.is_ok() {
            break;
        }
        let Err(ClaimError::BackendError(error)) = claimed else { panic!("{claimed:?}") };
        assert!(error.is_retryable(), "{error}");
        let own = coordinator.reacquire_own(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
        let lease = match own.map(|own| own.lease) {
            Some(lease) => {
                held += 1;
                lease
            }
            None => {
                free += 1;
                let claimed =
                    coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
                claimed.unwrap().lease
            }
        };
        coordinator.release(NOW, TENANT, &lease).unwrap();
    }
    assert!(free > 50 && held > 0, "{free} times the shard was free, {held} times it was held");
}

#[test]
fn a_commit_that_fails_stores_nothing() {
    let mut world = World::new();
    assert_may_pass(&world.checkpoint_while(StoreFault::CommitRefused, 5));
    assert_eq!(world.cursor(), None);
    assert_sound(&world.coordinator);
    assert!(world.checkpoint(5).unwrap().is_executed());
}

#[test]
fn a_commit_that_only_seems_to_fail_is_a_replay_when_it_is_retried() {
    let mut world = World::new();
    assert_may_pass(&world.checkpoint_while(StoreFault::CommitUnknown, 5));
    assert_eq!(world.cursor(), Some(5));
    assert_sound(&world.coordinator);
    assert!(world.checkpoint(5).unwrap().is_replay());
}

/// An operation takes the write lock before it looks. If it took it later, others could write in
/// between, and it would fail.
#[test]
fn an_operation_in_whose_middle_another_process_writes_is_served() {
    let mut world = World::new();
    for at in 1..=400 {
        let rival = StoreFault::Rival { after: at as u32 - 1 };
        assert!(world.checkpoint_while(rival, at).unwrap().is_executed());
    }
    let written = world
        .coordinator
        .read(|tx| tx.query_row("SELECT times FROM sim_rival", [], |row| row.get::<_, i64>(0)));
    assert!(written.unwrap() > 0, "the other process never came between");
}

fn subject() -> Sqlite {
    Sqlite::open(&BackendLimits::of_shards(ShardLimits { per_tenant: 10, global: 10 }))
}

/// Begins a run and claims its shard.
fn claimed(store: &mut Store) -> Lease {
    begin(&mut store.coordinator, 1, 1_000, 60_000);
    let (mut scratch, worker) = (Box::new(AcquireScratch::new()), WorkerId::from_raw(1));
    store.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap().lease
}

fn checkpoint(store: &mut Store, lease: &Lease, at: u64) -> Outcome {
    let (cursor, op) = (key(at), OpId::from_raw(at));
    store.checkpoint(NOW, TENANT, lease, CursorUpdate::at(&cursor), op)
}

/// Two processes have the same request; whoever gets the lock first carries it out.
#[test]
fn a_request_that_another_process_carries_out_meanwhile_is_a_replay() {
    let (mut subject, mut told) = (subject(), EventCollector::new());
    let lease = subject.with_events(&mut told, claimed);
    let (mut first, mut second, mut busy) = (0, 0, 0);
    for after in 0.. {
        let at = u64::from(after) + 2;
        let overtaken = subject.overtaken(
            &mut told,
            after,
            Effective::WithItsChange,
            |store| checkpoint(store, &lease, at),
            move |store| checkpoint(store, &lease, at),
        );
        let overtaken = overtaken.expect("there are two handles");
        let ours = overtaken.told.unwrap();
        let Some(rival) = overtaken.rival else { break };
        match rival.told {
            Ok(theirs) if rival.is_second => {
                assert!(ours.is_executed() && theirs.is_replay(), "after {after} steps");
                second += 1;
            }
            Ok(theirs) => {
                assert!(ours.is_replay() && theirs.is_executed(), "after {after} steps");
                first += 1;
            }
            refused => {
                assert_may_pass(&refused);
                assert!(ours.is_executed(), "after {after} steps");
                busy += 1;
            }
        }
        assert_eq!(subject.check_consistent(), Ok(()));
    }
    assert!(first > 0 && second > 0 && busy > 50, "{first} first, {second} second, {busy} busy");
}

#[test]
fn a_row_of_the_callers_that_belongs_to_another_operation_is_noticed() {
    let mut subject = subject();
    let mut told = EventCollector::new();
    subject.with_events(&mut told, |store| {
        let lease = claimed(store);
        checkpoint(store, &lease, 3).unwrap();
    });
    assert_eq!(subject.check_consistent(), Ok(()));
    subject.with_events(&mut told, |store| {
        let moved =
            store.coordinator.transaction(|tx| tx.execute("UPDATE sim_pages SET op = 4", []));
        assert_eq!(moved.unwrap(), 1);
    });
    let said = subject.check_consistent().unwrap_err();
    assert!(said.starts_with("of operation 3 "), "{said}");
}

#[test]
fn processes_are_crashed_and_stores_fail_until_the_end_of_a_seed() {
    let mut seen = Failures::default();
    for seed in 1..=60 {
        let report = run_seed::<Sqlite>(seed, &Options::default());
        assert_eq!(report.violation, None, "seed {seed}");
        assert!(report.operations >= OPERATIONS);
        seen.add(&report.failures);
        let Failures { torn, torn_late, failed, full, unsaid, claims, overtaken } = seen;
        let all = [torn_late, torn - torn_late, failed, full, unsaid, claims, overtaken];
        if all.iter().all(|&it| it > 2) {
            return;
        }
    }
    panic!("{seen:?}");
}
