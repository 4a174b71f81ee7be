//! What the cursor of a numbered log says: which log, how far, of which keys, and what stood there.
//!
//! - C1: an encoded cursor is at most [`WatchCursor::MAX_LEN`] bytes; the oldest witnesses are left
//!   out for it.
//! - C2: witnesses are the newest messages handed out of the last written keys, none left out between
//!   them, as the resume guard needs it. (A key twice would look like a log that lies; a key left out
//!   would not be repaired.)

mod recent;

use std::fmt;

use bytes::Bytes;

pub(crate) use self::recent::{HandedOut, MAX_REMEMBERED, RecentlySeen};
use crate::kv::{CursorExpiry, Key, WatchCursor, WatchScope};
use crate::protocol::{MAX_WITNESSES, Position};

/// Formats that are read: a position, and one that knows how far the log went and a time up to which
/// it was observed. Nothing shorter than a header is one, so the eight bytes of a bare revision, as
/// older programs stored it, are told apart.
const FORMAT_2: u8 = 2;
const FORMAT_3: u8 = 3;
/// The format that is written; the low bits say what state the fold is in.
const FORMAT: u8 = 4;

const IN_REPAIR: u8 = 1;
const EVICTED: u8 = 2;
const INCOMPLETE: u8 = 8;
const FLAGS: u8 = IN_REPAIR | EVICTED | INCOMPLETE;
const _: () = assert!(FORMAT & FLAGS == 0);

/// A cursor of a log that numbers its messages, as a plain struct. It is decoded when it is loaded, and
/// encoded when it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct LogCursor {
    /// Which log, and how far.
    pub position: Position,
    /// The fold is in a repair: nobody may resume from here.
    pub in_repair: bool,
    /// The log was seen with limits that evict current values: the fold may have the only copies.
    pub evicted: bool,
    /// The log had evicted current values before the fold read them: it may lack keys that nobody
    /// deleted.
    pub incomplete: bool,
    /// Of the keys that were watched: see [`scope_hash`]. Of others nothing is known, however far
    /// the cursor is.
    pub(crate) scope: u32,
    /// Messages handed out, newest first. The first [`MAX_WITNESSES`] are encoded.
    pub(crate) witnesses: Vec<WitnessMessage>,
}

impl fmt::Debug for LogCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogCursor")
            .field("position", &self.position)
            .field("in_repair", &self.in_repair)
            .field("evicted", &self.evicted)
            .field("incomplete", &self.incomplete)
            .field("witnesses", &self.witnesses.len())
            .finish_non_exhaustive()
    }
}

/// A message that the log had, remembered to recognise the log by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WitnessMessage {
    pub(crate) revision: u64,
    /// What tells it from another message at the same revision: see [`WitnessMessage::digest`].
    pub(crate) digest: u32,
    /// Its key; `None` if the cursor had no room for it.
    pub(crate) key: Option<Key>,
}

impl WitnessMessage {
    /// Of when a message was stored (or anything else that two messages at the same revision do not
    /// share) and its key.
    pub(crate) fn digest(stamp: u64, key: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&stamp.to_le_bytes());
        hasher.update(key);
        hasher.finalize()
    }
}

impl LogCursor {
    /// The cursor of a watch that has handed out nothing that it remembers.
    #[must_use]
    pub fn new(position: Position, scope: &WatchScope) -> Self {
        Self::with_witnesses(position, scope_hash(scope), Vec::new())
    }

    fn with_witnesses(position: Position, scope: u32, witnesses: Vec<WitnessMessage>) -> Self {
        let (in_repair, evicted, incomplete) = (false, false, false);
        Self { position, in_repair, evicted, incomplete, scope, witnesses }
    }

    /// The cursor of a fold that is being repaired. All its entries are of the log `incarnation`, which
    /// went to `end` at least; 0 if that is not known.
    pub(crate) fn in_repair(scope: &WatchScope, evicted: bool, incarnation: u64, end: u64) -> Self {
        let position = Position { end, ..Position::at(incarnation, 0) };
        Self { in_repair: true, evicted, ..Self::new(position, scope) }
    }

    /// The bytes to store.
    #[must_use]
    pub fn encode(&self) -> WatchCursor {
        let Position { incarnation, revision, end, observed_through_ms, subjects } = self.position;
        let end = end.max(revision);
        let mut bytes = Vec::with_capacity(WatchCursor::MAX_LEN);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = flag(self.in_repair, IN_REPAIR)
            | flag(self.evicted, EVICTED)
            | flag(self.incomplete, INCOMPLETE);
        bytes.push(FORMAT | flags);
        bytes.extend_from_slice(&incarnation.to_le_bytes());
        bytes.extend_from_slice(&revision.to_le_bytes());
        bytes.extend_from_slice(&self.scope.to_le_bytes());
        for value in [end - revision, observed_through_ms, subjects] {
            let (value, len) = varint(value);
            bytes.extend_from_slice(&value[..len]);
        }
        for witness in self.witnesses.iter().take(MAX_WITNESSES) {
            let at = witness.revision;
            assert!(at <= end, "witness {at} is past the end {end}");
            if !encode_witness(&mut bytes, end, witness) {
                break;
            }
        }
        WatchCursor::from_bytes(bytes).expect("C1")
    }

    /// The position that a cursor stands for.
    ///
    /// # Errors
    /// Bytes that [`encode`](Self::encode) does not write.
    pub fn decode(cursor: &WatchCursor) -> Result<Self, CursorExpiry> {
        Self::parse(cursor.as_bytes()).ok_or(CursorExpiry::Unreadable)
    }

    /// Whether a watch of `scope` may begin from here, as far as the cursor itself says.
    ///
    /// # Errors
    /// A cursor of a watch of other keys, or of a fold that is being repaired.
    pub(crate) fn check(&self, scope: &WatchScope) -> Result<(), CursorExpiry> {
        if self.scope != scope_hash(scope) {
            return Err(CursorExpiry::OtherScope);
        }
        if self.in_repair { Err(CursorExpiry::Interrupted) } else { Ok(()) }
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (&format, bytes) = bytes.split_first()?;
        let (incarnation, bytes) = bytes.split_first_chunk()?;
        let (revision, bytes) = bytes.split_first_chunk()?;
        let (scope, mut bytes) = bytes.split_first_chunk()?;
        let revision = u64::from_le_bytes(*revision);
        let (fields, flags) = match format {
            FORMAT_2 => (0, 0),
            FORMAT_3 => (2, 0),
            _ if format & !FLAGS == FORMAT => (3, format & FLAGS),
            _ => return None,
        };
        let mut values = [0; 3];
        for value in &mut values[..fields] {
            (*value, bytes) = parse_varint(bytes)?;
        }
        let [beyond, observed_through_ms, subjects] = values;
        let end = revision.checked_add(beyond)?;
        let newest = if fields == 3 { end } else { revision };
        let mut witnesses = Vec::new();
        while !bytes.is_empty() {
            let (witness, rest) = parse_witness(bytes, newest)?;
            witnesses.push(witness);
            bytes = rest;
        }
        if witnesses.len() > MAX_WITNESSES {
            return None;
        }
        let incarnation = u64::from_le_bytes(*incarnation);
        Some(Self {
            position: Position { incarnation, revision, end, observed_through_ms, subjects },
            in_repair: flags & IN_REPAIR != 0,
            evicted: flags & EVICTED != 0,
            incomplete: flags & INCOMPLETE != 0,
            scope: u32::from_le_bytes(*scope),
            witnesses,
        })
    }
}

/// Tells scopes apart; the same for all ways to write one.
pub(crate) fn scope_hash(scope: &WatchScope) -> u32 {
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
fn encode_witness(bytes: &mut Vec<u8>, newest: u64, witness: &WitnessMessage) -> bool {
    let (age, age_len) = varint(newest - witness.revision);
    let bare_len = age_len + 4 + 1;
    let room = WatchCursor::MAX_LEN - bytes.len();
    if bare_len > room {
        return false;
    }
    let key = witness.key.as_ref().map_or(&[][..], Key::as_bytes);
    let key = if bare_len + key.len() <= room { key } else { &[] };
    bytes.extend_from_slice(&age[..age_len]);
    bytes.extend_from_slice(&witness.digest.to_le_bytes());
    bytes.push(key.len() as u8);
    bytes.extend_from_slice(key);
    !key.is_empty()
}

fn parse_witness(bytes: &[u8], newest: u64) -> Option<(WitnessMessage, &[u8])> {
    let (age, bytes) = parse_varint(bytes)?;
    let (digest, bytes) = bytes.split_first_chunk()?;
    let (&key_len, bytes) = bytes.split_first()?;
    let (key, rest) = bytes.split_at_checked(usize::from(key_len))?;
    let key = match key {
        [] => None,
        key => Some(Key::try_from(Bytes::copy_from_slice(key)).ok()?),
    };
    let revision = newest.checked_sub(age)?;
    Some((WitnessMessage { revision, digest: u32::from_le_bytes(*digest), key }, rest))
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn witness(revision: u64, key: &str) -> WitnessMessage {
        WitnessMessage {
            revision,
            digest: WitnessMessage::digest(revision, key.as_bytes()),
            key: Some(key.into()),
        }
    }

    fn any_position() -> impl Strategy<Value = LogCursor> {
        let witness = (any::<u64>(), any::<u32>(), prop::option::of("[a-z.]{1,300}"));
        let number = || prop_oneof![Just(0u64), any::<u64>()];
        let position = (any::<u64>(), any::<u64>(), number(), number(), number());
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (position, flags, prop::collection::vec(witness, 0..=8)).prop_map(
            |((incarnation, revision, beyond, observed_through_ms, subjects), flags, witnesses)| {
                let end = revision.saturating_add(beyond);
                let (in_repair, evicted, incomplete) = flags;
                LogCursor {
                    position: Position {
                        incarnation,
                        revision,
                        end,
                        observed_through_ms,
                        subjects,
                    },
                    in_repair,
                    evicted,
                    incomplete,
                    scope: incarnation as u32,
                    witnesses: witnesses
                        .into_iter()
                        .map(|(at, digest, key)| WitnessMessage {
                            revision: at % end.max(1),
                            digest,
                            key: key.map(Key::from),
                        })
                        .collect(),
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_position_survives_its_cursor_but_for_witnesses_without_room(position in any_position()) {
            let cursor = position.encode();
            let decoded = LogCursor::decode(&cursor).unwrap();
            prop_assert_eq!((decoded.position, decoded.scope), (position.position, position.scope));
            prop_assert_eq!(decoded.in_repair, position.in_repair);
            prop_assert_eq!(decoded.evicted, position.evicted);
            prop_assert_eq!(decoded.incomplete, position.incomplete);
            prop_assert_eq!(decoded.encode(), cursor);
            // What is kept is the beginning, all with their keys but for the last.
            for (at, kept) in decoded.witnesses.iter().enumerate() {
                let one = &position.witnesses[at];
                prop_assert_eq!((one.revision, one.digest), (kept.revision, kept.digest));
                let last = at + 1 == decoded.witnesses.len();
                prop_assert!(kept.key == one.key || (last && kept.key.is_none()));
            }
        }

        #[test]
        fn any_bytes_decode_or_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..=255)) {
            let cursor = WatchCursor::from_bytes(bytes).unwrap();
            if let Ok(position) = LogCursor::decode(&cursor) {
                prop_assert_eq!(LogCursor::decode(&position.encode()), Ok(position));
            }
        }
    }

    #[test]
    fn eight_witnesses_with_keys_of_23_bytes_fit() {
        let key = |at: u64| format!("tenant.0000.item.{at:06}");
        let witnesses = (0..8).map(|at| witness(1_000_007 - at, &key(at))).collect();
        let position = LogCursor::with_witnesses(Position::at(7, 1_000_007), 0, witnesses);
        assert_eq!(position.witnesses[0].key.as_ref().unwrap().len(), 23);
        let decoded = LogCursor::decode(&position.encode()).unwrap();
        assert_eq!(decoded.witnesses.len(), 8);
        assert!(decoded.witnesses[..7].iter().all(|witness| witness.key.is_some()));
    }

    #[test]
    fn a_key_without_room_leaves_its_digest() {
        let key = "k".repeat(250);
        let position = LogCursor {
            witnesses: vec![witness(9, &key), witness(8, "short")],
            ..LogCursor::new(Position::at(1, 9), &WatchScope::All)
        };
        let decoded = LogCursor::decode(&position.encode()).unwrap();
        assert_eq!(decoded.witnesses[0].key, None);
        assert_eq!(decoded.witnesses[0].digest, position.witnesses[0].digest);
        assert_eq!(decoded.witnesses.len(), 1);
    }

    #[test]
    fn a_cursor_is_of_its_scope_only() {
        let prefix = |text: &str| WatchScope::Prefix(text.into());
        let many = |texts: &[&str]| WatchScope::Prefixes(texts.iter().map(|&t| t.into()).collect());
        let cursor = LogCursor::new(Position::at(1, 9), &many(&["a.", "b."]));
        assert_eq!(cursor.check(&many(&["b.", "a.", "a.x"])), Ok(()));
        for other in [WatchScope::All, prefix("a."), prefix("a.b."), many(&["a.", "c."])] {
            assert_eq!(cursor.check(&other), Err(CursorExpiry::OtherScope), "{other:?}");
        }
        assert_eq!(scope_hash(&WatchScope::All), scope_hash(&prefix("")));
    }

    #[test]
    fn nobody_resumes_from_the_middle_of_a_repair() {
        let cursor = LogCursor::in_repair(&WatchScope::All, true, 7, 40);
        assert_eq!(cursor.check(&WatchScope::All), Err(CursorExpiry::Interrupted));
        let other = WatchScope::Prefix("a.".into());
        assert_eq!(cursor.check(&other), Err(CursorExpiry::OtherScope), "it knows its scope");
        assert_eq!(LogCursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn a_bare_revision_is_no_position() {
        let cursor = WatchCursor::from_bytes(7u64.to_be_bytes().to_vec()).unwrap();
        assert_eq!(LogCursor::decode(&cursor), Err(CursorExpiry::Unreadable));
    }

    const HEADER: [u8; 20] =
        [8, 7, 6, 5, 4, 3, 2, 1, 44, 1, 0, 0, 0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11];
    const AT_300: [u8; 9] = [0, 0xdd, 0xcc, 0xbb, 0xaa, 3, b'a', b'.', b'b'];
    const AT_1: [u8; 7] = [0xab, 2, 1, 0, 0, 0, 0];

    fn known(position: Position) -> LogCursor {
        LogCursor {
            position,
            in_repair: false,
            evicted: false,
            incomplete: false,
            scope: 0x1122_3344,
            witnesses: vec![
                WitnessMessage { revision: 300, digest: 0xaabb_ccdd, key: Some("a.b".into()) },
                WitnessMessage { revision: 1, digest: 1, key: None },
            ],
        }
    }

    #[test]
    fn the_format_of_a_cursor_does_not_change() {
        let position = Position {
            observed_through_ms: 300,
            subjects: 5,
            ..Position::at(0x0102_0304_0506_0708, 300)
        };
        let cursor = known(position);
        let expected = [&[4][..], &HEADER, &[0, 0xac, 2, 5], &AT_300, &AT_1].concat();
        assert_eq!(cursor.encode().as_bytes(), expected);
        // Witnesses are counted from the end of the log.
        let further = known(Position { end: 301, ..position });
        let ages = [&[1][..], &AT_300[1..], &[0xac], &AT_1[1..]].concat();
        let expected = [&[4][..], &HEADER, &[1, 0xac, 2, 5], &ages].concat();
        assert_eq!(further.encode().as_bytes(), expected);
        for (flags, format) in [
            ((true, false, false), 5),
            ((false, true, false), 6),
            ((true, true, false), 7),
            ((false, true, true), 14),
        ] {
            let (in_repair, evicted, incomplete) = flags;
            let cursor = LogCursor { in_repair, evicted, incomplete, ..cursor.clone() };
            assert_eq!(cursor.encode().as_bytes()[0], format);
        }
    }

    #[test]
    fn cursors_of_older_formats_are_read() {
        let position = Position::at(0x0102_0304_0506_0708, 300);
        let bytes = [&[2][..], &HEADER, &AT_300, &AT_1].concat();
        let decoded = LogCursor::decode(&WatchCursor::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!(decoded, known(position));
        let bytes = [&[3][..], &HEADER, &[0xc8, 1, 0xac, 2], &AT_300, &AT_1].concat();
        let decoded = LogCursor::decode(&WatchCursor::from_bytes(bytes).unwrap()).unwrap();
        assert_eq!(decoded, known(Position { end: 500, observed_through_ms: 300, ..position }));
    }
}
