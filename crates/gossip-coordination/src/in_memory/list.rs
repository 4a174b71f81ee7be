//! Lists threaded through a run's shards by index, so that moving a shard between them touches its
//! neighbours' links only and allocates nothing. The links lie apart from the shards: those of a
//! hundred thousand fit into a cache that holds few of the shards themselves.

/// No shard.
const NONE: u32 = u32::MAX;

/// A shard's neighbours in the list that it is in, if any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    prev: u32,
    next: u32,
}

impl Link {
    pub(super) const UNLINKED: Self = Self { prev: NONE, next: NONE };
}

/// The ends and the length of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    head: u32,
    tail: u32,
    len: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: NONE, tail: NONE, len: 0 };

    pub(super) const fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn last(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// The members from the front.
    pub(super) fn iter<'l>(&self, links: &'l [Link]) -> impl Iterator<Item = u32> + use<'l> {
        std::iter::successors(self.first(), move |&index| next(links, index))
    }

    pub(super) fn push_back(&mut self, links: &mut [Link], index: u32) {
        self.insert_after(links, self.last(), index);
    }

    /// Inserts behind `before`, at the front if that is `None`.
    pub(super) fn insert_after(&mut self, links: &mut [Link], before: Option<u32>, index: u32) {
        let prev = before.unwrap_or(NONE);
        let next = before.map_or(self.head, |before| links[before as usize].next);
        links[index as usize] = Link { prev, next };
        match before {
            Some(before) => links[before as usize].next = index,
            None => self.head = index,
        }
        if next == NONE {
            self.tail = index;
        } else {
            links[next as usize].prev = index;
        }
        self.len += 1;
    }

    pub(super) fn remove(&mut self, links: &mut [Link], index: u32) {
        let Link { prev, next } = std::mem::replace(&mut links[index as usize], Link::UNLINKED);
        if prev == NONE {
            self.head = next;
        } else {
            links[prev as usize].next = next;
        }
        if next == NONE {
            self.tail = prev;
        } else {
            links[next as usize].prev = prev;
        }
        self.len -= 1;
    }
}

fn next(links: &[Link], index: u32) -> Option<u32> {
    let next = links[index as usize].next;
    (next != NONE).then_some(next)
}

pub(super) fn prev(links: &[Link], index: u32) -> Option<u32> {
    let prev = links[index as usize].prev;
    (prev != NONE).then_some(prev)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_behaves_like_a_vector(ops in proptest::collection::vec((0u32..12, any::<prop::sample::Index>()), 0..200)) {
            let mut links = vec![Link::UNLINKED; 12];
            let mut list = List::EMPTY;
            let mut model: Vec<u32> = Vec::new();
            for (index, place) in ops {
                match model.iter().position(|&member| member == index) {
                    Some(at) => {
                        list.remove(&mut links, index);
                        model.remove(at);
                    }
                    None => {
                        let at = place.index(model.len() + 1);
                        let before = at.checked_sub(1).map(|before| model[before]);
                        list.insert_after(&mut links, before, index);
                        model.insert(at, index);
                    }
                }
                prop_assert_eq!(list.iter(&links).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(list.len() as usize, model.len());
                prop_assert_eq!((list.first(), list.last()), (model.first().copied(), model.last().copied()));
                let backwards: Vec<u32> =
                    std::iter::successors(list.last(), |&index| prev(&links, index)).collect();
                prop_assert_eq!(backwards, model.iter().rev().copied().collect::<Vec<_>>());
            }
        }
    }
}
