//! The engine: rules made ready to scan with.
//!
//! - E1: what is found depends on the bytes, the path, the rules and the options, and not on how
//!   the bytes arrive: whole, or in pieces of any size.
//! - E2: every span lies within the bytes that were given.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, PolicyHash};
use regex_automata::meta;

use crate::decode::escapes;
use crate::detect::FileKind;
use crate::finding::Finding;
use crate::literals::Next;
use crate::options::Options;
use crate::pattern::Pattern;
use crate::position::LineCounter;
use crate::prefilter::{Literal, Prefilter};
use crate::rules::{Allowlist, Origin, RuleSet};
use crate::scratch::Scratch;
use crate::segment::Segment;
use crate::stream::{Stream, StreamMark};

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
    pub(crate) prefilter: Prefilter,
    /// For each literal of the first stage: the rules' anchors that it is.
    pub(crate) links: Vec<Vec<Link>>,
    /// From this literal of the first stage on, they announce escapes and no rule.
    pub(crate) first_escape: usize,
    /// Rules without an anchor, tried everywhere.
    pub(crate) everywhere: Vec<u32>,
    /// Rules that look at paths only.
    pub(crate) by_path: Vec<u32>,
    /// Of those and of rules that are tried everywhere, but in some files only, the paths.
    paths: Paths,
    pub(crate) slots: usize,
    id: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) rule: u32,
    pub(crate) anchor: u32,
}

/// The paths of rules that no literal announces: every file would be held against each of them.
struct Paths {
    rules: Vec<u32>,
    /// All of them in one; none if that would be too large.
    regex: OnceLock<Option<meta::Regex>>,
}

impl Engine {
    /// An engine with these rules.
    #[must_use]
    pub fn new(rules: RuleSet, options: Options) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        // Rules that share a literal share its place in the first stage.
        let mut literals: BTreeMap<_, (Literal, Vec<Link>)> = BTreeMap::new();
        let mut everywhere = Vec::new();
        let mut by_path = Vec::new();
        let mut slots = 2;
        for (index, rule) in rules.iter().enumerate() {
            let index = index as u32;
            match &rule.regex {
                Some(regex) => {
                    slots = slots.max(2 + 2 * groups(regex.source()));
                    if rule.anchors.is_empty() {
                        everywhere.push(index);
                    }
                }
                None if rule.detector.is_none() => by_path.push(index),
                None if rule.anchors.is_empty() => everywhere.push(index),
                None => {}
            }
            let begins_matches = !rule.anchored_by_keyword && rule.detector.is_none();
            for (at, anchor) in rule.anchors.iter().enumerate() {
                let standalone = rule.standalone && begins_matches && anchor.reach.max == 0;
                let (shared, links) = literals
                    .entry((anchor.bytes.as_slice(), anchor.ignore_case))
                    .or_insert_with(|| (Literal::new(anchor, standalone), Vec::new()));
                shared.next = shared.next.union(anchor.next);
                shared.standalone &= standalone;
                links.push(Link { rule: index, anchor: at as u32 });
            }
        }
        let (mut literals, links): (Vec<_>, Vec<_>) = literals.into_values().unzip();
        let first_escape = literals.len();
        if options.decoding.escapes {
            literals.extend(escapes::BACKSLASH_ANCHORS.map(|text| Literal {
                bytes: text.as_bytes().to_vec(),
                ignore_case: false,
                next: Next::only(escapes::may_follow),
                standalone: false,
            }));
        }
        let prefilter = Prefilter::new(literals);
        let of_paths = |index: &u32| rules.rule(*index as usize).path.is_some();
        let of_paths = everywhere.iter().chain(&by_path).copied().filter(of_paths).collect();
        let paths = Paths { rules: of_paths, regex: OnceLock::new() };
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self {
            rules,
            options,
            prefilter,
            links,
            first_escape,
            everywhere,
            by_path,
            paths,
            slots,
            id,
        }
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
        scratch.begin(self.id, self.rules.len(), self.slots);
        // Few files are of any of these rules.
        if path.is_some_and(|path| !self.may_be_of_path(path)) {
            self.paths
                .rules
                .iter()
                .for_each(|rule| scratch.path_fits[*rule as usize] = Some(false));
        }
    }

    fn may_be_of_path(&self, path: &[u8]) -> bool {
        let sources = || {
            let paths = self.paths.rules.iter();
            paths.filter_map(|rule| self.rules.rule(*rule as usize).path.as_ref())
        };
        let any = self.paths.regex.get_or_init(|| Pattern::any_of(sources()));
        any.as_ref().is_none_or(|any| any.is_match(path))
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
        let kind = FileKind::Unknown;
        let nothing = Segment { engine: self, path: Some(path), kind, base: 0, text: &[] };
        self.by_path.iter().for_each(|index| nothing.judge_path(scratch, *index));
        let Scratch { candidates, known, .. } = scratch;
        candidates.place(&[], 0, LineCounter::default(), known, Some(path));
    }
}

fn groups(source: &str) -> usize {
    // Every group has a parenthesis; counting them costs less than keeping the syntax tree.
    source.bytes().filter(|byte| *byte == b'(').count()
}

impl CanonicalBytes for Engine {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&self.options).value(&self.rules);
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} rules, {} literals)", self.rules.len(), self.links.len())
    }
}
