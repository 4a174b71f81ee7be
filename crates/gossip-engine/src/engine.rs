//! The engine: rules made ready to scan with.
//!
//! - E1: what is found depends on the bytes, the path, the rules and the options, and not on how
//!   the bytes arrive: whole, or in pieces of any size.
//! - E2: every span lies within the bytes that were given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, PolicyHash};

use crate::detect::Told;
use crate::finding::Finding;
use crate::options::Options;
use crate::position::LineCounter;
use crate::rules::{Allowlist, Origin, RuleSet};
use crate::scratch::Scratch;
use crate::segment::Segment;
use crate::stream::{Stream, StreamMark};
use crate::tables::Tables;

/// Finds secrets. Immutable: make one, share it between threads, give each its own [`Scratch`].
///
/// ```
/// use gossip_engine::{Engine, Options, RuleSet, Scratch};
///
/// let rules = RuleSet::from_toml("mine.toml", r#"
///     [[rules]]
///     id = "acme-token"
///     regex = '''\bacme_[a-z0-9]{8}\b'''
/// "#)?;
/// let engine = Engine::new(rules, Options::default());
/// let mut scratch = Scratch::new();
/// let mut found = Vec::new();
/// engine.scan(&mut scratch, b"token: acme_q8zr2lmt", None, &mut |finding| {
///     found.push((finding.rule().id().to_owned(), finding.span().start));
/// });
/// assert_eq!(found, [("acme-token".to_owned(), 7)]);
/// # Ok::<(), gossip_engine::RuleFileError>(())
/// ```
pub struct Engine {
    pub(crate) rules: RuleSet,
    pub(crate) options: Options,
    pub(crate) tables: Arc<Tables>,
    id: u64,
}

impl Engine {
    /// An engine with these rules.
    #[must_use]
    pub fn new(rules: RuleSet, options: Options) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let tables = Tables::of(&rules, &options);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { rules, options, tables, id }
    }

    /// The rules that it looks for, built-in and own.
    #[must_use]
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// What it was told to decode and to report.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The identity of all that decides what is found and reported. Bytes that were scanned under
    /// this hash need not be scanned again.
    #[must_use]
    pub fn policy_hash(&self) -> PolicyHash {
        PolicyHash::derive(self)
    }

    /// Scans `bytes`, the whole of an object, and calls back with each finding in order.
    pub fn scan(
        &self,
        scratch: &mut Scratch,
        bytes: &[u8],
        path: Option<&[u8]>,
        on_finding: &mut impl FnMut(Finding<'_>),
    ) {
        self.stream(scratch, path).scan_whole(bytes, on_finding);
    }

    /// Starts to scan an object that arrives in pieces. Finds what [`scan`](Self::scan) would find
    /// in the whole.
    pub fn stream<'e>(&'e self, scratch: &'e mut Scratch, path: Option<&'e [u8]>) -> Stream<'e> {
        self.begin(scratch, path);
        let skipped = self.skips(path);
        if !skipped {
            self.scan_path(scratch, path);
        }
        Stream::new(self, scratch, path, skipped)
    }

    /// Goes on with an object where an earlier stream over the same bytes made its
    /// [`mark`](Stream::mark): push the bytes from [`StreamMark::read_from`] on.
    pub fn resume<'e>(
        &'e self,
        scratch: &'e mut Scratch,
        path: Option<&'e [u8]>,
        mark: StreamMark,
    ) -> Stream<'e> {
        let mut stream = Stream::new(self, scratch, path, self.skips(path));
        stream.skip_to(mark);
        stream
    }

    /// Whether an allow-list lets a finding of this path pass because of the commit that brought it
    /// in; if so, whose list it is.
    #[must_use]
    pub fn allows_commit(&self, found: &Finding<'_>, commit: &str, path: &[u8]) -> Option<Origin> {
        let rule = found.rule();
        let global = self.rules.allowlists().filter(|list| list.concerns(rule.id()));
        let lists = rule.allowlists.iter().chain(global);
        let allowing =
            lists.filter(|list| list.allows_commit(commit, found.secret().expose(), path));
        let origin = |list: &Allowlist| if list.is_local { Origin::Target } else { Origin::User };
        allowing.map(origin).min_by_key(|origin| *origin == Origin::Target)
    }

    pub(crate) fn begin(&self, scratch: &mut Scratch, path: Option<&[u8]>) {
        scratch.begin(self.id, self.rules.len(), self.tables.slots);
        // Few files are of any of these rules.
        if let Some(path) = path
            && !self.tables.paths.may_have(path, &self.rules)
        {
            let rules = self.tables.paths.rules.iter();
            rules.for_each(|rule| scratch.path_fits[*rule as usize] = Some(false));
        }
    }

    /// Whether nothing in this path is to be reported.
    fn skips(&self, path: Option<&[u8]>) -> bool {
        let Some(path) = path else { return false };
        let everything = |list: &&Allowlist| list.concerns_all();
        self.rules.allowlists().filter(everything).any(|list| list.allows_path(path))
    }

    /// Rules without an expression find the path itself: an empty span at the start.
    fn scan_path(&self, scratch: &mut Scratch, path: Option<&[u8]>) {
        let Some(path) = path else { return };
        // Nothing is read, so it does not matter how.
        let told = Told::UNKNOWN;
        let nothing = Segment { engine: self, path: Some(path), told, base: 0, text: &[] };
        self.tables.by_path.iter().for_each(|index| nothing.judge_path(scratch, *index));
        let Scratch { candidates, known, .. } = scratch;
        candidates.place(&[], 0, LineCounter::default(), known, Some(path));
    }
}

impl CanonicalBytes for Engine {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&self.options).value(&self.rules);
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} rules, {} literals)", self.rules.len(), self.tables.links.len())
    }
}
