//! The commits of a run, parents before their children.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gix::ObjectId;

/// A commit that is walked.
pub(crate) struct Commit {
    /// Its position among all objects.
    pub(crate) at: u32,
    pub(crate) tree: ObjectId,
    /// When it was committed.
    pub(crate) seconds: i64,
    /// Its row of the manifest's origins.
    pub(crate) origin: u32,
    pub(crate) message_len: u64,
}

/// Commits, and which follows which.
#[derive(Default)]
pub(crate) struct Commits {
    pub(crate) commits: Vec<Commit>,
    /// Parent and child, as indexes of `commits`.
    pub(crate) edges: Vec<(u32, u32)>,
}

impl Commits {
    /// Indexes of `commits`: each behind its parents, the oldest first where that leaves a choice, and
    /// of those the one with the lesser tree. So a clone, whose references come in another order, puts
    /// a blob down to the same path.
    pub(crate) fn oldest_first(&mut self) -> Vec<u32> {
        let Self { commits, edges } = self;
        edges.sort_unstable();
        edges.dedup();
        let mut parents_left = vec![0_u32; commits.len()];
        for &(_, child) in &*edges {
            parents_left[child as usize] += 1;
        }
        let age = |commit: &Commit, at: u32| Reverse((commit.seconds, commit.tree, at));
        let mut ready: BinaryHeap<_> = (0..commits.len() as u32)
            .filter(|&commit| parents_left[commit as usize] == 0)
            .map(|commit| age(&commits[commit as usize], commit))
            .collect();
        let mut order = Vec::with_capacity(commits.len());
        while let Some(Reverse((_, _, parent))) = ready.pop() {
            order.push(parent);
            let first = edges.partition_point(|edge| edge.0 < parent);
            for &(_, child) in edges[first..].iter().take_while(|edge| edge.0 == parent) {
                parents_left[child as usize] -= 1;
                if parents_left[child as usize] == 0 {
                    ready.push(age(&commits[child as usize], child));
                }
            }
        }
        // Only objects that lie about their hash can be their own ancestors.
        let in_circles = (0..commits.len() as u32).filter(|&at| parents_left[at as usize] > 0);
        order.extend(in_circles);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_come_first_whatever_the_clocks_say() {
        let tree = ObjectId::null(gix::hash::Kind::Sha1);
        let commit = |seconds| Commit { at: 0, tree, seconds, origin: 0, message_len: 0 };
        // 0 is the child of 1 and 2, which are children of 3; 1 says that it is older than 3.
        let mut commits = Commits {
            commits: [9, 1, 5, 4].map(commit).into(),
            edges: vec![(1, 0), (2, 0), (3, 1), (3, 2), (3, 1)],
        };
        assert_eq!(commits.oldest_first(), [3, 1, 2, 0]);
        commits.edges.push((0, 3));
        assert_eq!(commits.oldest_first(), [0, 1, 2, 3], "none is lost in a circle");
    }

    #[test]
    fn commits_of_the_same_second_come_in_an_order_that_does_not_depend_on_who_lists_them() {
        let commit = |byte: u8| {
            let tree = ObjectId::from([byte; 20]);
            Commit { at: 0, tree, seconds: 1, origin: 0, message_len: 0 }
        };
        let trees = |bytes: [u8; 3]| {
            let mut commits = Commits { commits: bytes.map(commit).into(), edges: Vec::new() };
            let order = commits.oldest_first();
            order.iter().map(|&at| commits.commits[at as usize].tree).collect::<Vec<_>>()
        };
        assert_eq!(trees([3, 1, 2]), trees([2, 3, 1]));
    }
}
