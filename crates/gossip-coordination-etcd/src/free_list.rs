//! How much of a run's list of free shards is looked at.
//!
//! etcd walks a range from end to end, whatever the limit, and also to count it: a page of a long list
//! costs as much as the list is long. The list's order says nothing about ids, so that any part of it is
//! as good as another; of a long list a part is looked at that holds some hundreds.
//!
//! - V1: what is said to be free is free: a part counts for what is in it, and as an estimate.
//! - V2: a part in which nothing is found is followed by a look at everything.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gossip_contracts::identity::{RunId, TenantId};

use crate::keyspace::PLACES;

/// The longest list that is looked at as a whole.
const WHOLE_MAX: u64 = 1_024;
/// How many shards a part is to hold.
const PART: u64 = 256;
/// A part with fewer is one of a list that is no longer long.
const PART_MIN: u64 = 64;

/// Which of the [`PLACES`] of a list are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    width: u32,
    /// By how much a look begins further on than it did at first: what was before is taken.
    offset: u32,
}

impl Share {
    pub(crate) const ALL: Self = Self { width: PLACES, offset: 0 };

    pub(crate) fn is_all(self) -> bool {
        self.width == PLACES
    }

    pub(crate) fn width(self) -> u32 {
        self.width
    }

    /// Where a worker whose own place this is begins to look.
    pub(crate) fn from(self, place: u32) -> u32 {
        (place + self.offset) % PLACES
    }

    /// What is looked at next, after `count` shards were in this.
    fn next(self, count: u64) -> Self {
        if count > WHOLE_MAX {
            let width = u64::from(self.width) * PART / count;
            let width = u32::try_from(width).expect("it is less than before").max(1);
            Self { width, ..self }
        } else if count < PART_MIN && !self.is_all() {
            Self { width: PLACES, offset: self.from(self.width) }
        } else {
            self
        }
    }
}

/// The shares of runs whose lists are or were long. All others are looked at as a whole.
#[derive(Debug, Default)]
pub(crate) struct FreeLists(Mutex<HashMap<(TenantId, RunId), Share>>);

impl FreeLists {
    pub(crate) fn share(&self, run: (TenantId, RunId)) -> Share {
        let shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shares.get(&run).copied().unwrap_or(Share::ALL)
    }

    /// Takes in that `count` shards are in a share of a run's list.
    pub(crate) fn saw(&self, run: (TenantId, RunId), share: Share, count: u64) {
        let next = share.next(count);
        if next != share {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, next);
        }
    }

    /// Takes in that nothing is where a worker looked: next time it looks further on.
    pub(crate) fn saw_nothing(&self, run: (TenantId, RunId), share: Share) {
        let next = Share { offset: share.from(share.width), ..share };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run, next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_looked_at_in_part_and_a_short_one_as_a_whole() {
        assert_eq!(Share::ALL.next(0), Share::ALL);
        assert_eq!(Share::ALL.next(WHOLE_MAX), Share::ALL);
        for count in [WHOLE_MAX + 1, 10_000, 50_000, 1_000_000, u64::from(u32::MAX)] {
            let part = Share::ALL.next(count);
            let held = count * u64::from(part.width) / u64::from(PLACES);
            assert!(held <= PART.max(count / u64::from(PLACES)), "{held} of {count}");
            assert!(!part.is_all());
            // As long as it holds about as many, it stays.
            assert_eq!(part.next(PART), part);
            assert!(part.next(PART_MIN - 1).is_all());
            assert!(part.next(40 * PART).width <= part.width);
        }
    }

    #[test]
    fn where_nothing_is_left_is_not_looked_again() {
        let (lists, run) =
            (FreeLists::default(), (TenantId::from_bytes([1; 32]), RunId::from_raw(1)));
        assert_eq!(lists.share(run), Share::ALL);
        lists.saw(run, Share::ALL, 50_000);
        let first = lists.share(run);
        assert_eq!(first.from(7), 7);
        lists.saw_nothing(run, first);
        let second = lists.share(run);
        assert_eq!((second.width, second.from(7)), (first.width, 7 + first.width));
        // Round, and round again.
        for _ in 0..1_000 {
            lists.saw_nothing(run, lists.share(run));
        }
        assert!(lists.share(run).from(PLACES - 1) < PLACES);
        lists.saw(run, second, 0);
        let all = lists.share(run);
        assert!(all.is_all() && all.from(0) == 2 * first.width);
    }
}
