//! S13: a completed run has had every one of its items looked at: the promise itself.
//!
//! The simulator's workers are honest: they move a cursor only over items that they have looked at.
//! What they found counts from that moment, whether or not they still hold the shard.

use gossip_contracts::identity::{RunId, TenantId};

use super::ledger::Ledger;
use super::{Observation, OracleResult, demand};
use crate::keys;
use crate::op::{Answer, Operation};

const S13: &str = "S13 work";

#[derive(Debug, Default)]
pub(super) struct Work {
    /// For each run of the ledger, one bit for each item.
    scanned: Vec<Vec<u64>>,
}

impl Work {
    pub(super) fn note(&mut self, ledger: &Ledger, tenant: TenantId, run: RunId, item: u32) {
        let Some(place) = ledger.run_place(tenant, run) else { return };
        if self.scanned.len() <= place {
            self.scanned.resize_with(place + 1, Vec::new);
        }
        let (word, bit) = (item as usize / 64, item % 64);
        let words = &mut self.scanned[place];
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << bit;
    }

    pub(super) fn check(&mut self, ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
        match (seen.operation, seen.answer) {
            (Operation::RegisterShards { tenant, run, shards, .. }, Answer::Executed(_)) => {
                for row in shards {
                    // Progress that a run brings along was made before it.
                    let Some(last) = &row.cursor.last_key else { continue };
                    let items =
                        keys::first_item_from(&row.range.start)..=keys::first_item_from(last);
                    items.for_each(|item| self.note(ledger, *tenant, *run, item));
                }
                Ok(())
            }
            (&Operation::CompleteRun { tenant, run, .. }, Answer::Executed(_)) => {
                self.check_completed(ledger, tenant, run)
            }
            _ => Ok(()),
        }
    }

    fn check_completed(&self, ledger: &Ledger, tenant: TenantId, run: RunId) -> OracleResult {
        let Some(place) = ledger.run_place(tenant, run) else { return Ok(()) };
        let words = self.scanned.get(place).map_or(&[][..], Vec::as_slice);
        let is_scanned = |item: u32| {
            words.get(item as usize / 64).is_some_and(|word| word & (1 << (item % 64)) != 0)
        };
        for range in &ledger.run_at(place).manifest {
            let (first, end) = keys::items(range);
            let skipped = (first..end).find(|&item| !is_scanned(item));
            demand(skipped.is_none(), S13, || {
                format!("run {run} was completed, and nobody looked at item {skipped:?}")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;

    #[test]
    fn a_completed_run_with_an_item_that_nobody_saw_is_noticed() {
        let mut ledger = Ledger::example();
        ledger.saw(&complete(lease(1, 2, 100), 9, 8), &done());
        let operation =
            Operation::CompleteRun { tenant: tenant(1), run: RUN, result: None, op_id: op(9) };
        let seen = Observation { now: at(50), operation: &operation, answer: &done(), events: &[] };
        let mut work = Work::default();
        assert_fires(work.check(&ledger, seen), "S13");
        (0..10).filter(|&item| item != 7).for_each(|item| work.note(&ledger, tenant(1), RUN, item));
        assert_fires(work.check(&ledger, seen), "S13");
        work.note(&ledger, tenant(1), RUN, 7);
        assert_eq!(work.check(&ledger, seen), Ok(()));
    }
}
