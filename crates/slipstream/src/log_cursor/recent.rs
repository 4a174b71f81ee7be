//! What a watch remembers of the messages that it hands out: the witnesses of its next cursor (C2).
//!
//! Every message passes here, and few of them are ever in a cursor. So a message leaves its numbers and
//! a copy of its key in one buffer (the key's own would keep that in which the message arrived), and
//! becomes a witness when a cursor is made.

use std::collections::HashSet;
use std::ops::Range;

use bytes::Bytes;

use super::{LogCursor, WitnessMessage};
use crate::kv::Key;
use crate::protocol::{MAX_WITNESSES, Position};

/// How many messages a watch remembers, each of another key: a cursor has room for the newest
/// [`MAX_WITNESSES`] of them, and an artifact for all. In a bucket where some keys are written all the
/// time, those further back are what is still in its place when somebody comes with the artifact.
pub(crate) const MAX_REMEMBERED: usize = 1024;
/// Messages of keys that were written again are dropped when there are so many besides.
const SUPERSEDED_MIN: usize = 64;

/// A message as a watch hands it out.
pub(crate) struct HandedOut<'a> {
    pub(crate) revision: u64,
    /// See [`WitnessMessage::digest`].
    pub(crate) stamp: u64,
    pub(crate) key: &'a Key,
}

/// The newest messages that a watch handed out, of at least the last [`MAX_REMEMBERED`] keys (C2).
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentlySeen {
    /// Those of the cursor that the watch began with, newest first.
    proven: Vec<WitnessMessage>,
    /// Those of the watch itself, newest last. A key may come several times: what was superseded is
    /// dropped from time to time, at a cost that does not grow with what is remembered.
    messages: Vec<Seen>,
    /// The keys of `messages`, one after the other.
    keys: Vec<u8>,
    /// How many messages there may be before that.
    room: usize,
}

#[derive(Clone, Debug)]
struct Seen {
    revision: u64,
    stamp: u64,
    /// Where its key is.
    key: Range<usize>,
}

impl RecentlySeen {
    /// Those of a cursor that hold at `proven`, where a watch goes on.
    pub(crate) fn of(cursor: &LogCursor, proven: u64) -> Self {
        let held = cursor.witnesses.iter().filter(|witness| witness.revision <= proven);
        Self { proven: held.cloned().collect(), ..Self::default() }
    }

    /// Takes the messages of a chunk, in ascending order.
    pub(crate) fn chunk<'a>(&mut self, messages: impl Iterator<Item = HandedOut<'a>>) {
        for HandedOut { revision, stamp, key } in messages {
            let at = self.keys.len();
            self.keys.extend_from_slice(key.as_bytes());
            self.messages.push(Seen { revision, stamp, key: at..self.keys.len() });
        }
        if self.messages.len() > self.room.max(SUPERSEDED_MIN) {
            self.drop_superseded();
        }
    }

    fn drop_superseded(&mut self) {
        let mut superseded_by = HashSet::with_capacity(MAX_REMEMBERED);
        let is_last = |seen: &&Seen| superseded_by.insert(self.key(seen));
        let newest = self.messages.iter().rev().filter(is_last).take(MAX_REMEMBERED);
        let mut kept: Vec<Seen> = newest.cloned().collect();
        kept.reverse();
        let mut keys = Vec::with_capacity(kept.iter().map(|seen| seen.key.len()).sum());
        for seen in &mut kept {
            let at = keys.len();
            keys.extend_from_slice(self.key(seen));
            seen.key = at..keys.len();
        }
        if kept.len() == MAX_REMEMBERED {
            self.proven.clear();
        }
        self.room = 4 * kept.len() + SUPERSEDED_MIN;
        (self.messages, self.keys) = (kept, keys);
    }

    fn key(&self, seen: &Seen) -> &[u8] {
        &self.keys[seen.key.clone()]
    }

    /// The last messages of the keys that were written last, newest first.
    fn newest(&self, max: usize) -> Vec<WitnessMessage> {
        let mut keys = HashSet::with_capacity(max);
        let mut newest = Vec::with_capacity(max.min(self.messages.len() + self.proven.len()));
        for seen in self.messages.iter().rev() {
            if newest.len() == max {
                return newest;
            }
            let key = self.key(seen);
            if keys.insert(key) {
                newest.push(WitnessMessage {
                    revision: seen.revision,
                    digest: WitnessMessage::digest(seen.stamp, key),
                    key: Some(Key::of_text(Bytes::copy_from_slice(key))),
                });
            }
        }
        let is_last = |witness: &&WitnessMessage| match &witness.key {
            Some(key) => !keys.contains(key.as_bytes()),
            // It may be of one of the watch's own.
            None => self.messages.is_empty(),
        };
        let room = max - newest.len();
        newest.extend(self.proven.iter().filter(is_last).take(room).cloned());
        newest
    }

    /// The cursor at a position, of a scope, with as many witnesses as are stored.
    pub(crate) fn cursor(&self, position: Position, scope: u32) -> LogCursor {
        LogCursor::with_witnesses(position, scope, self.newest(MAX_WITNESSES))
    }

    /// The same, with all that are remembered.
    pub(crate) fn remembered(&self, position: Position, scope: u32) -> LogCursor {
        LogCursor::with_witnesses(position, scope, self.newest(MAX_REMEMBERED))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The keys were written in this order, from `revision` on.
    fn take(recent: &mut RecentlySeen, revision: u64, keys: impl IntoIterator<Item = String>) {
        let keys: Vec<Key> = keys.into_iter().map(Key::from).collect();
        recent.chunk((revision..).zip(&keys).map(|(revision, key)| {
            let stamp = revision;
            HandedOut { revision, stamp, key }
        }));
    }

    fn revisions(cursor: &LogCursor) -> Vec<u64> {
        cursor.witnesses.iter().map(|one| one.revision).collect()
    }

    proptest! {
        /// Across a restart, at which the watch goes on from what was stored or remembered.
        #[test]
        fn witnesses_are_the_newest_of_their_keys(
            chunks in prop::collection::vec(prop::collection::vec(0..1100u16, 0..400), 0..16),
            restart in 0..16usize,
        ) {
            let mut recent = RecentlySeen::default();
            let mut history = Vec::new();
            for (at, chunk) in chunks.into_iter().enumerate() {
                let through = history.len() as u64;
                if at == restart {
                    let cursor = recent.remembered(Position::at(1, through), 0);
                    recent = RecentlySeen::of(&cursor, through);
                }
                take(&mut recent, through + 1, chunk.iter().map(|key| format!("k{key}")));
                history.extend(chunk);
            }
            let at = Position::at(1, history.len() as u64);
            let mut keys = HashSet::new();
            let newest = (1..=history.len()).rev().filter(|at| keys.insert(history[at - 1]));
            let expected: Vec<WitnessMessage> = newest
                .take(MAX_REMEMBERED)
                .map(|at| {
                    let (revision, key) = (at as u64, format!("k{}", history[at - 1]));
                    let digest = WitnessMessage::digest(revision, key.as_bytes());
                    WitnessMessage { revision, digest, key: Some(key.into()) }
                })
                .collect();
            let remembered = recent.remembered(at, 0).witnesses;
            prop_assert_eq!(&remembered, &expected);
            let stored = recent.cursor(at, 0).witnesses;
            prop_assert_eq!(&stored[..], &expected[..expected.len().min(MAX_WITNESSES)]);
            prop_assert!(recent.messages.len() <= 4 * MAX_REMEMBERED + SUPERSEDED_MIN);
        }
    }

    #[test]
    fn a_witness_without_its_key_goes_with_the_first_message() {
        let mut recent = RecentlySeen::default();
        take(&mut recent, 1, ["k".repeat(250), "a".into()]);
        let cursor = recent.cursor(Position::at(1, 2), 0);
        let stored = LogCursor::decode(&cursor.encode()).unwrap();
        assert_eq!(stored.witnesses[1].key, None);
        let mut recent = RecentlySeen::of(&stored, 2);
        assert_eq!(recent.cursor(Position::at(1, 2), 0), stored);
        take(&mut recent, 3, ["b".into()]);
        assert_eq!(revisions(&recent.cursor(Position::at(1, 3), 0)), [3, 2]);
    }

    /// A key that is written all the time does not push the others out.
    #[test]
    fn one_hot_key_leaves_the_witnesses_of_others() {
        let mut recent = RecentlySeen::default();
        take(&mut recent, 1, (1..=2000).map(|at| format!("cold.{at}")));
        for beat in 0..50 {
            take(&mut recent, 2001 + beat * 100, std::iter::repeat_n("hot".to_owned(), 100));
        }
        let cursor = recent.remembered(Position::at(1, 7000), 0);
        let cold = (2000 - MAX_REMEMBERED as u64 + 2..=2000).rev();
        assert_eq!(revisions(&cursor), std::iter::once(7000).chain(cold).collect::<Vec<_>>());
    }
}
