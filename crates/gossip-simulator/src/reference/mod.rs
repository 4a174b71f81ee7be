//! An independent model of the protocol, with which every answer of a backend is compared.
//!
//! Small and naive: maps, copies and linear scans, written from the documents and not from the
//! transitions, so that a mistake in one of the two shows as a disagreement. It shares with the
//! product only the vocabulary (identities, configurations, refusals) and the derivation of shard
//! ids, which golden values pin.

mod claims;
mod plans;
mod room;
mod runs;
mod shards;
mod state;

use std::collections::BTreeMap;

use gossip_contracts::identity::{LogicalTime, RunId, TenantId, WorkerId};
use gossip_coordination::{ShardLimits, SplitCaps};

use super::op::{Answer, Effect, Operation, Refusal};
use state::Run;

pub use claims::ClaimAnswer;

/// An answer, refusals apart.
type Decided = Result<Answer, Refusal>;

/// What bounds a coordinator.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Ceilings on the number of shards.
    pub shards: ShardLimits,
    /// Wait after a claim that found nothing, in milliseconds; 0 is none.
    pub claim_cooldown: u64,
    /// Bytes for keys, cursors and metadata, if they are bounded.
    pub byte_capacity: Option<usize>,
    /// For how long after its deadline a lease keeps other workers out, in milliseconds.
    pub skew_allowance: u64,
    /// The largest split that the backend takes.
    pub split: SplitCaps,
    /// Claims get the shard whose turn it is.
    pub claims_in_turn: bool,
    /// Runs with more shards than this may have hints that are about a part of them.
    pub hints_of_all_max: usize,
}

impl Bounds {
    /// Ceilings and nothing else.
    #[must_use]
    pub const fn of_shards(shards: ShardLimits) -> Self {
        let split = SplitCaps::PROTOCOL;
        Self {
            shards,
            claim_cooldown: 0,
            byte_capacity: None,
            skew_allowance: 0,
            split,
            claims_in_turn: true,
            hints_of_all_max: usize::MAX,
        }
    }
}

/// The protocol in plain maps, to compare each answer with.
#[derive(Clone)]
pub struct Reference {
    bounds: Bounds,
    runs: BTreeMap<(TenantId, RunId), Run>,
    /// When a worker that found nothing may claim again.
    cooldowns: BTreeMap<(TenantId, WorkerId), LogicalTime>,
    /// The backend's store fails now, so that it may not know who is without work.
    pub(crate) hints_may_fail: bool,
}

/// Whether the two say the same, but that the second could not tell who is without work.
fn has_no_hint(expected: &Answer, actual: &Answer) -> bool {
    let renewed = |answer: &Answer| match *answer {
        Answer::Executed(Effect::Renewed { deadline, idle }) => Some((true, deadline, idle)),
        Answer::Replayed(Effect::Renewed { deadline, idle }) => Some((false, deadline, idle)),
        _ => None,
    };
    match (renewed(expected), renewed(actual)) {
        (Some((new, deadline, Some(_))), Some(said)) => said == (new, deadline, None),
        _ => false,
    }
}

impl Reference {
    /// A model without runs.
    #[must_use]
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, runs: BTreeMap::new(), cooldowns: BTreeMap::new(), hints_may_fail: false }
    }

    /// The store takes all processes for dead: who held something or said that it is idle keeps nobody
    /// out and counts no more, until it writes again.
    pub fn end_silent_processes(&mut self) {
        for run in self.runs.values_mut() {
            run.idle.clear();
            let holders = run.shards.values_mut().filter_map(|shard| shard.holder.as_mut());
            holders.for_each(|holder| holder.is_silent = true);
        }
    }

    /// Carries `operation` out, or refuses it.
    pub fn answer(&mut self, now: LogicalTime, operation: &Operation) -> Answer {
        self.decide(now, operation).unwrap_or_else(Answer::Refused)
    }

    /// Whether a backend was right to answer `operation` with `actual`; if not, what it should have
    /// said. The model follows what it would have said itself.
    ///
    /// Whether there is room for bytes the backend knows best: it may say that there is none where
    /// the model would have stored some, if so much is stored that this can be true. After a failure
    /// of the backend nobody knows what is stored: that is for the caller to find out.
    pub fn check(
        &mut self,
        now: LogicalTime,
        operation: &Operation,
        actual: &Answer,
    ) -> Result<(), Answer> {
        if *actual == Answer::Refused(Refusal::ResourceExhausted) {
            return self.check_no_room(now, operation);
        }
        let expected = self.answer(now, operation);
        let may_lack_hint = self.hints_may_fail || self.may_be_about_nobody(operation);
        let is_right = expected == *actual || may_lack_hint && has_no_hint(&expected, actual);
        if is_right { Ok(()) } else { Err(expected) }
    }

    /// Whether a hint may be about a part of the run in which nobody holds anything: it then looks like
    /// one that could not be read.
    fn may_be_about_nobody(&self, operation: &Operation) -> bool {
        let Some((tenant, key)) = operation.shard() else { return false };
        let run = self.runs.get(&(tenant, key.run));
        let run = run.filter(|run| run.shards.len() > self.bounds.hints_of_all_max);
        run.and_then(|run| run.shards.get(&key.shard)).is_some_and(|shard| shard.holder.is_none())
    }

    fn check_no_room(&mut self, now: LogicalTime, operation: &Operation) -> Result<(), Answer> {
        let place = match operation {
            Operation::RegisterShards { tenant, run, .. } => (*tenant, *run),
            Operation::Checkpoint { tenant, lease, .. }
            | Operation::Complete { tenant, lease, .. }
            | Operation::SplitReplace { tenant, lease, .. }
            | Operation::SplitResidual { tenant, lease, .. } => (*tenant, lease.run()),
            _ => return Err(self.answer(now, operation)),
        };
        if !self.may_lack_room(operation) {
            return Err(self.answer(now, operation));
        }
        let before = self.runs.get(&place).cloned();
        match (self.answer(now, operation), before) {
            (Answer::Executed(_), Some(before)) => {
                self.runs.insert(place, before);
                Ok(())
            }
            (expected, _) => Err(expected),
        }
    }

    fn decide(&mut self, now: LogicalTime, operation: &Operation) -> Decided {
        use Operation as Op;
        match operation {
            Op::CreateRun { tenant, run, config } => self.create_run(now, *tenant, *run, *config),
            Op::RegisterShards { tenant, run, shards, op_id } => {
                self.register_shards(now, *tenant, *run, shards, *op_id)
            }
            Op::GetRun { tenant, run } => self.get_run(*tenant, *run),
            Op::GetRunProgress { tenant, run } => self.get_run_progress(*tenant, *run),
            Op::ListShards { tenant, run, filter } => self.list_shards(now, *tenant, *run, *filter),
            Op::CompleteRun { tenant, run, result, op_id } => {
                self.complete_run(now, *tenant, *run, *result, *op_id)
            }
            Op::FailRun { tenant, run, op_id } => self.fail_run(now, *tenant, *run, *op_id),
            Op::CancelRun { tenant, run, op_id } => self.cancel_run(now, *tenant, *run, *op_id),
            Op::Unpark { tenant, key, op_id } => self.unpark(now, *tenant, *key, *op_id),
            Op::Acquire { tenant, key, worker } => self.acquire(now, *tenant, *key, *worker),
            Op::Renew { tenant, lease } => self.renew(now, *tenant, lease),
            Op::Release { tenant, lease } => self.release(now, *tenant, lease),
            Op::DeleteRun { tenant, run } => self.delete_run(*tenant, *run),
            Op::RevokeLease { tenant, key, fence } => {
                self.revoke_lease(*tenant, *key, fence.as_raw())
            }
            Op::NoteIdle { tenant, run, worker } => self.note_idle(now, *tenant, *run, *worker),
            Op::Checkpoint { tenant, lease, cursor, renews: false, op_id } => {
                self.checkpoint(now, *tenant, lease, cursor, *op_id)
            }
            Op::Checkpoint { tenant, lease, cursor, renews: true, op_id } => {
                self.checkpoint_and_renew(now, *tenant, lease, cursor, *op_id)
            }
            Op::Complete { tenant, lease, cursor, op_id } => {
                self.complete(now, *tenant, lease, cursor, *op_id)
            }
            Op::Park { tenant, lease, reason, op_id } => {
                self.park(now, *tenant, lease, *reason, *op_id)
            }
            Op::SplitReplace { tenant, lease, children, op_id } => {
                self.split_replace(now, *tenant, lease, children, *op_id)
            }
            Op::SplitResidual { tenant, lease, kept, residual, op_id } => {
                self.split_residual(now, *tenant, lease, [kept, residual], *op_id)
            }
        }
    }
}

#[cfg(test)]
mod tests;
