//! Several processes on one database.

use std::collections::BTreeMap;
use std::path::Path;

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, ShardSpecRef, plan_split_replace_at_points,
    plan_split_residual_at_point,
};
use gossip_contracts::identity::{OpId, RunId, WorkerId};
use gossip_coordination::{
    AcquireResultView, AcquireScratch, ClaimError, CoordinationBackend, Lease, RunConfig,
    RunManagement, ShardClaiming, ShardStatus, TransactionalBackend,
};
use gossip_coordination_sqlite::{SqliteCoordinator, WorkerSlot, WorkerSlots};

use crate::children::{Running, say, wait_for_parent};
use crate::support::{
    NOW, Place, RUN, TENANT, assert_sound, begin, clock, config, key, number, pages, random_below,
    scaled, shards,
};

const PROCESSES: usize = 8;
const SHARDS: u64 = 400;
const KEYS: u64 = 20;
/// Keys per checkpoint.
const PAGE: u64 = 5;

/// The child: works on shards until none is left, and says how many it completed. What its slot
/// held before comes first.
pub(crate) fn works(database: &Path) {
    let slot = WorkerSlots::open(database.with_extension("workers")).unwrap().take().unwrap();
    let mut coordinator = SqliteCoordinator::open(database, config()).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let mut completed = 0;
    say("ready");
    wait_for_parent();
    loop {
        let now = clock();
        let own = coordinator.reacquire_own(now, TENANT, RUN, slot.id(), &mut scratch).unwrap();
        let acquired = match own {
            Some(own) => Ok(Shard::of(&own)),
            None => coordinator
                .claim_next_available(now, TENANT, RUN, slot.id(), &mut scratch)
                .map(|claimed| Shard::of(&claimed)),
        };
        match acquired {
            Ok(shard) => completed += u64::from(work(&mut coordinator, &slot, &shard)),
            // The others may still split what they hold, or die.
            Err(ClaimError::NoneAvailable { earliest_deadline: Some(_) }) => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            Err(ClaimError::NoneAvailable { earliest_deadline: None }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    say(&format!("completed {completed}"));
}

/// A shard to work on, from `at` on.
struct Shard {
    lease: Lease,
    start: u64,
    end: u64,
    at: u64,
}

impl Shard {
    fn of(acquired: &AcquireResultView<'_>) -> Self {
        let spec = acquired.snapshot.spec;
        let (start, end) = (number(spec.start()), number(spec.end()));
        let at = acquired.snapshot.cursor.last_key().map_or(start, |last| number(last) + 1);
        Self { lease: acquired.lease, start, end, at }
    }
}

/// Works through the keys that are left; false if the shard was split up instead.
fn work(coordinator: &mut SqliteCoordinator, slot: &WorkerSlot, shard: &Shard) -> bool {
    let Shard { ref lease, start, mut end, mut at } = *shard;
    // Ids are drawn at random, as callers do.
    let op = || OpId::from_raw(random_below(u64::MAX));
    if end - start == KEYS && at == start && lease.shard().as_raw().is_multiple_of(5) {
        let (start, middle, end) = (key(start), key(start + KEYS / 2), key(end));
        let plan =
            plan_split_replace_at_points(ShardSpecRef::new(&start, &end, b""), &[&middle]).unwrap();
        coordinator.split_replace(clock(), TENANT, lease, &plan, op()).unwrap();
        return false;
    }
    assert!(at < end, "a shard whose last key was handled is completed with it");
    while at < end {
        let page = at..(at + PAGE).min(end);
        let insert = |tx: &rusqlite::Transaction<'_>| {
            let mut statement = tx.prepare_cached("INSERT INTO pages_rows VALUES (?1, ?2)")?;
            for key in page.clone() {
                statement.execute((key as i64, slot.id().as_raw() as i64))?;
            }
            Ok::<_, rusqlite::Error>(())
        };
        let last = key(page.end - 1);
        let cursor = CursorUpdate::at(&last);
        let now = clock();
        let outcome = if page.end == end {
            coordinator.complete_with(now, TENANT, lease, cursor, op(), insert).unwrap()
        } else {
            coordinator.checkpoint_with(now, TENANT, lease, cursor, op(), insert).unwrap()
        };
        assert!(outcome.is_executed());
        at = page.end;
        if at == start + PAGE && end - start == KEYS && lease.shard().as_raw().is_multiple_of(3) {
            let (first, cut, behind) = (key(start), key(start + 2 * PAGE), key(end));
            let plan = plan_split_residual_at_point(ShardSpecRef::new(&first, &behind, b""), &cut)
                .unwrap();
            coordinator.split_residual(clock(), TENANT, lease, &plan, op()).unwrap();
            end = start + 2 * PAGE;
        }
    }
    true
}

#[test]
fn eight_processes_finish_one_run_and_miss_nothing() {
    let place = Place::new();
    let count = SHARDS * scaled(1);
    begin(&mut place.open(), count, KEYS, 60_000);
    let mut children: Vec<_> =
        (0..PROCESSES).map(|_| Running::start("works", &place.db())).collect();
    children.iter_mut().for_each(|child| child.expect("ready"));
    children.iter_mut().for_each(Running::go);
    let mut completed = Vec::new();
    for mut child in children {
        let line = child.next().expect("it says what it did");
        completed.push(line.strip_prefix("completed ").unwrap().parse::<u64>().unwrap());
        child.finish();
    }
    println!("completed by each process: {completed:?}");

    let mut coordinator = place.open();
    assert_sound(&coordinator);
    // A key that was handled twice would have broken the table's key.
    assert_eq!(pages(&coordinator), (1..=count * KEYS).collect::<Vec<_>>());
    let mut by_status = BTreeMap::new();
    for shard in shards(&coordinator) {
        *by_status.entry(shard.status).or_insert(0u64) += 1;
    }
    assert_eq!(by_status.get(&ShardStatus::Active), None);
    assert_eq!(by_status[&ShardStatus::Done], completed.iter().sum::<u64>());
    assert_eq!(by_status[&ShardStatus::Split], count.div_ceil(5));
    assert!(completed.iter().all(|&count| count > 0), "{completed:?}");
    let op = OpId::from_raw(1);
    assert!(coordinator.complete_run(NOW, TENANT, RUN, op).unwrap().is_executed());
}

/// As before, but a random process is killed again and again and another one started.
#[test]
fn processes_that_are_killed_and_started_again_miss_nothing_and_repeat_nothing() {
    let place = Place::new();
    let kills = scaled(12);
    let count = (100 * kills).min(10_000);
    begin(&mut place.open(), count, KEYS, 60_000);
    let start = || {
        let mut child = Running::start("works", &place.db());
        child.expect("ready");
        child.go();
        child
    };
    let mut children: Vec<_> = (0..4).map(|_| start()).collect();
    for _ in 0..kills {
        std::thread::sleep(std::time::Duration::from_micros(random_below(20_000)));
        let victim = random_below(children.len() as u64) as usize;
        children[victim].kill();
        children[victim] = start();
    }
    // Leases last a minute: whoever is left does not wait for those of the dead.
    let begun = std::time::Instant::now();
    for mut child in children {
        assert!(child.next().is_some_and(|line| line.starts_with("completed")));
        child.finish();
    }
    assert!(begun.elapsed().as_secs() < 50, "{:?}", begun.elapsed());

    let mut coordinator = place.open();
    assert_sound(&coordinator);
    assert_eq!(pages(&coordinator), (1..=count * KEYS).collect::<Vec<_>>());
    let op = OpId::from_raw(1);
    assert!(coordinator.complete_run(NOW, TENANT, RUN, op).unwrap().is_executed());
}

/// SQLite's locks belong to the process: whoever opens the file a second time and closes it must not
/// drop those of the first, or another process takes itself for the last one and removes the log.
#[test]
fn opening_a_database_again_keeps_the_locks_of_those_who_have_it_open() {
    let place = Place::new();
    let mut first = place.open();
    begin(&mut first, 1, 100, 60_000);
    for _ in 0..3 {
        drop(place.open());
        let mut child = Running::start("opens-and-waits", &place.db());
        child.expect("open");
        child.finish();
        assert!(place.beside("-wal").exists(), "another process removed the log");
    }
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let claimed = first.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
    let lease = claimed.lease;
    let second = place.open();
    assert_eq!(shards(&second)[0].lease_deadline, Some(lease.deadline()));
}

#[test]
fn processes_that_start_at_once_create_one_database_together() {
    let place = Place::new();
    let mut children: Vec<_> =
        (0..PROCESSES).map(|_| Running::start("opens-and-waits", &place.db())).collect();
    children.iter_mut().for_each(|child| child.expect("open"));
    children.into_iter().for_each(Running::finish);
    let coordinator = place.open();
    assert_eq!(pages(&coordinator), (1..=PROCESSES as u64).collect::<Vec<_>>());
    assert_sound(&coordinator);
}

#[test]
fn threads_each_with_their_own_coordinator_create_one_database_together() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let place = &place;
            scope.spawn(move || {
                let mut coordinator = place.open();
                let run = RunId::from_raw(thread);
                let config = RunConfig {
                    cursor_semantics: CursorSemantics::Completed,
                    lease_duration: 1,
                    max_shard_retries: 1,
                };
                coordinator.create_run(NOW, TENANT, run, config).unwrap();
            });
        }
    });
    let coordinator = place.open();
    assert_eq!(coordinator.verify().unwrap().runs, 8);
    assert_sound(&coordinator);
}
