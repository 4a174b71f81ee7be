//! What is checked around every call, whatever the case itself asks.
//!
//! - K1: a refusal or a replay changes nothing and emits nothing.
//! - K2: an execution changes only the records that it may, and emits exactly its event.
//! - K3: listing and progress say what the records say.
//! - K4: a capacity hint that claims to be exact is, and an estimate promises no more than there is.
//! - K5: records move in one direction: fences and cursors do not go back, terminal shards stay so
//!   unless unparked, ranges only shrink, and only by a residual split.

use gossip_contracts::identity::{RunId, ShardId, ShardKey};

use super::dump::{Dump, Place};
use super::harness::Harness;
use super::matrix::{Aspect, Operation, Refusal};
use super::runner::observe;
use super::world::{Acquired, World};
use crate::error::IdempotentOutcome;
use crate::events::{EventCollector, EventKind, StateTransitionEvent};
use crate::lease::Takeover;
use crate::record::{ShardRecord, ShardState};
use crate::run::{RunProgress, RunRecord, RunSummary, ShardFilter, ShardSummary};
use crate::scratch::{AcquireScratch, CapacityHint, CheckpointRenewal, RenewResult};
use crate::status::{ParkReason, ShardStatus};
use crate::traits::{ClaimCandidates, RunManagement};
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// What an operation may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Nothing,
    /// A run's record and, when it gets its shards, those.
    Run(RunId),
    /// A shard's record, and shards split from it.
    Shard(ShardKey),
    /// Some shard of a run, after parking poisoned ones.
    AnyShard(RunId),
    /// A run and its shards, which go.
    Deletes(RunId),
}

/// An answer that is no refusal.
pub(super) trait Answer {
    fn is_replay(&self) -> bool {
        false
    }

    /// The hint that came with it.
    fn capacity(&self) -> Option<CapacityHint> {
        None
    }
}

impl Answer for () {}
impl Answer for Acquired {
    fn capacity(&self) -> Option<CapacityHint> {
        Some(self.capacity)
    }
}
impl Answer for RenewResult {
    fn capacity(&self) -> Option<CapacityHint> {
        Some(self.capacity)
    }
}
impl Answer for RunRecord {}
impl Answer for RunProgress {}
impl Answer for Vec<ShardSummary> {}
impl Answer for (Vec<ShardSummary>, Option<ShardId>) {}
impl Answer for (Vec<RunSummary>, Option<RunId>) {}
impl Answer for ClaimCandidates {}
impl<T: Answer> Answer for Option<T> {
    fn capacity(&self) -> Option<CapacityHint> {
        self.as_ref().and_then(Answer::capacity)
    }
}
impl Answer for CheckpointRenewal {
    fn capacity(&self) -> Option<CapacityHint> {
        Some(self.capacity)
    }
}
impl Answer for SplitReplaceResult {}
impl Answer for SplitResidualResult {}
impl<T: Answer> Answer for IdempotentOutcome<T> {
    fn is_replay(&self) -> bool {
        IdempotentOutcome::is_replay(self)
    }

    fn capacity(&self) -> Option<CapacityHint> {
        self.as_ref().into_inner().capacity()
    }
}

impl<H: Harness> World<H> {
    /// Makes a call and checks K1 to K5 around it. `event` says what an execution must emit.
    #[track_caller]
    pub(super) fn call<T: Answer, E: Refusal>(
        &mut self,
        operation: Operation,
        scope: Scope,
        call: impl FnOnce(&mut H::Backend, &mut AcquireScratch) -> Result<T, E>,
        event: impl FnOnce(&T) -> Vec<EventKind>,
    ) -> Result<T, E> {
        let before = self.audited.then(|| self.harness.dump());
        let mut collector = EventCollector::new();
        let scratch = &mut *self.scratch;
        let result = self.harness.with_events(&mut collector, |backend| call(backend, scratch));
        let after = self.audited.then(|| self.harness.dump());

        let mut events: Vec<EventKind> = Vec::new();
        for emitted in collector.drain() {
            let StateTransitionEvent { tenant, run, at, kind } = emitted;
            assert_eq!((tenant, run, at), (self.tenant, self.run, self.now), "{kind:?}");
            events.push(kind);
        }
        if matches!(operation, Operation::Acquire | Operation::Claim | Operation::ReacquireOwn) {
            take_poisoned(operation, before.as_ref().zip(after.as_ref()), &mut events);
        }
        match &result {
            Ok(answer) if !answer.is_replay() => {
                observe((operation, Aspect::Executes));
                let expected = event(answer);
                if !expected.is_empty() {
                    observe((operation, Aspect::Emits));
                }
                assert_eq!(events, expected, "{operation:?} was carried out");
            }
            Ok(_) => {
                observe((operation, Aspect::Replays));
                assert_eq!(events, [], "{operation:?} was replayed");
            }
            Err(error) => {
                observe((operation, error.aspect()));
                // The only operation of two steps may be refused at the second.
                if error.aspect() == Aspect::RegisterShardsFailed {
                    events.retain(|event| *event != EventKind::RunCreated);
                }
                if let Some(fault) = error.fault() {
                    observe((operation, fault));
                }
                assert_eq!(events, [], "{operation:?} was refused: {error:?}");
            }
        }
        if let Some((before, after)) = before.zip(after) {
            let executed = result.as_ref().is_ok_and(|answer| !answer.is_replay());
            self.compare(operation, scope, executed, &before, &after);
            self.check_reads(&after);
            if let Some(hint) = result.as_ref().ok().and_then(Answer::capacity) {
                self.check_hint(hint, &after);
            }
            self.harness.assert_consistent();
            if self.reopening {
                self.reopen();
            }
        }
        result
    }

    #[track_caller]
    fn compare(
        &self,
        operation: Operation,
        scope: Scope,
        executed: bool,
        before: &Dump,
        after: &Dump,
    ) {
        if let Some(run) = before.run(self.tenant, self.run) {
            observe((operation, run.status.into()));
        }
        let scope = if executed { scope } else { Scope::Nothing };
        for place in before.changes(after) {
            match *place {
                Place::Run(tenant, run) | Place::Shard(tenant, run, _)
                    if scope == Scope::Deletes(run) && tenant == self.tenant =>
                {
                    let is_gone = match *place {
                        Place::Shard(_, _, shard) => {
                            after.shard(tenant, ShardKey::new(run, shard)).is_none()
                        }
                        _ => after.run(tenant, run).is_none(),
                    };
                    assert!(is_gone, "{operation:?} changed {place:?}");
                }
                Place::Run(tenant, run) => {
                    let first_step = operation == Operation::CreateRunWithShards
                        && before.run(tenant, run).is_none()
                        && run == self.run;
                    assert!(
                        tenant == self.tenant && (scope == Scope::Run(run) || first_step),
                        "{operation:?} changed run {run} of {tenant:?}"
                    );
                    assert!(after.run(tenant, run).is_some(), "{operation:?} deleted run {run}");
                }
                Place::Shard(tenant, run, shard) => {
                    let key = ShardKey::new(run, shard);
                    let record = after.shard(tenant, key).expect("shards are not deleted");
                    let old = before.shard(tenant, key);
                    let within = match scope {
                        Scope::Nothing | Scope::Deletes(_) => false,
                        Scope::Run(of) => of == run && old.is_none(),
                        Scope::AnyShard(of) => of == run,
                        Scope::Shard(of) => {
                            of == key || old.is_none() && record.parent == Some(of.shard)
                        }
                    };
                    let poisoned =
                        old.as_ref().is_some_and(|old| was_poisoned(operation, old, &record));
                    assert!(
                        tenant == self.tenant && (within || poisoned),
                        "{operation:?} changed shard {key} of {tenant:?}"
                    );
                    match old {
                        Some(old) => assert_direction(operation, &old, &record),
                        None => {
                            assert_eq!(record.state, ShardState::NEW, "{operation:?} made {key}")
                        }
                    }
                }
                // Indexes are the backend's own business as long as something was to be done.
                Place::Raw(_) => {
                    assert!(scope != Scope::Nothing, "{operation:?} changed {place:?}")
                }
            }
        }
        if executed && let Scope::Shard(key) = scope {
            let status = after.shard(self.tenant, key).expect("it was executed").state.status;
            let ends = if status.is_terminal() { Aspect::Ends } else { Aspect::Keeps };
            observe((operation, ends));
        }
        if executed && matches!(scope, Scope::AnyShard(_)) {
            observe((operation, Aspect::Keeps));
        }
    }

    /// K3.
    #[track_caller]
    fn check_reads(&mut self, records: &Dump) {
        let (tenant, run, now) = (self.tenant, self.run, self.now);
        if records.run(tenant, run).is_none() {
            return;
        }
        let expected: Vec<ShardSummary> =
            records.shards(tenant, run).map(|shard| ShardSummary::of(&shard.view())).collect();
        let mut listed = Vec::new();
        let backend = self.harness.backend();
        backend
            .list_shards_into(now, tenant, run, ShardFilter::all(), &mut listed)
            .expect("the run is there");
        assert_eq!(listed, expected, "the listing differs from the records");
        let mut progress = RunProgress::default();
        expected.iter().for_each(|shard| progress.add(shard.status));
        assert_eq!(
            backend.get_run_progress(tenant, run).expect("the run is there"),
            progress,
            "progress differs from a recount"
        );
        let record = backend.get_run(tenant, run).expect("the run is there");
        assert_eq!(Some(record), records.run(tenant, run), "the run differs from its record");
    }
}

impl<H: Harness> World<H> {
    /// K4.
    #[track_caller]
    fn check_hint(&self, hint: CapacityHint, records: &Dump) {
        let states: Vec<_> =
            records.shards(self.tenant, self.run).map(|shard| shard.state).collect();
        let takeover = Takeover { holder_is_gone: false, skew_allowance: H::caps().takeover_delay };
        let available =
            states.iter().filter(|state| state.is_available_at(self.now, takeover)).count();
        let promised = hint.available_count as usize;
        let held = states.iter().filter_map(|state| state.lease);
        let free_from = held.map(|held| H::caps().free_from(held.deadline()));
        if hint.is_estimate {
            assert!(promised <= available, "{promised} promised, {available} available");
        } else {
            assert_eq!(promised, available, "an exact hint is wrong");
            assert_eq!(hint.earliest_deadline, free_from.min(), "an exact hint is wrong");
        }
    }
}

/// Whether the shard was parked because it had been tried too often.
fn was_poisoned(operation: Operation, old: &ShardRecord, new: &ShardRecord) -> bool {
    matches!(operation, Operation::Acquire | Operation::Claim | Operation::ReacquireOwn)
        && old.state.status == ShardStatus::Active
        && new.state.park_reason == Some(ParkReason::Poisoned)
}

/// Takes the events of shards that were poisoned on the way off the front of `events`, and checks
/// that there is one for each.
#[track_caller]
fn take_poisoned(operation: Operation, dumps: Option<(&Dump, &Dump)>, events: &mut Vec<EventKind>) {
    let is_poisoning = |event: &EventKind| {
        matches!(event, EventKind::ShardParked { reason: ParkReason::Poisoned, .. })
    };
    let count = events.iter().take_while(|event| is_poisoning(event)).count();
    let mut reported: Vec<_> = events.drain(..count).collect();
    if count > 0 {
        observe((operation, Aspect::Poisons));
    }
    if let Some((before, after)) = dumps {
        let mut expected = Vec::new();
        for place in before.changes(after) {
            if let Place::Shard(tenant, run, shard) = *place {
                let key = ShardKey::new(run, shard);
                let records = before.shard(tenant, key).zip(after.shard(tenant, key));
                if records.is_some_and(|(old, new)| was_poisoned(operation, &old, &new)) {
                    expected.push(EventKind::ShardParked { shard, reason: ParkReason::Poisoned });
                }
            }
        }
        reported.sort_by_key(|event| format!("{event:?}"));
        expected.sort_by_key(|event| format!("{event:?}"));
        assert_eq!(reported, expected, "each poisoned shard is reported once");
    }
}

/// K5.
#[track_caller]
fn assert_direction(operation: Operation, old: &ShardRecord, new: &ShardRecord) {
    let key = new.key;
    let said = |what: &str| format!("{operation:?} of shard {key}: {what}");
    let status = (old.state.status, new.state.status);
    let legal = match status {
        (ShardStatus::Active, _) => true,
        (ShardStatus::Parked, ShardStatus::Active) => operation == Operation::Unpark,
        (old, new) => old == new,
    };
    assert!(legal, "{}", said(&format!("went from {:?} to {:?}", status.0, status.1)));
    assert!(new.state.fence >= old.state.fence, "{}", said("the fence went back"));
    let cursors = (old.cursor.as_update(), new.cursor.as_update());
    assert!(cursors.0.may_advance_to(&cursors.1), "{}", said("the cursor went back"));
    let residual = operation == Operation::SplitResidual;
    assert!(old.spec == new.spec || residual, "{}", said("the range changed"));
    assert!(new.spawned.starts_with(&old.spawned), "{}", said("spawned shards are forgotten"));
    assert!(
        (old.parent, old.cursor_semantics) == (new.parent, new.cursor_semantics),
        "{}",
        said("what never changes has changed")
    );
}
