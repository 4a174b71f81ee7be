//! Planning: walks what is reachable and decides which objects a run reads.
//!
//! - P1: every blob that is reachable is in the plan once for each class of the paths that it has,
//!   unless an earlier run has settled it under that class; so are commits and tags.
//! - P2: what cannot be read, or has more paths than are walked, is in the plan, so that the run reports
//!   it.
//!
//! Commits are walked parents first, so that a blob is put down to the commit that brought it in.
//! Below a commit only directories are entered that were not met before under the same path: the
//! work is what changed, not what there is.

mod commits;
mod order;
mod paths;
mod walk;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gix::ObjectId;

use crate::manifest::{Draft, NONE, OriginRow, Row, RowKind};
use crate::objects::{ObjectError, ObjectReader, Objects, Place, Positions};
use paths::Paths;
use walk::{Found, Walk};

/// What a run begins with.
#[derive(Default)]
pub(crate) struct Tips {
    /// Commits, tags, trees or blobs.
    pub(crate) include: Vec<ObjectId>,
    /// Commits. What they reach is left out.
    pub(crate) exclude: Vec<ObjectId>,
    /// Whoever scans does not want what those reach; else an earlier run has settled it.
    pub(crate) excludes_by_request: bool,
    /// Files by themselves.
    pub(crate) files: Vec<TipFile>,
    /// Commits whose parents are not there.
    pub(crate) shallow: Vec<ObjectId>,
}

/// A file by itself: its path, its content, and what was there before.
pub(crate) type TipFile = (Vec<u8>, ObjectId, Option<ObjectId>);

/// What tells paths apart.
pub(crate) type ClassOf<'c> = &'c dyn Fn(&[u8]) -> u64;

/// Objects that earlier runs have settled, each under a class of paths.
pub(crate) type Settled = Vec<(ObjectId, u64)>;

/// What planning needs.
pub(crate) struct Planner<'p> {
    pub(crate) objects: &'p Objects,
    pub(crate) class_of: ClassOf<'p>,
    pub(crate) cache_bytes: usize,
}

/// The class of paths that are left out.
pub(crate) const LEFT_OUT: u64 = 2;

/// So many paths are looked through one by one.
const FEW: usize = 16;

/// An object to read.
struct Item {
    at: u32,
    kind: RowKind,
    class: u64,
    size: u64,
    origin: u32,
    /// Its paths, the one that it was brought in under first.
    paths: Vec<u32>,
}

impl Planner<'_> {
    /// The manifest `id` of all that is reachable from `tips` and not settled.
    pub(crate) fn plan(
        &self,
        id: u64,
        tips: &Tips,
        settled: &Settled,
    ) -> Result<Draft, ObjectError> {
        let positions = Positions::new(self.objects)?;
        let reader = ObjectReader::new(self.cache_bytes);
        let mut walk = Walk::new(self.objects, positions, reader, tips);
        walk.run(tips)?;
        let Walk { positions, paths, found, origins, authors, is_partial, .. } = walk;
        let mut items = self.items(&positions, &paths, found, settled, !tips.files.is_empty());
        sort_for_reading(&positions, self.objects, &mut items);
        let mut texts = Texts::new(&paths, authors);
        let mut more = Vec::new();
        let rows = items.iter().map(|item| texts.row(&positions, item, &mut more)).collect();
        let origins = origins
            .into_iter()
            .map(|origin| OriginRow { author: texts.author(origin.author), ..origin })
            .collect();
        Ok(Draft {
            id,
            // Whoever plans knows for which run.
            nonce: [0; 16],
            last: 0,
            is_partial,
            hash: self.objects.hash(),
            rows,
            origins,
            more,
            texts: texts.texts,
            tips: settled_tips(tips),
            shallow: tips.shallow.clone(),
        })
    }

    /// One item for each object and class of its paths (P1); of files by themselves also for what was
    /// there before.
    fn items(
        &self,
        positions: &Positions,
        paths: &Paths,
        mut found: Vec<Found>,
        settled: &Settled,
        by_origin: bool,
    ) -> Vec<Item> {
        let mut known: Vec<(u32, u64)> =
            settled.iter().filter_map(|(id, class)| Some((positions.find(id)?, *class))).collect();
        known.sort_unstable();
        let mut classes = Classes { class_of: self.class_of, paths, known: vec![], text: vec![] };
        // Stable: within an object they stay in the order in which they were met.
        found.sort_by_key(|found| found.at);
        let is_partial_clone = positions.packs().iter().any(|pack| pack.is_promised());
        let mut items = Vec::with_capacity(found.len());
        for same in found.chunk_by(|a, b| a.at == b.at) {
            let first = items.len();
            // One content may have as many classes and bases as it has paths.
            let mut numbers = HashMap::new();
            for found in same {
                let class = classes.of(found.path);
                let is_same = |item: &Item| {
                    item.class == class
                        && item.kind == found.kind
                        && (!by_origin || item.origin == found.origin)
                };
                let same_class = if same.len() <= FEW {
                    items[first..].iter().position(is_same).map(|at| first + at)
                } else {
                    let origin = if by_origin { found.origin } else { NONE };
                    match numbers.entry((class, found.kind as u8, origin)) {
                        Entry::Occupied(known) => Some(*known.get()),
                        Entry::Vacant(free) => {
                            free.insert(items.len());
                            None
                        }
                    }
                };
                match same_class {
                    Some(at) => items[at].paths.extend(path(found.path)),
                    None => items.push(Item {
                        at: found.at,
                        kind: found.kind,
                        class,
                        size: found.size,
                        origin: found.origin,
                        paths: path(found.path).collect(),
                    }),
                }
            }
            // A blob that a reference names by itself is no other than the file that it is, too.
            let object = same[0].at;
            let is_file = |class: u64| !matches!(class, 0 | LEFT_OUT);
            let of_object = known.partition_point(|known| *known < (object, 0));
            let settled = known[of_object..].iter().take_while(|known| known.0 == object);
            let has_file = settled.map(|known| known.1).any(is_file)
                || items[first..].iter().map(|item| item.class).any(is_file);
            let mut kept = first;
            for at in first..items.len() {
                let item = &items[at];
                // What came before a commit is not there, whatever is known of the commit.
                let is_left_out = item.kind != RowKind::Shallow
                    && (item.origin == walk::EXCLUDED
                        || has_file && item.kind == RowKind::Blob && item.paths.is_empty()
                        || known.binary_search(&(item.at, item.class)).is_ok());
                if !is_left_out {
                    items.swap(kept, at);
                    kept += 1;
                }
            }
            items.truncate(kept);
            for item in &mut items[first..] {
                let is_missing = positions.is_missing(item.at) && item.kind != RowKind::Submodule;
                if is_missing && is_partial_clone {
                    item.kind = RowKind::NotFetched;
                }
            }
        }
        items
    }
}

/// All that this run and those before it reach.
fn settled_tips(tips: &Tips) -> Vec<ObjectId> {
    let mut all = [&tips.include[..], &tips.exclude[..]].concat();
    all.sort_unstable();
    all.dedup();
    all
}

fn path(number: u32) -> impl Iterator<Item = u32> {
    (number != NONE).then_some(number).into_iter()
}

/// The class of each path, asked for once.
struct Classes<'c> {
    class_of: ClassOf<'c>,
    paths: &'c Paths,
    known: Vec<Option<u64>>,
    text: Vec<u8>,
}

impl Classes<'_> {
    /// What has no path is in a class of its own.
    fn of(&mut self, path: u32) -> u64 {
        if path == NONE {
            return 0;
        }
        self.known.resize(self.paths.len(), None);
        *self.known[path as usize].get_or_insert_with(|| {
            self.paths.write(path, &mut self.text);
            (self.class_of)(&self.text)
        })
    }
}

/// Puts packed objects into reading order, pack by pack; then the loose, then those that are missing.
fn sort_for_reading(positions: &Positions, objects: &Objects, items: &mut [Item]) {
    // Items are sorted by position, and so by pack.
    items.sort_by_key(|item| item.at);
    let mut start = 0;
    for (number, pack) in positions.packs().iter().enumerate() {
        let of_pack = |item: &Item| positions.packed(item.at).filter(|(at, _)| *at == number);
        let count = items[start..].iter().take_while(|item| of_pack(item).is_some()).count();
        let items = &mut items[start..start + count];
        start += count;
        let offset = |item: &Item| of_pack(item).map(|(_, position)| pack.offset(position));
        let order = order::reading_order(pack, items.iter().filter_map(offset).collect());
        let mut ranks: Vec<(u64, usize, u64)> =
            order.iter().enumerate().map(|(rank, &(at, size))| (at, rank, size)).collect();
        ranks.sort_unstable();
        let rank = |item: &Item| {
            let offset = offset(item).expect("all are of this pack");
            let at = ranks.binary_search_by_key(&offset, |rank| rank.0).expect("all have a place");
            (ranks[at].1, ranks[at].2)
        };
        items.sort_by_cached_key(|item| (rank(item).0, item.class));
        for item in items.iter_mut().filter(|item| item.kind == RowKind::Blob) {
            item.size = rank(item).1;
        }
    }
    let mut reader = ObjectReader::new(1);
    for item in items[start..].iter_mut() {
        if item.kind == RowKind::Blob && !positions.is_missing(item.at) {
            item.size = match objects.locate(&positions.id(item.at)) {
                Ok(Place::Loose(path)) => reader.size_of_loose(&path).unwrap_or(0),
                _ => 0,
            };
        }
    }
}

/// The texts of a manifest: the paths that its rows have, and authors.
struct Texts<'t> {
    paths: &'t Paths,
    path_texts: Vec<u32>,
    authors: Vec<Box<[u8]>>,
    author_texts: Vec<u32>,
    texts: Vec<Box<[u8]>>,
}

impl<'t> Texts<'t> {
    fn new(paths: &'t Paths, authors: Vec<Box<[u8]>>) -> Self {
        let path_texts = vec![NONE; paths.len()];
        let author_texts = vec![NONE; authors.len()];
        Self { paths, path_texts, authors, author_texts, texts: Vec::new() }
    }

    fn path(&mut self, path: u32) -> u32 {
        let text = &mut self.path_texts[path as usize];
        if *text == NONE {
            *text = self.texts.len() as u32;
            let mut bytes = Vec::new();
            self.paths.write(path, &mut bytes);
            self.texts.push(bytes.into());
        }
        *text
    }

    fn author(&mut self, author: u32) -> u32 {
        if author == NONE {
            return NONE;
        }
        let text = &mut self.author_texts[author as usize];
        if *text == NONE {
            *text = self.texts.len() as u32;
            self.texts.push(std::mem::take(&mut self.authors[author as usize]));
        }
        *text
    }

    fn row(&mut self, positions: &Positions, item: &Item, more: &mut Vec<u32>) -> Row {
        let (first, others) = match item.paths.split_first() {
            Some((first, others)) => (self.path(*first), others),
            None => (NONE, &[][..]),
        };
        let start = if others.is_empty() { NONE } else { more.len() as u32 };
        if !others.is_empty() {
            more.push(others.len() as u32);
            for path in others {
                let text = self.path(*path);
                more.push(text);
            }
        }
        Row {
            id: positions.id(item.at),
            kind: item.kind,
            class: item.class,
            size: item.size,
            origin: item.origin,
            path: first,
            more: start,
        }
    }
}
