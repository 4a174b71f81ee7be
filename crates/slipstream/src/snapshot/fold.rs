//! The state that a log comes to: entries in memory and the cursor that they stand at.

use std::ops::ControlFlow;

use super::format::{Op, Replay, put_len};
use super::tree::{Tree, View};
use super::{EntryRef, arena};
use crate::kv::{KvEntry, VersionToken, WatchCursor};

pub(super) struct Fold {
    tree: Tree,
    pub(super) cursor: WatchCursor,
    /// What the entries take in a log.
    live_bytes: u64,
}

impl Fold {
    pub(super) fn new() -> Self {
        Self { tree: Tree::new(), cursor: WatchCursor::none(), live_bytes: 0 }
    }

    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    pub(super) fn apply(&mut self, ops: &[Op<'_>]) {
        let found = self.tree.find_all(ops.iter().map(Op::key));
        for (nth, op) in ops.iter().enumerate() {
            let old = match op {
                Op::Put(entry) => {
                    let (key, version, value) = (entry.key, entry.version, entry.value);
                    self.live_bytes += put_len(key.len(), version.len(), value.len());
                    self.tree.put(&found, nth, entry)
                }
                Op::Delete { key, .. } => self.tree.remove(&found, nth, key),
            };
            if let Some((version, value)) = old {
                self.live_bytes -= put_len(op.key().len(), version, value);
            }
        }
        self.tree.tidy(ops.len());
    }

    pub(super) fn get(&self, key: &str) -> Option<KvEntry> {
        self.tree.get(key.as_bytes()).map(|entry| entry_ref(entry).to_entry())
    }

    pub(super) fn view(&self, prefix: &str) -> View {
        self.tree.view(prefix.as_bytes())
    }
}

impl Replay for Fold {
    fn ops(&mut self, ops: &[Op<'_>]) {
        self.apply(ops);
    }

    fn forget(&mut self) {
        *self = Self::new();
    }
}

pub(super) fn entry_ref(entry: arena::Entry<'_>) -> EntryRef<'_> {
    EntryRef {
        key: std::str::from_utf8(entry.key).expect("keys are text"),
        value: entry.value,
        version: VersionToken::from_bytes(entry.version).expect("it was a version"),
    }
}

/// Calls `f` with what `view` noted.
pub(super) fn for_each(view: &View, f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>) {
    for entry in view.entries() {
        if f(entry_ref(entry)).is_break() {
            return;
        }
    }
}
