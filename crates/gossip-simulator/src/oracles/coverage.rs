//! S5: the leaves of the split tree cover the manifest exactly: no gap, no overlap.

use std::collections::BTreeMap;

use gossip_contracts::identity::{RunId, TenantId};
use gossip_coordination::{ShardRecordView, ShardStatus};

use super::ledger::{Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Operation, OwnedRange};
use crate::simulated::SimulatedBackend;

const S5: &str = "S5 coverage";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
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

/// A record's place in the split tree.
pub(super) fn inspect_shard(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
    let same = record.spec == shard.range.as_ref()
        && record.parent == shard.parent
        && *record.spawned == *shard.spawned;
    demand(same, S5, || {
        let stored = (OwnedRange::from(record.spec), record.parent, record.spawned);
        let known = (&shard.range, shard.parent, &shard.spawned);
        format!("{}: {stored:?} is stored, {known:?} was answered", shard.key)
    })
}

/// Of every run, the leaves as they are stored against the roots as they were registered.
pub(super) fn inspect(ledger: &Ledger, subject: &mut impl SimulatedBackend) -> OracleResult {
    let mut leaves: BTreeMap<(TenantId, RunId), Vec<OwnedRange>> = BTreeMap::new();
    subject.for_each_shard(&mut |shard| {
        if shard.state.status != ShardStatus::Split {
            leaves.entry((shard.tenant, shard.key.run)).or_default().push(shard.spec.into());
        }
    });
    for run in ledger.runs().iter().filter(|run| !run.is_deleted) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Effect;
    use crate::oracles::testing::*;
    use gossip_contracts::identity::ShardId;

    fn replace(parts: &[(u32, u32)]) -> Operation {
        Operation::SplitReplace {
            tenant: tenant(1),
            lease: lease(1, 2, 100),
            children: parts.iter().map(|&(first, end)| range(first, end)).collect(),
            op_id: op(9),
        }
    }

    #[test]
    fn children_that_do_not_cover_their_parent_are_noticed() {
        let ledger = Ledger::example();
        let answer = Answer::Executed(Effect::Children(vec![ShardId::derived_from_raw(1); 2]));
        assert_eq!(judged(check, &ledger, &replace(&[(0, 4), (4, 10)]), &answer), Ok(()));
        for parts in [
            &[(0, 4), (5, 10)][..],
            &[(0, 5), (4, 10)],
            &[(1, 4), (4, 10)],
            &[(0, 4), (4, 9)],
            &[(0, 4), (4, 4), (4, 10)],
            &[(0, 10)],
        ] {
            assert_fires(judged(check, &ledger, &replace(parts), &answer), "S5");
        }
    }

    #[test]
    fn a_residual_that_takes_the_cursor_along_is_noticed() {
        let ledger = Ledger::example();
        let answer = Answer::Executed(Effect::Residual(ShardId::derived_from_raw(1)));
        let split = |point| Operation::SplitResidual {
            tenant: tenant(1),
            lease: lease(1, 2, 100),
            kept: range(0, point),
            residual: range(point, 10),
            op_id: op(9),
        };
        assert_eq!(judged(check, &ledger, &split(4), &answer), Ok(()));
        assert_fires(judged(check, &ledger, &split(3), &answer), "S5");
    }

    #[test]
    fn a_range_that_is_restored_otherwise_is_noticed() {
        let mut ledger = Ledger::example();
        let id = ShardId::derived_from_raw(1);
        let split = Operation::SplitResidual {
            tenant: tenant(1),
            lease: lease(1, 2, 100),
            kept: range(0, 5),
            residual: range(5, 10),
            op_id: op(9),
        };
        ledger.saw(&split, &Answer::Executed(Effect::Residual(id)));
        // As if the split had never been.
        let answer = acquired(lease(1, 3, 100), cursor(3));
        assert_fires(judged(check, &ledger, &acquire(1), &answer), "S5");
    }

    #[test]
    fn a_record_that_is_not_what_was_answered_is_noticed() {
        use crate::perform::perform;
        use gossip_coordination::AcquireScratch;
        use gossip_coordination::InMemoryCoordinator;
        let mut backend = InMemoryCoordinator::default();
        let (tenant, run) = (tenant(1), RUN);
        let mut row =
            crate::op::OwnedShardInput { shard: KEY.shard, range: range(0, 10), cursor: cursor(3) };
        row.range.metadata = b"mount"[..].into();
        let shards = vec![row];
        let config = Ledger::example().runs()[0].config;
        let mut ledger = Ledger::default();
        let history = [
            Operation::CreateRun { tenant, run, config },
            Operation::RegisterShards { tenant, run, shards, op_id: op(1) },
        ];
        for operation in &history {
            let answer = perform(&mut backend, &mut AcquireScratch::new(), at(50), operation);
            ledger.saw(operation, &answer);
        }
        let known = ledger.shard(tenant, KEY).expect("it was registered");
        let inspected = |change: fn(&mut Shard)| {
            let (mut known, mut verdict) = (known.clone(), Ok(()));
            change(&mut known);
            backend.for_each_shard(|record| verdict = inspect_shard(&known, record));
            verdict
        };
        assert_eq!(inspected(|_| {}), Ok(()));
        assert_fires(inspected(|known| known.range.metadata = b"other"[..].into()), "S5");
        assert_fires(inspected(|known| known.range.end = b"other"[..].into()), "S5");
        assert_fires(inspected(|known| known.parent = Some(ShardId::from_raw(7))), "S5");
        assert_fires(inspected(|known| known.spawned.push(ShardId::derived_from_raw(7))), "S5");
    }

    #[test]
    fn leaves_that_lost_a_range_are_noticed() {
        use crate::simulated::{BackendLimits, Memory};
        let shards = gossip_coordination::ShardLimits { per_tenant: 10, global: 10 };
        let limits = BackendLimits::of_shards(shards);
        // The records of a backend that has stored nothing cover nothing.
        assert_fires(inspect(&Ledger::example(), &mut Memory::open(&limits)), "S5");
        assert_eq!(inspect(&Ledger::default(), &mut Memory::open(&limits)), Ok(()));
    }
}
