//! Debian and Ubuntu packages: installed where we may, otherwise named with the line to type.

use std::path::Path;
use std::sync::Once;

use super::slots::take;
use super::table::Part;
use crate::command::{Cmd, on_path};
use crate::failure::{Failure, Result};

/// Installs those of `packages` that are missing. On other systems it says what they are and goes
/// on: the build will tell whether it finds what it needs.
pub(crate) fn ensure(packages: &[&str]) -> Result<()> {
    let mut wanted: Vec<_> = packages.to_vec();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(());
    }
    if on_path("dpkg-query").is_none() {
        println!("not Debian: what is in its packages {} has to be there", wanted.join(", "));
        return Ok(());
    }
    let missing: Vec<_> = wanted.into_iter().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!("apt-get install --no-install-recommends {}", missing.join(" "));
    if !is_root() {
        return Err(Failure::new(format!("Debian packages are missing: {}", missing.join(", ")))
            .fix(format!("sudo apt-get update && sudo {line}")));
    }
    println!("installing Debian packages: {}", missing.join(", "));
    refresh_lists();
    Cmd::new("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout()
        .map(drop)
        .map_err(|failure| failure.fix(format!("apt-get update && {line}")))
}

/// Fetches packages without installing them, and moves `parts` of them into `slot`.
pub(super) fn unpack(packages: &[&str], parts: &[Part], slot: &Path) -> Result<()> {
    if on_path("apt-get").is_none() || on_path("dpkg").is_none() {
        return Err(Failure::new("this system has no apt-get and dpkg"));
    }
    if is_root() {
        refresh_lists();
    }
    let scratch = slot.join("deb");
    let doing = |error: std::io::Error| Failure::new(format!("{}: {error}", scratch.display()));
    std::fs::create_dir(&scratch).map_err(doing)?;
    Cmd::new("apt-get")
        .args(["download", "--quiet"])
        .args(packages.iter().copied())
        .dir(&scratch)
        .stdout()
        .map_err(|failure| failure.fix("sudo apt-get update, then again"))?;
    for entry in std::fs::read_dir(&scratch).map_err(doing)? {
        let path = entry.map_err(doing)?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            Cmd::new("dpkg").arg("-x").arg(path).arg(scratch.join("unpacked")).stdout()?;
        }
    }
    for part in parts {
        take(&scratch.join("unpacked"), part.inside, slot, part.file)?;
    }
    std::fs::remove_dir_all(&scratch).map_err(doing)
}

fn is_installed(package: &str) -> bool {
    let query = Cmd::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", package]).capture();
    query.is_ok_and(|query| query.success && query.stdout.trim() == "installed")
}

fn is_root() -> bool {
    Cmd::new("id").arg("-u").capture().is_ok_and(|id| id.stdout.trim() == "0")
}

/// Once per process, and not fatal: the lists that are there may do, and what is then missing says
/// so by itself.
fn refresh_lists() {
    static REFRESHED: Once = Once::new();
    REFRESHED.call_once(|| {
        if let Err(failure) = Cmd::new("apt-get").args(["update", "--quiet"]).stdout() {
            eprintln!("{failure}");
        }
    });
}
