//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::failure::Failure;
use crate::output::stdout;

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
    // A pipe or a device is written to as it is.
    let is_special = fs::metadata(path).is_ok_and(|found| !found.is_file());
    if is_special {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(fail)?);
        let written = write(&mut out)?;
        out.flush().map_err(fail)?;
        return Ok(written);
    }
    let name = path.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
    let mut draft = name.to_owned();
    draft.push(format!(".{}.part", std::process::id()));
    let draft = path.with_file_name(draft);
    let written = write_draft(&draft, write).and_then(|written| {
        fs::rename(&draft, path)?;
        Ok(written)
    });
    if written.is_err() {
        // What is left of it is of no use; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&draft);
    }
    written.map_err(|error| error.about(path))
}

fn write_draft<T>(
    draft: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut out = BufWriter::new(File::create(draft)?);
    let written = write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(written)
}
