//! One export a round: a key that says who makes the fleet's next artifact, and until when.
//!
//! The lease saves work, and nothing depends on it: who publishes what is the pointer's matter (P7). So
//! a clock that is wrong, or a lease that is taken over too early, costs an export and no more. The
//! time of its end is in the value, because not every bucket has values that expire; a value that
//! cannot be read, or that says what no lease says, is a lease that is over, or nobody would get it
//! again for years.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::hex;
use crate::kv::{KvError, KvReader, KvWriter, VersionToken, WatchCursor};
use crate::stores::KvStore;

/// Longest time that a lease is taken for; one that says more is corrupt.
pub const LEASE_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// How far the clock of a holder may be ahead. A lease that begins later than that is corrupt.
pub const CLOCK_AHEAD_MAX: Duration = Duration::from_secs(60 * 60);

/// What the key of a lease holds, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    /// Who has it, or had it last.
    pub holder_id: String,
    /// Since when, in Unix seconds by the holder's clock.
    pub acquired_at_unix: u64,
    /// Until when.
    pub expires_at_unix: u64,
    /// The cursor of the artifact that was published, as hexadecimal digits; `None` until then.
    pub completed_cursor_hex: Option<String>,
    /// When that was.
    pub completed_at_unix: Option<u64>,
}

impl LeaseRecord {
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers")
    }

    /// The cursor of the artifact that was published under the lease.
    #[must_use]
    pub fn completed_cursor(&self) -> Option<WatchCursor> {
        let bytes = hex::decode(self.completed_cursor_hex.as_deref()?)?;
        WatchCursor::from_bytes(bytes).ok()
    }
}

/// The lease that the value of its key is, at a time; `None` if somebody may take it: it is over, it
/// was given back (an empty value), or it cannot be read. A lease longer than [`LEASE_MAX`], or that
/// begins later than [`CLOCK_AHEAD_MAX`] from now, is none that can be read.
#[must_use]
pub fn live_lease(value: &[u8], now_unix: u64) -> Option<LeaseRecord> {
    let record: LeaseRecord = serde_json::from_slice(value).ok()?;
    let life = record.expires_at_unix.checked_sub(record.acquired_at_unix)?;
    let ahead = record.acquired_at_unix.saturating_sub(now_unix);
    let is_sound = life <= LEASE_MAX.as_secs() && ahead <= CLOCK_AHEAD_MAX.as_secs();
    (is_sound && now_unix < record.expires_at_unix).then_some(record)
}

/// The lease of a fleet's exports, as one node sees it.
#[derive(Clone)]
pub struct ExportLease {
    reader: Arc<dyn KvReader>,
    writer: Arc<dyn KvWriter>,
    key: String,
    holder_id: String,
}

impl ExportLease {
    /// In any bucket, also another than the one that is folded. `None` if that cannot be written to.
    /// `holder_id` tells the nodes apart, for people.
    #[must_use]
    pub fn new(store: &dyn KvStore, key: &str, holder_id: &str) -> Option<Self> {
        let (key, holder_id) = (key.to_owned(), holder_id.to_owned());
        Some(Self { reader: store.reader(), writer: store.writer()?, key, holder_id })
    }

    /// Takes the lease for `ttl` (whole seconds, at least one, at most [`LEASE_MAX`]), if nobody has it.
    ///
    /// # Errors
    /// What the bucket said. After an answer that was lost the lease may be taken, and is over after
    /// its time.
    pub async fn try_acquire(&self, ttl: Duration) -> Result<Option<LeaseGuard>, KvError> {
        self.try_acquire_at(ttl, now_unix()).await
    }

    /// The same, at a time.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub async fn try_acquire_at(
        &self,
        ttl: Duration,
        now_unix: u64,
    ) -> Result<Option<LeaseGuard>, KvError> {
        let record = LeaseRecord {
            holder_id: self.holder_id.clone(),
            acquired_at_unix: now_unix,
            expires_at_unix: now_unix.saturating_add(ttl.min(LEASE_MAX).as_secs().max(1)),
            completed_cursor_hex: None,
            completed_at_unix: None,
        };
        let value = record.encode();
        let taken = match self.writer.create(&self.key, value.clone().into()).await {
            Err(KvError::AlreadyExists) => self.take_over(value, now_unix).await,
            created => created.map(Some),
        };
        let guard = |version| LeaseGuard { lease: self.clone(), record, version };
        Ok(taken?.map(guard))
    }

    /// Takes a lease that is over, if nobody else does.
    async fn take_over(
        &self,
        value: Vec<u8>,
        now_unix: u64,
    ) -> Result<Option<VersionToken>, KvError> {
        let (held, version) = match self.reader.entry(&self.key).await? {
            Some(entry) => (live_lease(&entry.value, now_unix).is_some(), entry.version),
            // Gone since: the next round is as good.
            None => return Ok(None),
        };
        if held {
            return Ok(None);
        }
        match self.writer.update(&self.key, value.into(), version).await {
            Err(KvError::RevisionMismatch) => Ok(None),
            updated => updated.map(Some),
        }
    }

    /// The lease as it is, over or not: who exported last, and how far. `None` if there is none that
    /// can be read.
    ///
    /// # Errors
    /// What the bucket said.
    pub async fn record(&self) -> Result<Option<LeaseRecord>, KvError> {
        let entry = self.reader.get(&self.key).await?;
        Ok(entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
    }
}

/// A lease that was taken. Dropped, it ends by itself when its time is over.
pub struct LeaseGuard {
    lease: ExportLease,
    record: LeaseRecord,
    version: VersionToken,
}

impl LeaseGuard {
    /// The round is done: everybody sees how far the artifact goes, and nobody makes another before
    /// the lease is over.
    ///
    /// # Errors
    /// [`KvError::RevisionMismatch`] if it was over, and somebody else has it now.
    pub async fn complete(self, cursor: &WatchCursor) -> Result<(), KvError> {
        let Self { lease, mut record, version } = self;
        record.completed_cursor_hex = Some(hex::encode(cursor.as_bytes()));
        record.completed_at_unix = Some(now_unix());
        lease.writer.update(&lease.key, record.encode().into(), version).await.map(drop)
    }

    /// The round is given up: somebody else may begin one at once.
    ///
    /// # Errors
    /// As [`complete`](Self::complete).
    pub async fn abandon(self) -> Result<(), KvError> {
        let Self { lease, version, .. } = self;
        lease.writer.delete_with_version(&lease.key, version).await.map(drop)
    }

    /// What was written to take it.
    #[must_use]
    pub fn record(&self) -> &LeaseRecord {
        &self.record
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseGuard").field("version", &self.version).finish_non_exhaustive()
    }
}

fn now_unix() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_a_lease_does_not_change() {
        let mut record = LeaseRecord {
            holder_id: "node-42".into(),
            acquired_at_unix: 1_718_000_000,
            expires_at_unix: 1_718_000_300,
            completed_cursor_hex: None,
            completed_at_unix: None,
        };
        let text = r#"{"holder_id":"node-42","acquired_at_unix":1718000000,"expires_at_unix":1718000300,"completed_cursor_hex":null,"completed_at_unix":null}"#;
        assert_eq!(record.encode(), text.as_bytes());
        assert_eq!(live_lease(text.as_bytes(), 1_718_000_299), Some(record.clone()));
        assert_eq!(live_lease(text.as_bytes(), 1_718_000_300), None, "it is over");
        assert_eq!(record.completed_cursor(), None);
        record.completed_cursor_hex = Some("0102".into());
        assert_eq!(record.completed_cursor().unwrap().as_bytes(), [1, 2]);
        for free in [&b""[..], b"{}", b"\xff", &text.as_bytes()[1..]] {
            assert_eq!(live_lease(free, 0), None);
        }
    }

    /// One bad write, or one clock that is years ahead, does not keep a fleet from its exports.
    #[test]
    fn a_lease_that_no_holder_would_write_is_over() {
        let is_live = |acquired_at_unix: u64, expires_at_unix: u64| {
            let holder_id = "node".into();
            let (completed_cursor_hex, completed_at_unix) = (None, None);
            let record = LeaseRecord {
                holder_id,
                acquired_at_unix,
                expires_at_unix,
                completed_cursor_hex,
                completed_at_unix,
            };
            live_lease(&record.encode(), NOW).is_some()
        };
        const NOW: u64 = 1_718_000_000;
        let (longest, ahead) = (LEASE_MAX.as_secs(), CLOCK_AHEAD_MAX.as_secs());
        assert!(is_live(NOW, NOW + longest) && !is_live(NOW, NOW + longest + 1));
        assert!(is_live(NOW + ahead, NOW + ahead + 60), "clocks differ");
        assert!(!is_live(NOW + ahead + 1, NOW + ahead + 61), "not so much");
        assert!(!is_live(NOW, u64::MAX) && !is_live(u64::MAX - 1, u64::MAX));
        assert!(!is_live(NOW + 60, NOW + 59), "over before it begins");
        assert!(is_live(NOW - longest + 1, NOW + 1) && !is_live(NOW - 60, NOW));
    }
}
