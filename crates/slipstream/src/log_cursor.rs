//! What the cursor of a numbered log says: which log, how far, of which keys, and what stood there.
//!
//! - C1: an encoded cursor is at most [`WatchCursor::MAX_LEN`] bytes; the oldest witnesses are left
//!   out for it.
//! - C2: witnesses are the newest messages handed out of the last written keys, none left out between
//!   them, as the resume guard needs it. (A key twice would look like a log that lies; a key left out
//!   would not be repaired.)

use std::collections::VecDeque;

use bytes::Bytes;

use crate::kv::{CursorExpiry, Key, WatchCursor, WatchScope};
use crate::protocol::{MAX_WITNESSES, Position};

/// Format of an encoded position, and of one that knows more than its revision: how far the log went,
/// and when it was heard. Nothing shorter than a header is one, so the eight bytes of a bare revision,
/// as older programs stored it, are told apart.
const FORMAT: u8 = 2;
const FORMAT_EXTENDED: u8 = 3;

/// A cursor of a log that numbers its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogCursor {
    pub(crate) at: Position,
    /// Of the keys that were watched: see [`scope_mark`]. Of others nothing is known, however far
    /// the cursor is.
    pub(crate) scope: u32,
    /// Messages handed out, newest first, at most [`MAX_WITNESSES`].
    pub(crate) witnesses: Vec<Seen>,
}

/// A message that the log had, remembered to recognise the log by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) revision: u64,
    /// What tells it from another message at the same revision: see [`Seen::mark`].
    pub(crate) mark: u32,
    /// Its key; `None` if the cursor had no room for it.
    pub(crate) key: Option<Key>,
}

impl Seen {
    /// The mark of a message: of when it was stored (or anything else that two messages at the same
    /// revision do not share) and its key.
    pub(crate) fn mark(stamp: u64, key: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&stamp.to_le_bytes());
        hasher.update(key);
        hasher.finalize()
    }
}

impl LogCursor {
    /// The cursor; [`WatchCursor::none`] for revision 0, which covers nothing.
    pub(crate) fn encode(&self) -> WatchCursor {
        let Position { incarnation, revision, end, observed_through_ms } = self.at;
        if revision == 0 {
            return WatchCursor::none();
        }
        let mut bytes = Vec::with_capacity(WatchCursor::MAX_LEN);
        let beyond = end.saturating_sub(revision);
        let extended = beyond > 0 || observed_through_ms > 0;
        bytes.push(if extended { FORMAT_EXTENDED } else { FORMAT });
        bytes.extend_from_slice(&incarnation.to_le_bytes());
        bytes.extend_from_slice(&revision.to_le_bytes());
        bytes.extend_from_slice(&self.scope.to_le_bytes());
        for value in [beyond, observed_through_ms].into_iter().filter(|_| extended) {
            let (value, len) = varint(value);
            bytes.extend_from_slice(&value[..len]);
        }
        for witness in self.witnesses.iter().take(MAX_WITNESSES) {
            let at = witness.revision;
            assert!(at <= revision, "witness {at} is past position {revision}");
            if !encode_witness(&mut bytes, revision, witness) {
                break;
            }
        }
        WatchCursor::from_bytes(bytes).expect("C1")
    }

    /// The position that a cursor stands for.
    ///
    /// # Errors
    /// Bytes that [`encode`](Self::encode) does not write.
    pub(crate) fn decode(cursor: &WatchCursor) -> Result<Self, CursorExpiry> {
        Self::parse(cursor.as_bytes()).ok_or(CursorExpiry::Unreadable)
    }

    /// The same, for a watch of `scope`.
    ///
    /// # Errors
    /// Besides, a cursor of a watch of other keys.
    pub(crate) fn decode_for(
        cursor: &WatchCursor,
        scope: &WatchScope,
    ) -> Result<Self, CursorExpiry> {
        let cursor = Self::decode(cursor)?;
        if cursor.scope == scope_mark(scope) { Ok(cursor) } else { Err(CursorExpiry::OtherScope) }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&format, bytes) = bytes.split_first()?;
        let (incarnation, bytes) = bytes.split_first_chunk()?;
        let (revision, bytes) = bytes.split_first_chunk()?;
        let (scope, mut bytes) = bytes.split_first_chunk()?;
        let revision = u64::from_le_bytes(*revision);
        if revision == 0 {
            return None;
        }
        let (mut end, mut observed_through_ms) = (revision, 0);
        match format {
            FORMAT => {}
            FORMAT_EXTENDED => {
                let (beyond, rest) = parse_varint(bytes)?;
                (observed_through_ms, bytes) = parse_varint(rest)?;
                end = revision.checked_add(beyond)?;
                if beyond == 0 && observed_through_ms == 0 {
                    return None;
                }
            }
            _ => return None,
        }
        let mut witnesses = Vec::new();
        while !bytes.is_empty() {
            let (witness, rest) = parse_witness(bytes, revision)?;
            witnesses.push(witness);
            bytes = rest;
        }
        let incarnation = u64::from_le_bytes(*incarnation);
        let fits = witnesses.len() <= MAX_WITNESSES;
        let at = Position { incarnation, revision, end, observed_through_ms };
        let scope = u32::from_le_bytes(*scope);
        fits.then_some(Self { at, scope, witnesses })
    }
}

/// See [`Position::observed_through_ms`]; 0 of a cursor that is not of a log.
pub(crate) fn observed_through_ms(cursor: &WatchCursor) -> u64 {
    LogCursor::decode(cursor).map_or(0, |cursor| cursor.at.observed_through_ms)
}

/// The cursor, which knows that the log has gone to `end`, and claims no more than to have heard
/// everything up to a time. One that is not of a log stays as it is.
pub(crate) fn amended(cursor: WatchCursor, end: u64, observed_max_ms: u64) -> WatchCursor {
    match LogCursor::decode(&cursor) {
        Ok(mut known) => {
            known.at.end = known.at.end.max(end);
            known.at.observed_through_ms = known.at.observed_through_ms.min(observed_max_ms);
            known.encode()
        }
        Err(_) => cursor,
    }
}

/// Tells scopes apart; the same for all ways to write one.
pub(crate) fn scope_mark(scope: &WatchScope) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for prefix in scope.prefixes() {
        hasher.update(prefix.as_bytes());
        // No key has it.
        hasher.update(&[0]);
    }
    hasher.finalize()
}

/// Appends the witness with its key if there is room, else without it. Whether another may follow:
/// none does after one without its key (C2).
fn encode_witness(bytes: &mut Vec<u8>, revision: u64, witness: &Seen) -> bool {
    let (age, age_len) = varint(revision - witness.revision);
    let bare_len = age_len + 4 + 1;
    let room = WatchCursor::MAX_LEN - bytes.len();
    if bare_len > room {
        return false;
    }
    let key = witness.key.as_ref().map_or(&[][..], Key::as_bytes);
    let key = if bare_len + key.len() <= room { key } else { &[] };
    bytes.extend_from_slice(&age[..age_len]);
    bytes.extend_from_slice(&witness.mark.to_le_bytes());
    bytes.push(key.len() as u8);
    bytes.extend_from_slice(key);
    !key.is_empty()
}

fn parse_witness(bytes: &[u8], revision: u64) -> Option<(Seen, &[u8])> {
    let (age, bytes) = parse_varint(bytes)?;
    let (mark, bytes) = bytes.split_first_chunk()?;
    let (&key_len, bytes) = bytes.split_first()?;
    let (key, rest) = bytes.split_at_checked(usize::from(key_len))?;
    let key = match key {
        [] => None,
        key => Some(Key::try_from(Bytes::copy_from_slice(key)).ok()?),
    };
    let revision = revision.checked_sub(age)?;
    Some((Seen { revision, mark: u32::from_le_bytes(*mark), key }, rest))
}

/// Seven bits a byte, lowest first, the high bit on all but the last.
fn varint(mut value: u64) -> ([u8; 10], usize) {
    let mut bytes = [0; 10];
    for at in 0.. {
        bytes[at] = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return (bytes, at + 1);
        }
        bytes[at] |= 0x80;
    }
    unreachable!("a u64 has at most ten groups of seven bits")
}

fn parse_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, &byte) in bytes.iter().enumerate().take(10) {
        let group = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit; a last byte of zero is not how the value is written.
        if (at == 9 && group > 1) || (at > 0 && byte == 0) {
            return None;
        }
        value |= group << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// The newest messages that a watch handed out, at most [`MAX_WITNESSES`], each of another key (C2).
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentlySeen {
    /// Oldest first.
    witnesses: VecDeque<Seen>,
}

impl RecentlySeen {
    /// Those of a cursor that hold at `proven`, where a watch goes on.
    pub(crate) fn of(cursor: &LogCursor, proven: u64) -> Self {
        let held = cursor.witnesses.iter().filter(|witness| witness.revision <= proven);
        Self { witnesses: held.rev().cloned().collect() }
    }

    /// Takes the messages of a chunk, in ascending order. Only its last ones matter, so the iterator
    /// is walked from its end.
    pub(crate) fn chunk(&mut self, messages: impl DoubleEndedIterator<Item = Seen>) {
        let mut newest_first = messages.rev().take(MAX_WITNESSES);
        let mut taken: [Option<Seen>; MAX_WITNESSES] = Default::default();
        let mut len = 0;
        for (slot, witness) in taken.iter_mut().zip(&mut newest_first) {
            *slot = Some(witness);
            len += 1;
        }
        // A full chunk may hold, before its last ones, newer messages of the keys remembered.
        if len == MAX_WITNESSES {
            self.witnesses.clear();
        }
        for witness in taken.into_iter().rev().flatten() {
            self.push(witness);
        }
    }

    fn push(&mut self, witness: Seen) {
        debug_assert!(self.witnesses.back().is_none_or(|last| last.revision < witness.revision));
        // Without its key a remembered witness may be of this one: it cannot be kept.
        self.witnesses.retain(|kept| kept.key.is_some() && kept.key != witness.key);
        if self.witnesses.len() == MAX_WITNESSES {
            self.witnesses.pop_front();
        }
        self.witnesses.push_back(witness);
    }

    /// The cursor at a position, of a scope.
    pub(crate) fn cursor(&self, at: Position, scope: u32) -> LogCursor {
        LogCursor { at, scope, witnesses: self.witnesses.iter().rev().cloned().collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn witness(revision: u64, key: &str) -> Seen {
        Seen { revision, mark: Seen::mark(revision, key.as_bytes()), key: Some(key.into()) }
    }

    fn any_position() -> impl Strategy<Value = LogCursor> {
        let witness = (any::<u64>(), any::<u32>(), prop::option::of("[a-z.]{1,300}"));
        let beyond = prop_oneof![Just(0u64), any::<u64>()];
        (any::<u64>(), 1..=u64::MAX, beyond, prop::collection::vec(witness, 0..=8)).prop_map(
            |(incarnation, revision, beyond, witnesses)| LogCursor {
                at: Position {
                    end: revision.saturating_add(beyond),
                    observed_through_ms: if beyond % 2 == 0 { 0 } else { incarnation },
                    ..Position::at(incarnation, revision)
                },
                scope: incarnation as u32,
                witnesses: witnesses
                    .into_iter()
                    .map(|(at, mark, key)| Seen {
                        revision: at % (revision - 1).max(1),
                        mark,
                        key: key.map(Key::from),
                    })
                    .collect(),
            },
        )
    }

    proptest! {
        #[test]
        fn a_position_survives_its_cursor_but_for_witnesses_without_room(position in any_position()) {
            let cursor = position.encode();
            let decoded = LogCursor::decode(&cursor).unwrap();
            prop_assert_eq!((decoded.at, decoded.scope), (position.at, position.scope));
            prop_assert_eq!(decoded.encode(), cursor);
            // What is kept is the beginning, all with their keys but for the last.
            for (at, kept) in decoded.witnesses.iter().enumerate() {
                let one = &position.witnesses[at];
                prop_assert_eq!((one.revision, one.mark), (kept.revision, kept.mark));
                let last = at + 1 == decoded.witnesses.len();
                prop_assert!(kept.key == one.key || (last && kept.key.is_none()));
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..=255)) {
            let cursor = WatchCursor::from_bytes(bytes).unwrap();
            if let Ok(position) = LogCursor::decode(&cursor) {
                prop_assert_eq!(position.encode(), cursor);
            }
        }

        #[test]
        fn witnesses_are_the_newest_of_their_keys(
            chunks in prop::collection::vec(prop::collection::vec(0..12u8, 0..20), 0..6),
        ) {
            let mut recent = RecentlySeen::default();
            let mut history = Vec::new();
            for chunk in chunks {
                let first = history.len();
                history.extend(chunk);
                let messages = (first..history.len())
                    .map(|at| witness(at as u64 + 1, &format!("k{}", history[at])));
                recent.chunk(messages);
            }
            let position = recent.cursor(Position::at(1, history.len() as u64), 0);
            for witness in &position.witnesses {
                let key = format!("k{}", history[witness.revision as usize - 1]);
                prop_assert_eq!(witness.key.as_ref().unwrap().as_str(), &key);
                let newer = &history[witness.revision as usize..];
                let superseded = newer.iter().any(|newer| format!("k{newer}") == key);
                prop_assert!(!superseded);
            }
            prop_assert_eq!(position.witnesses.is_empty(), history.is_empty());
            prop_assert!(position.witnesses.is_sorted_by(|a, b| a.revision > b.revision));
        }
    }

    #[test]
    fn eight_witnesses_with_keys_of_23_bytes_fit() {
        let mut recent = RecentlySeen::default();
        let keys = (0..8).map(|at| format!("tenant.0000.item.{at:06}"));
        recent.chunk(keys.enumerate().map(|(at, key)| witness(1_000_000 + at as u64, &key)));
        let position = recent.cursor(Position::at(7, 1_000_007), 0);
        assert_eq!(position.witnesses[0].key.as_ref().unwrap().len(), 23);
        let decoded = LogCursor::decode(&position.encode()).unwrap();
        assert_eq!(decoded.witnesses.len(), 8);
        assert!(decoded.witnesses[..7].iter().all(|witness| witness.key.is_some()));
    }

    #[test]
    fn a_key_without_room_leaves_its_mark() {
        let key = "k".repeat(250);
        let position = LogCursor {
            at: Position::at(1, 9),
            scope: 0,
            witnesses: vec![witness(9, &key), witness(8, "short")],
        };
        let decoded = LogCursor::decode(&position.encode()).unwrap();
        assert_eq!(decoded.witnesses[0].key, None);
        assert_eq!(decoded.witnesses[0].mark, position.witnesses[0].mark);
        assert_eq!(decoded.witnesses.len(), 1);
    }

    #[test]
    fn a_cursor_is_of_its_scope_only() {
        let prefix = |text: &str| WatchScope::Prefix(text.into());
        let many = |texts: &[&str]| WatchScope::Prefixes(texts.iter().map(|&t| t.into()).collect());
        let ab = many(&["a.", "b."]);
        let at = Position::at(1, 9);
        let cursor = LogCursor { at, scope: scope_mark(&ab), witnesses: Vec::new() }.encode();
        assert!(LogCursor::decode_for(&cursor, &many(&["b.", "a.", "a.x"])).is_ok());
        for other in [WatchScope::All, prefix("a."), prefix("a.b."), many(&["a.", "c."])] {
            let refused = LogCursor::decode_for(&cursor, &other);
            assert_eq!(refused, Err(CursorExpiry::OtherScope), "{other:?}");
        }
        assert_eq!(scope_mark(&WatchScope::All), scope_mark(&prefix("")));
    }

    #[test]
    fn a_bare_revision_is_no_position() {
        let cursor = WatchCursor::from_bytes(7u64.to_be_bytes().to_vec()).unwrap();
        assert_eq!(LogCursor::decode(&cursor), Err(CursorExpiry::Unreadable));
    }

    #[test]
    fn the_format_of_a_cursor_does_not_change() {
        let position = LogCursor {
            at: Position::at(0x0102_0304_0506_0708, 300),
            scope: 0x1122_3344,
            witnesses: vec![
                Seen { revision: 300, mark: 0xaabb_ccdd, key: Some("a.b".into()) },
                Seen { revision: 1, mark: 1, key: None },
            ],
        };
        let expected = [
            2, 8, 7, 6, 5, 4, 3, 2, 1, 44, 1, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22,
            0x11, // header
            0, 0xdd, 0xcc, 0xbb, 0xaa, 3, b'a', b'.', b'b', // at the position itself
            0xab, 2, 1, 0, 0, 0, 0, // 299 before it
        ];
        assert_eq!(position.encode().as_bytes(), expected);
        let reaching = amended(position.encode(), 500, u64::MAX);
        let with_end = [&[3][..], &expected[1..21], &[0xc8, 1, 0], &expected[21..]].concat();
        assert_eq!(reaching.as_bytes(), with_end);
        let decoded = LogCursor::decode(&reaching).unwrap();
        assert_eq!(decoded.at, Position { end: 500, ..position.at });
        let heard =
            LogCursor { at: Position { observed_through_ms: 300, ..decoded.at }, ..decoded }
                .encode();
        let with_time = [&[3][..], &expected[1..21], &[0xc8, 1, 0xac, 2], &expected[21..]].concat();
        assert_eq!(heard.as_bytes(), with_time);
    }
}
