//! The walk over commits, tags and directories.

use std::collections::{HashMap, HashSet};

use gix::ObjectId;
use gix::objs::{CommitRef, TagRef, TreeRefIter};

use super::Tips;
use super::commits::{Commit, Commits, place};
use super::paths::{Paths, ROOT};
use crate::manifest::{NONE, OriginRow, RowKind};
use crate::objects::{
    ObjectError, ObjectKind, ObjectReader, Objects, Positions, Whole, message_start,
};

/// Nothing was met at this position yet.
const UNSEEN: u32 = u32::MAX;
/// The origin of what is left out.
pub(crate) const EXCLUDED: u32 = u32::MAX - 1;

/// What files and directories may cost that are met under further paths: so much for each object, and
/// so much at least. A few directories that hold each other many times make more paths than anybody
/// could walk.
const FURTHER_COST_EACH: u64 = 32;
const FURTHER_COST_MIN: u64 = 1 << 18;
/// A path costs one, and one more for every so many bytes: a class is found by reading it.
const COST_BYTES: u64 = 64;
/// Under how many further paths a directory is walked when nothing is left: those that make too many
/// paths do not hide others.
const BEYOND_EACH: u8 = 16;

/// Something to read, under one of its paths.
pub(crate) struct Found {
    /// Its position among all objects.
    pub(crate) at: u32,
    pub(crate) kind: RowKind,
    /// [`NONE`] if it has none.
    pub(crate) path: u32,
    pub(crate) origin: u32,
    /// If that is known already.
    pub(crate) size: u64,
}

pub(crate) struct Walk<'w> {
    objects: &'w Objects,
    pub(crate) positions: Positions,
    reader: ObjectReader,
    /// For each position what was met there first: the path of a directory or file, or anything else of a
    /// commit or tag.
    seen: Vec<u32>,
    /// Paths beyond the first.
    seen_further: HashSet<(u32, u32)>,
    further_left: u64,
    /// How often a directory was walked since nothing is left.
    beyond: HashMap<u32, u8>,
    shallow: HashSet<ObjectId>,
    /// Paths of submodules.
    submodules: HashSet<u32>,
    pub(crate) paths: Paths,
    pub(crate) found: Vec<Found>,
    pub(crate) origins: Vec<OriginRow>,
    pub(crate) authors: Vec<Box<[u8]>>,
    author_numbers: HashMap<Box<[u8]>, u32>,
    /// Whether a directory was not walked, as there are too many paths.
    is_cut: bool,
    /// Whether something could not be walked.
    pub(crate) is_partial: bool,
}

impl<'w> Walk<'w> {
    pub(crate) fn new(
        objects: &'w Objects,
        positions: Positions,
        reader: ObjectReader,
        tips: &Tips,
    ) -> Self {
        Self {
            objects,
            seen: vec![UNSEEN; positions.len()],
            further_left: FURTHER_COST_MIN + FURTHER_COST_EACH * positions.len() as u64,
            beyond: HashMap::new(),
            positions,
            reader,
            seen_further: HashSet::new(),
            shallow: tips.shallow.iter().copied().collect(),
            submodules: HashSet::new(),
            paths: Paths::new(),
            found: Vec::new(),
            origins: Vec::new(),
            authors: Vec::new(),
            author_numbers: HashMap::new(),
            is_cut: false,
            is_partial: objects.packs().broken > 0,
        }
    }

    pub(crate) fn run(&mut self, tips: &Tips) -> Result<(), ObjectError> {
        let mut trees = Vec::new();
        let mut commits = Commits::default();
        self.exclude(&tips.exclude, &mut commits, &mut trees)?;
        let mut loners = Vec::new();
        self.collect(&tips.include, &mut commits, &mut trees, &mut loners)?;
        for tree in trees {
            self.enter(tree, EXCLUDED)?;
        }
        self.sort(&mut commits);
        for Commit { at, tree, origin, message_len } in commits.commits {
            let kind = RowKind::Commit;
            self.found.push(Found { at, kind, path: NONE, origin, size: message_len });
            self.enter(tree, origin)?;
        }
        // What commits have is put down to them.
        for (id, origin) in loners {
            self.enter_any(id, origin)?;
        }
        self.add_files(tips);
        self.add_shallow(tips);
        Ok(())
    }

    /// Names the commits that were met and whose parents a shallow clone does not have.
    fn add_shallow(&mut self, tips: &Tips) {
        for id in &tips.shallow {
            let at = self.position(id);
            let is_met = match self.seen[at as usize] {
                UNSEEN => false,
                EXCLUDED => !tips.excludes_by_request,
                _ => true,
            };
            if is_met {
                let (kind, path, origin) = (RowKind::Shallow, NONE, NONE);
                self.found.push(Found { at, kind, path, origin, size: 0 });
            }
        }
    }

    /// Of files by themselves, what was there before stands in the place of what brought them in.
    fn add_files(&mut self, tips: &Tips) {
        let mut bases = HashMap::new();
        for (path, id, base) in &tips.files {
            let at = self.position(id);
            let path = self.paths.of(ROOT, path);
            let origin = base.map_or(NONE, |id| {
                *bases.entry(id).or_insert_with(|| {
                    let (order, seconds, offset_seconds, author) = (0, 0, 0, NONE);
                    self.origins.push(OriginRow { id, order, seconds, offset_seconds, author });
                    self.origins.len() as u32 - 1
                })
            });
            self.found.push(Found { at, kind: RowKind::Blob, path, origin, size: 0 });
        }
    }

    /// Gives commits their places, and puts them into that order.
    fn sort(&mut self, commits: &mut Commits) {
        let dates = commits.dates_in_order();
        for Commit { at, origin, .. } in &commits.commits {
            let date = dates.binary_search_by_key(at, |date| date.0);
            let (_, seconds) = dates[date.expect("each has a date")];
            let origin = &mut self.origins[*origin as usize];
            origin.order = place(seconds, &origin.id);
        }
        let order = |commit: &Commit| self.origins[commit.origin as usize].order;
        commits.commits.sort_by_key(|commit| (order(commit), commit.at));
    }

    /// Marks commits and all before them as left out. Their own directories go into `trees`.
    fn exclude(
        &mut self,
        tips: &[ObjectId],
        commits: &mut Commits,
        trees: &mut Vec<ObjectId>,
    ) -> Result<(), ObjectError> {
        let mut stack: Vec<_> = tips.iter().map(|tip| (*tip, true)).collect();
        while let Some((id, is_tip)) = stack.pop() {
            let at = self.position(&id);
            if self.seen[at as usize] == EXCLUDED {
                continue;
            }
            self.seen[at as usize] = EXCLUDED;
            match self.read(&id)? {
                Some(Read::Commit(commit)) => {
                    trees.extend(is_tip.then_some(commit.tree));
                    commits.dates.push((at, commit.seconds));
                    for parent in commit.parents {
                        commits.edges.push((self.position(&parent), at));
                        stack.push((parent, false));
                    }
                }
                // A tag stands for what it names.
                Some(Read::Tag { target, .. }) => stack.push((target, is_tip)),
                Some(Read::Other) => {}
                // It is not needed.
                None => self.is_partial = true,
            }
        }
        Ok(())
    }

    /// Collects the commits that `tips` reach, and tags. Directories of commits that are left out and
    /// have a child that is not go into `trees`; tips that are neither commit nor tag into `loners`.
    fn collect(
        &mut self,
        tips: &[ObjectId],
        commits: &mut Commits,
        trees: &mut Vec<ObjectId>,
        loners: &mut Vec<(ObjectId, u32)>,
    ) -> Result<(), ObjectError> {
        // With the position of the child that it is a parent of, and the origin of the tag that names it.
        let mut stack: Vec<(ObjectId, u32, u32)> =
            tips.iter().map(|tip| (*tip, NONE, NONE)).collect();
        while let Some((id, child, tag)) = stack.pop() {
            let at = self.position(&id);
            commits.edges.extend((child != NONE).then_some((at, child)));
            let known = self.seen[at as usize];
            if known == EXCLUDED {
                if child != NONE
                    && let Some(Read::Commit(commit)) = self.read(&id)?
                {
                    trees.push(commit.tree);
                }
                continue;
            }
            if known != UNSEEN {
                continue;
            }
            match self.read(&id)? {
                Some(Read::Commit(read)) => {
                    self.seen[at as usize] = 0;
                    stack.extend(read.parents.iter().map(|parent| (*parent, at, NONE)));
                    commits.dates.push((at, read.seconds));
                    let origin = self.origin(id, read.signature);
                    let ReadCommit { tree, message_len, .. } = read;
                    commits.commits.push(Commit { at, tree, origin, message_len });
                }
                Some(Read::Tag { target, signature, message_len }) => {
                    self.seen[at as usize] = 0;
                    let origin = self.origin(id, signature);
                    let (kind, path) = (RowKind::Tag, NONE);
                    self.found.push(Found { at, kind, path, origin, size: message_len });
                    stack.push((target, NONE, origin));
                }
                Some(Read::Other) => loners.push((id, tag)),
                None => {
                    self.seen[at as usize] = 0;
                    self.unreadable(at, RowKind::Commit, NONE);
                }
            }
        }
        Ok(())
    }

    fn position(&mut self, id: &gix::oid) -> u32 {
        let at = self.positions.of(id);
        if at as usize >= self.seen.len() {
            self.seen.resize(at as usize + 1, UNSEEN);
        }
        at
    }

    fn origin(&mut self, id: ObjectId, signature: Signature) -> u32 {
        let Self { authors, author_numbers, .. } = self;
        let author = *author_numbers.entry(signature.author).or_insert_with_key(|author| {
            authors.push(author.clone());
            authors.len() as u32 - 1
        });
        let Signature { seconds, offset_seconds, .. } = signature;
        let order = place(seconds, &id);
        self.origins.push(OriginRow { id, order, seconds, offset_seconds, author });
        self.origins.len() as u32 - 1
    }

    /// Puts something that cannot be read into the plan (P2).
    fn unreadable(&mut self, at: u32, kind: RowKind, origin: u32) {
        self.is_partial = true;
        self.found.push(Found { at, kind, path: NONE, origin, size: 0 });
    }

    /// Walks a tip that is neither commit nor tag.
    fn enter_any(&mut self, id: ObjectId, origin: u32) -> Result<(), ObjectError> {
        match self.bytes(&id)? {
            Some((ObjectKind::Blob, _)) => {
                let at = self.position(&id);
                let (kind, path) = (RowKind::Blob, NONE);
                self.found.push(Found { at, kind, path, origin, size: 0 });
                Ok(())
            }
            _ => self.enter(id, origin),
        }
    }

    /// Walks a directory and all below it that was not met under the same path.
    fn enter(&mut self, tree: ObjectId, origin: u32) -> Result<(), ObjectError> {
        let mut stack = Vec::new();
        let at = self.position(&tree);
        if self.is_new(at, ROOT) {
            stack.push((tree, ROOT));
        }
        while let Some((id, directory)) = stack.pop() {
            let Some((ObjectKind::Tree, bytes)) = self.bytes(&id)? else {
                if origin != EXCLUDED {
                    let at = self.position(&id);
                    self.unreadable(at, RowKind::Tree, origin);
                }
                continue;
            };
            for entry in TreeRefIter::from_bytes(&bytes, self.objects.hash()) {
                let Ok(entry) = entry else {
                    if origin != EXCLUDED {
                        let at = self.position(&id);
                        self.unreadable(at, RowKind::Tree, origin);
                    }
                    break;
                };
                let path = self.paths.of(directory, entry.filename);
                if entry.mode.is_commit() {
                    self.submodule(entry.oid, path, origin);
                    continue;
                }
                let at = self.position(entry.oid);
                if !self.is_new(at, path) {
                    continue;
                }
                if entry.mode.is_tree() {
                    if self.may_enter(at, path, origin) {
                        stack.push((entry.oid.to_owned(), path));
                    }
                    continue;
                }
                self.found.push(Found { at, kind: RowKind::Blob, path, origin, size: 0 });
            }
        }
        Ok(())
    }

    /// Names a submodule, once for each path.
    fn submodule(&mut self, id: &gix::oid, path: u32, origin: u32) {
        if self.submodules.insert(path) {
            let at = self.position(id);
            self.found.push(Found { at, kind: RowKind::Submodule, path, origin, size: 0 });
        }
    }

    /// Whether a file or directory was not met under this path before.
    fn is_new(&mut self, at: u32, path: u32) -> bool {
        let first = &mut self.seen[at as usize];
        if *first == UNSEEN {
            *first = path;
            return true;
        }
        if *first == path || self.seen_further.contains(&(at, path)) {
            return false;
        }
        let cost = 1 + self.paths.text_len(path) / COST_BYTES;
        self.further_left = self.further_left.saturating_sub(cost);
        self.seen_further.insert((at, path))
    }

    /// Whether a directory is walked under this path. The first that is not is in the plan (P2).
    fn may_enter(&mut self, at: u32, path: u32, origin: u32) -> bool {
        if self.further_left > 0 || self.seen[at as usize] == path {
            return true;
        }
        let walked = self.beyond.entry(at).or_default();
        if *walked < BEYOND_EACH {
            *walked += 1;
            return true;
        }
        // What is met again among what is left out would only be planned once more.
        if origin != EXCLUDED && !std::mem::replace(&mut self.is_cut, true) {
            self.is_partial = true;
            let kind = RowKind::ManyPaths;
            self.found.push(Found { at, kind, path, origin, size: 0 });
        }
        false
    }

    /// The bytes of an object; `None` if it cannot be read.
    fn bytes(&mut self, id: &gix::oid) -> Result<Option<(ObjectKind, Whole)>, ObjectError> {
        let read = self.objects.locate(id).and_then(|place| self.reader.whole(&place));
        match read {
            Ok(read) => Ok(Some(read)),
            Err(ObjectError::Io(error)) => Err(ObjectError::Io(error)),
            Err(error) => {
                tracing::warn!(%error, "an object cannot be read");
                Ok(None)
            }
        }
    }

    /// A commit or a tag; `None` if it cannot be read.
    fn read(&mut self, id: &gix::oid) -> Result<Option<Read>, ObjectError> {
        let Some((kind, bytes)) = self.bytes(id)? else { return Ok(None) };
        Ok(match kind {
            ObjectKind::Commit => {
                let is_shallow = self.shallow.contains(id);
                ReadCommit::parse(&bytes, self.objects.hash(), is_shallow).map(Read::Commit)
            }
            ObjectKind::Tag => Read::parse_tag(&bytes, self.objects.hash()),
            ObjectKind::Tree | ObjectKind::Blob => Some(Read::Other),
        })
    }
}

/// Who and when.
struct Signature {
    author: Box<[u8]>,
    seconds: i64,
    offset_seconds: i32,
}

struct ReadCommit {
    tree: ObjectId,
    parents: Vec<ObjectId>,
    seconds: i64,
    signature: Signature,
    message_len: u64,
}

/// What an object says.
enum Read {
    Commit(ReadCommit),
    Tag { target: ObjectId, signature: Signature, message_len: u64 },
    Other,
}

impl ReadCommit {
    fn parse(bytes: &[u8], hash: gix::hash::Kind, is_shallow: bool) -> Option<Self> {
        let commit = CommitRef::from_bytes(bytes, hash).ok()?;
        let parents = if is_shallow { Vec::new() } else { commit.parents().collect() };
        Some(Self {
            tree: commit.tree(),
            parents,
            seconds: commit.time().map_or(0, |time| time.seconds),
            signature: Signature::of(commit.author().ok()),
            message_len: (bytes.len() - message_start(bytes)) as u64,
        })
    }
}

impl Read {
    fn parse_tag(bytes: &[u8], hash: gix::hash::Kind) -> Option<Self> {
        let tag = TagRef::from_bytes(bytes, hash).ok()?;
        Some(Self::Tag {
            target: tag.target(),
            signature: Signature::of(tag.tagger().ok().flatten()),
            message_len: (bytes.len() - message_start(bytes)) as u64,
        })
    }
}

impl Signature {
    /// Of one that cannot be read nothing is known.
    fn of(signature: Option<gix::actor::SignatureRef<'_>>) -> Self {
        let Some(signature) = signature else {
            return Self { author: Box::default(), seconds: 0, offset_seconds: 0 };
        };
        let (name, email): (&[u8], &[u8]) = (signature.name, signature.email);
        let author = [name, b" <", email, b">"].concat();
        let time = signature.time().unwrap_or_default();
        Self { author: author.into(), seconds: time.seconds, offset_seconds: time.offset }
    }
}
