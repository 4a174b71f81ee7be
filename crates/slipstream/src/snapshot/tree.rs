//! The entries of a fold in memory: their bytes in an arena, their order in a tree of three levels.
//!
//! Pages and segments are shared with whoever reads: a reader notes those that it wants, which takes
//! no time, and reads them at leisure; a writer copies what somebody still reads. So a range is of
//! one moment, and neither waits for the other.
//!
//! - T1: there is at least one page; the first one begins at the empty key.
//! - T2: a page holds the keys from its low fence up to, and without, the low fence of the next.
//! - T3: a page is empty only if it is the only one.

use std::hint::black_box;
use std::sync::Arc;

use super::arena::{Address, Arena, Entry, Noted};
use super::fences::Fences;
use super::page::{Page, common};

/// Pages of a branch. The root then has a few dozen branches for a million entries.
const BRANCH_PAGES: usize = 512;

/// A range of more pages than this notes all segments instead of looking for those that it needs.
const FEW_PAGES: usize = 16;

/// After a batch of so many changes, one segment more is moved.
const CHANGES_PER_MOVE: usize = 64;

pub(super) struct Tree {
    arena: Arena,
    /// Between the branches.
    fences: Fences,
    branches: Vec<Branch>,
    entries: usize,
    /// Changes whenever an entry gets another place.
    shape: u64,
}

struct Branch {
    /// Between the pages. The first one is that of the branch.
    fences: Fences,
    pages: Vec<Arc<Page>>,
}

/// Where a page is.
#[derive(Clone, Copy)]
struct Place {
    branch: usize,
    page: usize,
}

/// Where an entry is, or would be.
#[derive(Clone, Copy)]
struct Spot {
    place: Place,
    index: Result<usize, usize>,
}

/// Where the keys of a batch are.
pub(super) struct Found {
    spots: Vec<Spot>,
    shape: u64,
}

/// The entries that began with a prefix when it was made.
pub(super) struct View {
    prefix: Box<[u8]>,
    pages: Vec<Arc<Page>>,
    segments: Noted,
}

impl View {
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let all = self.pages.iter().flat_map(|page| page.addresses());
        let entries = all.map(|&at| self.segments.entry(at));
        // To compare with nothing is not free: the processor looks at where nothing would be.
        let is_all = self.prefix.is_empty();
        entries
            .skip_while(move |entry| !is_all && *entry.key < *self.prefix)
            .take_while(move |entry| is_all || entry.key.starts_with(&self.prefix))
    }
}

impl Tree {
    pub(super) fn new() -> Self {
        let fences = Fences::new(Box::default());
        let branch = Branch { fences: fences.clone(), pages: vec![Arc::new(Page::new())] };
        Self { arena: Arena::default(), fences, branches: vec![branch], entries: 0, shape: 0 }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Entry<'_>> {
        let page = self.page(self.locate(key));
        let index = page.find(&self.arena, key).ok()?;
        Some(self.arena.entry(page.addresses()[index]))
    }

    /// Looks up all keys of a batch.
    ///
    /// Each look-up waits for memory a few times. Done for all keys at once, level by level, the
    /// waits overlap.
    pub(super) fn find_all<'a>(&self, keys: impl Iterator<Item = &'a [u8]> + Clone) -> Found {
        let places: Vec<Place> = keys.clone().map(|key| self.locate(key)).collect();
        let touched = places.iter().map(|&place| self.page(place).touch());
        black_box(touched.fold(0u32, u32::wrapping_add));
        let touched = places.iter().zip(keys.clone()).map(|(&place, key)| {
            let candidate = self.page(place).candidate(key);
            candidate.map_or(0, |at| self.arena.touch(at))
        });
        black_box(touched.sum::<u64>());
        let spots = places.into_iter().zip(keys).map(|(place, key)| {
            let page = self.page(place);
            Spot { place, index: page.find(&self.arena, key) }
        });
        Found { spots: spots.collect(), shape: self.shape }
    }

    fn find(&self, key: &[u8]) -> Spot {
        let place = self.locate(key);
        Spot { place, index: self.page(place).find(&self.arena, key) }
    }

    /// Where the key is that was the `nth` in `found`, by now.
    fn found(&self, found: &Found, nth: usize, key: &[u8]) -> Spot {
        if found.shape == self.shape { found.spots[nth] } else { self.find(key) }
    }

    /// Sets an entry, whose key was the `nth` in `found`; the lengths of version and value that it
    /// replaced.
    pub(super) fn put(
        &mut self,
        found: &Found,
        nth: usize,
        entry: &Entry<'_>,
    ) -> Option<(usize, usize)> {
        let Spot { place, index } = self.found(found, nth, entry.key);
        match index {
            Ok(index) => {
                let at = self.page(place).addresses()[index];
                let old = self.arena.entry(at);
                let lengths = (old.version.len(), old.value.len());
                if !self.arena.replace(at, entry) {
                    self.arena.release(at);
                    let at = self.arena.push(entry);
                    self.page_mut(place).set_address(index, at);
                }
                Some(lengths)
            }
            Err(index) => {
                let (place, index) = match self.page(place).is_full() {
                    true => self.split(place, index, entry.key),
                    false => (place, index),
                };
                let at = self.arena.push(entry);
                self.page_mut(place).insert(index, entry.key, at);
                self.entries += 1;
                self.shape += 1;
                None
            }
        }
    }

    /// Removes an entry, whose key was the `nth` in `found`; the lengths of its version and value.
    pub(super) fn remove(
        &mut self,
        found: &Found,
        nth: usize,
        key: &[u8],
    ) -> Option<(usize, usize)> {
        let Spot { place, index } = self.found(found, nth, key);
        let index = index.ok()?;
        let at = self.page(place).addresses()[index];
        let old = self.arena.entry(at);
        let lengths = (old.version.len(), old.value.len());
        self.arena.release(at);
        let page = self.page_mut(place);
        page.remove(index);
        if page.len() == 0 {
            self.remove_page(place);
        }
        self.entries -= 1;
        self.shape += 1;
        Some(lengths)
    }

    /// Gives back memory of entries that are gone, a little after every batch of so many `changes`:
    /// what is left of the worst segments is moved.
    pub(super) fn tidy(&mut self, changes: usize) {
        for _ in 0..changes.div_ceil(CHANGES_PER_MOVE) {
            let Some((index, segment)) = self.arena.worst() else { return };
            for (at, entry) in Arena::records(index, &segment) {
                let place = self.locate(entry.key);
                let page = self.page(place);
                let found = page.find(&self.arena, entry.key);
                if let Ok(slot) = found
                    && page.addresses()[slot] == at
                {
                    let to = self.arena.push(&entry);
                    self.page_mut(place).set_address(slot, to);
                }
            }
            self.arena.clear(index);
        }
    }

    /// Notes the entries that begin with `prefix`.
    pub(super) fn view(&self, prefix: &[u8]) -> View {
        let pages = self.pages(prefix);
        let segments = if pages.len() > FEW_PAGES {
            self.arena.note_all()
        } else {
            self.arena.note(pages.iter().flat_map(|page| page.addresses().iter().copied()))
        };
        View { prefix: prefix.into(), pages, segments }
    }

    /// The pages that may hold keys that begin with `prefix`, in order.
    fn pages(&self, prefix: &[u8]) -> Vec<Arc<Page>> {
        let Place { branch: first, page } = self.locate(prefix);
        let mut pages = vec![self.branches[first].pages[page].clone()];
        let mut from = page + 1;
        for branch in &self.branches[first..] {
            for index in from..branch.pages.len() {
                if !branch.fences.get(index).is_some_and(|low| low.starts_with(prefix)) {
                    return pages;
                }
                pages.push(branch.pages[index].clone());
            }
            from = 0;
        }
        pages
    }

    fn locate(&self, key: &[u8]) -> Place {
        let branch = self.fences.part(key);
        Place { branch, page: self.branches[branch].fences.part(key) }
    }

    fn page(&self, place: Place) -> &Page {
        &self.branches[place.branch].pages[place.page]
    }

    fn page_mut(&mut self, place: Place) -> &mut Page {
        Arc::make_mut(&mut self.branches[place.branch].pages[place.page])
    }

    /// Splits the full page in which `key` belongs at `index`; where it belongs then.
    ///
    /// Keys that come in ascending order fill their pages: a key behind all others begins a new one.
    fn split(&mut self, place: Place, index: usize, key: &[u8]) -> (Place, usize) {
        let page = self.page_mut(place);
        let at = if index == page.len() { index } else { page.len() / 2 };
        let right = page.split_off(at);
        let left_last = self.key(self.page(place).addresses()[at - 1]);
        let right_first = right.addresses().first().map_or(key, |&at| self.key(at));
        // The shortest key that lies between.
        let low: Box<[u8]> = right_first[..common(left_last, right_first) + 1].into();
        let branch = &mut self.branches[place.branch];
        branch.fences.insert(place.page + 1, low);
        branch.pages.insert(place.page + 1, Arc::new(right));
        let next = Place { page: place.page + 1, ..place };
        self.refit_page(place);
        self.refit_page(next);
        if self.branches[place.branch].pages.len() > BRANCH_PAGES {
            self.split_branch(place.branch);
        }
        let place = self.locate(key);
        let index =
            self.page(place).find(&self.arena, key).expect_err("the key is not in the tree");
        (place, index)
    }

    fn split_branch(&mut self, branch: usize) {
        let left = &mut self.branches[branch];
        // As with pages: what grows at the end only leaves full branches behind.
        let at_end = self.fences.len() == branch + 1;
        let at = if at_end { left.pages.len() - 1 } else { left.pages.len() / 2 };
        let right = Branch { fences: left.fences.split_off(at), pages: left.pages.split_off(at) };
        let low = right.fences.get(0).expect("a branch has a page");
        self.fences.insert(branch + 1, low.into());
        self.branches.insert(branch + 1, right);
    }

    /// Takes an empty page out, unless it is the only one; a neighbour's fence moves over.
    fn remove_page(&mut self, place: Place) {
        let branches = self.branches.len();
        let branch = &mut self.branches[place.branch];
        if branch.pages.len() > 1 {
            branch.pages.remove(place.page);
            branch.fences.remove(place.page);
            self.refit_page(Place { page: place.page.saturating_sub(1), ..place });
        } else if branches > 1 {
            self.branches.remove(place.branch);
            self.fences.remove(place.branch);
            let branch = place.branch.saturating_sub(1);
            let page = if place.branch == 0 {
                self.branches[0].fences.set_first(Box::default());
                0
            } else {
                self.branches[branch].pages.len() - 1
            };
            self.refit_page(Place { branch, page });
        }
    }

    /// Works out what all keys between the fences of a page share.
    fn refit_page(&mut self, place: Place) {
        let fences = &self.branches[place.branch].fences;
        let high = fences.get(place.page + 1).or_else(|| self.fences.get(place.branch + 1));
        let low = fences.get(place.page).expect("a page has a fence");
        let skip = high.map_or(0, |high| common(low, high));
        let page = &mut self.branches[place.branch].pages[place.page];
        Arc::make_mut(page).set_skip(skip, &self.arena);
    }

    fn key(&self, at: Address) -> &[u8] {
        self.arena.entry(at).key
    }
}

#[cfg(test)]
mod tests;
