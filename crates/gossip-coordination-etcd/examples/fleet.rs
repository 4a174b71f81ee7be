//! A run of 40 shards, worked off by four workers with a process's worth of state each.
//!
//! ```sh
//! etcd &
//! cargo run -p gossip-coordination-etcd --example fleet -- http://127.0.0.1:2379
//! ```

use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId, WorkerId};
use gossip_coordination::{ClaimError, EndError, RunConfig, RunManagement, WorkerSession};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const SHARDS: u64 = 40;
const KEYS: u64 = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let endpoint = std::env::args().nth(1).unwrap_or("http://127.0.0.1:2379".to_owned());
    let config = EtcdConfig::new([endpoint]);
    let mut coordinator = EtcdCoordinator::connect(config.clone())?;

    let run = RunId::from_raw(now().as_raw());
    let bounds: Vec<[u8; 8]> = (0..=SHARDS).map(|at| (at * KEYS).to_be_bytes()).collect();
    let shards: Vec<_> = bounds
        .windows(2)
        .zip(0..)
        .map(|(pair, id)| {
            let range = ShardSpecRef::new(&pair[0], &pair[1], b"");
            InitialShardInput::new(ShardId::from_raw(id), range, CursorUpdate::initial())
        })
        .collect();
    let run_config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 30_000,
        max_shard_retries: 5,
    };
    coordinator.create_run_with_shards(
        now(),
        TENANT,
        run,
        run_config,
        &shards,
        OpId::from_raw(1),
    )?;

    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=4)
            .map(|worker| {
                let config = config.clone();
                scope.spawn(move || work(config, run, WorkerId::from_raw(worker)))
            })
            .collect();
        for (number, worker) in (1..).zip(workers) {
            let completed = worker.join().expect("a worker does not panic")?;
            println!("worker {number} completed {completed} shards");
        }
        Ok::<_, String>(())
    })?;
    coordinator.complete_run(now(), TENANT, run, OpId::from_raw(2))?;
    println!("{:?}", coordinator.get_run_progress(TENANT, run)?);
    Ok(())
}

/// Claims shards until none is left, and says how many it completed.
fn work(config: EtcdConfig, run: RunId, worker: WorkerId) -> Result<u64, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let mut coordinator = EtcdCoordinator::connect(config).map_err(|error| said(&error))?;
    let mut completed = 0;
    loop {
        let mut session = match WorkerSession::claim(&mut coordinator, now(), TENANT, run, worker) {
            Ok(session) => session,
            Err(ClaimError::NoneAvailable { .. }) => return Ok(completed),
            Err(error) => return Err(said(&error)),
        };
        let first = u64::from_be_bytes(session.spec().start().try_into().expect("eight bytes"));
        let half = (first + KEYS / 2).to_be_bytes();
        session
            .checkpoint(now(), CursorUpdate::at(&half), OpId::from_raw(1))
            .map_err(|error| said(&error))?;
        let last = (first + KEYS - 1).to_be_bytes();
        session
            .complete(now(), CursorUpdate::at(&last), OpId::from_raw(2))
            .map_err(|error| said(&EndError::into_error(error)))?;
        completed += 1;
    }
}

fn now() -> LogicalTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    LogicalTime::from_raw(
        u64::try_from(since.as_millis()).expect("it is before the year 584 million"),
    )
}
