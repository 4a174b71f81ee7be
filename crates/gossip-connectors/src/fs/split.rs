//! Where to cut what is left of a range into parts of about the same number of files.
//!
//! - P1: points are ascending, strictly inside the range and behind the cursor.
//! - P2: the cost is bounded, however large the tree: so many directories are read, breadth first,
//!   and of a large one a sample is kept.
//!
//! A directory that was not read counts as much as those read did on average.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::fs::fstat;

use super::KEY_SIZE_MAX;
use super::bounds::{Lower, Upper};
use super::error::FsError;
use super::ignore::Ignores;
use super::names::{Kind, OpenDir};
use super::tree::Tree;

/// Most directories that are read.
const READS_MAX: usize = 256;

/// Most names that are kept of one directory.
const SAMPLE_LEN_MAX: usize = 4096;

/// No more directories are read once there are so many parts.
const PARTS_LEN_MAX: usize = 1 << 16;

/// Up to `want` points in what `lower` and `upper` admit.
pub(super) fn split_points(
    tree: &Tree,
    lower: Lower<'_>,
    upper: Upper<'_>,
    want: usize,
) -> Result<Vec<Box<[u8]>>, FsError> {
    let mut survey = Survey { tree, lower, upper, parts: Vec::new(), unread: VecDeque::new() };
    survey.read(&Directory::ROOT)?;
    let mut reads = 1;
    while reads < READS_MAX && survey.parts.len() < PARTS_LEN_MAX {
        let Some(directory) = survey.unread.pop_front() else {
            break;
        };
        match survey.read(&directory) {
            Ok(()) => reads += 1,
            Err(short @ FsError::Short(_)) => return Err(short),
            // The listing reports it, as one entry.
            Err(_) => survey.parts.push(Part { key: directory.key, weight: 1 }),
        }
    }
    Ok(survey.finish(reads as u64, want))
}

/// A stretch of the range that begins at `key`.
struct Part {
    key: Vec<u8>,
    weight: u64,
}

/// A directory that has not been read.
struct Directory {
    key: Vec<u8>,
    /// How many like it, in a large directory, it stands for.
    stands_for: u64,
    ignores: Ignores,
}

impl Directory {
    const ROOT: Self = Self { key: Vec::new(), stands_for: 1, ignores: Ignores::NONE };
}

struct Survey<'a> {
    tree: &'a Tree,
    lower: Lower<'a>,
    upper: Upper<'a>,
    parts: Vec<Part>,
    unread: VecDeque<Directory>,
}

impl Survey<'_> {
    fn read(&mut self, directory: &Directory) -> Result<(), FsError> {
        let fd = self.tree.beneath.open_dir(&directory.key)?;
        let is_excluded = self.tree.excludes_stat(&fstat(&fd)?).is_some();
        if is_excluded || self.tree.excludes_dir(&directory.key).is_some() {
            self.parts.push(Part { key: directory.key.clone(), weight: 1 });
            return Ok(());
        }
        let mut dir = OpenDir::new(fd)?;
        let ignores = self.tree.ignores(&directory.ignores, &dir, directory.key.len())?;
        let sample = self.sample(&directory.key, &mut dir)?;
        let stands_for = directory.stands_for.saturating_mul(sample.one_in);
        for (name, kind) in sample.names {
            let key = [&directory.key[..], &name].concat();
            if kind == Kind::Dir && !ignores.exclude(&key) {
                self.unread.push_back(Directory { key, stands_for, ignores: ignores.clone() });
            } else {
                self.parts.push(Part { key, weight: stands_for });
            }
        }
        Ok(())
    }

    fn sample(&self, path: &[u8], dir: &mut OpenDir) -> Result<Sample, FsError> {
        let (lower, upper) = (self.lower.below(path), self.upper.below(path));
        let mut sample = Sample { names: Vec::new(), one_in: 1 };
        self.tree.count_read();
        dir.for_each(|name, kind| {
            if !sample.takes(name) {
                return;
            }
            let mut name = name.to_vec();
            let is_inside = match kind {
                Kind::Dir => {
                    name.push(b'/');
                    lower.may_be_below(&name)
                }
                _ => lower.admits(&name),
            };
            if is_inside && upper.admits(&name) && path.len() + name.len() <= KEY_SIZE_MAX {
                sample.add(name, kind);
            }
        })?;
        Ok(sample)
    }

    /// The points that cut what was found, in `reads` directories, into `want + 1` equal parts.
    fn finish(mut self, reads: u64, want: usize) -> Vec<Box<[u8]>> {
        let found: u64 = self.parts.iter().map(|part| part.weight).sum();
        let average = (found / reads).max(1);
        self.parts.extend(self.unread.into_iter().map(|directory| Part {
            key: directory.key,
            weight: directory.stands_for.saturating_mul(average),
        }));
        self.parts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        cut(self.parts, self.lower, want)
    }
}

fn cut(parts: Vec<Part>, lower: Lower<'_>, want: usize) -> Vec<Box<[u8]>> {
    let total: u128 = parts.iter().map(|part| u128::from(part.weight)).sum();
    let shares = want as u128 + 1;
    let (mut before, mut shares_cut, mut points) = (0_u128, 0, Vec::new());
    for part in parts {
        // How many shares lie before this part. One heavy part may hold several, which cannot be
        // told apart.
        let shares_before = before * shares / total.max(1);
        before += u128::from(part.weight);
        if shares_before > shares_cut && part.key[..] > *lower.key() {
            points.push(part.key.into());
            shares_cut = shares_before;
        }
    }
    points
}

/// Some names of a directory: all of them, or one in so many.
struct Sample {
    names: Vec<(Vec<u8>, Kind)>,
    /// A power of two.
    one_in: u64,
}

impl Sample {
    /// By a hash, not by position: file systems return names in orders of their own, and the choice
    /// must be the same each time.
    fn takes(&self, name: &[u8]) -> bool {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish().is_multiple_of(self.one_in)
    }

    fn add(&mut self, name: Vec<u8>, kind: Kind) {
        self.names.push((name, kind));
        while self.names.len() > SAMPLE_LEN_MAX {
            self.one_in *= 2;
            let names = std::mem::take(&mut self.names);
            // Asked for the name as it is on the disk, as above.
            let taken =
                |(name, _): &(Vec<u8>, Kind)| self.takes(name.strip_suffix(b"/").unwrap_or(name));
            self.names = names.into_iter().filter(taken).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_weights(weights: &[u64], want: usize) -> Vec<usize> {
        let part = |(at, &weight): (usize, &u64)| Part { key: vec![b'a' + at as u8], weight };
        let parts = weights.iter().enumerate().map(part).collect();
        let points = cut(parts, Lower::everything(), want);
        points.iter().map(|point| usize::from(point[0] - b'a')).collect()
    }

    #[test]
    fn points_lie_at_equal_shares() {
        assert_eq!(cut_weights(&[1; 8], 3), [2, 4, 6]);
        assert_eq!(cut_weights(&[1; 3], 9), [1, 2]);
        assert_eq!(cut_weights(&[2, 2, 1, 1, 1, 1], 1), [2]);
        assert_eq!(cut_weights(&[], 3), [0; 0]);
        assert_eq!(cut_weights(&[u64::MAX; 3], 2), [1, 2]);
    }

    #[test]
    fn a_part_too_heavy_to_cut_takes_its_neighbours_no_points() {
        assert_eq!(cut_weights(&[100, 1, 1, 1, 1, 1], 4), [1]);
        assert_eq!(cut_weights(&[1, 1, 100, 1, 1], 4), [3]);
    }

    #[test]
    fn a_sample_is_bounded_and_says_how_much_it_stands_for() {
        let mut sample = Sample { names: Vec::new(), one_in: 1 };
        for i in 0..100_000_u32 {
            let name = i.to_string().into_bytes();
            if sample.takes(&name) {
                sample.add(name, Kind::File);
            }
        }
        assert!(sample.names.len() <= SAMPLE_LEN_MAX);
        let stands_for = sample.names.len() as u64 * sample.one_in;
        assert!((90_000..110_000).contains(&stands_for), "{stands_for}");
    }
}
