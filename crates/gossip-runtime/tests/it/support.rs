//! A tree with planted tokens, and a source that tells what is read of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gossip_connectors::fs::{FsOptions, FsSource};
use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page, PageEntry, SkipReason,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_engine::{Engine, Options, RuleSet, template};
use gossip_runtime::{
    ReportedFinding, Reports, RunSummary, Scan, ScanError, ScanOptions, ScanOutcome, ScanStats,
    StateDir,
};

/// A token that no vendor gives out, so that nothing here looks like a credential.
pub(crate) fn token(seed: u64) -> String {
    template::expand("acme_{lowernum:24}", seed).unwrap().text
}

pub(crate) fn engine(rule_id: &str) -> Engine {
    let rules = format!("[[rules]]\nid = \"{rule_id}\"\nregex = '''\\bacme_[a-z0-9]{{24}}\\b'''\n");
    Engine::new(RuleSet::from_toml("test.toml", &rules).unwrap(), Options::default())
}

/// A tree and a state directory.
pub(crate) struct Place {
    _dir: tempfile::TempDir,
    pub(crate) tree: PathBuf,
    pub(crate) state: StateDir,
    pub(crate) engine: Engine,
    pub(crate) options: ScanOptions,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        let state = StateDir::open(dir.path().join("state")).unwrap();
        let options = ScanOptions { threads: 2, checkpoint_items: 3, ..ScanOptions::default() };
        Self { _dir: dir, tree, state, engine: engine("acme-token"), options }
    }

    /// With `files` files in some directories; every third has a token, with its number as seed.
    pub(crate) fn with_files(files: u64) -> Self {
        let place = Self::new();
        for number in 0..files {
            place.write(&file_name(number), &content(number));
        }
        place
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.tree.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// What the operating system says is settled is settled only two seconds after a change; tests
    /// that are not about that do not wait.
    pub(crate) fn source<'h>(&self) -> Watched<'h> {
        Watched::new(&self.tree)
    }

    /// Another memory of the same tree: nothing is known.
    pub(crate) fn elsewhere(&self) -> StateDir {
        let name = format!("state{}", fs::read_dir(self.tree.parent().unwrap()).unwrap().count());
        StateDir::open(self.tree.with_file_name(name)).unwrap()
    }

    pub(crate) fn scan(&self, source: &dyn Connector) -> Result<ScanOutcome, ScanError> {
        self.scan_with(&self.options, source)
    }

    pub(crate) fn scan_with(
        &self,
        options: &ScanOptions,
        source: &dyn Connector,
    ) -> Result<ScanOutcome, ScanError> {
        self.scan_as(&self.state, options, source, &AtomicBool::new(false))
    }

    pub(crate) fn scan_until(
        &self,
        source: &dyn Connector,
        stop: &AtomicBool,
    ) -> Result<ScanOutcome, ScanError> {
        self.scan_in(&self.state, source, stop)
    }

    pub(crate) fn scan_in(
        &self,
        state: &StateDir,
        source: &dyn Connector,
        stop: &AtomicBool,
    ) -> Result<ScanOutcome, ScanError> {
        self.scan_as(state, &self.options, source, stop)
    }

    fn scan_as(
        &self,
        state: &StateDir,
        options: &ScanOptions,
        source: &dyn Connector,
        stop: &AtomicBool,
    ) -> Result<ScanOutcome, ScanError> {
        let (engine, stats) = (&self.engine, &ScanStats::default());
        Scan { state, source, target: b"the tree", engine, options, stats, stop }.run()
    }

    pub(crate) fn summary(&self, outcome: &ScanOutcome) -> RunSummary {
        Reports::open(&self.state).unwrap().run(outcome.run).unwrap()
    }

    pub(crate) fn findings(&self, outcome: &ScanOutcome) -> Vec<ReportedFinding> {
        Reports::open(&self.state).unwrap().findings(outcome.run).unwrap()
    }

    /// Where things were found.
    pub(crate) fn places(&self, outcome: &ScanOutcome) -> Vec<(String, u64)> {
        places(&self.findings(outcome))
    }

    /// The numbers of a scan that nothing disturbs and that knows nothing.
    pub(crate) fn summary_elsewhere(&self) -> RunSummary {
        let state = self.elsewhere();
        let outcome = self.scan_in(&state, &self.source(), &AtomicBool::new(false)).unwrap();
        Reports::open(&state).unwrap().run(outcome.run).unwrap()
    }

    /// What a scan that nothing disturbs and that knows nothing finds now.
    pub(crate) fn undisturbed(&self) -> Vec<(String, u64)> {
        let state = self.elsewhere();
        let outcome = self.scan_in(&state, &self.source(), &AtomicBool::new(false)).unwrap();
        places(&Reports::open(&state).unwrap().findings(outcome.run).unwrap())
    }
}

pub(crate) fn places(findings: &[ReportedFinding]) -> Vec<(String, u64)> {
    let place =
        |found: &ReportedFinding| (String::from_utf8_lossy(&found.path).into_owned(), found.start);
    findings.iter().map(place).collect()
}

pub(crate) fn file_name(number: u64) -> String {
    format!("dir{}/file{number:03}.txt", number % 5)
}

pub(crate) fn content(number: u64) -> String {
    let filler = "some text\n".repeat(20);
    if number.is_multiple_of(3) { format!("{filler}key = {}\n", token(number)) } else { filler }
}

type Hook<'h> = Box<dyn Fn(&[u8], u64) + Send + Sync + 'h>;
type OnRead = Arc<dyn Fn(&[u8], u64) + Send + Sync>;
type FailsRead = Arc<dyn Fn(u64) -> bool + Send + Sync>;

/// A tree that calls back before each read and remembers which keys were read.
pub(crate) struct Watched<'h> {
    inner: FsSource,
    hook: Hook<'h>,
    reads: Mutex<Vec<Vec<u8>>>,
    /// Called before each read of bytes, with its offset.
    pub(crate) on_read: Option<OnRead>,
    /// Whether a read of bytes at this offset fails in passing.
    pub(crate) fails_read: Option<FailsRead>,
    /// This file may not be opened.
    pub(crate) denied: Option<String>,
    /// Everything has this version.
    pub(crate) version: Option<&'static [u8]>,
    /// A read gives no more bytes than this.
    pub(crate) read_max: usize,
    /// All bytes that were read.
    pub(crate) bytes_read: Arc<AtomicU64>,
    /// Listings that would give a key from here on fail.
    pub(crate) broken_from: Option<&'static [u8]>,
    /// This directory cannot be listed, nor can anything in it be opened.
    pub(crate) unlistable: Option<&'static str>,
    /// What every item but this stood in the place of.
    pub(crate) base: Option<&'static str>,
    /// Listings fail in passing, one out of two.
    pub(crate) every_other_listing_fails: bool,
    /// Set when one does.
    pub(crate) stop_at_failed_listing: Option<&'h AtomicBool>,
    listings: AtomicU64,
    /// Called when the shards of a run are planned.
    pub(crate) on_plan: Option<Box<dyn Fn() + Send + Sync + 'h>>,
    /// Every version is trusted.
    pub(crate) all_settled: bool,
}

impl<'h> Watched<'h> {
    pub(crate) fn new(tree: &Path) -> Self {
        Self::with_hook(tree, |_, _| {})
    }

    pub(crate) fn with_hook(tree: &Path, hook: impl Fn(&[u8], u64) + Send + Sync + 'h) -> Self {
        Self {
            inner: FsSource::open(tree, FsOptions::default()).unwrap(),
            hook: Box::new(hook),
            reads: Mutex::default(),
            on_read: None,
            fails_read: None,
            denied: None,
            version: None,
            read_max: usize::MAX,
            bytes_read: Arc::default(),
            broken_from: None,
            unlistable: None,
            base: None,
            every_other_listing_fails: false,
            stop_at_failed_listing: None,
            listings: AtomicU64::new(0),
            on_plan: None,
            all_settled: true,
        }
    }

    /// The keys that were read, each once, in order.
    pub(crate) fn keys_read(&self) -> Vec<String> {
        let mut keys: Vec<String> = self
            .reads
            .lock()
            .unwrap()
            .iter()
            .map(|key| String::from_utf8_lossy(key).into_owned())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }
}

impl Watched<'_> {
    /// Makes a page of all that there is behind its beginning.
    fn list_rest(&self, range: ShardSpecRef<'_>, page: &mut Page) -> Result<(), ConnectorError> {
        let mut next = page.clone();
        let mut all = Page::new();
        loop {
            next.iter().for_each(|entry| all.push(entry));
            let last = all.iter().last().map(|entry| entry.key.to_vec());
            if next.is_last() {
                break;
            }
            self.inner.list(range, CursorUpdate::new(last.as_deref(), None), 1_000, &mut next)?;
        }
        all.finish(true, None);
        *page = all;
        Ok(())
    }
}

impl Connector for Watched<'_> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        self.inner.key_range()
    }

    fn classifier(&self) -> &dyn Classifier {
        self.inner.classifier()
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        let listings = self.listings.fetch_add(1, Ordering::Relaxed);
        if self.every_other_listing_fails && listings.is_multiple_of(2) {
            if let Some(stop) = self.stop_at_failed_listing {
                stop.store(true, Ordering::Relaxed);
            }
            let message = "in passing, for a test".to_owned();
            return Err(ConnectorError::Retryable { operation: "list", message });
        }
        // Small pages, so that there is more than one.
        self.inner.list(range, cursor, max_entries.min(7), page)?;
        if self.unlistable.is_some() {
            self.list_rest(range, page)?;
        }
        if let Some(version) = self.version {
            let mut same = Page::new();
            page.iter().for_each(|entry| same.push(PageEntry { version, ..entry }));
            same.finish(page.is_last(), None);
            *page = same;
        }
        if let Some(directory) = self.unlistable {
            let (mut left, mut is_said) = (Page::new(), false);
            for entry in page.iter() {
                let is_below = entry.key.starts_with(format!("{directory}/").as_bytes());
                if !is_below {
                    left.push(entry);
                } else if cursor.last_key().is_none_or(|last| last < directory.as_bytes())
                    && !std::mem::replace(&mut is_said, true)
                {
                    let (key, skip) = (directory.as_bytes(), Some(SkipReason::Unreadable));
                    left.push(PageEntry { key, version: b"", size: 0, skip });
                }
            }
            left.finish(page.is_last(), None);
            // All of it is one page: a page without entries has no last key to go on from.
            assert!(page.is_last() || !left.is_empty());
            *page = left;
        }
        if let Some(broken) = self.broken_from
            && page.iter().any(|entry| entry.key >= broken)
        {
            page.clear();
            let message = "broken for a test".to_owned();
            return Err(ConnectorError::Permanent { operation: "list", message });
        }
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        (self.hook)(key, 0);
        self.reads.lock().unwrap().push(key.to_vec());
        if self.denied.as_ref().is_some_and(|denied| key == denied.as_bytes()) {
            return Err(ConnectorError::PermissionDenied { operation: "open" });
        }
        if self.unlistable.is_some_and(|dir| key.starts_with(format!("{dir}/").as_bytes())) {
            let message = "an input or output error, for a test".to_owned();
            return Err(ConnectorError::Permanent { operation: "open", message });
        }
        Ok(Box::new(WatchedReader {
            inner: self.inner.open(key)?,
            key: key.to_vec(),
            on_read: self.on_read.clone(),
            fails_read: self.fails_read.clone(),
            version: self.version,
            read_max: self.read_max,
            bytes_read: Arc::clone(&self.bytes_read),
            ahead_to: u64::MAX,
        }))
    }

    fn open_base(&self, key: &[u8]) -> Result<Option<Box<dyn ItemReader>>, ConnectorError> {
        let base = self.base.filter(|base| key != base.as_bytes());
        base.map(|base| self.open(base.as_bytes())).transpose()
    }

    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool {
        self.all_settled || self.inner.is_settled(version, opened_at_ms)
    }

    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        if cursor.last_key().is_none()
            && let Some(on_plan) = &self.on_plan
        {
            on_plan();
        }
        self.inner.split_points(range, cursor, want)
    }
}

struct WatchedReader {
    inner: Box<dyn ItemReader>,
    key: Vec<u8>,
    on_read: Option<OnRead>,
    fails_read: Option<FailsRead>,
    version: Option<&'static [u8]>,
    read_max: usize,
    bytes_read: Arc<AtomicU64>,
    /// Where whoever reads said that the reading ends.
    ahead_to: u64,
}

impl ItemReader for WatchedReader {
    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn version(&self) -> &[u8] {
        self.version.unwrap_or_else(|| self.inner.version())
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        if let Some(on_read) = &self.on_read {
            on_read(&self.key, offset);
        }
        if self.fails_read.as_ref().is_some_and(|fails| fails(offset)) {
            let message = "in passing, for a test".to_owned();
            return Err(ConnectorError::Retryable { operation: "read", message });
        }
        assert!(offset + buf.len() as u64 <= self.ahead_to, "what is fetched ahead ends before");
        let len = buf.len().min(self.read_max);
        let read = self.inner.read_at(offset, &mut buf[..len])?;
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }

    fn limit_read_ahead(&mut self, end: u64) {
        self.ahead_to = end;
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        self.version.map_or_else(|| self.inner.version_now(), |version| Ok(version.to_vec()))
    }
}

/// Stops a scan at its `nth` open.
pub(crate) fn stop_at<'h>(place: &Place, stop: &'h AtomicBool, nth: usize) -> Watched<'h> {
    let opened = std::sync::atomic::AtomicUsize::new(0);
    Watched::with_hook(&place.tree, move |_, _| {
        if opened.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            stop.store(true, Ordering::Relaxed);
        }
    })
}
