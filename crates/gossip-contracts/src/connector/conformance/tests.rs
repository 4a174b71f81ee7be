//! The suite itself: it passes a connector that keeps the contract, and each way of breaking the
//! contract fails it.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::{Arc, Mutex};

use super::{Harness, Item, run_case};
use crate::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ContentKind, ItemReader, Page, PageEntry,
    SkipReason,
};
use crate::coordination::{CursorUpdate, ShardSpecRef};
use crate::identity::{CanonicalBytes, CanonicalHasher};

/// A way to break the contract, or none.
trait Fault: 'static {
    const FAULT: Option<Broken>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    Order,
    ForgetsOne,
    CursorInclusive,
    EndInclusive,
    StartIgnored,
    PageTooLong,
    NeverLast,
    PageContinued,
    TokenSkips,
    DeclaresTokens,
    StaleListing,
    WrongSize,
    CalledTwoThings,
    CutsReads,
    ReadsBehindTheEnd,
    VersionConstant,
    VersionEmpty,
    VersionNowStuck,
    AlwaysSettled,
    NeverSettled,
    OpensAnything,
    DenialHidden,
    DenialStops,
    LeavesTheTarget,
    ErrorsTell,
    PointsOutside,
    PointsBackwards,
    PointsBehindCursor,
    TooManyPoints,
    NoPoints,
    RangeTooNarrow,
}

#[derive(Clone, Default)]
struct Stored {
    content: Vec<u8>,
    version: u64,
    is_denied: bool,
    is_trap: bool,
}

type Map = BTreeMap<Vec<u8>, Stored>;

struct MapHarness<F> {
    map: Arc<Mutex<Map>>,
    fault: PhantomData<F>,
}

static VERSIONS: AtomicU64 = AtomicU64::new(1);

fn stored(content: &[u8]) -> Stored {
    let version = VERSIONS.fetch_add(1, Ordering::Relaxed);
    Stored { content: content.to_vec(), version, ..Stored::default() }
}

impl<F: Fault> Harness for MapHarness<F> {
    type Connector = MapConnector;

    fn build(items: &[Item]) -> Self {
        let map = items.iter().map(|item| (item.key.clone(), stored(&item.content))).collect();
        Self { map: Arc::new(Mutex::new(map)), fault: PhantomData }
    }

    fn connect(&self) -> MapConnector {
        let first = self.map.lock().unwrap().clone();
        MapConnector { map: Arc::clone(&self.map), first, fault: F::FAULT }
    }

    fn put(&mut self, key: &[u8], content: &[u8]) {
        self.map.lock().unwrap().insert(key.to_vec(), stored(content));
    }

    fn remove(&mut self, key: &[u8]) {
        self.map.lock().unwrap().remove(key);
    }

    fn deny(&mut self, key: &[u8]) -> bool {
        self.map.lock().unwrap().get_mut(key).unwrap().is_denied = true;
        true
    }

    fn entice(&mut self, secret: &[u8]) -> Vec<Vec<u8>> {
        let trap = Stored { is_trap: true, ..stored(secret) };
        self.map.lock().unwrap().insert(b"trap".to_vec(), trap);
        vec![b"trap".to_vec()]
    }
}

struct MapConnector {
    map: Arc<Mutex<Map>>,
    /// As it was when the connector was made.
    first: Map,
    fault: Option<Broken>,
}

impl MapConnector {
    fn is(&self, fault: Broken) -> bool {
        self.fault == Some(fault)
    }

    /// Keys of the range behind the cursor.
    fn keys(&self, range: ShardSpecRef<'_>, cursor: CursorUpdate<'_>) -> Vec<Vec<u8>> {
        let map =
            if self.is(Broken::StaleListing) { &self.first } else { &*self.map.lock().unwrap() };
        let from_start = self.is(Broken::StartIgnored);
        let in_range = |key: &[u8]| {
            let at_end = self.is(Broken::EndInclusive) && key == range.end();
            range.contains(key) || at_end || from_start && key < range.start()
        };
        let token_at = cursor.token().filter(|_| self.is(Broken::TokenSkips));
        let behind = |key: &[u8]| match token_at.or(cursor.last_key()) {
            Some(last) if self.is(Broken::CursorInclusive) => key >= last,
            Some(last) => key > last,
            None => true,
        };
        map.keys().filter(|key| in_range(key) && behind(key)).cloned().collect()
    }
}

struct AllText;

impl Classifier for AllText {
    fn kind(&self, _key: &[u8], _head: &[u8]) -> ContentKind {
        ContentKind::Text
    }
}

impl CanonicalBytes for AllText {
    fn feed(&self, _hasher: &mut CanonicalHasher) {}
}

impl Connector for MapConnector {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume_tokens: self.is(Broken::DeclaresTokens),
            range_reads: true,
            split_points: true,
            versions: true,
        }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        let end: &[u8] = if self.is(Broken::RangeTooNarrow) { b"b" } else { &[0xff; 8] };
        ShardSpecRef::new(b"\0", end, b"")
    }

    fn classifier(&self) -> &dyn Classifier {
        &AllText
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        if !self.is(Broken::PageContinued) {
            page.clear();
        }
        let mut keys = self.keys(range, cursor);
        if self.is(Broken::ForgetsOne) {
            keys.retain(|key| key != b"a0");
        }
        let max = max_entries + usize::from(self.is(Broken::PageTooLong));
        let is_last = keys.len() <= max && !self.is(Broken::NeverLast);
        keys.truncate(max);
        if self.is(Broken::Order) && keys.len() > 2 {
            keys.swap(0, 1);
        }
        let map = self.map.lock().unwrap();
        for key in &keys {
            let item = map.get(key).cloned().unwrap_or_default();
            if item.is_denied && self.is(Broken::DenialStops) {
                page.finish(true, None);
                return Ok(());
            }
            if item.is_denied && self.is(Broken::DenialHidden) {
                continue;
            }
            let follows = self.is(Broken::LeavesTheTarget);
            page.push(PageEntry {
                key,
                version: &item.version.to_le_bytes(),
                size: item.content.len() as u64 + u64::from(self.is(Broken::WrongSize)),
                skip: (item.is_trap && !follows).then_some(SkipReason::Link),
            });
        }
        // The key behind the page, instead of its last.
        let token = self.is(Broken::TokenSkips).then(|| [b"z".to_vec(), vec![0xff]].concat());
        page.finish(is_last, token);
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        let item = self.map.lock().unwrap().get(key).cloned();
        let item = match item {
            None if self.is(Broken::OpensAnything) => Stored::default(),
            None if self.is(Broken::ErrorsTell) => {
                let message = String::from_utf8_lossy(key).into_owned();
                return Err(ConnectorError::Permanent { operation: "open", message });
            }
            None => return Err(ConnectorError::NotFound { operation: "open" }),
            Some(item) if item.is_denied => {
                return Err(ConnectorError::PermissionDenied { operation: "open" });
            }
            Some(item) if item.is_trap && !self.is(Broken::LeavesTheTarget) => {
                return Err(ConnectorError::NotFound { operation: "open" });
            }
            Some(item) => item,
        };
        let version = match self.fault {
            Some(Broken::VersionConstant) => b"always".to_vec(),
            Some(Broken::VersionEmpty) => Vec::new(),
            _ => item.version.to_le_bytes().to_vec(),
        };
        let (map, key) = (Arc::clone(&self.map), key.to_vec());
        Ok(Box::new(MapReader { map, key, size: item.content.len(), version, fault: self.fault }))
    }

    fn shown_path(&self, _: &[u8]) -> Option<Vec<u8>> {
        self.is(Broken::CalledTwoThings).then(|| b"another".to_vec())
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        match self.fault {
            Some(Broken::AlwaysSettled) => true,
            Some(Broken::NeverSettled) => false,
            _ => !version.is_empty() && opened_at_ms > 0,
        }
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        let cursor =
            if self.is(Broken::PointsBehindCursor) { CursorUpdate::initial() } else { cursor };
        let mut keys = self.keys(range, cursor);
        keys.retain(|key| key[..] > *range.start());
        let step = (keys.len() / (want + 1)).max(1);
        let mut points: Vec<Box<[u8]>> =
            keys.into_iter().skip(step).step_by(step).take(want).map(Into::into).collect();
        match self.fault {
            Some(Broken::PointsOutside) => points.push([0xff; 9].into()),
            Some(Broken::PointsBackwards) => points.reverse(),
            Some(Broken::TooManyPoints) if want == 0 => points.push(range.start().into()),
            Some(Broken::NoPoints) => points.clear(),
            _ => {}
        }
        Ok(points)
    }
}

/// Reads in place, like a file: what is put meanwhile shows.
struct MapReader {
    map: Arc<Mutex<Map>>,
    key: Vec<u8>,
    size: usize,
    version: Vec<u8>,
    fault: Option<Broken>,
}

impl ItemReader for MapReader {
    fn size(&self) -> u64 {
        self.size as u64
    }

    fn version(&self) -> &[u8] {
        &self.version
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        let map = self.map.lock().unwrap();
        let content = map.get(&self.key).map_or(&[][..], |item| &item.content);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let mut len = buf.len().min(content.len() - start);
        if self.fault == Some(Broken::CutsReads) && start > 100_000 {
            len = 0;
        }
        if self.fault == Some(Broken::ReadsBehindTheEnd) && start == content.len() {
            return Err(ConnectorError::Permanent { operation: "read", message: "end".to_owned() });
        }
        buf[..len].copy_from_slice(&content[start..start + len]);
        Ok(len)
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        if matches!(self.fault, Some(Broken::VersionNowStuck | Broken::VersionConstant)) {
            return Ok(self.version.clone());
        }
        let map = self.map.lock().unwrap();
        let item = map.get(&self.key).ok_or(ConnectorError::NotFound { operation: "read" })?;
        Ok(item.version.to_le_bytes().to_vec())
    }
}

struct Sound;
impl Fault for Sound {
    const FAULT: Option<Broken> = None;
}

mod of_a_sound_connector {
    crate::connector_conformance_suite!(super::MapHarness<super::Sound>);
}

macro_rules! every_fault_is_caught_by {
    ($($fault:ident => $case:literal)*) => {$(
        #[allow(non_snake_case, reason = "named like the fault")]
        #[test]
        fn $fault() {
            struct Subject;
            impl Fault for Subject {
                const FAULT: Option<Broken> = Some(Broken::$fault);
            }
            let outcome = catch_unwind(|| run_case::<MapHarness<Subject>>($case));
            assert!(outcome.is_err(), "{:?} passes {}", Broken::$fault, $case);
        }
    )*};
}

mod broken {
    use super::*;

    every_fault_is_caught_by! {
        Order => "lists::every_key_is_listed_once_in_byte_order"
        ForgetsOne => "lists::every_key_is_listed_once_in_byte_order"
        RangeTooNarrow => "lists::every_key_lies_in_the_key_range"
        CursorInclusive => "lists::listing_from_any_cursor_gives_what_follows"
        EndInclusive => "lists::listing_a_range_gives_what_is_in_it"
        StartIgnored => "lists::listing_a_range_gives_what_is_in_it"
        PageTooLong => "lists::any_page_size_gives_the_same_listing"
        NeverLast => "lists::an_empty_target_lists_nothing_and_says_so"
        PageContinued => "lists::a_page_is_replaced_not_continued"
        TokenSkips => "lists::tokens_lead_where_keys_lead"
        DeclaresTokens => "lists::tokens_lead_where_keys_lead"
        StaleListing => "lists::what_appears_ahead_of_the_cursor_is_listed"
        WrongSize => "lists::sizes_are_listed"
        CalledTwoThings => "items::an_item_is_called_the_same_open_or_not"
        CutsReads => "items::an_item_reads_as_it_was_put"
        ReadsBehindTheEnd => "items::a_read_at_or_behind_the_end_gives_nothing"
        VersionConstant => "items::a_changed_item_has_another_version"
        VersionEmpty => "items::versions_are_as_declared"
        AlwaysSettled => "items::a_version_settles_once_and_for_all"
        NeverSettled => "items::a_version_settles_once_and_for_all"
        VersionNowStuck => "items::a_change_under_a_reader_shows"
        OpensAnything => "items::a_removed_item_is_not_found"
        DenialHidden => "items::a_denied_item_is_reported_and_the_rest_is_not_lost"
        DenialStops => "items::a_denied_item_is_reported_and_the_rest_is_not_lost"
        LeavesTheTarget => "items::nothing_outside_the_target_is_read"
        ErrorsTell => "items::errors_hold_no_key"
        PointsOutside => "splits::points_are_ascending_inside_and_behind_the_cursor"
        PointsBackwards => "splits::points_are_ascending_inside_and_behind_the_cursor"
        PointsBehindCursor => "splits::points_are_ascending_inside_and_behind_the_cursor"
        TooManyPoints => "splits::points_are_ascending_inside_and_behind_the_cursor"
        NoPoints => "splits::a_source_that_declares_points_finds_some"
    }
}
