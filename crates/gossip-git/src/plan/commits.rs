//! The commits of a run, parents before their children.

use gix::ObjectId;

/// Later dates count as this one: far from the end, so that children come behind it still.
const SECONDS_MAX: i64 = 1 << 35;
/// How many bits of a place are the commit's name.
const NAME_BITS: u32 = 27;

/// A commit that is walked.
pub(crate) struct Commit {
    /// Its position among all objects.
    pub(crate) at: u32,
    pub(crate) tree: ObjectId,
    /// Its row of the manifest's origins.
    pub(crate) origin: u32,
    pub(crate) message_len: u64,
}

/// Commits, and which follows which.
#[derive(Default)]
pub(crate) struct Commits {
    /// Those that are walked.
    pub(crate) commits: Vec<Commit>,
    /// Positions of all that were met, also of those that are left out, and when they were committed.
    pub(crate) dates: Vec<(u32, i64)>,
    /// Positions of parents and children.
    pub(crate) edges: Vec<(u32, u32)>,
}

impl Commits {
    /// Positions, ascending, and dates that are later than those of all parents, whatever the clocks
    /// said. They are the same in a run that walks everything and in one that leaves out what is settled.
    pub(crate) fn dates_in_order(&mut self) -> Vec<(u32, i64)> {
        let Self { dates, edges, .. } = self;
        dates.sort_unstable();
        dates.dedup_by_key(|date| date.0);
        let mut dates: Vec<(u32, i64)> =
            dates.iter().map(|(at, seconds)| (*at, (*seconds).clamp(0, SECONDS_MAX))).collect();
        let index = |at: u32| dates.binary_search_by_key(&at, |date| date.0).ok();
        // A parent that cannot be read has no date.
        let mut edges: Vec<(usize, usize)> = edges
            .iter()
            .filter_map(|(parent, child)| Some((index(*parent)?, index(*child)?)))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let mut parents_left = vec![0_u32; dates.len()];
        edges.iter().for_each(|(_, child)| parents_left[*child] += 1);
        let mut ready: Vec<usize> = (0..dates.len()).filter(|at| parents_left[*at] == 0).collect();
        // Only objects that lie about their hash can be their own ancestors: those are never ready.
        while let Some(parent) = ready.pop() {
            let first = edges.partition_point(|edge| edge.0 < parent);
            for &(_, child) in edges[first..].iter().take_while(|edge| edge.0 == parent) {
                dates[child].1 = dates[child].1.max(dates[parent].1 + 1);
                parents_left[child] -= 1;
                if parents_left[child] == 0 {
                    ready.push(child);
                }
            }
        }
        dates
    }
}

/// The place of a commit or tag among all there are: by a date that is later than its parents', and then by
/// name. So a clone, whose references come in another order, puts a blob down to the same commit.
pub(crate) fn place(seconds: i64, id: &gix::oid) -> u64 {
    let (name, _) = id.as_bytes().split_first_chunk().expect("a hash is longer");
    let name = u64::from(u32::from_be_bytes(*name) >> (u32::BITS - NAME_BITS));
    let seconds = seconds.clamp(0, (1 << (63 - NAME_BITS)) - 1);
    (seconds as u64) << NAME_BITS | name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_whatever_the_clocks_say() {
        // 0 is the child of 1 and 2, which are children of 3; 1 says that it is older than 3.
        let mut commits = Commits {
            commits: Vec::new(),
            dates: vec![(3, 4), (0, i64::MAX), (1, 1), (2, 5)],
            edges: vec![(1, 0), (2, 0), (3, 1), (3, 2), (3, 1), (9, 3)],
        };
        let last = SECONDS_MAX;
        assert_eq!(commits.dates_in_order(), [(0, last), (1, 5), (2, 5), (3, 4)]);
        commits.dates.extend([(4, -1), (5, 8)]);
        commits.edges.extend([(0, 4), (4, 5)]);
        assert_eq!(commits.dates_in_order()[4..], [(4, last + 1), (5, last + 2)]);
        // None is lost in a circle.
        commits.edges.push((0, 3));
        assert_eq!(commits.dates_in_order().len(), 6);
    }

    #[test]
    fn commits_of_the_same_second_come_in_an_order_that_does_not_depend_on_who_lists_them() {
        let id = |byte| ObjectId::from([byte; 20]);
        assert!(place(1, &id(1)) < place(1, &id(2)));
        assert!(place(1, &id(2)) < place(2, &id(1)));
        assert!(i64::try_from(place(i64::MAX, &id(0xff))).is_ok(), "a database keeps it");
        assert!(place(SECONDS_MAX + 1_000_000, &id(0)) > place(SECONDS_MAX + 999_999, &id(0xff)));
    }
}
