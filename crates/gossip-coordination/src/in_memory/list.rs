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

    /// The members from the front.
    pub(super) fn iter<'l>(&self, links: &'l [Link]) -> impl Iterator<Item = u32> + use<'l> {
        std::iter::successors(self.first(), move |&index| next(links, index))
    }

    pub(super) fn push_back(&mut self, links: &mut [Link], index: u32) {
        links[index as usize] = Link { prev: self.tail, next: NONE };
        if self.tail == NONE {
            self.head = index;
        } else {
            links[self.tail as usize].next = index;
        }
        self.tail = index;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_list_behaves_like_a_vector(ops in proptest::collection::vec(0u32..12, 0..200)) {
            let mut links = vec![Link::UNLINKED; 12];
            let mut list = List::EMPTY;
            let mut model: Vec<u32> = Vec::new();
            for index in ops {
                match model.iter().position(|&member| member == index) {
                    Some(at) => {
                        list.remove(&mut links, index);
                        model.remove(at);
                    }
                    None => {
                        list.push_back(&mut links, index);
                        model.push(index);
                    }
                }
                prop_assert_eq!(list.iter(&links).collect::<Vec<_>>(), model.clone());
                prop_assert_eq!(list.len() as usize, model.len());
                let backwards: Vec<u32> = std::iter::successors(
                    (list.tail != NONE).then_some(list.tail),
                    |&index| Some(links[index as usize].prev).filter(|&prev| prev != NONE),
                )
                .collect();
                prop_assert_eq!(backwards, model.iter().rev().copied().collect::<Vec<_>>());
            }
        }
    }
}
