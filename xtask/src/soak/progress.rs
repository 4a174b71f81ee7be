//! Which chunks of a soak have passed: one line each, appended when it has.
//!
//! Kept in the target directory under commit and name, so that a killed soak goes on where it was.
//! A changed tree has no name by which its progress could be kept: it starts over.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, OrFail, Result};
use crate::git::Identity;

/// A chunk that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) id: String,
    pub(super) count: u64,
    pub(super) seconds: u64,
}

/// The progress of one soak, locked while it runs.
pub(super) struct Progress {
    path: PathBuf,
    file: File,
    done: Vec<Done>,
}

impl Progress {
    /// What has passed so far, without taking part.
    pub(super) fn peek(target_dir: &Path, soak: &str, identity: &Identity) -> Vec<Done> {
        if identity.dirty {
            return Vec::new();
        }
        parse(&fs::read_to_string(path(target_dir, soak, identity)).unwrap_or_default()).0
    }

    pub(super) fn open(target_dir: &Path, soak: &str, identity: &Identity) -> Result<Self> {
        let path = path(target_dir, soak, identity);
        let doing = || format!("opening {}", path.display());
        fs::create_dir_all(path.parent().expect("it is in a folder")).or_fail(doing)?;
        let mut options = OpenOptions::new();
        let mut file = options.create(true).read(true).append(true).open(&path).or_fail(doing)?;
        if file.try_lock().is_err() {
            return Err(Failure::new(format!("soak {soak} is already running for {identity}")));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).or_fail(doing)?;
        let (mut done, whole) = parse(&text);
        let mut keep = whole;
        if identity.dirty {
            (done, keep) = (Vec::new(), 0);
        }
        // What a kill left of a line must not be continued by the next one.
        file.set_len(keep as u64).or_fail(doing)?;
        Ok(Self { path, file, done })
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.done.iter().any(|done| done.id == id)
    }

    pub(super) fn add(&mut self, done: Done) -> Result<()> {
        let line = format!("{} {} {}\n", done.id, done.count, done.seconds);
        self.file
            .write_all(line.as_bytes())
            .and_then(|()| self.file.sync_data())
            .or_fail(|| format!("writing {}", self.path.display()))?;
        self.done.push(done);
        Ok(())
    }

    pub(super) fn done(&self) -> &[Done] {
        &self.done
    }

    pub(super) fn count(&self) -> u64 {
        self.done.iter().map(|done| done.count).sum()
    }

    pub(super) fn seconds(&self) -> u64 {
        self.done.iter().map(|done| done.seconds).sum()
    }

    /// Forgets it: the soak is recorded, and the next one starts from nothing.
    pub(super) fn finish(self) -> Result<()> {
        fs::remove_file(&self.path).or_fail(|| format!("removing {}", self.path.display()))
    }
}

fn path(target_dir: &Path, soak: &str, identity: &Identity) -> PathBuf {
    target_dir.join("soak-progress").join(format!("{identity}-{soak}.progress"))
}

/// The whole lines of a progress file, and how many bytes they take.
fn parse(text: &str) -> (Vec<Done>, usize) {
    let mut whole = 0;
    let mut done = Vec::new();
    for line in text.split_inclusive('\n') {
        let words: Vec<_> = line.split_whitespace().collect();
        let [id, count, seconds] = words[..] else { break };
        let (Ok(count), Ok(seconds), true) = (count.parse(), seconds.parse(), line.ends_with('\n'))
        else {
            break;
        };
        done.push(Done { id: id.to_owned(), count, seconds });
        whole += line.len();
    }
    (done, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(id: &str) -> Done {
        Done { id: id.into(), count: 3, seconds: 7 }
    }

    fn at(commit: &str, dirty: bool) -> Identity {
        Identity { commit: commit.into(), dirty }
    }

    #[test]
    fn a_soak_goes_on_where_it_was_for_the_same_commit_only() {
        let dir = std::env::temp_dir().join(format!("gossip-xtask-soak-{}", std::process::id()));
        let open = |identity: &Identity| Progress::open(&dir, "a", identity).unwrap();
        let mut first = open(&at("c1", false));
        first.add(done("one")).unwrap();
        assert!(Progress::open(&dir, "a", &at("c1", false)).is_err(), "one at a time");
        drop(first);

        let again = open(&at("c1", false));
        assert!(again.has("one") && again.count() == 3 && again.seconds() == 7);
        assert!(!open(&at("c2", false)).has("one"));

        let mut dirty = open(&at("c1", true));
        dirty.add(done("one")).unwrap();
        drop(dirty);
        assert!(!open(&at("c1", true)).has("one"), "a changed tree starts over");

        again.finish().unwrap();
        assert!(Progress::peek(&dir, "a", &at("c1", false)).is_empty());
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_line_that_a_kill_cut_off_does_not_count_and_is_not_continued() {
        for torn in ["one 3 7\ntw", "one 3 7\ntwo 3 1", "one 3 7\ntwo 3\n"] {
            let (parsed, whole) = parse(torn);
            assert_eq!(parsed, [done("one")], "{torn:?}");
            assert_eq!(whole, "one 3 7\n".len(), "{torn:?}");
        }
    }
}
