//! Killing a process that checkpoints as fast as it can.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, ShardId, ShardKey, WorkerId};
use gossip_coordination::RunManagement;
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, ShardClaiming, TransactionalBackend,
};
use gossip_coordination_sqlite::{SqliteCoordinator, WorkerSlots};

use crate::children::{Running, next_line, say};
use crate::support::{
    Place, RUN, TENANT, assert_sound, begin, clock, config, key, number, pages, random_below,
    scaled, shards,
};

const LEASE: u64 = 60_000;
const KILLS: u64 = 20;

/// The child: says which key it tries and which was accepted.
pub(crate) fn checkpoints_for_ever(database: &Path) {
    let slot = WorkerSlots::open(database.with_extension("workers")).unwrap().take().unwrap();
    let mut coordinator = SqliteCoordinator::open(database, config()).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let own = coordinator.reacquire_own(clock(), TENANT, RUN, slot.id(), &mut scratch).unwrap();
    let (how, lease, from) = match own {
        Some(own) => ("own", own.lease, own.snapshot.cursor.last_key().map_or(0, number)),
        None => {
            let claimed = coordinator
                .claim_next_available(clock(), TENANT, RUN, slot.id(), &mut scratch)
                .unwrap();
            let from = claimed.snapshot.cursor.last_key().map_or(0, number);
            ("new", claimed.lease, from)
        }
    };
    say(&format!("{how} {from}"));
    for at in from + 1.. {
        say(&format!("try {at}"));
        let op = OpId::from_raw(at);
        let outcome = coordinator.checkpoint_with(
            clock(),
            TENANT,
            &lease,
            CursorUpdate::at(&key(at)),
            op,
            |tx| {
                let mut statement = tx.prepare_cached("INSERT INTO pages_rows VALUES (?1, ?2)")?;
                statement.execute((at as i64, slot.id().as_raw() as i64)).map(drop)
            },
        );
        assert!(outcome.unwrap().is_executed());
        say(&format!("ok {at}"));
    }
}

#[test]
fn a_killed_worker_leaves_its_last_accepted_cursor_or_the_one_in_flight() {
    let place = Place::new();
    begin(&mut place.open(), 1, u64::MAX / 2, LEASE);
    let kills = scaled(KILLS);
    println!("{kills} of {} kills", KILLS * 10);
    let mut cursor = 0;
    let mut expected_start = "new";
    let (mut in_flight, mut working) = (0, 0);
    for kill in 0..kills {
        let mut child = Running::start("checkpoints", &place.db());
        let mut output = child.take_output();
        let (begun, begins) = mpsc::channel();
        let reader = std::thread::spawn(move || {
            let lines = std::iter::from_fn(|| next_line(&mut output));
            // Nobody waits for the first line of a child that is killed before it.
            lines.inspect(|_| begun.send(()).unwrap_or(())).collect::<Vec<_>>()
        });
        // Some die while they open the database, most while they work.
        if kill % 4 > 0 {
            begins.recv().expect("it gets to work");
        }
        std::thread::sleep(Duration::from_micros(random_below(20_000)));
        child.kill();
        let said = reader.join().unwrap();

        let (mut tried, mut accepted) = (cursor, cursor);
        for line in &said {
            match line.split_once(' ').unwrap() {
                ("try", at) => tried = at.parse().unwrap(),
                ("ok", at) => accepted = at.parse().unwrap(),
                // It went on where the one before it was found.
                (how, from) => {
                    assert_eq!((how, from), (expected_start, cursor.to_string().as_str()));
                    working += 1;
                }
            }
        }

        let mut coordinator = place.open();
        assert_sound(&coordinator);
        let record = &shards(&coordinator)[0];
        let found = record.last_key.as_deref().map_or(0, number);
        assert!(
            found == accepted || found == tried,
            "kill {kill}: the cursor is {found}; accepted was {accepted}, tried {tried}"
        );
        in_flight += u64::from(found != accepted);
        // What was found belongs to the cursor, to the last row.
        assert_eq!(pages(&coordinator), (1..=found).collect::<Vec<_>>());
        cursor = found;
        expected_start = if record.lease_deadline.is_some() { "own" } else { "new" };

        // A worker of another name resumes once the lease is over.
        if kill % 2 == 1 {
            let later = clock().checked_add(2 * LEASE).unwrap();
            let shard = ShardKey::new(RUN, ShardId::from_raw(0));
            let mut scratch = Box::new(AcquireScratch::new());
            let taken = coordinator
                .acquire_and_restore_into(
                    later,
                    TENANT,
                    shard,
                    WorkerId::from_raw(99),
                    &mut scratch,
                )
                .unwrap();
            assert_eq!(taken.snapshot.cursor.last_key().map_or(0, number), cursor);
            let lease = taken.lease;
            coordinator.release(later, TENANT, &lease).unwrap();
            expected_start = "new";
        }
    }
    println!("{cursor} checkpoints; {working} children got to work, {in_flight} died in a commit");
    assert!(cursor > 0 && working >= kills / 2, "{working} children got to work");
}

/// What a power failure does to the log: its end never reached the disk, or not as it was.
#[test]
fn a_log_that_lost_its_end_is_an_earlier_moment() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 1, 1000, LEASE);
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let now = clock();
    let lease =
        coordinator.claim_next_available(now, TENANT, RUN, worker, &mut scratch).unwrap().lease;
    for at in 1..=60 {
        let (cursor, op) = (key(at), OpId::from_raw(at));
        let cursor = CursorUpdate::at(&cursor);
        let insert = |tx: &rusqlite::Transaction<'_>| {
            tx.execute("INSERT INTO pages_rows VALUES (?1, 1)", [at as i64]).map(drop)
        };
        coordinator.checkpoint_with(now, TENANT, &lease, cursor, op, insert).unwrap();
    }
    let (database, log) =
        (std::fs::read(place.db()).unwrap(), std::fs::read(place.beside("-wal")).unwrap());
    assert!(log.len() > 60 * 4096, "{}", log.len());
    let mut cursors = std::collections::BTreeSet::new();
    for case in 0..scaled(60) {
        let crashed = Place::new();
        let mut left = log.clone();
        let at = random_below(left.len() as u64) as usize;
        match case % 3 {
            0 => left.truncate(at),
            1 => left[at] ^= 1,
            _ => left[at..].fill(0),
        }
        std::fs::write(crashed.db(), &database).unwrap();
        std::fs::write(crashed.beside("-wal"), &left).unwrap();
        let coordinator = crashed.open();
        assert_sound(&coordinator);
        // A log of which nothing is left is a moment before the run.
        if coordinator.get_run(TENANT, RUN).is_err() {
            continue;
        }
        let cursor = match shards(&coordinator).as_slice() {
            [shard] => shard.last_key.as_deref().map_or(0, number),
            _ => 0,
        };
        assert_eq!(pages(&coordinator), (1..=cursor).collect::<Vec<_>>());
        cursors.insert(cursor);
    }
    assert!(cursors.len() > 10, "{cursors:?}");
}
