//! Claims: some shard of a run that is free, or those that a worker still holds from before.
//!
//! A claim looks and grants in one transaction, so claimers never race for the same shard: they
//! take turns, and each gets the next one. Looking for work where there is none takes no write lock,
//! so idle workers do not hold up busy ones.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{self, Decision};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, ClaimCandidates, ClaimError, Granted,
    InfraError, RevokeLeaseError, RunStatus, ShardClaiming,
};
use rusqlite::Transaction;

use crate::acquire::{self, Applicant, Attempt};
use crate::coordinator::SqliteCoordinator;
use crate::error::{At, Steps, steps};
use crate::shards::{Buffers, RunRow, Shard, Stored};
use crate::slots::{SlotError, WorkerSlots};
use crate::sql::{self, id_from_sql, id_to_sql, shard_from_sql, time_to_sql};

/// Poisoned shards that one transaction parks on its way to one that can be granted.
const PARKED_MAX: usize = 64;

/// Leases of a dead worker that one transaction revokes.
const REVOKED_MAX: usize = 64;

/// Which shards a claim is about.
#[derive(Clone, Copy)]
enum Wanted {
    /// Whose worker is gone, then who has waited longest.
    Claimable,
    /// The worker's own.
    Own,
}

/// Why the shards of dead workers were not, or not all, released.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseDeadError {
    /// The run could not be looked at.
    #[error("{0}")]
    Claim(#[from] ClaimError),
    /// A lease could not be revoked.
    #[error("{0}")]
    Revoke(#[from] RevokeLeaseError),
    /// A slot could not be looked at.
    #[error("{0}")]
    Slot(#[from] SlotError),
}

impl From<InfraError> for ReleaseDeadError {
    fn from(error: InfraError) -> Self {
        Self::Revoke(error.into())
    }
}

/// What one transaction of a claim came to.
struct Round {
    parked: Vec<Stored<'static>>,
    end: End,
}

#[allow(clippy::large_enum_variant, reason = "one of them lives for one round of a claim")]
enum End {
    Granted(Granted, Stored<'static>),
    Nothing {
        earliest_deadline: Option<LogicalTime>,
    },
    /// Shards were parked, and there may be more behind them.
    More,
}

impl ShardClaiming for SqliteCoordinator {
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        let by = Applicant { now, tenant, worker };
        let granted = self.claim(steps!("claim"), by, run, Wanted::Claimable, scratch)?;
        Ok(granted.view(scratch))
    }

    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        let by = Applicant { now, tenant, worker };
        match self.claim(steps!("reacquire"), by, run, Wanted::Own, scratch) {
            Ok(granted) => Ok(Some(granted.view(scratch))),
            Err(ClaimError::NoneAvailable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl SqliteCoordinator {
    /// Releases at once what dead workers of this machine hold in the run, instead of waiting for
    /// their leases to run out, and returns how many shards that is. A worker is dead when its slot
    /// is free; so every worker of this database must hold a slot of `slots`.
    pub fn release_dead(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        slots: &WorkerSlots,
    ) -> Result<u64, ReleaseDeadError> {
        let mut released = 0;
        for owner in self.owners(tenant, run)? {
            // While this process holds the slot, no worker of that id begins.
            let Some(slot) = slots.try_take(owner)? else { continue };
            loop {
                let revoked = self.revoke_some(tenant, run, slot.id())?;
                if revoked.is_empty() {
                    break;
                }
                for stored in revoked {
                    self.report(now, Some(stored));
                    released += 1;
                }
            }
        }
        Ok(released)
    }

    /// Revokes the leases of a worker that is gone, a transaction's worth of them.
    fn revoke_some(
        &mut self,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<Vec<Stored<'static>>, ReleaseDeadError> {
        let steps = steps!("release_dead");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        sql::write(conn, steps, |tx| {
            let row = find_active(tx, steps, tenant, run)?;
            let mut owned = Vec::new();
            let number = id_to_sql(worker.as_raw());
            select(tx, steps.load, OWN, row.id, number, REVOKED_MAX, |shard| owned.push(shard))?;
            let mut revoked = Vec::with_capacity(owned.len());
            for shard in owned {
                let key = ShardKey::new(run, shard);
                let found = Shard::find(tx, steps, tenant, key, record, decoded)?;
                // The index may be damaged, and the lease that of a worker that lives.
                let is_dead = |shard: &Shard<'_>| {
                    shard.view.state.lease.is_some_and(|lease| lease.owner() == worker)
                };
                let Some(shard) = found.filter(is_dead) else {
                    let message = "the index names an owner that the record does not";
                    return Err(InfraError::corruption(steps.load, message).into());
                };
                let fence = shard.view.state.fence;
                if let Decision::Execute(update) =
                    transition::revoke_lease(Some(shard.found()), tenant, fence)?
                {
                    shard.store(tx, steps, &update, encoded)?;
                    revoked.push(Stored::new(&shard, update));
                }
            }
            Ok(revoked)
        })
    }

    /// Every worker that holds a shard of the run, dead or alive.
    fn owners(&self, tenant: TenantId, run: RunId) -> Result<Vec<WorkerId>, ClaimError> {
        let steps = steps!("release_dead");
        sql::read(&self.conn, steps, |tx| {
            let row = find_active(tx, steps, tenant, run)?;
            let sql = "SELECT DISTINCT owner FROM coord_shards \
                       WHERE run_id = ?1 AND owner IS NOT NULL";
            let mut statement = tx.prepare_cached(sql).at(steps.load)?;
            let owners = statement.query_map([row.id], |row| row.get(0)).at(steps.load)?;
            let owners = owners.map(|owner| owner.map(|raw| WorkerId::from_raw(id_from_sql(raw))));
            Ok(owners.collect::<Result<_, _>>().at(steps.load)?)
        })
    }

    fn claim(
        &mut self,
        steps: &Steps,
        by: Applicant,
        run: RunId,
        wanted: Wanted,
        scratch: &mut AcquireScratch,
    ) -> Result<Granted, ClaimError> {
        sql::read(&self.conn, steps, |tx| {
            let row = find_active(tx, steps, by.tenant, run)?;
            match wanted.next(tx, steps, &row, by)? {
                Some(_) => Ok(()),
                None => Err(ClaimError::NoneAvailable {
                    earliest_deadline: row.earliest_deadline(tx, steps.load)?,
                }),
            }
        })?;
        loop {
            let Self { conn, buffers, .. } = self;
            let Round { parked, end } = sql::write(conn, steps, |tx| {
                let row = find_active(tx, steps, by.tenant, run)?;
                let mut parked = Vec::new();
                while parked.len() < PARKED_MAX {
                    let Some(shard) = wanted.next(tx, steps, &row, by)? else {
                        let earliest_deadline = row.earliest_deadline(tx, steps.load)?;
                        return Ok(Round { parked, end: End::Nothing { earliest_deadline } });
                    };
                    let key = ShardKey::new(run, shard);
                    match acquire::attempt(tx, steps, by, key, buffers, scratch) {
                        Ok(Attempt { stored, outcome: Ok(granted) }) => {
                            return Ok(Round { parked, end: End::Granted(granted, stored) });
                        }
                        Ok(Attempt { stored, outcome: Err(_) }) => parked.push(stored),
                        Err(refusal) => return Err(contradiction(steps, refusal)),
                    }
                }
                Ok::<_, ClaimError>(Round { parked, end: End::More })
            })?;
            for stored in parked {
                self.report(by.now, Some(stored));
            }
            match end {
                End::Granted(granted, stored) => {
                    self.report(by.now, Some(stored));
                    return Ok(granted);
                }
                End::Nothing { earliest_deadline } => {
                    return Err(ClaimError::NoneAvailable { earliest_deadline });
                }
                End::More => {}
            }
        }
    }

    /// A few shards that could be acquired now.
    pub(crate) fn collect_candidates(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        out: &mut ClaimCandidates,
    ) -> Result<Option<()>, InfraError> {
        let steps = steps!("collect_claim_candidates");
        out.clear();
        sql::read(&self.conn, steps, |tx| {
            let Some(row) = RunRow::find(tx, steps.load, tenant, run)? else {
                return Ok(None);
            };
            out.status = row.gate.status;
            out.earliest_deadline = row.earliest_deadline(tx, steps.load)?;
            if out.status == RunStatus::Active {
                for source in [EXPIRED, FREE] {
                    let room = ClaimCandidates::MAX - out.shards.len();
                    select(tx, steps.load, source, row.id, time_to_sql(now), room, |shard| {
                        out.shards.push(shard);
                    })?;
                }
            }
            Ok(Some(()))
        })
    }
}

/// Each takes a run, a number and a limit, and reads the index only as far as the limit.
const EXPIRED: &str = "SELECT shard FROM coord_shards \
    WHERE run_id = ?1 AND status = 0 AND deadline <= ?2 ORDER BY deadline, place LIMIT ?3";
const FREE: &str = "SELECT shard FROM coord_shards \
    WHERE run_id = ?1 AND status = 0 AND deadline IS NULL AND ?2 IS NOT NULL \
    ORDER BY place LIMIT ?3";
const OWN: &str = "SELECT shard FROM coord_shards WHERE run_id = ?1 AND owner = ?2 LIMIT ?3";

impl Wanted {
    fn next(
        self,
        tx: &Transaction<'_>,
        steps: &Steps,
        run: &RunRow,
        by: Applicant,
    ) -> Result<Option<ShardId>, InfraError> {
        let now = time_to_sql(by.now);
        let sources: &[(&str, i64)] = match self {
            Self::Claimable => &[(EXPIRED, now), (FREE, now)],
            Self::Own => &[(OWN, id_to_sql(by.worker.as_raw()))],
        };
        let mut found = None;
        for &(source, number) in sources {
            select(tx, steps.load, source, run.id, number, 1, |shard| found = Some(shard))?;
            if found.is_some() {
                break;
            }
        }
        Ok(found)
    }
}

fn select(
    tx: &Transaction<'_>,
    step: &'static str,
    source: &str,
    run: i64,
    number: i64,
    limit: usize,
    mut take: impl FnMut(ShardId),
) -> Result<(), InfraError> {
    let mut statement = tx.prepare_cached(source).at(step)?;
    let mut rows = statement.query((run, number, limit as i64)).at(step)?;
    while let Some(row) = rows.next().at(step)? {
        take(shard_from_sql(row.get(0).at(step)?));
    }
    Ok(())
}

fn find_active(
    tx: &Transaction<'_>,
    steps: &Steps,
    tenant: TenantId,
    run: RunId,
) -> Result<RunRow, ClaimError> {
    let row = RunRow::find(tx, steps.load, tenant, run)?.ok_or(ClaimError::RunNotFound)?;
    match row.gate.status {
        RunStatus::Active => Ok(row),
        status => Err(ClaimError::RunNotActive { run, status }),
    }
}

/// Inside one transaction, what the index offers can be had. If not, index and record differ.
fn contradiction(steps: &Steps, refusal: AcquireError) -> ClaimError {
    match refusal {
        AcquireError::BackendError(error) => error.into(),
        refusal => InfraError::corruption(
            steps.load,
            format!("the index offers a shard that cannot be acquired: {refusal}"),
        )
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SqliteConfig;

    /// Claims do not scan: each source reads one index from where it starts, without sorting.
    #[test]
    fn every_source_of_candidates_is_an_index_search() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let coordinator = SqliteCoordinator::open(path, SqliteConfig::default()).unwrap();
        for (source, index) in [
            (EXPIRED, "coord_shards_claimable (run_id=? AND deadline<?)"),
            (FREE, "coord_shards_claimable (run_id=? AND deadline=?)"),
            (OWN, "coord_shards_owned (run_id=? AND owner=?)"),
        ] {
            let mut statement =
                coordinator.conn.prepare(&format!("EXPLAIN QUERY PLAN {source}")).unwrap();
            let plan: Vec<String> = statement
                .query_map((1, 1, 1), |row| row.get(3))
                .unwrap()
                .collect::<Result<_, _>>()
                .unwrap();
            assert_eq!(plan.len(), 1, "{plan:?}");
            assert!(plan[0].ends_with(index), "{plan:?}");
        }
    }
}
