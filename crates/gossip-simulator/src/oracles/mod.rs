//! What must hold whatever happens, one file each. Every answer is held against the sum of those
//! before it (the ledger); every few hundred operations, and at the end, so are the records.
//!
//! - S1 [`exclusion`]: one holder at a time; only it is obeyed, and no longer than its lease.
//! - S2 [`fence`]: fences only rise, with every grant and every unpark.
//! - S3 [`terminal`]: what is done, split or ended stays so; only an unpark leaves "parked".
//! - S4 [`cursor`]: cursors are where they were left, move forward only, and stay inside.
//! - S5 [`coverage`]: the leaves of the split tree cover the manifest exactly.
//! - S6 [`idempotency`]: a repeated operation gets its first answer while it is remembered.
//! - S7 [`tenants`]: no tenant sees or changes what is another's.
//! - S8 [`runs`]: work happens in active runs; counts, listings and ends agree with the shards.
//! - S9 [`index`]: a claim gets what is free, and nothing only when nothing is.
//! - S10 [`liveness`]: once faults stop, every run ends.
//! - S11 [`agreement`]: the reference model gives the same answer.
//! - S12 [`events`]: every change is reported once, and nothing else.
//! - S13 [`work`]: a completed run has had every one of its items looked at.
//! - S14 [`session`]: a session knows what its worker was told.
//! - S15 [`failures`]: the backend fails only when its store was made to.

mod agreement;
mod coverage;
mod cursor;
mod events;
mod exclusion;
mod failures;
mod fence;
mod idempotency;
mod index;
mod ledger;
mod liveness;
mod runs;
pub(super) mod session;
mod tenants;
mod terminal;
#[cfg(test)]
mod testing;
mod work;

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId};
use gossip_coordination::{
    CapacityHint, ClaimError, RunRecord, ShardRecordView, StateTransitionEvent,
};

use super::op::{Answer, Operation, OwnedRange};
use super::random::Random;
use super::reference::Bounds;
use super::simulated::{Applicant, SimulatedBackend};
use agreement::Agreement;
use ledger::Ledger;
use work::Work;

/// An answer, with what it answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observation<'o> {
    pub(super) now: LogicalTime,
    pub(super) operation: &'o Operation,
    pub(super) answer: &'o Answer,
    pub(super) events: &'o [StateTransitionEvent],
}

pub(super) use agreement::Claim;
pub(super) use runs::{Begun, check_begun};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle saw it.
    pub oracle: &'static str,
    /// What it saw.
    pub what: String,
}

impl Violation {
    /// Which oracle saw it; of a panic what it said, numbers left out: two panics at different
    /// places are two findings.
    #[must_use]
    pub fn kind(&self) -> String {
        if self.oracle != PANIC {
            return self.oracle.to_owned();
        }
        let mut what = String::new();
        for letter in self.what.chars().take(KIND_MAX) {
            match letter {
                '0'..='9' if what.ends_with('#') => {}
                '0'..='9' => what.push('#'),
                _ => what.push(letter),
            }
        }
        format!("{PANIC}: {what}")
    }
}

/// In the place of an oracle: the backend's own assertions.
pub(super) const PANIC: &str = "panic";

/// Letters of a panic's message that tell it from others.
const KIND_MAX: usize = 60;

type OracleResult = Result<(), Violation>;

/// All oracles.
pub(super) struct Oracles {
    ledger: Ledger,
    work: Work,
    agreement: Agreement,
}

impl Oracles {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            ledger: Ledger::new(&bounds),
            work: Work::default(),
            agreement: Agreement::new(bounds),
        }
    }

    /// Holds an answer against all before it, and takes it in.
    pub(super) fn observe(&mut self, seen: Observation<'_>) -> OracleResult {
        self.check(seen)?;
        self.agreement.check(seen)?;
        self.ledger.take_in(seen);
        Ok(())
    }

    fn check(&mut self, seen: Observation<'_>) -> OracleResult {
        let ledger = &self.ledger;
        failures::check(seen)?;
        tenants::check(ledger, seen)?;
        idempotency::check(ledger, seen)?;
        terminal::check(ledger, seen)?;
        fence::check(ledger, seen)?;
        exclusion::check(ledger, seen)?;
        cursor::check(ledger, seen)?;
        coverage::check(ledger, seen)?;
        runs::check(ledger, seen)?;
        index::check(ledger, seen)?;
        events::check(ledger, seen)?;
        self.work.check(ledger, seen)
    }

    /// The backend failed because its store was made to. The next look at the records says whether
    /// anything was stored.
    pub(super) fn observe_provoked(
        &self,
        retryable: bool,
        told: &[StateTransitionEvent],
        what: impl FnOnce() -> String,
    ) -> OracleResult {
        failures::check_provoked(retryable, told, what)
    }

    /// Whether the store fails until this is said again: what was carried out may then be answered
    /// without saying what else there is to do.
    pub(super) fn note_store_fails(&mut self, fails: bool) {
        self.agreement.note_store_fails(fails);
    }

    /// Since faults stopped, the backend had no room for what was asked of this run. Bytes that are
    /// all taken do not come back with calm, so its end cannot be asked for any more.
    pub(super) fn excuse(&mut self, operation: &Operation) {
        self.ledger.note_no_room(operation);
    }

    /// The store took all processes for dead. They live; but until a holder writes again, others may
    /// take its shard before its deadline.
    pub(super) fn note_silence(&mut self) {
        self.ledger.note_silence();
        self.agreement.note_silence();
    }

    /// One of the acquires that a claim is made of.
    pub(super) fn observe_part_of_claim(&mut self, seen: Observation<'_>) -> OracleResult {
        index::check_claimed(&self.ledger, seen)?;
        self.check(seen)?;
        self.ledger.take_in(seen);
        Ok(())
    }

    /// One of the acquires of a claim that failed after it, so that the claim is not judged as a whole.
    pub(super) fn observe_part_of_failed_claim(&mut self, seen: Observation<'_>) -> OracleResult {
        index::check_claimed(&self.ledger, seen)?;
        self.observe(seen)
    }

    /// One of the acquires that the return of a worker is made of.
    pub(super) fn observe_part_of_return(&mut self, seen: Observation<'_>) -> OracleResult {
        index::check_own(&self.ledger, seen)?;
        self.observe(seen)
    }

    /// What was told besides the parts of a claim or a return that got nothing.
    pub(super) fn observe_silence(&self, told: &[StateTransitionEvent]) -> OracleResult {
        events::check_silence(told)
    }

    /// A claim, after all its parts.
    pub(super) fn observe_claim(&mut self, claim: &Claim<'_>) -> OracleResult {
        if let Err(refusal) = claim.answer {
            self.observe_refused_claim(claim.by, refusal)?;
        }
        self.agreement.check_claim(claim)
    }

    /// A worker that came back was told that it holds nothing.
    pub(super) fn observe_nothing_owned(&self, by: Applicant) -> OracleResult {
        index::check_nothing_owned(&self.ledger, by)
    }

    /// A claim, or the return of a worker, was refused.
    pub(super) fn observe_refused_claim(
        &self,
        by: Applicant,
        refusal: &ClaimError,
    ) -> OracleResult {
        index::check_empty_claim(&self.ledger, by, refusal)
    }

    /// After the grant or renewal of `key` that brought the hint was taken in.
    pub(super) fn observe_hint(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        hint: &CapacityHint,
    ) -> OracleResult {
        index::check_hint(&self.ledger, now, tenant, key, hint)?;
        self.agreement.check_hint(now, tenant, key, hint)
    }

    /// A worker has looked at an item and stored what it found.
    pub(super) fn note_scanned(&mut self, tenant: TenantId, run: RunId, item: u32) {
        self.work.note(&self.ledger, tenant, run, item);
    }

    /// Some shard of a run.
    pub(super) fn some_shard(
        &self,
        tenant: TenantId,
        run: RunId,
        random: &mut Random,
    ) -> Option<ShardId> {
        let run = self.ledger.run(tenant, run).filter(|run| !run.shards.is_empty())?;
        Some(self.ledger.shard_at(*random.pick(&run.shards)).key.shard)
    }

    /// What a shard covers.
    pub(super) fn range_of(&self, tenant: TenantId, key: ShardKey) -> Option<OwnedRange> {
        self.ledger.shard(tenant, key).map(|shard| shard.range.clone())
    }

    pub(super) fn check_liveness(&self) -> OracleResult {
        liveness::check(&self.ledger)
    }

    /// Runs that have not ended.
    pub(super) fn open_runs(&self) -> impl Iterator<Item = (TenantId, RunId)> {
        let open = self.ledger.runs().iter().filter(|run| !run.status.is_terminal());
        open.map(|run| (run.tenant, run.run))
    }

    /// Shards with work left in runs that have not ended: a measure of what remains.
    pub(super) fn work_left(&self) -> usize {
        liveness::work_left(&self.ledger)
    }

    /// Holds every record against the ledger.
    pub(super) fn inspect(&self, subject: &mut impl SimulatedBackend) -> OracleResult {
        let ledger = &self.ledger;
        let (mut verdict, mut shards) = (Ok(()), 0);
        subject.for_each_shard(&mut |shard| {
            shards += 1;
            if verdict.is_ok() {
                verdict = inspect_shard(ledger, shard);
            }
        });
        verdict?;
        let (mut verdict, mut runs) = (Ok(()), 0);
        subject.for_each_run(&mut |run| {
            runs += 1;
            if verdict.is_ok() {
                verdict = inspect_run(ledger, run);
            }
        });
        verdict?;
        tenants::inspect_counts(ledger, runs, shards)?;
        coverage::inspect(ledger, subject)?;
        index::inspect(subject)
    }
}

fn inspect_shard(ledger: &Ledger, record: &ShardRecordView<'_>) -> OracleResult {
    let shard = tenants::inspect(ledger, record)?;
    fence::inspect(shard, record)?;
    exclusion::inspect(shard, record)?;
    terminal::inspect(shard, record)?;
    cursor::inspect(shard, record)?;
    coverage::inspect_shard(shard, record)?;
    runs::inspect_semantics(ledger.run_at(shard.run), record)?;
    idempotency::inspect(shard, record)
}

fn inspect_run(ledger: &Ledger, record: &RunRecord) -> OracleResult {
    let run = tenants::inspect_run(ledger, record)?;
    runs::inspect(run, record)
}

/// Fails with what is written down, unless `holds`.
fn demand(holds: bool, oracle: &'static str, what: impl FnOnce() -> String) -> OracleResult {
    if holds { Ok(()) } else { Err(Violation { oracle, what: what() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_are_told_apart_by_what_they_say() {
        let kind = |oracle, what: &str| Violation { oracle, what: what.to_owned() }.kind();
        assert_eq!(kind(PANIC, "A1: 2 free shards"), kind(PANIC, "A1: 13 free shards"));
        assert_ne!(kind(PANIC, "A1: 2 free shards"), kind(PANIC, "A1: 2 leased shards"));
        assert_eq!(kind(PANIC, "17 shards, 5 counted"), "panic: # shards, # counted");
        assert_eq!(kind("S1 exclusion", "two"), kind("S1 exclusion", "three"));
    }
}
