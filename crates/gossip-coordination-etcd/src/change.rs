//! The loop in which every change of a shard is decided and stored.
//!
//! B1 to B3 are the coordinator's.

use gossip_contracts::identity::{LogicalTime, ShardKey, TenantId, WorkerId};
use gossip_coordination::{CapacityHint, EventKind, InfraError, ShardState};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, infra};
use crate::free_list::Part;
use crate::keyspace::{RunKeys, place_of_shard};
use crate::kv::{Found, Kv, KvError, Op, Read, Txn};
use crate::retry::{Attempts, may_pass};
use crate::settle::{Fate, Write, WriteId};
use crate::shards::{Change, DecisionInput, ShardPlace, Snapshot, decode_time};

/// What to do about an operation on a shard.
#[allow(clippy::large_enum_variant, reason = "one of them lives for one try of an operation")]
pub(crate) enum StoreDecision<'r, R> {
    /// Store this, and then answer so.
    Store(Change<'r>, R),
    /// Answer so; there is nothing to store.
    Keep(R),
}

/// How an operation on a shard goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) steps: Steps,
    pub(crate) now: LogicalTime,
    /// It may make shards.
    pub(crate) grows: bool,
    /// Who is to get the shard.
    pub(crate) applicant: Option<WorkerId>,
    /// Its answer says what else there is to do in the run.
    pub(crate) tells_capacity: bool,
}

/// What an operation on a shard came to.
pub(crate) struct Outcome<R> {
    pub(crate) answer: R,
    pub(crate) capacity: CapacityHint,
    /// Workers that look for work in the run in vain.
    pub(crate) idle_workers: u32,
}

/// A change whose transaction was not answered.
struct Unanswered<R> {
    /// It was decided from what etcd had, and not from what was remembered: nobody had carried it out
    /// before.
    was_new: bool,
    write: Write,
    answer: R,
    event: Option<EventKind>,
}

/// An operation on a shard between its tries.
struct Changing<R> {
    manner: Manner,
    place: ShardPlace,
    id: WriteId,
    /// What the next try is decided from, if it need not be read.
    next: Option<Snapshot>,
    /// This try is decided from what etcd had after the operation began.
    is_fresh: bool,
    unanswered: Option<Unanswered<R>>,
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Decides about a shard and stores the decision, as often as it takes (B1, B2). `decide` may be
    /// asked several times, each time about what etcd has by then.
    pub(crate) async fn change_shard<'r, R: Send, E>(
        &mut self,
        attempts: &mut Attempts,
        manner: Manner,
        tenant: TenantId,
        key: ShardKey,
        mut decide: impl FnMut(DecisionInput<'_, '_>) -> Result<StoreDecision<'r, R>, E> + Send,
    ) -> Result<Outcome<R>, E>
    where
        E: From<InfraError> + Send,
    {
        let mut changing = self.begin_change(manner, tenant, key)?;
        loop {
            let snapshot = self.look(attempts, &mut changing).await?;
            if let Some((event, answer)) = self.settle(attempts, &mut changing, &snapshot).await? {
                return Ok(self
                    .finish(attempts, manner, &changing.place, event, answer, None)
                    .await);
            }
            let mut before = ShardState::NEW;
            let (place, step) = (&changing.place, manner.steps.load);
            let verdict = snapshot.decide(place, step, &mut self.decoded, |seen| {
                before = seen.found.map_or(ShardState::NEW, |found| found.shard.state);
                decide(seen)
            });
            let (change, answer) = match verdict {
                Ok(StoreDecision::Store(change, answer)) => (change, answer),
                // B2.
                _ if !changing.is_fresh => continue,
                Ok(StoreDecision::Keep(answer)) => {
                    // A replay of what this very call did is no replay.
                    let tried = changing.unanswered.take().filter(|tried| tried.was_new);
                    let (event, answer) = match tried {
                        Some(done) => (done.event, done.answer),
                        None => (None, answer),
                    };
                    self.remember(tenant, key, &before, snapshot);
                    return Ok(self
                        .finish(attempts, manner, &changing.place, event, answer, None)
                        .await);
                }
                Err(refusal) => return Err(refusal),
            };
            let stored = self.store(attempts, &mut changing, snapshot, &before, &change, answer);
            if let Some(outcome) = stored.await? {
                return Ok(outcome);
            }
        }
    }

    fn begin_change<R>(
        &mut self,
        manner: Manner,
        tenant: TenantId,
        key: ShardKey,
    ) -> Result<Changing<R>, InfraError> {
        let place = ShardPlace::new(&self.keyspace, tenant, key, manner.grows, manner.applicant);
        let is_remembered = !manner.grows && manner.applicant.is_none();
        let next = self.memory.remove(&(tenant, key)).filter(|_| is_remembered);
        let id = WriteId::random(manner.steps.txn)?;
        Ok(Changing { manner, place, id, next, is_fresh: false, unanswered: None })
    }

    /// What the next try is decided from.
    async fn look<R>(
        &self,
        attempts: &mut Attempts,
        changing: &mut Changing<R>,
    ) -> Result<Snapshot, InfraError> {
        if let Some(snapshot) = changing.next.take() {
            return Ok(snapshot);
        }
        changing.is_fresh = true;
        let (place, step) = (&changing.place, changing.manner.steps.load);
        let answer = self.read(attempts, step, place.read()).await?;
        Ok(Snapshot::parse(place, &answer.found, &[]))
    }

    /// B1: whether a try that was not answered took place, as `snapshot` is what etcd has since.
    async fn settle<R: Send>(
        &self,
        attempts: &mut Attempts,
        changing: &mut Changing<R>,
        snapshot: &Snapshot,
    ) -> Result<Option<(Option<EventKind>, R)>, InfraError> {
        let Some(tried) = changing.unanswered.take() else { return Ok(None) };
        let (place, steps) = (&changing.place, changing.manner.steps);
        let record = place.run.shard(place.key.shard);
        let fate = self.fate_of(attempts, steps, &record, &tried.write, &snapshot.record);
        match fate.await? {
            Fate::TookPlace => return Ok(Some((tried.event, tried.answer))),
            Fate::DidNot => {}
            Fate::Unknown => changing.unanswered = Some(tried),
        }
        Ok(None)
    }

    /// Tries to store a change that was decided from `snapshot`. Nothing: it is to be decided again.
    async fn store<R: Send>(
        &mut self,
        attempts: &mut Attempts,
        changing: &mut Changing<R>,
        snapshot: Snapshot,
        before: &ShardState,
        change: &Change<'_>,
        answer: R,
    ) -> Result<Option<Outcome<R>>, InfraError> {
        let (manner, place) = (changing.manner, &changing.place);
        let (steps, tenant, key) = (manner.steps, place.tenant, place.key);
        let event = self.events.is_some().then(|| change.update.event(key.shard, before));
        let lease = if change.puts_owner(before, snapshot.owner) {
            Some(self.lease_id(attempts, steps.lease).await?)
        } else {
            None
        };
        let shard = snapshot.decode(place, steps.load, &mut self.decoded)?;
        let written = (changing.id, lease);
        let (mut txn, record) = snapshot.store(place, steps.load, &shard, change, written)?;
        let part = self.free_lists.for_hint((tenant, key.run), place_of_shard(key.shard));
        if manner.tells_capacity {
            txn.then.extend(capacity_reads(&place.run, part, manner.now).map(Op::Read));
        }
        match attempts.within(self.kv.txn(txn)).await {
            Ok(stored) if stored.succeeded => {
                self.free_lists.grew((tenant, key.run), change.children.len());
                let after = snapshot.after(record, change, before, stored.revision);
                self.remember(tenant, key, &change.update.state, after);
                let found = Some((part, stored.found));
                return Ok(Some(self.finish(attempts, manner, place, event, answer, found).await));
            }
            Ok(refused) => {
                let seen = Snapshot::parse(place, &refused.found, &change.children);
                // What was remembered is merely old; other writers cost a try, and what they left is
                // old after the backoff: tried then, it would lose again to whoever came meanwhile.
                let is_old = changing.is_fresh && !seen.has_taken();
                if changing.is_fresh {
                    attempts.next(steps.txn, None).await?;
                }
                changing.next = (!is_old).then_some(seen);
                changing.is_fresh = true;
            }
            Err(KvError::LeaseNotFound) => {
                if let Some(lease) = lease {
                    self.lease_has_ended(lease).await;
                }
                attempts.next(steps.txn, Some(&KvError::LeaseNotFound)).await?;
            }
            Err(error) if may_pass(&error) => {
                if matches!(error, KvError::Unanswered(_)) {
                    let (was_new, write) =
                        (changing.is_fresh, Write::over(&snapshot.record, record));
                    changing.unanswered = Some(Unanswered { was_new, write, answer, event });
                }
                attempts.next(steps.txn, Some(&error)).await?;
            }
            Err(error) => return Err(infra(steps.txn, &error)),
        }
        Ok(None)
    }

    /// Reports what was stored, and says what else there is to do, where that belongs to the answer.
    async fn finish<R>(
        &mut self,
        attempts: &Attempts,
        manner: Manner,
        place: &ShardPlace,
        event: Option<EventKind>,
        answer: R,
        found: Option<(Part, Vec<Found>)>,
    ) -> Outcome<R> {
        if let Some(event) = event {
            self.emit(place.tenant, place.key.run, manner.now, || event);
        }
        let nothing =
            CapacityHint { available_count: 0, earliest_deadline: None, is_estimate: true };
        let run = (place.tenant, place.key.run);
        let found = match found {
            _ if !manner.tells_capacity => None,
            Some(found) => Some(found),
            // The answer that had it was lost. The operation was carried out, whatever becomes of this.
            None => {
                let part = self.free_lists.for_hint(run, place_of_shard(place.key.shard));
                let reads = Txn::reads(capacity_reads(&place.run, part, manner.now));
                let read = attempts.within(self.kv.txn(reads)).await;
                read.ok().map(|answer| (part, answer.found))
            }
        };
        let told = found.and_then(|(part, found)| self.capacity(manner.now, place, part, &found));
        let (capacity, idle_workers) = told.unwrap_or((nothing, 0));
        Outcome { answer, capacity, idle_workers }
    }

    /// What [`capacity_reads`] found: the hint, and how many workers wait.
    fn capacity(
        &self,
        now: LogicalTime,
        place: &ShardPlace,
        part: Part,
        found: &[Found],
    ) -> Option<(CapacityHint, u32)> {
        let [free, held, idle] = found else { return None };
        self.free_lists.saw((place.tenant, place.key.run), part, free.count);
        let count = |found: &Found| u32::try_from(found.count).unwrap_or(u32::MAX);
        let earliest = held.entries.first().and_then(|entry| decode_time(&entry.value));
        let earliest_deadline = earliest.map(|deadline| self.takeover(false).free_from(deadline));
        let some_expired = earliest_deadline.is_some_and(|free_from| free_from <= now);
        let hint = CapacityHint {
            available_count: count(free).saturating_add(u32::from(some_expired)),
            earliest_deadline,
            // V1.
            is_estimate: some_expired || !part.is_all(),
        };
        Some((hint, count(idle)))
    }
}

/// What a hint is made of, read in the transaction that it goes with.
fn capacity_reads(
    run: &RunKeys,
    part: Part,
    now: LogicalTime,
) -> impl Iterator<Item = Read> + use<> {
    let to = part.from + part.width;
    let free = Read::count(run.free_between(part.from, to));
    let held = Read::lowest(run.held_between(part.from, to), 1);
    [free, held, Read::count(run.idle_at(now))].into_iter()
}
