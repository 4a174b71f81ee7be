//! A copy of the files of a database that is open, and that nobody writes to.
//!
//! The engine has no call for it. Its workers may go on: they turn journals into tables, and tables
//! into others. So the order matters:
//!
//! - journals come first. Whatever a journal held that is gone by then, is in the tables already; what
//!   becomes a table later is in its journal here as well, and the engine skips it there. If the tables
//!   had everything before, one empty journal stands for all of them;
//! - of each keyspace, the file that names its current version comes first, and is to be the same when
//!   the rest was copied: the tables of a version stay until another is current.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::super::{SnapshotError, io_error};
use super::{FIRST_JOURNAL, LOCK, VERSION};

/// How often a copy is begun again because of the workers.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);

const KEYSPACES: &str = "keyspaces";
const CURRENT: &str = "current";
/// That of names, of entries and of the cursor.
const KEYSPACES_MADE: usize = 3;
/// Files in these directories of a keyspace never change.
const IMMUTABLE: [&str; 2] = ["tables", "blobs"];

/// What becomes of the journals.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Journals {
    Copied,
    /// All that is in them is in tables.
    Empty,
}

pub(super) fn copy(from: &Path, to: &Path, journals: Journals) -> Result<(), SnapshotError> {
    let copying = || io_error("copying the database of the fold");
    for _ in 0..ATTEMPTS {
        match copy_once(from, to, journals) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            // Removed by a worker between being listed and being copied.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(copying()(error)),
        }
        fs::remove_dir_all(to).map_err(copying())?;
        thread::sleep(PAUSE);
    }
    let message = format!("its tables changed while they were copied, {ATTEMPTS} times");
    Err(SnapshotError::Engine { engine: "fjall", message })
}

/// `false` if a version was replaced meanwhile.
fn copy_once(from: &Path, to: &Path, journals: Journals) -> io::Result<bool> {
    fs::create_dir_all(to.join(KEYSPACES))?;
    if journals == Journals::Empty {
        // Without any, the engine would not look for the last sequence number.
        File::create(to.join(FIRST_JOURNAL))?;
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_journal = name.to_str().is_some_and(is_journal);
        if (is_journal && journals == Journals::Copied) || name == LOCK || name == VERSION {
            copy_data(&entry.path(), &to.join(&name))?;
        }
    }
    for entry in fs::read_dir(from.join(KEYSPACES))? {
        let entry = entry?;
        let target = to.join(KEYSPACES).join(entry.file_name());
        if entry.file_type()?.is_dir() && !copy_keyspace(&entry.path(), &target)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy_keyspace(from: &Path, to: &Path) -> io::Result<bool> {
    fs::create_dir(to)?;
    let current = fs::read(from.join(CURRENT))?;
    fs::write(to.join(CURRENT), &current)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, target) = (entry.file_name(), to.join(entry.file_name()));
        if name.to_str().is_some_and(is_version) {
            copy_data(&entry.path(), &target)?;
        } else if IMMUTABLE.iter().any(|known| name == *known) {
            fs::create_dir(&target)?;
            for file in fs::read_dir(entry.path())? {
                let file = file?;
                link(&file.path(), &target.join(file.file_name()))?;
            }
        }
    }
    Ok(fs::read(from.join(CURRENT))? == current)
}

/// Whether there are a journal and the keyspaces of a fold (its own, and that of their names), all of
/// which were made.
pub(super) fn is_whole(path: &Path) -> io::Result<bool> {
    let mut has_journal = false;
    for entry in fs::read_dir(path)? {
        has_journal |= entry?.file_name().to_str().is_some_and(is_journal);
    }
    let mut made = 0;
    let keyspaces = match fs::read_dir(path.join(KEYSPACES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        keyspaces => keyspaces?,
    };
    for entry in keyspaces {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            if !entry.path().join(CURRENT).try_exists()? {
                return Ok(false);
            }
            made += 1;
        }
    }
    Ok(has_journal && made >= KEYSPACES_MADE)
}

/// The same file under another name; a copy where that cannot be.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(_) => copy_data(from, to),
        linked => linked,
    }
}

/// Not with [`fs::copy`], which takes the permissions along, too.
fn copy_data(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    io::copy(&mut from, &mut to)?;
    Ok(())
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u64>().is_ok()
}

fn is_journal(name: &str) -> bool {
    name.strip_suffix(".jnl").is_some_and(is_number)
}

fn is_version(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(is_number)
}

/// Whether a database has a file of this name. The engine panics at some others.
pub(super) fn owns(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [name] => name == LOCK || name == VERSION || is_journal(name),
        [KEYSPACES, id, name] => is_number(id) && (name == CURRENT || is_version(name)),
        [KEYSPACES, id, folder, file] => {
            is_number(id) && IMMUTABLE.contains(&folder) && is_number(file)
        }
        _ => false,
    }
}
