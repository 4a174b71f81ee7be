//! `.servers/`: folders that are either complete or not there.
//!
//! - I1: a slot appears under its name by one rename, after its content was checked.
//! - I2: one process installs at a time; the lock ends with the process, however that ends.
//! - I3: what a killed process left behind is removed by the next one that installs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::failure::{Failure, OrFail, Result};

/// Everything that is not a slot starts with this.
const SCRATCH: &str = "unfinished-";

pub(crate) struct Slots {
    dir: PathBuf,
}

impl Slots {
    /// The slots of the checkout at `root`.
    pub(crate) fn of(root: &Path) -> Self {
        Self { dir: root.join(".servers") }
    }

    pub(crate) fn path(&self, slot: &str) -> PathBuf {
        self.dir.join(slot)
    }

    /// Makes `slot` with `build`, unless another process just did, and returns what `complete` finds
    /// in it. Whatever stood there before was not complete, and goes.
    pub(crate) fn fill<T>(
        &self,
        slot: &str,
        complete: impl Fn(&Path) -> Option<T>,
        build: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<T> {
        let _held_until_the_end = self.lock()?;
        let final_path = self.path(slot);
        if let Some(found) = complete(&final_path) {
            return Ok(found);
        }
        self.remove_leftovers()?;
        let scratch = self.dir.join(format!("{SCRATCH}{slot}"));
        create(&scratch)?;
        build(&scratch)?;
        if complete(&scratch).is_none() {
            return Err(Failure::new(
                "what was installed does not run here, or tells another version",
            ));
        }
        if final_path.exists() {
            remove(&final_path)?;
        }
        fs::rename(&scratch, &final_path)
            .or_fail(|| format!("moving {} into place", final_path.display()))?;
        complete(&final_path)
            .ok_or_else(|| Failure::new("it ran before it was moved, but not after"))
    }

    fn lock(&self) -> Result<File> {
        create(&self.dir)?;
        let path = self.dir.join("lock");
        let doing = || format!("locking {}", path.display());
        let lock = File::create(&path).or_fail(doing)?;
        if lock.try_lock().is_err() {
            println!("waiting for another installation into {}", self.dir.display());
            lock.lock().or_fail(doing)?;
        }
        Ok(lock)
    }

    /// Only under the lock.
    fn remove_leftovers(&self) -> Result<()> {
        let doing = || format!("listing {}", self.dir.display());
        for entry in fs::read_dir(&self.dir).or_fail(doing)? {
            let entry = entry.or_fail(doing)?;
            if entry.file_name().to_string_lossy().starts_with(SCRATCH) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn create(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).or_fail(|| format!("creating {}", dir.display()))
}

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).or_fail(|| format!("removing {}", dir.display()))
}

/// Makes one file of an unpacked package the executable `slot/name`.
pub(super) fn take(unpacked: &Path, inside: &str, slot: &Path, name: &str) -> Result<()> {
    let (from, to) = (unpacked.join(inside), slot.join(name));
    fs::rename(&from, &to).or_fail(|| format!("the package has no {inside}"))?;
    make_executable(&to)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .or_fail(|| format!("making {} executable", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn temp(name: &str) -> (PathBuf, Slots) {
        let root = std::env::temp_dir().join(format!("gossip-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let slots = Slots::of(&root);
        (root, slots)
    }

    fn complete(dir: &Path) -> Option<String> {
        fs::read_to_string(dir.join("file")).ok()
    }

    #[test]
    fn two_installations_at_once_build_once() {
        let (root, slots) = temp("twice");
        let built = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let build = |dir: &Path| {
                        built.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        fs::write(dir.join("file"), "x").or_fail(String::new)
                    };
                    assert_eq!(slots.fill("a", complete, build).unwrap(), "x");
                });
            }
        });
        assert_eq!(built.load(Ordering::SeqCst), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_killed_installation_left_is_neither_used_nor_kept() {
        let (root, slots) = temp("killed");
        let leftover = slots.dir.join("unfinished-a");
        fs::create_dir_all(&leftover).unwrap();
        fs::write(leftover.join("file"), "half").unwrap();
        // A slot that somebody damaged is made again, too.
        fs::create_dir_all(slots.path("a")).unwrap();
        let build = |dir: &Path| {
            assert!(!dir.join("file").exists());
            fs::write(dir.join("file"), "whole").or_fail(String::new)
        };
        assert_eq!(slots.fill("a", complete, build).unwrap(), "whole");
        assert!(!leftover.exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_build_that_fails_or_does_not_run_leaves_no_slot() {
        let (root, slots) = temp("failed");
        assert!(slots.fill("a", complete, |_| Err(Failure::new("no network"))).is_err());
        assert!(slots.fill("a", complete, |_| Ok(())).is_err());
        assert!(!slots.path("a").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
