//! The same random operations on etcd and on its model must get the same answers.

use std::time::{Duration, Instant};

use gossip_contracts::identity::{RunId, ShardId, TenantId};
use gossip_coordination_etcd::keyspace::{Key, KeyRange, Keyspace};
use gossip_coordination_etcd::kv::{
    Compare, EtcdKv, Kv, KvError, LeaseId, Op, Read, SimKv, Txn, TxnAnswer, Wanted,
};

use crate::server::EtcdServer;
use crate::support::{Dice, scaled};

/// Few keys, so that they collide.
const KEYS: u64 = 8;
const LEASES: u64 = 3;

struct Pair {
    etcd: EtcdKv,
    model: SimKv,
    dice: Dice,
    /// Revisions at which something may be read.
    revisions: Vec<i64>,
}

#[test]
fn the_model_answers_as_etcd_does() {
    let server = EtcdServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(compare(&server));
}

async fn compare(server: &EtcdServer) {
    let mut pair = Pair::on(server).await;
    let mut kinds = [0_u64; 5];
    for step in 0..scaled(3_000) {
        let kind = match pair.dice.below(100) {
            0..=79 => pair.txn(step).await,
            80..=84 => pair.grant(step).await,
            85..=88 => pair.revoke(step).await,
            89..=95 => pair.keep_alive(step).await,
            _ => pair.compact(step).await,
        };
        kinds[kind] += 1;
    }
    // A test that compares nothing but refusals compares nothing.
    assert!(kinds.iter().all(|&count| count > 20), "{kinds:?}");
}

/// Leases end by themselves: here by the server's clock, there by the model's. The keys that are under one
/// at its end go in one revision; those that were put again without it, or under another, stay.
#[test]
fn leases_end_in_the_model_as_in_etcd() {
    let server = EtcdServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(compare_expiry(&server));
}

async fn compare_expiry(server: &EtcdServer) {
    // The shortest that a server grants, and one that is kept alive past its time.
    const SHORT_SECS: u64 = 2;
    const KEPT_SECS: u64 = 3;
    let (short, kept) = (LeaseId(1), LeaseId(2));
    let mut pair = Pair::on(server).await;
    let keyspace = Keyspace::new("n").unwrap();
    let all = || Txn::reads([Read::range(keyspace.all())]);
    let run = keyspace.run(TenantId::from_bytes([1; 32]), RunId::from_raw(1));
    let put = |number, lease| Op::Put {
        key: run.shard(ShardId::from_raw(number)),
        value: vec![number as u8],
        lease,
    };
    let txn = |then: Vec<Op>| Txn { then, ..Txn::default() };
    let granted = Instant::now();
    for (lease, ttl) in [(kept, KEPT_SECS), (short, SHORT_SECS)] {
        assert_eq!(pair.grant_for(0, lease, ttl).await, SUCCEEDED);
    }
    let under_short = (0..4).map(|number| put(number, Some(short)));
    let others = [put(4, Some(kept)), put(5, None)];
    assert_eq!(pair.given(1, txn(under_short.chain(others).collect())).await, SUCCEEDED);
    let moved = vec![put(2, None), put(3, Some(kept)), put(6, Some(short))];
    assert_eq!(pair.given(2, txn(moved)).await, SUCCEEDED);
    assert_eq!(pair.given(3, all()).await, SUCCEEDED);
    let before = pair.model.entries().len();

    let (mut ended, mut step) = (false, 4);
    while !ended || granted.elapsed() < Duration::from_secs(KEPT_SECS) + Duration::from_millis(500)
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(pair.keep(step, kept).await, SUCCEEDED);
        let real = pair.etcd.txn(all()).await;
        if !ended && real.as_ref().unwrap().found[0].entries.len() != before {
            assert!(granted.elapsed() >= Duration::from_secs(SHORT_SECS), "it ended too soon");
            pair.model.advance_ms(SHORT_SECS * 1_000);
            ended = true;
        }
        assert_eq!(same(step, &"all", real, pair.model.txn(all()).await), SUCCEEDED);
        assert!(granted.elapsed() < Duration::from_secs(60), "the lease does not end");
        step += 1;
    }
    // Past the time of the one that is kept alive, which still stands.
    pair.model.advance_ms(2_000);
    assert_eq!(pair.keep(step, kept).await, SUCCEEDED);
    assert_eq!(pair.model.entries().len(), 4);
    // One that has ended is no more than one that never was, until it is granted again.
    assert_eq!(pair.keep(step, short).await, LEASE_NOT_FOUND);
    assert_eq!(pair.end(step, short).await, LEASE_NOT_FOUND);
    assert_eq!(pair.given(step, txn(vec![put(0, Some(short))])).await, LEASE_NOT_FOUND);
    assert_eq!(pair.grant_for(step, short, SHORT_SECS).await, SUCCEEDED);
    assert_eq!(pair.given(step, txn(vec![put(0, Some(short))])).await, SUCCEEDED);
    assert_eq!(pair.end(step, kept).await, SUCCEEDED);
    assert_eq!(pair.given(step, all()).await, SUCCEEDED);
}

/// What went well, and what was refused how.
const SUCCEEDED: usize = 0;
const COMPARE_FAILED: usize = 1;
const LEASE_NOT_FOUND: usize = 2;
const COMPACTED: usize = 3;
const INVALID: usize = 4;

/// Answers are compared whole; of errors, what they mean.
fn same<T: PartialEq + std::fmt::Debug>(
    step: u64,
    what: &impl std::fmt::Debug,
    real: Result<T, KvError>,
    model: Result<T, KvError>,
) -> usize {
    match (&real, &model) {
        (Ok(real), Ok(model)) if real == model => SUCCEEDED,
        (Err(KvError::LeaseNotFound), Err(KvError::LeaseNotFound)) => LEASE_NOT_FOUND,
        (Err(KvError::Compacted), Err(KvError::Compacted)) => COMPACTED,
        (Err(KvError::Invalid(_)), Err(KvError::Invalid(_))) => INVALID,
        _ => panic!("step {step}, {what:?}:\netcd says  {real:?}\nmodel says {model:?}"),
    }
}

impl Pair {
    async fn on(server: &EtcdServer) -> Self {
        let dice = Dice::from_environment();
        println!("seed {}", dice.seed());
        let etcd = EtcdKv::connect(&server.config()).await.unwrap();
        Self { etcd, model: SimKv::new(), dice, revisions: vec![0] }
    }

    async fn txn(&mut self, step: u64) -> usize {
        let txn = self.random_txn();
        self.given(step, txn).await
    }

    async fn given(&mut self, step: u64, txn: Txn) -> usize {
        let real = self.etcd.txn(txn.clone()).await;
        let model = self.model.txn(txn.clone()).await;
        if let Ok(TxnAnswer { revision, succeeded, .. }) = real {
            self.revisions.push(revision);
            let same = same(step, &txn, real, model);
            return if succeeded { same } else { COMPARE_FAILED };
        }
        same(step, &txn, real, model)
    }

    async fn grant(&mut self, step: u64) -> usize {
        let lease = self.lease();
        self.grant_for(step, lease, 1_000).await
    }

    async fn grant_for(&mut self, step: u64, lease: LeaseId, ttl: u64) -> usize {
        let real = self.etcd.lease_grant(lease, ttl).await;
        same(step, &("grant", lease), real, self.model.lease_grant(lease, ttl).await)
    }

    async fn revoke(&mut self, step: u64) -> usize {
        let lease = self.lease();
        self.end(step, lease).await
    }

    async fn end(&mut self, step: u64, lease: LeaseId) -> usize {
        let real = self.etcd.lease_revoke(lease).await;
        same(step, &("revoke", lease), real, self.model.lease_revoke(lease).await)
    }

    async fn keep_alive(&mut self, step: u64) -> usize {
        let lease = self.lease();
        self.keep(step, lease).await
    }

    async fn keep(&mut self, step: u64, lease: LeaseId) -> usize {
        let real = self.etcd.lease_keep_alive(lease).await;
        same(step, &("keep alive", lease), real, self.model.lease_keep_alive(lease).await)
    }

    async fn compact(&mut self, step: u64) -> usize {
        let newest = self.model.revision();
        // Mostly a little of it, so that something is left to read; now and then the future.
        let revision = match self.dice.below(8) {
            0 => newest + 1,
            _ => (newest - self.dice.below(40) as i64).max(1),
        };
        let real = self.etcd.client().compact(revision, None).await.map(drop);
        let real = real.map_err(|error| {
            let said = error.to_string();
            if said.contains("compacted") { KvError::Compacted } else { KvError::Invalid(said) }
        });
        same(step, &("compact", revision), real, self.model.compact(revision))
    }

    fn lease(&mut self) -> LeaseId {
        LeaseId(1 + self.dice.below(LEASES) as i64)
    }

    fn key(&mut self) -> Key {
        let run =
            Keyspace::new("n").unwrap().run(TenantId::from_bytes([1; 32]), RunId::from_raw(1));
        run.shard(ShardId::from_raw(self.dice.below(KEYS)))
    }

    fn random_txn(&mut self) -> Txn {
        let compares = (0..self.dice.below(3)).map(|_| self.compare()).collect();
        let then = (0..self.dice.below(5)).map(|_| self.op()).collect();
        let otherwise = (0..self.dice.below(3)).map(|_| self.read()).collect();
        Txn { compares, then, otherwise }
    }

    /// Mostly of what is there, so that it holds.
    fn compare(&mut self) -> Compare {
        let key = self.key();
        let entries = self.model.entries();
        let entry = entries.iter().find(|entry| entry.key == key.as_bytes());
        let now = entry.map_or(0, |entry| entry.mod_revision);
        let mod_revision = match self.dice.below(5) {
            0 => self.dice.below(20) as i64,
            _ => now,
        };
        Compare { key, mod_revision }
    }

    fn op(&mut self) -> Op {
        match self.dice.below(10) {
            0..=4 => {
                let lease = (self.dice.below(3) == 0).then(|| self.lease());
                // No two are equal, so that there is one order of values; nor is their order that of time.
                let mut value = self.dice.next().to_be_bytes().to_vec();
                value.truncate(4 + self.dice.below(5) as usize);
                Op::Put { key: self.key(), value, lease }
            }
            5 => Op::Delete(self.key()),
            6 => Op::DeleteRange(self.range()),
            _ => Op::Read(self.read()),
        }
    }

    fn range(&mut self) -> KeyRange {
        let (one, other) = (self.key(), self.key());
        match self.dice.below(3) {
            0 => KeyRange::one(&one),
            1 => KeyRange::one(&one.clone().min(other.clone())).until(one.max(other)),
            _ => Keyspace::new("n").unwrap().all(),
        }
    }

    fn read(&mut self) -> Read {
        let range = self.range();
        let newest = self.model.revision();
        let revision = match self.dice.below(10) {
            0 => newest + 1,
            1..=5 => 0,
            _ => {
                let recent = self.revisions.len().saturating_sub(60);
                let at = recent + self.dice.below((self.revisions.len() - recent) as u64) as usize;
                self.revisions[at]
            }
        };
        let wanted = [Wanted::Entries, Wanted::Keys, Wanted::Count][self.dice.below(3) as usize];
        let by_value = self.dice.below(4) == 0;
        Read { range, limit: self.dice.below(4) as usize, revision, wanted, by_value }
    }
}
