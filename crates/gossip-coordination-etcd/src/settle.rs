//! What became of a transaction that was not answered.
//!
//! It compared the record's revision, so that it took place only if it wrote the version right after
//! the one that it compared. etcd keeps that version until it is compacted, whoever has written since.
//! Whoever finds its own bytes there has written them (B3).

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, infra};
use crate::keyspace::Key;
use crate::kv::{Kv, KvError, Read, Revision, Txn};
use crate::retry::{Attempts, may_pass};
use crate::shards::Stored;

use gossip_coordination::InfraError;

/// Versions that are looked at, from the newest back. Each is a request, and few are written while one
/// waits for an answer.
const LOOKS_BACK_MAX: u32 = 32;

/// Tells the writes of one operation from all others (B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteId([u8; WriteId::LEN]);

impl WriteId {
    const LEN: usize = 8;

    pub(crate) fn random(step: &'static str) -> Result<Self, InfraError> {
        let mut id = [0; Self::LEN];
        getrandom::fill(&mut id)
            .map_err(|error| InfraError::transient(step, format!("no random numbers: {error}")))?;
        Ok(Self(id))
    }

    /// Makes a record a value of this write's.
    pub(crate) fn end(self, record: &mut Vec<u8>) {
        record.extend_from_slice(&self.0);
    }

    /// The record in a value.
    pub(crate) fn taken_off(value: &[u8]) -> &[u8] {
        value.split_last_chunk::<{ Self::LEN }>().map_or(&[], |(record, _)| record)
    }
}

/// What a transaction was to write over which version of a record.
pub(crate) struct Write {
    created: Revision,
    version: i64,
    revision: Revision,
    /// Nothing, if it was to delete the record.
    bytes: Vec<u8>,
}

impl Write {
    pub(crate) fn over(compared: &Stored, bytes: Vec<u8>) -> Self {
        let &Stored { created, version, revision, .. } = compared;
        Self { created, version, revision, bytes }
    }
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    TookPlace,
    /// It did not, and never will: its compare no longer holds.
    DidNot,
    /// It may yet, or what would tell is gone.
    Unknown,
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// What became of a write, as `newest` is the record now. Of two deletions of a run both find that
    /// there is none: what is gone has no id.
    pub(crate) async fn fate_of(
        &self,
        attempts: &mut Attempts,
        steps: Steps,
        record: &Key,
        write: &Write,
        newest: &Stored,
    ) -> Result<Fate, InfraError> {
        if newest.revision == write.revision {
            return Ok(Fate::Unknown);
        }
        if newest.bytes == write.bytes {
            return Ok(Fate::TookPlace);
        }
        if !newest.exists() {
            return Ok(Fate::Unknown);
        }
        if write.version > 0 && newest.created != write.created {
            // Deleted since, and created again: a deletion was carried out, by whomever.
            let is_deletion = write.bytes.is_empty();
            return Ok(if is_deletion { Fate::TookPlace } else { Fate::Unknown });
        }
        let mut seen = newest.clone();
        for _ in 0..LOOKS_BACK_MAX {
            if seen.version <= write.version + 1 {
                let is_ours = seen.version == write.version + 1 && seen.bytes == write.bytes;
                return Ok(if is_ours { Fate::TookPlace } else { Fate::DidNot });
            }
            match self.record_at(attempts, steps, record, seen.revision - 1).await? {
                Some(before) => seen = before,
                None => break,
            }
        }
        Ok(Fate::Unknown)
    }

    /// A record as of `revision`, or nothing if that is compacted.
    async fn record_at(
        &self,
        attempts: &mut Attempts,
        steps: Steps,
        record: &Key,
        revision: Revision,
    ) -> Result<Option<Stored>, InfraError> {
        let read = Read { revision, ..Read::key(record) };
        loop {
            match attempts.within(self.kv.txn(Txn::reads([read.clone()]))).await {
                Ok(answer) => return Ok(Some(Stored::of(&answer.found[0]))),
                Err(KvError::Compacted) => return Ok(None),
                Err(error) if may_pass(&error) => attempts.next(steps.load, Some(&error)).await?,
                Err(error) => return Err(infra(steps.load, &error)),
            }
        }
    }
}
