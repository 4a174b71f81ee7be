//! Files that appear whole or not at all.

use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::output::stdout;
use crate::say::shown;

/// Writes with `write` to the file at `path`, or to standard output if that is `-` or there is none.
/// A file takes the place of one of that name when all of it is on the disk: killed before, or with
/// the disk full, the old one is what it was.
pub(crate) fn write_whole<T>(
    path: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = path.filter(|path| *path != Path::new("-")) else {
        let mut out = stdout();
        let written = write(&mut out)?;
        out.flush()?;
        return Ok(written);
    };
    let fail = |error: io::Error| Failure::file(path, &error);
    // A link stays what it is; the file that it names is replaced.
    let path = &followed(path);
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    if is_special || is_descriptor(path) {
        // A pipe or a device is written to as it is, and so is a file that somebody else has opened.
        let mut out = BufWriter::new(File::options().append(true).open(path).map_err(fail)?);
        let written = write(&mut out)?;
        out.flush().map_err(fail)?;
        return Ok(written);
    }
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
    let mut draft = name.to_owned();
    draft.push(format!(".{}.part", std::process::id()));
    let draft = path.with_file_name(draft);
    let before = fs::metadata(path).ok();
    let written = write_draft(&draft, before.as_ref(), write).and_then(|written| {
        fs::rename(&draft, path)?;
        Ok(written)
    });
    if written.is_err() {
        // What is left of it is of no use; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(|error| error.about(path))
}

/// Whether `path` stands for something that a process has open, such as its standard output.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|place| path.starts_with(place))
}

/// What a link leads to, and what other paths are.
fn followed(path: &Path) -> PathBuf {
    /// More are a circle, as for the system.
    const LINKS_MAX: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(to) if !is_descriptor(&path) => path = path.with_file_name("").join(to),
            _ => break,
        }
    }
    path
}

/// The draft gets the rights of the file that it takes the place of.
fn write_draft<T>(
    draft: &Path,
    before: Option<&Metadata>,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = File::create(draft)?;
    if let Some(before) = before {
        file.set_permissions(before.permissions())?;
    }
    let mut out = BufWriter::new(file);
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(written)
}

/// Whether a file could be written there, as far as can be told before it is.
pub(crate) fn check_place(file: &Path) -> Result<(), Failure> {
    let is_plain = file != Path::new("-");
    let dir = file.parent().filter(|dir| is_plain && !dir.as_os_str().is_empty());
    if dir.is_some_and(|dir| !dir.is_dir()) {
        return Err(Failure::new(format!("{}: its directory does not exist", shown(file))));
    }
    if is_plain && file.is_dir() {
        return Err(Failure::new(format!("{}: this is a directory", shown(file))));
    }
    Ok(())
}
