//! The scratch copy of the sources in which every bug stands behind its switch.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::apply::{self, Fault, Planted};
use super::parse::Bug;
use crate::failure::{OrFail, Result};
use crate::git;

/// The files with bugs, as `bugs` change them.
pub(super) fn patched(
    root: &Path,
    bugs: &[Bug],
) -> std::result::Result<BTreeMap<PathBuf, String>, Vec<Fault>> {
    let mut by_file: BTreeMap<&str, Vec<Planted<'_>>> = BTreeMap::new();
    for (number, bug) in bugs.iter().enumerate() {
        for patch in &bug.described.patches {
            by_file.entry(&patch.file).or_default().push((number, &bug.name, patch));
        }
    }
    let (mut files, mut faults) = (BTreeMap::new(), Vec::new());
    for (file, planted) in by_file {
        let path = PathBuf::from(file);
        let source = crate_of(&path).and_then(|_| fs::read_to_string(root.join(&path)).ok());
        let applied = match source {
            Some(source) => apply::apply(&source, &planted),
            None => {
                let why = format!("there is no file `{file}` in the sources of a crate");
                Err(planted.iter().map(|&(bug, ..)| Fault { bug, why: why.clone() }).collect())
            }
        };
        match applied {
            Ok(applied) => drop(files.insert(path, applied)),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(files) } else { Err(faults) }
}

/// The folder of the crate to whose sources a file belongs.
fn crate_of(file: &Path) -> Option<&Path> {
    // A path that leads out of the tree would do so from the copy, too.
    let is_inside = file.components().all(|part| matches!(part, Component::Normal(_)));
    let mut folders = file.ancestors().filter(|_| is_inside);
    folders.find(|folder| folder.file_name() == Some(OsStr::new("src")))?.parent()
}

/// Makes `tree` what git sees of `root`, with `patched` files, and in their crates a module `planted`
/// that is the `switch`. Files that are so already keep their times, so that cargo builds only what
/// changed.
pub(super) fn write(
    root: &Path,
    tree: &Path,
    mut patched: BTreeMap<PathBuf, String>,
    switch: &str,
) -> Result<()> {
    let crates: BTreeSet<PathBuf> =
        patched.keys().filter_map(|file| crate_of(file)).map(Path::to_owned).collect();
    for crate_root in crates {
        let library = crate_root.join("src/lib.rs");
        let text = match patched.remove(&library) {
            Some(text) => text,
            None => fs::read_to_string(root.join(&library))
                .or_fail(|| format!("reading {}", library.display()))?,
        };
        patched.insert(library, format!("{text}\nmod planted;\n"));
        patched.insert(crate_root.join("src/planted.rs"), switch.to_owned());
    }
    let unchanged = git::files(root)?.into_iter().filter(|file| !patched.contains_key(file));
    let unchanged: Vec<PathBuf> = unchanged.collect();
    let wanted: BTreeSet<&Path> = patched.keys().chain(&unchanged).map(PathBuf::as_path).collect();
    remove_others(tree, Path::new(""), &wanted)?;
    for file in &unchanged {
        let bytes = fs::read(root.join(file)).or_fail(|| format!("reading {}", file.display()))?;
        write_if_changed(&tree.join(file), &bytes)?;
    }
    patched.iter().try_for_each(|(file, text)| write_if_changed(&tree.join(file), text.as_bytes()))
}

/// Removes what is in the folder of the copy and not wanted there.
fn remove_others(tree: &Path, folder: &Path, wanted: &BTreeSet<&Path>) -> Result<()> {
    let here = tree.join(folder);
    if !here.is_dir() {
        return Ok(());
    }
    let reading = || format!("reading {}", here.display());
    for entry in fs::read_dir(&here).or_fail(reading)? {
        let entry = entry.or_fail(reading)?;
        let path = folder.join(entry.file_name());
        if entry.file_type().or_fail(reading)?.is_dir() {
            remove_others(tree, &path, wanted)?;
        } else if !wanted.contains(path.as_path()) {
            fs::remove_file(tree.join(&path)).or_fail(|| format!("removing {}", path.display()))?;
        }
    }
    // A folder without a file is no crate: cargo would want a manifest in it.
    if fs::read_dir(&here).or_fail(reading)?.next().is_none() {
        fs::remove_dir(&here).or_fail(|| format!("removing {}", here.display()))?;
    }
    Ok(())
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .or_fail(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_follows_its_source_and_leaves_unchanged_files_alone() {
        let base = std::env::temp_dir().join(format!("gossip-xtask-tree-{}", std::process::id()));
        let (tree, file) = (base.join("tree"), Path::new("crates/a/src/b.rs"));
        write_if_changed(&tree.join(file), b"one").unwrap();
        write_if_changed(&tree.join("crates/old/Cargo.toml"), b"two").unwrap();
        let time = || fs::metadata(tree.join(file)).unwrap().modified().unwrap();
        let before = time();
        write_if_changed(&tree.join(file), b"one").unwrap();
        assert_eq!(time(), before);
        remove_others(&tree, Path::new(""), &BTreeSet::from([file])).unwrap();
        assert!(tree.join(file).is_file() && !tree.join("crates/old").exists());
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn a_file_with_bugs_belongs_to_the_sources_of_a_crate() {
        let of = |file| crate_of(Path::new(file));
        assert_eq!(of("crates/a/src/b/c.rs"), Some(Path::new("crates/a")));
        assert_eq!(of("crates/a/build.rs"), None);
        assert_eq!(of("../a/src/b.rs"), None);
        assert_eq!(of("/a/src/b.rs"), None);
    }
}
