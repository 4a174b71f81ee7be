//! S5: the leaves of the split tree cover the manifest exactly: no gap, no overlap.

use std::collections::BTreeMap;

use gossip_contracts::identity::{RunId, TenantId};

use super::ledger::Ledger;
use super::{Observation, Verdict, demand};
use crate::sim::op::{Answer, Operation, OwnedRange};
use crate::sim::subject::Subject;
use crate::status::ShardStatus;

const S5: &str = "S5 coverage";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
    let key = shard.key;
    match (seen.operation, seen.answer) {
        (Operation::SplitReplace { children, .. }, Answer::Executed(_)) => {
            demand(children.len() >= 2 && tile(&shard.range, children), S5, || {
                format!("{key}: {children:?} do not cover {:?}", shard.range)
            })
        }
        (Operation::SplitResidual { kept, residual, .. }, Answer::Executed(_)) => {
            let parts = [kept.clone(), residual.clone()];
            demand(tile(&shard.range, &parts), S5, || {
                format!("{key}: {parts:?} do not cover {:?}", shard.range)
            })?;
            let cursor = shard.cursor.last_key.as_deref();
            demand(cursor.is_none_or(|key| kept.as_ref().contains(key)), S5, || {
                format!("{key}: the cursor lies in the residual")
            })
        }
        (_, Answer::Acquired(acquired)) => {
            let restored = (&acquired.range, acquired.parent, &acquired.spawned);
            let known = (&shard.range, shard.parent, &shard.spawned);
            demand(restored == known, S5, || {
                format!("{key} has {known:?} and was restored with {restored:?}")
            })
        }
        _ => Ok(()),
    }
}

/// Whether `parts`, in order, cover `whole` with no gap and no overlap. No end is open here.
fn tile(whole: &OwnedRange, parts: &[OwnedRange]) -> bool {
    let mut at = &whole.start;
    for part in parts {
        if part.start != *at || *part.start >= *part.end {
            return false;
        }
        at = &part.end;
    }
    *at == whole.end
}

/// Of every run, the leaves as they are stored against the roots as they were registered.
pub(super) fn inspect(ledger: &Ledger, subject: &mut impl Subject) -> Verdict {
    let mut leaves: BTreeMap<(TenantId, RunId), Vec<OwnedRange>> = BTreeMap::new();
    subject.for_each_shard(&mut |shard| {
        if shard.state.status != ShardStatus::Split {
            leaves.entry((shard.tenant, shard.key.run)).or_default().push(shard.spec.into());
        }
    });
    for run in ledger.runs() {
        let mut ranges = leaves.remove(&(run.tenant, run.run)).unwrap_or_default();
        ranges.sort_unstable_by(|a, b| a.start.cmp(&b.start));
        let mut left = ranges.as_slice();
        for root in &run.manifest {
            let inside = left.iter().take_while(|leaf| *leaf.start < *root.end).count();
            let (mine, rest) = left.split_at(inside);
            demand(tile(root, mine), S5, || {
                format!("run {}: {mine:?} do not cover the root {root:?}", run.run)
            })?;
            left = rest;
        }
        demand(left.is_empty(), S5, || format!("run {}: {left:?} lie outside", run.run))?;
    }
    Ok(())
}
