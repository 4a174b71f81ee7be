//! How much of a run's lists of free and held shards is looked at.
//!
//! etcd walks a range from end to end, whatever the limit and also to count it, and over what was
//! deleted until it is compacted. The lists' order says nothing about ids, so that any part of them is
//! as good as another. A claim only reads, which holds up nobody: it looks at everything, unless very
//! many shards are free. A hint is read in the transaction of the write that it goes with, and every
//! other write waits for it: it looks at some hundreds of shards, whatever became of them. How many a run
//! has is counted by a claim now and then.
//!
//! - V1: what is said to be free is free: a part counts for what is in it, and as an estimate.
//! - V2: a part in which a claim finds nothing is followed by a look at everything.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use gossip_contracts::identity::{RunId, TenantId};

use crate::keyspace::PLACES;

/// The longest list of free shards that a claim looks at as a whole.
const WHOLE_MAX: u64 = 1_024;
/// How many shards a part is to hold.
const PART: u64 = 256;
/// One claim of so many counts the run's shards.
const CLAIMS_PER_COUNT: u32 = 64;
/// Runs whose lists are remembered.
const RUNS_MAX: usize = 1_024;

/// Which of the [`PLACES`] of a list are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) from: u32,
    pub(crate) width: u32,
}

impl Part {
    /// Every place, from one on.
    pub(crate) fn all(from: u32) -> Self {
        Self { from, width: PLACES }
    }

    pub(crate) fn is_all(self) -> bool {
        self.width == PLACES
    }
}

/// How wide a part is that holds [`PART`] of `count` shards.
fn width(count: u64) -> u32 {
    let width = u64::from(PLACES) * PART / count.max(PART);
    u32::try_from(width).expect("a part is not wider than the list").max(1)
}

/// What is known of a run's lists.
#[derive(Clone, Copy, Debug, Default)]
struct Lists {
    /// How many shards the run had when they were counted.
    shards: u64,
    /// Claims since they were counted.
    claims: u32,
    /// About how many are free.
    free: u64,
    /// By how much a claim begins further on than its worker's place: what was before is taken.
    offset: u32,
}

/// What this process knows of runs' lists. Those of others are looked at as a whole.
#[derive(Debug, Default)]
pub(crate) struct FreeLists(Mutex<HashMap<(TenantId, RunId), Lists>>);

impl FreeLists {
    fn of(&self, run: (TenantId, RunId)) -> Lists {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.get(&run).copied().unwrap_or_default()
    }

    fn change<R>(&self, run: (TenantId, RunId), change: impl FnOnce(&mut Lists) -> R) -> R {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The next answers tell again what is forgotten.
        if lists.len() >= RUNS_MAX && !lists.contains_key(&run) {
            lists.clear();
        }
        change(lists.entry(run).or_default())
    }

    /// Where a worker whose own place this is looks for a free shard.
    pub(crate) fn for_claim(&self, run: (TenantId, RunId), place: u32) -> Part {
        let lists = self.of(run);
        let width = if lists.free > WHOLE_MAX { width(lists.free) } else { PLACES };
        Part { from: (place + lists.offset) % PLACES, width }
    }

    /// What a hint is about: a part that begins at the place, or the last one.
    pub(crate) fn for_hint(&self, run: (TenantId, RunId), place: u32) -> Part {
        let width = width(self.of(run).shards);
        Part { from: place.min(PLACES - width), width }
    }

    /// Takes in that `free` shards are free in a part of a run's list.
    pub(crate) fn saw(&self, run: (TenantId, RunId), part: Part, free: u64) {
        let free = free.saturating_mul(u64::from(PLACES)) / u64::from(part.width);
        self.change(run, |lists| {
            lists.free = free;
            lists.shards = lists.shards.max(free);
        });
    }

    /// Whether the claim that asks this counts the run's shards: the first, and then one of many.
    pub(crate) fn is_count_due(&self, run: (TenantId, RunId)) -> bool {
        self.change(run, |lists| {
            let is_due = lists.claims == 0;
            lists.claims = (lists.claims + 1) % CLAIMS_PER_COUNT;
            is_due
        })
    }

    /// Takes in how many shards a run has.
    pub(crate) fn counted(&self, run: (TenantId, RunId), shards: u64) {
        self.change(run, |lists| lists.shards = shards);
    }

    /// Takes in that a split of this process's made so many shards: if they waited for the next count,
    /// every hint until then would look at all of them.
    pub(crate) fn grew(&self, run: (TenantId, RunId), by: usize) {
        if by > 0 {
            self.change(run, |lists| lists.shards = lists.shards.saturating_add(by as u64));
        }
    }

    /// Takes in that nothing is where a worker looked: next time it looks further on.
    pub(crate) fn saw_nothing(&self, run: (TenantId, RunId), part: Part) {
        self.change(run, |lists| lists.offset = (lists.offset + part.width) % PLACES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: (TenantId, RunId) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));

    #[test]
    fn claims_look_at_a_part_of_a_long_list_and_at_the_whole_of_a_short_one() {
        let lists = FreeLists::default();
        assert!(lists.for_claim(RUN, 7).is_all());
        lists.saw(RUN, Part::all(0), WHOLE_MAX);
        assert!(lists.for_claim(RUN, 7).is_all());
        for free in [WHOLE_MAX + 1, 10_000, 50_000, 1_000_000, u64::from(u32::MAX)] {
            lists.saw(RUN, Part::all(0), free);
            let part = lists.for_claim(RUN, 7);
            let held = free * u64::from(part.width) / u64::from(PLACES);
            assert!(held <= PART.max(free / u64::from(PLACES)), "{held} of {free}");
            assert_eq!((part.from, part.is_all()), (7, false));
        }
        // However little of the list was seen.
        lists.saw(RUN, Part { from: 0, width: PLACES / 100 }, 500);
        assert_eq!(lists.for_claim(RUN, 7).width, width(50_000));
        lists.saw(RUN, Part { from: 0, width: PLACES / 100 }, 5);
        assert!(lists.for_claim(RUN, 7).is_all());
    }

    #[test]
    fn a_hint_is_about_so_many_shards_however_few_are_free() {
        let lists = FreeLists::default();
        lists.saw(RUN, Part::all(0), PART);
        assert_eq!(lists.for_hint(RUN, 7), Part::all(0));
        for (free, shards) in [(0, 50_000), (50_000, 50_000), (3, 1_000_000)] {
            lists.counted(RUN, shards);
            lists.saw(RUN, Part::all(0), free);
            let part = lists.for_hint(RUN, 7);
            assert_eq!(part, Part { from: 7, width: width(shards) });
            let last = lists.for_hint(RUN, PLACES - 1);
            assert_eq!(last.from + last.width, PLACES);
        }
        // Splits made many since they were counted: others' that are free, and our own.
        lists.counted(RUN, 1);
        lists.saw(RUN, Part::all(0), 50_000);
        assert_eq!(lists.for_hint(RUN, 7).width, width(50_000));
        lists.counted(RUN, 1);
        lists.saw(RUN, Part::all(0), 0);
        lists.grew(RUN, 49_999);
        assert_eq!(lists.for_hint(RUN, 7).width, width(50_000));
    }

    #[test]
    fn the_first_claim_counts_and_then_one_of_many() {
        let lists = FreeLists::default();
        let due = (0..10 * CLAIMS_PER_COUNT).filter(|_| lists.is_count_due(RUN)).count();
        assert_eq!(due, 10);
        assert!(lists.is_count_due(RUN) && !lists.is_count_due(RUN));
    }

    #[test]
    fn where_nothing_is_left_is_not_looked_again() {
        let lists = FreeLists::default();
        lists.saw(RUN, Part::all(0), 50_000);
        let first = lists.for_claim(RUN, 7);
        lists.saw_nothing(RUN, first);
        let second = lists.for_claim(RUN, 7);
        assert_eq!((second.width, second.from), (first.width, 7 + first.width));
        // Round, and round again.
        for _ in 0..1_000 {
            lists.saw_nothing(RUN, lists.for_claim(RUN, 7));
        }
        assert!(lists.for_claim(RUN, PLACES - 1).from < PLACES);
    }

    #[test]
    fn what_is_remembered_of_runs_does_not_grow_for_ever() {
        let lists = FreeLists::default();
        for run in 0..3 * RUNS_MAX as u64 {
            lists.saw((RUN.0, RunId::from_raw(run)), Part::all(0), 1);
        }
        assert!(lists.0.lock().unwrap().len() <= RUNS_MAX);
    }
}
