//! etcd in memory: revisions, compaction, leases, and a clock that only tests move.
//!
//! `tests/it/differential.rs` runs the same random operations here and on a real server and
//! compares the answers.

use core::fmt;
use core::ops::Bound;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keyspace::KeyRange;

use super::{Entry, Found, Kv, KvError, LeaseId, Op, Read, Revision, Txn, TxnAnswer, Wanted};

/// Most compares or operations of a transaction: the server's default.
const TXN_OPS_MAX: usize = 128;
/// The largest request, in bytes: the server's default.
const REQUEST_BYTES_MAX: usize = 1_572_864;

/// What a test does to a transaction on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interception {
    /// Nothing.
    Pass,
    /// The request never arrives, and the client waits in vain.
    LoseRequest,
    /// The transaction is carried out, and the client waits in vain.
    LoseReply,
    /// The server refuses for now.
    Refuse,
    /// The server has no room.
    NoSpace,
}

type Interceptor = Box<dyn FnMut(&Txn) -> Interception + Send>;

/// etcd in memory. Clones share the data.
#[derive(Clone, Default)]
pub struct SimKv {
    store: Arc<Mutex<Store>>,
    interceptor: Arc<Mutex<Option<Interceptor>>>,
}

#[derive(Clone, Default)]
struct Store {
    /// Revisions begin at 1 in an empty store.
    writes: Revision,
    compacted: Revision,
    history: BTreeMap<Vec<u8>, Vec<Change>>,
    leases: BTreeMap<LeaseId, Lease>,
    now_ms: u64,
}

/// What a key became at a revision.
#[derive(Clone)]
struct Change {
    revision: Revision,
    /// `None`: it was deleted.
    entry: Option<Entry>,
}

#[derive(Clone)]
struct Lease {
    ttl_secs: u64,
    ends_at_ms: u64,
    keys: BTreeSet<Vec<u8>>,
}

impl SimKv {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another store with the same contents.
    #[must_use]
    pub fn copy(&self) -> Self {
        let store = self.store().clone();
        Self { store: Arc::new(Mutex::new(store)), interceptor: Arc::default() }
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `interceptor` see every transaction before it is carried out, instead of the one before.
    /// It may use the store, as another client would.
    pub fn intercept(&self, interceptor: impl FnMut(&Txn) -> Interception + Send + 'static) {
        *self.interceptor() = Some(Box::new(interceptor));
    }

    /// Ends interception.
    pub fn pass_all(&self) {
        *self.interceptor() = None;
    }

    fn interceptor(&self) -> MutexGuard<'_, Option<Interceptor>> {
        self.interceptor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Taken out while it runs, so that what it does itself is not intercepted.
    fn ask_interceptor(&self, txn: &Txn) -> Interception {
        let Some(mut interceptor) = self.interceptor().take() else { return Interception::Pass };
        let interception = interceptor(txn);
        self.interceptor().get_or_insert(interceptor);
        interception
    }

    /// Lets time pass. Leases that nobody keeps alive end, one after the other.
    pub fn advance_ms(&self, millis: u64) {
        let mut store = self.store();
        store.now_ms += millis;
        let now_ms = store.now_ms;
        let over = |lease: &Lease| lease.ends_at_ms <= now_ms;
        let ended: Vec<LeaseId> =
            store.leases.iter().filter(|(_, lease)| over(lease)).map(|(&id, _)| id).collect();
        for id in ended {
            store.end_lease(id);
        }
    }

    /// Forgets what was before `revision`.
    pub fn compact(&self, revision: Revision) -> Result<(), KvError> {
        let mut store = self.store();
        if revision <= store.compacted {
            return Err(KvError::Compacted);
        }
        if revision > store.revision() {
            return Err(KvError::Invalid("the revision to compact is in the future".into()));
        }
        store.compacted = revision;
        store.history.retain(|_, changes| {
            // The last change up to the revision is still what a read there sees.
            let kept_from = changes.partition_point(|change| change.revision <= revision);
            changes.drain(..kept_from.saturating_sub(1));
            if changes[0].revision <= revision && changes[0].entry.is_none() {
                changes.remove(0);
            }
            !changes.is_empty()
        });
        Ok(())
    }

    /// The store's revision.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.store().revision()
    }

    /// How many keys etcd walks over to read a range: also those that are deleted, until they are
    /// compacted.
    #[must_use]
    pub fn walked(&self, range: &KeyRange) -> usize {
        self.store().keys_in(range).len()
    }

    /// Every key as it is now.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let store = self.store();
        let now = |changes: &Vec<Change>| changes.last().and_then(|change| change.entry.clone());
        store.history.values().filter_map(now).collect()
    }

    /// What a transaction comes to, at once.
    pub fn txn_now(&self, txn: &Txn) -> Result<TxnAnswer, KvError> {
        let no_answer = || KvError::Unanswered("the simulated network lost a message".into());
        match self.ask_interceptor(txn) {
            Interception::Pass => self.store().txn(txn),
            Interception::LoseRequest => Err(no_answer()),
            Interception::LoseReply => {
                // A refusal changes nothing, so that losing it loses the request.
                let _ = self.store().txn(txn);
                Err(no_answer())
            }
            Interception::NoSpace => Err(KvError::NoSpace),
            Interception::Refuse => {
                Err(KvError::Unavailable("the simulated server is busy".into()))
            }
        }
    }
}

impl Kv for SimKv {
    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, KvError> {
        self.txn_now(&txn)
    }

    async fn lease_grant(&self, id: LeaseId, ttl_secs: u64) -> Result<u64, KvError> {
        let mut store = self.store();
        let ends_at_ms = store.now_ms + ttl_secs * 1_000;
        let new = || Lease { ttl_secs, ends_at_ms, keys: BTreeSet::new() };
        let lease = store.leases.entry(id).or_insert_with(new);
        lease.ends_at_ms = lease.ends_at_ms.max(ends_at_ms);
        Ok(lease.ttl_secs)
    }

    async fn lease_keep_alive(&self, id: LeaseId) -> Result<(), KvError> {
        let mut store = self.store();
        let now_ms = store.now_ms;
        let lease = store.leases.get_mut(&id).ok_or(KvError::LeaseNotFound)?;
        lease.ends_at_ms = now_ms + lease.ttl_secs * 1_000;
        Ok(())
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        let mut store = self.store();
        if !store.leases.contains_key(&id) {
            return Err(KvError::LeaseNotFound);
        }
        store.end_lease(id);
        Ok(())
    }
}

impl Store {
    fn revision(&self) -> Revision {
        self.writes + 1
    }

    fn txn(&mut self, txn: &Txn) -> Result<TxnAnswer, KvError> {
        check_limits(txn)?;
        check_distinct(&txn.then)?;
        let holds = |compare: &super::Compare| {
            let entry = self.newest(compare.key.as_bytes());
            entry.map_or(0, |entry| entry.mod_revision) == compare.mod_revision
        };
        let succeeded = txn.compares.iter().all(holds);
        if !succeeded {
            let found = txn.otherwise.iter().map(|read| self.read(read, self.revision()));
            let found = found.collect::<Result<_, _>>()?;
            return Ok(TxnAnswer { revision: self.revision(), succeeded, found });
        }
        self.check_ops(&txn.then)?;
        let revision = self.revision() + 1;
        let (mut found, mut wrote) = (Vec::new(), false);
        for op in &txn.then {
            match op {
                Op::Put { key, value, lease } => {
                    self.put(key.as_bytes(), value, *lease, revision);
                    wrote = true;
                }
                Op::Delete(key) => wrote |= self.delete(key.as_bytes(), revision),
                Op::DeleteRange(range) => {
                    for key in self.keys_in(range) {
                        wrote |= self.delete(&key, revision);
                    }
                }
                Op::Read(read) => found.push(self.read(read, revision)?),
            }
        }
        self.writes += Revision::from(wrote);
        Ok(TxnAnswer { revision: self.revision(), succeeded, found })
    }

    /// What is refused only in the branch that is taken: leases are looked up first.
    fn check_ops(&self, ops: &[Op]) -> Result<(), KvError> {
        let has_ended = |op: &Op| match op {
            Op::Put { lease: Some(lease), .. } => !self.leases.contains_key(lease),
            _ => false,
        };
        if ops.iter().any(has_ended) {
            return Err(KvError::LeaseNotFound);
        }
        ops.iter().try_for_each(|op| match op {
            Op::Read(read) => self.check_revision(read),
            Op::Put { .. } | Op::Delete(_) | Op::DeleteRange(_) => Ok(()),
        })
    }

    fn check_revision(&self, read: &Read) -> Result<(), KvError> {
        if read.revision > self.revision() {
            return Err(KvError::Invalid("the revision to read is in the future".into()));
        }
        if read.revision != 0 && read.revision < self.compacted {
            return Err(KvError::Compacted);
        }
        Ok(())
    }

    fn newest(&self, key: &[u8]) -> Option<&Entry> {
        self.history.get(key)?.last()?.entry.as_ref()
    }

    fn read(&self, read: &Read, newest: Revision) -> Result<Found, KvError> {
        self.check_revision(read)?;
        let revision = if read.revision == 0 { newest } else { read.revision };
        let range = &read.range;
        let mut all = self
            .history
            .range::<[u8], _>((Bound::Included(range.start().as_bytes()), Bound::Unbounded))
            .take_while(|(key, _)| range.contains(key))
            .filter_map(|(_, changes)| {
                let until = changes.partition_point(|change| change.revision <= revision);
                changes[..until].last()?.entry.as_ref()
            });
        if read.wanted == Wanted::Count {
            return Ok(Found { entries: Vec::new(), count: all.count() as u64, has_more: false });
        }
        let limit = if read.limit == 0 { usize::MAX } else { read.limit };
        if read.by_value {
            let by_value = |one: &&Entry, other: &&Entry| one.value.cmp(&other.value);
            let mut lowest: Vec<_> = all.collect();
            // What is returned, and one more, to know that there is more.
            if limit < lowest.len() {
                lowest.select_nth_unstable_by(limit, by_value);
                lowest.truncate(limit + 1);
            }
            lowest.sort_by(by_value);
            return Ok(page(&mut lowest.into_iter(), limit, read.wanted));
        }
        Ok(page(&mut all, limit, read.wanted))
    }

    fn keys_in(&self, range: &KeyRange) -> Vec<Vec<u8>> {
        let from = (Bound::Included(range.start().as_bytes()), Bound::Unbounded);
        let keys = self.history.range::<[u8], _>(from).map(|(key, _)| key);
        keys.take_while(|key| range.contains(key)).cloned().collect()
    }

    fn put(&mut self, key: &[u8], value: &[u8], lease: Option<LeaseId>, revision: Revision) {
        self.detach(key);
        let before = self.newest(key);
        let entry = Entry {
            key: key.to_vec(),
            value: value.to_vec(),
            create_revision: before.map_or(revision, |before| before.create_revision),
            mod_revision: revision,
            version: before.map_or(1, |before| before.version + 1),
            lease,
        };
        if let Some(lease) = lease {
            let lease = self.leases.get_mut(&lease).expect("leases were looked up before");
            lease.keys.insert(key.to_vec());
        }
        let changes = self.history.entry(key.to_vec()).or_default();
        changes.push(Change { revision, entry: Some(entry) });
    }

    fn delete(&mut self, key: &[u8], revision: Revision) -> bool {
        if self.newest(key).is_none() {
            return false;
        }
        self.detach(key);
        let changes = self.history.get_mut(key).expect("a key that is there has a history");
        changes.push(Change { revision, entry: None });
        true
    }

    /// The key no longer ends with the lease that it had.
    fn detach(&mut self, key: &[u8]) {
        let lease = self.newest(key).and_then(|entry| entry.lease);
        if let Some(lease) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
            lease.keys.remove(key);
        }
    }

    fn end_lease(&mut self, id: LeaseId) {
        let lease = self.leases.remove(&id).expect("it is there");
        let revision = self.revision() + 1;
        let mut wrote = false;
        for key in lease.keys {
            wrote |= self.delete(&key, revision);
        }
        self.writes += Revision::from(wrote);
    }
}

/// The first entries, and whether there are more.
fn page<'e>(all: &mut impl Iterator<Item = &'e Entry>, limit: usize, wanted: Wanted) -> Found {
    let entries: Vec<_> = all.take(limit).map(|entry| show(entry, wanted)).collect();
    Found { count: entries.len() as u64, entries, has_more: all.next().is_some() }
}

fn show(entry: &Entry, wanted: Wanted) -> Entry {
    let value = if wanted == Wanted::Keys { Vec::new() } else { entry.value.clone() };
    Entry { key: entry.key.clone(), value, ..*entry }
}

fn check_limits(txn: &Txn) -> Result<(), KvError> {
    let longest = txn.compares.len().max(txn.then.len()).max(txn.otherwise.len());
    if longest > TXN_OPS_MAX {
        return Err(KvError::Invalid(format!("{longest} operations in one transaction")));
    }
    let size = |op: &Op| match op {
        Op::Put { key, value, .. } => key.as_bytes().len() + value.len(),
        Op::Delete(key) => key.as_bytes().len(),
        Op::DeleteRange(range) => range.start().as_bytes().len(),
        Op::Read(read) => read.range.start().as_bytes().len(),
    };
    let bytes: usize = txn.then.iter().map(size).sum();
    if bytes > REQUEST_BYTES_MAX {
        return Err(KvError::Invalid(format!("{bytes} bytes in one request")));
    }
    Ok(())
}

/// A transaction changes a key once.
fn check_distinct(ops: &[Op]) -> Result<(), KvError> {
    let mut put = BTreeSet::new();
    let twice = || KvError::Invalid("a key is changed twice in one transaction".into());
    for op in ops {
        if let Op::Put { key, .. } = op
            && !put.insert(key)
        {
            return Err(twice());
        }
    }
    let deletes_a_put = |op: &Op| match op {
        Op::Delete(key) => put.contains(key),
        Op::DeleteRange(range) => put.iter().any(|key| range.contains(key.as_bytes())),
        Op::Put { .. } | Op::Read(_) => false,
    };
    if ops.iter().any(deletes_a_put) { Err(twice()) } else { Ok(()) }
}

impl fmt::Debug for SimKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self.store();
        f.debug_struct("SimKv")
            .field("revision", &store.revision())
            .field("keys", &store.history.len())
            .finish_non_exhaustive()
    }
}
