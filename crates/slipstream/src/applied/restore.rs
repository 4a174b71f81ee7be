//! Making a fold what an artifact holds: both are read side by side, in the order of their keys, and
//! what differs goes through the caller's code and into the store, batch by batch.

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hasher};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::FoldError;
use super::ahead::Ahead;
use super::applier::Applier;
use super::apply_loop::ApplyLoop;
use crate::artifact::Staged;
use crate::kv::{Key, KvEntry, KvUpdate, LogCursor, VersionToken, WatchCursor};
use crate::protocol::{Authority, Restored, Restoring};
use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotStore};
use crate::transport::ArtifactTransport;

/// Bytes of keys and values after which a batch takes no more.
const BATCH_BYTES: usize = 1 << 20;

/// Where a fold is restored from if its bucket evicts current values, so that a listing would not bring
/// everything.
#[derive(Clone)]
pub struct Restore {
    /// Where the artifacts of the fleet are.
    pub transport: Arc<dyn ArtifactTransport>,
    /// What is folded, as [`ExportRound::key`](crate::transport::ExportRound::key) has it.
    pub key: String,
    /// A directory that exists, with room for an artifact while the fold is restored. The parent of the
    /// fold will do.
    pub dir: PathBuf,
}

/// An artifact that was downloaded and checked, for a fold that is in repair.
pub(super) struct RestoreFrom {
    pub(super) staged: Staged,
    pub(super) rule: Restoring,
    /// Where the artifact stands, and so will the fold.
    pub(super) cursor: LogCursor,
    pub(super) finished: oneshot::Sender<RestoreEnd>,
}

#[derive(Debug)]
pub(super) enum RestoreEnd {
    /// The fold is what the artifact is, and newer where it was newer.
    Complete,
    /// The fold is to end. It is still in repair.
    ShutDown,
    /// The artifact cannot be read. The fold is still in repair.
    Failed(SnapshotError),
}

/// What differs, until it is stored.
#[derive(Default)]
struct Diff {
    updates: Vec<KvUpdate>,
    bytes: usize,
    deleted: u64,
}

impl Diff {
    fn push(&mut self, update: KvUpdate) {
        self.bytes += match &update {
            KvUpdate::Put(entry) => entry.key.len() + entry.value.len(),
            KvUpdate::Delete { key, .. } | KvUpdate::Purge { key, .. } => key.len(),
        };
        self.deleted += u64::from(matches!(update, KvUpdate::Delete { .. }));
        self.updates.push(update);
    }
}

/// Whether something went wrong with the fold, or with what it is restored from.
enum Wrong {
    Fold(FoldError),
    Artifact(SnapshotError),
}

impl<S: SnapshotStore, A: Applier> ApplyLoop<S, A> {
    pub(super) fn restore(&mut self, from: RestoreFrom) -> Result<(), FoldError> {
        let RestoreFrom { staged, rule, cursor, finished } = from;
        let end = match self.take_over(&staged, &rule, &cursor) {
            Ok(end) => end,
            Err(Wrong::Artifact(error)) => RestoreEnd::Failed(error),
            Err(Wrong::Fold(error)) => return Err(error),
        };
        // The room that it takes is given back before anybody goes on.
        drop(staged);
        let _ = finished.send(end);
        Ok(())
    }

    fn take_over(
        &mut self,
        staged: &Staged,
        rule: &Restoring,
        cursor: &LogCursor,
    ) -> Result<RestoreEnd, Wrong> {
        let in_repair = self.store.cursor();
        let mut there = entries_of::<S>(staged.data()).map_err(Wrong::Artifact)?;
        let mut here = self.entries_after(None).map_err(Wrong::Fold)?;
        let (mut diff, mut last) = (Diff::default(), None);
        loop {
            if self.shared.is_shut_down() {
                return Ok(RestoreEnd::ShutDown);
            }
            let Some(key) = step(&mut here, &mut there, rule, &mut diff)? else { break };
            if last.as_ref().is_some_and(|last| *last >= key) {
                let what = "its entries are not in the order of their keys".to_owned();
                return Err(Wrong::Artifact(SnapshotError::Corrupted(what)));
            }
            last = Some(key);
            if diff.updates.len() < self.batch_max && diff.bytes < BATCH_BYTES {
                continue;
            }
            self.apply(&diff.updates);
            if self.store.apply(&diff.updates, &in_repair).is_err() {
                // An engine cannot be opened again while it is read.
                drop(here);
                self.store_until_taken(&diff.updates, &in_repair).map_err(Wrong::Fold)?;
                here = self.entries_after(last.clone()).map_err(Wrong::Fold)?;
            }
            (diff.updates, diff.bytes) = (Vec::new(), 0);
            self.store.wait_for_tables();
        }
        drop(here);
        self.apply(&diff.updates);
        // Before its cursor is: it counts for nothing until then.
        if let Err(error) = self.store.set_imported(staged.manifest()) {
            tracing::warn!(%error, "the manifest of the artifact was not kept");
        }
        let encoded = cursor.encode();
        self.store_until_taken(&diff.updates, &encoded).map_err(Wrong::Fold)?;
        self.restored(cursor, &encoded, diff.deleted);
        Ok(RestoreEnd::Complete)
    }

    fn restored(&mut self, cursor: &LogCursor, encoded: &WatchCursor, deleted: u64) {
        let revision = cursor.position.revision;
        self.resync = None;
        self.authority = Authority::new(revision);
        self.applier.on_applied(encoded, revision);
        self.status.send_modify(|status| {
            status.applied(revision);
            status.may_be_incomplete = cursor.incomplete;
            status.restored(deleted);
        });
    }

    /// What the fold has, from behind a key.
    fn entries_after(&self, after: Option<Key>) -> Result<Ahead<Ours>, FoldError> {
        let (reader, prefixes) = (self.store.reader(), self.prefixes.clone());
        let entries = Ahead::new(move |push| {
            prefixes.iter().try_for_each(|prefix| {
                reader.for_each_in_range(prefix, &mut |entry| {
                    if after.as_ref().is_some_and(|after| entry.key <= after.as_str()) {
                        return ControlFlow::Continue(());
                    }
                    let version = entry.version.as_u64().unwrap_or(0);
                    let (key, hash) = (Key::from(entry.key), hash(entry.value));
                    push(Ours { key, version, hash }, entry.key.len())
                })
            })
        });
        entries.map_err(FoldError::Read)
    }
}

/// An entry of the fold, without its value.
struct Ours {
    key: Key,
    /// 0 if it is not known.
    version: u64,
    /// Of the value: versions of two logs may be the same number.
    hash: u64,
}

fn hash(value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(value);
    hasher.finish()
}

/// The entries of an artifact.
fn entries_of<S: SnapshotStore>(data: PathBuf) -> Result<Ahead<KvEntry>, SnapshotError> {
    let files = S::FILES.expect("it was downloaded into such files");
    Ahead::new(move |push| {
        (files.entries)(&data, &mut |entry| {
            push(entry.to_entry(), entry.key.len() + entry.value.len())
        })
    })
}

/// Decides about the next key of either; `None` if there is none.
fn step(
    here: &mut Ahead<Ours>,
    there: &mut Ahead<KvEntry>,
    rule: &Restoring,
    diff: &mut Diff,
) -> Result<Option<Key>, Wrong> {
    let ours = here.peek().map_err(|error| Wrong::Fold(FoldError::Read(error)))?;
    let theirs = there.peek().map_err(Wrong::Artifact)?;
    let order = match (ours, theirs) {
        (None, None) => return Ok(None),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(ours), Some(entry)) => ours.key.cmp(&entry.key),
    };
    let ours = if order.is_le() { here.take() } else { None };
    let theirs = if order.is_ge() { there.take() } else { None };
    let version = |entry: &KvEntry| entry.version.as_u64().unwrap_or(0);
    let is_equal = match (&ours, &theirs) {
        (Some(ours), Some(entry)) => {
            ours.version == version(entry) && ours.hash == hash(&entry.value)
        }
        _ => false,
    };
    let versions = (ours.as_ref().map(|ours| ours.version), theirs.as_ref().map(version));
    let decided = rule.decide(versions.0, versions.1, is_equal);
    let key = match (&ours, &theirs) {
        (Some(ours), _) => ours.key.clone(),
        (None, Some(entry)) => Key::from(entry.key.as_str()),
        (None, None) => unreachable!("one of them was there"),
    };
    match (decided, theirs) {
        (Restored::Put, Some(entry)) => diff.push(KvUpdate::Put(entry)),
        (Restored::Delete, _) => {
            let version = VersionToken::unknown();
            diff.push(KvUpdate::Delete { key: key.clone(), version });
        }
        (Restored::Keep, _) | (Restored::Put, None) => {}
    }
    Ok(Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::applied::status;
    use crate::kv::WatchScope;
    use crate::snapshot::AppendLogSnapshot;

    /// After a write that failed, the fold is read again from where it was.
    #[test]
    fn entries_are_read_from_behind_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let (_, mut store) = AppendLogSnapshot::load(&dir.path().join("fold")).unwrap();
        let put = |key: &'static str| {
            let version = VersionToken::from_u64(7);
            KvUpdate::Put(KvEntry { key: key.into(), value: key.into(), version })
        };
        let batch = ["a", "b", "b.c", "d"].map(put);
        let cursor = LogCursor::in_repair(&WatchScope::All, true, 1, 9).encode();
        store.apply(&batch, &cursor).unwrap();
        let (_, control) = status::pair();
        let fold = ApplyLoop::new(store, (), &control, 10, None, WatchScope::All);
        for (after, left) in [(None, &["a", "b", "b.c", "d"][..]), (Some("b"), &["b.c", "d"])] {
            let mut entries = fold.entries_after(after.map(Key::from)).unwrap();
            for &key in left {
                let Ours { key: found, version, hash: of } = entries.peek().unwrap().unwrap();
                assert_eq!((found.as_str(), *version, *of), (key, 7, hash(key.as_bytes())));
                entries.take();
            }
            assert!(entries.peek().unwrap().is_none());
        }
    }
}
