//! Reading all shards of a run, page by page, in one view.
//!
//! Every page is read at the first one's revision. If that is compacted meanwhile, reading starts
//! over.

use core::num::NonZeroUsize;

use gossip_contracts::identity::{RunId, ShardId, TenantId};
use gossip_coordination::codec::DecodeScratch;
use gossip_coordination::{GetRunError, InfraError, RunStatus, RunSummary, ShardRecordView};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, infra, steps};
use crate::keyspace::{KeyRange, id_at_end};
use crate::kv::{Entry, Found, Kv, KvError, Read, Revision, Txn, Wanted};
use crate::retry::{Attempts, may_pass};
use crate::runs::decode_record;
use crate::shards::{Stored, decode_shard_at};

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Shows `see` every shard of a run in id order, with the run's status. What `out` holds is
    /// dropped when reading starts over.
    pub(crate) async fn for_each_shard<T: Send>(
        &self,
        steps: Steps,
        tenant: TenantId,
        run: RunId,
        out: &mut Vec<T>,
        mut see: impl FnMut(&mut Vec<T>, RunStatus, &ShardRecordView<'_>) + Send,
    ) -> Result<(), GetRunError> {
        let keys = self.keyspace.run(tenant, run);
        let (mut views, mut scratch) = (self.attempts(), DecodeScratch::new());
        'view: loop {
            out.clear();
            let shards = Read { limit: self.page, ..Read::range(keys.shards()) };
            let first = [Read::key(&keys.record()), shards];
            let answer = self.read(&mut self.attempts(), steps.load, Txn::reads(first)).await?;
            let stored = Stored::of(&answer.found[0]);
            if !stored.exists() {
                return Err(GetRunError::RunNotFound);
            }
            let record = decode_record(&stored.bytes, &keys, tenant, run, steps.load)?;
            if !record.shows_shards() {
                return Ok(());
            }
            let mut page = answer.found.into_iter().nth(1).expect("two reads were asked for");
            loop {
                for entry in &page.entries {
                    let (at, run) = (keys.named(&entry.key), (tenant, run));
                    let shard =
                        decode_shard_at(&entry.value, &at, &keys, run, steps.load, &mut scratch)?;
                    see(out, record.status, &shard);
                }
                let Some(last) = page.entries.last().filter(|_| page.has_more) else {
                    return Ok(());
                };
                let rest = keys.shards().after(&last.key);
                match self
                    .page_at(steps, rest, Wanted::Entries, answer.revision, &mut views)
                    .await?
                {
                    Some(next) => page = next,
                    None => continue 'view,
                }
            }
        }
    }

    /// Shows `see` at most `limit` shards behind `after` in one view, and says behind which the next
    /// page begins.
    pub(crate) async fn shards_page(
        &self,
        steps: Steps,
        tenant: TenantId,
        run: RunId,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        mut see: impl FnMut(RunStatus, &ShardRecordView<'_>) + Send,
    ) -> Result<Option<ShardId>, GetRunError> {
        let keys = self.keyspace.run(tenant, run);
        let shards = match after {
            Some(after) => keys.shards().after(keys.shard(after).as_bytes()),
            None => keys.shards(),
        };
        let page = Read { limit: limit.get().min(self.page), ..Read::range(shards) };
        let (record, found) = self.read_run(steps, tenant, run, [page]).await?;
        if !record.shows_shards() {
            return Ok(None);
        }
        let mut scratch = DecodeScratch::new();
        let mut last = None;
        for entry in &found[0].entries {
            let (at, run) = (keys.named(&entry.key), (tenant, run));
            let shard = decode_shard_at(&entry.value, &at, &keys, run, steps.load, &mut scratch)?;
            see(record.status, &shard);
            last = Some(shard.key.shard);
        }
        Ok(last.filter(|_| found[0].has_more))
    }

    /// Replaces what `out` holds by at most `limit` runs behind `after`, and says behind which the next
    /// page begins.
    pub(crate) async fn runs_page_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        let steps = steps!("list_runs");
        out.clear();
        let tenant_keys = self.keyspace.tenant(tenant);
        let list = match after {
            Some(after) => tenant_keys.run_list().after(tenant_keys.listed_run(after).as_bytes()),
            None => tenant_keys.run_list(),
        };
        let (page, mut attempts) =
            (Read::first_keys(list, limit.get().min(self.page)), self.attempts());
        let answer = self.read(&mut attempts, steps.load, Txn::reads([page])).await?;
        let listed = &answer.found[0];
        let runs = listed.entries.iter().filter_map(|entry| id_at_end(&entry.key));
        let runs: Vec<RunId> = runs.map(RunId::from_raw).collect();
        let records = runs.iter().map(|&run| Read::key(&self.keyspace.run(tenant, run).record()));
        let records = self.read(&mut attempts, steps.load, Txn::reads(records)).await?;
        for (&run, found) in runs.iter().zip(&records.found) {
            let stored = Stored::of(found);
            // It may have been deleted in between.
            if stored.exists() {
                let keys = self.keyspace.run(tenant, run);
                let record = decode_record(&stored.bytes, &keys, tenant, run, steps.load)?;
                out.push(RunSummary::of(&record));
            }
        }
        Ok(runs.last().copied().filter(|_| listed.has_more))
    }

    /// Every entry of a range in one view.
    pub(crate) async fn all_in(
        &self,
        steps: Steps,
        range: KeyRange,
        wanted: Wanted,
    ) -> Result<Vec<Entry>, InfraError> {
        let mut views = self.attempts();
        'view: loop {
            let first = Read { limit: self.page, wanted, ..Read::range(range.clone()) };
            let answer = self.read(&mut self.attempts(), steps.load, Txn::reads([first])).await?;
            let (revision, mut found) = (answer.revision, answer.found);
            let mut page = found.pop().expect("one read was asked for");
            let mut entries = Vec::new();
            loop {
                let has_more = page.has_more;
                entries.append(&mut page.entries);
                let Some(last) = entries.last().filter(|_| has_more) else { return Ok(entries) };
                let rest = range.after(&last.key);
                match self.page_at(steps, rest, wanted, revision, &mut views).await? {
                    Some(next) => page = next,
                    None => continue 'view,
                }
            }
        }
    }

    /// The next page as of `revision`, in an operation's tries and time for each; or nothing if that is
    /// compacted, which may happen as often as there are `views`.
    async fn page_at(
        &self,
        steps: Steps,
        range: KeyRange,
        wanted: Wanted,
        revision: Revision,
        views: &mut Attempts,
    ) -> Result<Option<Found>, InfraError> {
        let read = Read { limit: self.page, wanted, revision, ..Read::range(range) };
        let mut attempts = self.attempts();
        loop {
            match attempts.within(self.kv.txn(Txn::reads([read.clone()]))).await {
                Ok(mut answer) => return Ok(answer.found.pop()),
                Err(KvError::Compacted) => {
                    views.extend(&self.config);
                    views.next(steps.load, Some(&KvError::Compacted)).await?;
                    return Ok(None);
                }
                Err(error) if may_pass(&error) => attempts.next(steps.load, Some(&error)).await?,
                Err(error) => return Err(infra(steps.load, &error)),
            }
        }
    }
}
