//! Items: their bytes, versions and absence (K3, K4).

use super::harness::Harness;
use super::probe::{EVERYTHING, content, full, is_fixed, items, list, small};
use crate::connector::{Connector, ConnectorError, ItemReader, SkipReason};

fn open(connector: &impl Connector, key: &[u8]) -> Box<dyn ItemReader> {
    connector.open(key).unwrap_or_else(|error| panic!("{key:?} does not open: {error}"))
}

fn refusal(connector: &impl Connector, key: &[u8]) -> ConnectorError {
    match connector.open(key) {
        Ok(_) => panic!("{key:?} opens"),
        Err(error) => error,
    }
}

/// All bytes from `offset`, read in pieces of `piece`.
fn read(reader: &mut dyn ItemReader, offset: u64, piece: usize) -> Vec<u8> {
    let (mut all, mut buf) = (Vec::new(), vec![0; piece]);
    loop {
        let at = offset + all.len() as u64;
        let len = reader.read_at(at, &mut buf).unwrap_or_else(|error| panic!("a read: {error}"));
        if len == 0 {
            return all;
        }
        all.extend_from_slice(&buf[..len]);
    }
}

pub(super) fn an_item_is_called_the_same_open_or_not<H: Harness>() {
    let (target, _) = full::<H>();
    let connector = target.connect();
    for item in items::<H>() {
        let reader = open(&connector, &item.key);
        let shown = connector.shown_path(&item.key);
        let shown = shown.as_deref().unwrap_or(&item.key);
        assert_eq!(shown, reader.path().unwrap_or(&item.key), "{:?}", item.key);
    }
}

pub(super) fn an_item_reads_as_it_was_put<H: Harness>() {
    let (target, _) = full::<H>();
    let connector = target.connect();
    for item in items::<H>() {
        let mut reader = open(&connector, &item.key);
        assert_eq!(reader.size(), item.content.len() as u64, "the size of {:?}", item.key);
        for piece in [1000, 65_536, 1 << 20] {
            let bytes = read(&mut *reader, 0, piece);
            assert!(bytes == item.content, "{:?} in pieces of {piece}", item.key);
        }
    }
}

pub(super) fn reads_may_start_anywhere<H: Harness>() {
    let (target, _) = full::<H>();
    let connector = target.connect();
    for item in items::<H>() {
        let mut reader = open(&connector, &item.key);
        let len = item.content.len();
        // Backwards, too.
        for offset in [len, len * 2 / 3, 1, len / 2, 0].map(|offset| offset.min(len)) {
            let bytes = read(&mut *reader, offset as u64, 4096);
            assert!(bytes == item.content[offset..], "{:?} from {offset}", item.key);
        }
    }
}

pub(super) fn a_read_at_or_behind_the_end_gives_nothing<H: Harness>() {
    let (target, _) = full::<H>();
    let connector = target.connect();
    for item in items::<H>() {
        let mut reader = open(&connector, &item.key);
        let len = item.content.len() as u64;
        for offset in [len, len + 1, len + (1 << 40), i64::MAX as u64, u64::MAX] {
            let read = reader.read_at(offset, &mut [0; 16]);
            assert_eq!(read, Ok(0), "{:?} at {offset}, of {len} bytes", item.key);
        }
        assert_eq!(reader.read_at(0, &mut []), Ok(0), "a read into nothing");
    }
}

pub(super) fn versions_are_as_declared<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    let declared = connector.capabilities().versions;
    for (entry, key) in list(&connector, EVERYTHING, None, 5).iter().zip(&keys) {
        let reader = open(&connector, key);
        assert_eq!(!reader.version().is_empty(), declared, "versions are as declared: {key:?}");
        if !entry.version.is_empty() {
            assert_eq!(entry.version, reader.version(), "listed and opened, {key:?}");
        }
    }
}

pub(super) fn an_unchanged_item_keeps_its_version<H: Harness>() {
    let (target, keys) = small::<H>();
    for key in &keys {
        let mut reader = open(&target.connect(), key);
        read(&mut *reader, 0, 10);
        let now = reader.version_now().unwrap_or_else(|error| panic!("the version now: {error}"));
        assert_eq!(now, reader.version(), "nothing has changed {key:?}");
        let again = open(&target.connect(), key);
        assert_eq!(again.version(), reader.version(), "nothing has changed {key:?}");
    }
}

pub(super) fn a_changed_item_has_another_version<H: Harness>() {
    let (mut target, keys) = small::<H>();
    if is_fixed::<H>() || !declares_versions(&target.connect()) {
        return;
    }
    // Of the same length, so that the length alone does not tell.
    let mut versions = vec![(b"x", open(&target.connect(), &keys[2]).version().to_vec())];
    for content in [b"y", b"z", b"x"] {
        target.put(&keys[2], content);
        let connector = target.connect();
        let mut reader = open(&connector, &keys[2]);
        let version = reader.version().to_vec();
        let is_new = versions.iter().all(|(other, known)| *other == content || *known != version);
        assert!(is_new, "K3: another content, and the same version");
        let listed = list(&connector, EVERYTHING, Some(&keys[1]), 1);
        assert!(listed[0].version.is_empty() || listed[0].version == version, "listed and opened");
        assert_eq!(read(&mut *reader, 0, 10), content);
        versions.push((content, version));
    }
}

pub(super) fn a_version_settles_once_and_for_all<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    assert!(!connector.is_settled(b"", u64::MAX), "K3: an empty version says nothing");
    if !declares_versions(&connector) {
        return;
    }
    let version = open(&connector, &keys[0]).version().to_vec();
    let times = [0, 1, 1 << 20, 1 << 40, 1 << 50, u64::MAX];
    let settled = times.map(|opened_at_ms| connector.is_settled(&version, opened_at_ms));
    assert!(settled.is_sorted(), "settled, and later not: {settled:?} at {times:?}");
    assert!(settled[times.len() - 1], "a version that never settles is of no use");
}

pub(super) fn a_change_under_a_reader_shows<H: Harness>() {
    let (mut target, keys) = full::<H>();
    let connector = target.connect();
    // The large one: half of it is read before the change.
    let large = content(4);
    let mut reader = open(&connector, &keys[4]);
    let half = large.len() / 2;
    let mut bytes = read_exactly(&mut *reader, half);
    target.put(&keys[4], &vec![b'!'; large.len()]);
    bytes.extend(read(&mut *reader, half as u64, 65_536));
    let unchanged = reader.version_now().is_ok_and(|now| now == reader.version());
    let can_tell = !reader.version().is_empty();
    assert!(
        bytes == large || !unchanged || !can_tell,
        "K3: a mixture was read, and the version says that nothing has changed"
    );
}

fn read_exactly(reader: &mut dyn ItemReader, len: usize) -> Vec<u8> {
    let (mut bytes, mut done) = (vec![0; len], 0);
    while done < len {
        let read = reader.read_at(done as u64, &mut bytes[done..]).expect("a read");
        assert!(read > 0, "the item ends at {done}, before {len}");
        done += read;
    }
    bytes
}

pub(super) fn a_removed_item_is_not_found<H: Harness>() {
    let (mut target, keys) = small::<H>();
    let connector = target.connect();
    let listed = list(&connector, EVERYTHING, None, 1000);
    for key in [&keys[0], &keys[keys.len() / 2]] {
        assert!(listed.iter().any(|entry| entry.key == **key));
        target.remove(key);
        let error = refusal(&connector, key);
        assert!(matches!(error, ConnectorError::NotFound { .. }), "{key:?} is gone: {error}");
    }
}

pub(super) fn a_key_that_never_was_is_not_found<H: Harness>() {
    let (target, keys) = small::<H>();
    let connector = target.connect();
    for place in super::probe::places(&keys) {
        if keys.contains(&place) {
            continue;
        }
        let error = refusal(&connector, &place);
        // Something that is no item may be there: a directory, say.
        let fits =
            matches!(error, ConnectorError::NotFound { .. } | ConnectorError::Permanent { .. });
        assert!(fits, "{place:?} is no key: {error}");
    }
}

pub(super) fn a_denied_item_is_reported_and_the_rest_is_not_lost<H: Harness>() {
    let (mut target, keys) = small::<H>();
    if !target.deny(&keys[3]) {
        return println!("left out: the harness cannot take a right away here");
    }
    let connector = target.connect();
    let listed = list(&connector, EVERYTHING, None, 2);
    let denied = Some(SkipReason::PermissionDenied);
    let is_skipped = listed.iter().any(|entry| {
        // Or what holds it is, as a whole.
        entry.skip == denied && keys[3].starts_with(&entry.key)
    });
    let is_refused = listed.iter().any(|entry| entry.key == keys[3] && entry.skip.is_none())
        && matches!(refusal(&connector, &keys[3]), ConnectorError::PermissionDenied { .. });
    assert!(is_skipped || is_refused, "a denied item is reported: {listed:?}");
    for key in keys.iter().filter(|key| **key != keys[3]) {
        let is_there = listed
            .iter()
            .any(|entry| entry.key == **key || entry.skip == denied && key.starts_with(&entry.key));
        assert!(is_there, "{key:?} is lost because {:?} is denied", keys[3]);
    }
}

pub(super) fn nothing_outside_the_target_is_read<H: Harness>() {
    const SECRET: &[u8] = b"outside of the target";
    let (mut target, keys) = small::<H>();
    let traps = target.entice(SECRET);
    if traps.is_empty() {
        println!("left out: the harness knows no way out of such a target");
    }
    let connector = target.connect();
    let listed = list(&connector, EVERYTHING, None, 3);
    for key in &keys {
        assert!(listed.iter().any(|entry| entry.key == *key), "{key:?} is lost among traps");
    }
    let opened = listed.iter().filter(|entry| entry.skip.is_none()).map(|entry| &entry.key);
    for key in opened.chain(&traps) {
        if let Ok(mut reader) = connector.open(key) {
            let bytes = read(&mut *reader, 0, 100);
            assert!(bytes != SECRET, "K4: {key:?} reads what is outside");
        }
    }
}

pub(super) fn errors_hold_no_key<H: Harness>() {
    let target = H::build(&[]);
    let key = b"hush/hush-hush";
    let error = refusal(&target.connect(), key);
    assert!(!format!("{error} {error:?}").contains("hush"), "a key is private: {error}");
}

fn declares_versions(connector: &impl Connector) -> bool {
    let declared = connector.capabilities().versions;
    if !declared {
        println!("left out: the source declares no versions");
    }
    declared
}
