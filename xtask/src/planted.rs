//! `cargo xtask mutants --planted`: bugs planted in the protocol on purpose; the simulator has to
//! notice each.
//!
//! The bugs are in a build of their own (`--cfg planted`), one of them switched on at a time.

use std::path::Path;

use crate::command::Cmd;
use crate::failure::{Failure, Result};
use crate::sim;
use crate::workspace::Workspace;

/// Seeds without a finding after which a bug counts as missed.
const SEEDS_MAX: u64 = 2_000;

/// Looks for the bugs whose name contains `name`, or for all, from seed `start` on.
pub(crate) fn run(start: u64, name: Option<String>) -> Result<()> {
    let workspace = Workspace::load()?;
    let name = name.unwrap_or_default();
    if hunt(&workspace.root, &workspace.target_dir, &name, start).succeeds()? {
        return Ok(());
    }
    Err(Failure::new("the simulator did not get to its end, or missed a planted bug").fix(
        "find out why nobody notices: an operation or a fault that no seed draws, or an oracle \
              that does not look",
    ))
}

/// The simulator of the build with planted bugs, on the hunt.
pub(crate) fn hunt(root: &Path, target_dir: &Path, name: &str, start: u64) -> Cmd {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    sim::simulator(root)
        .args(["--planted", name, "--seeds", &SEEDS_MAX.to_string()])
        .args(["--start", &start.to_string()])
        .env("RUSTFLAGS", format!("{flags} --cfg planted").trim())
        // Other flags, other artifacts: the usual ones stay as they are.
        .env("CARGO_TARGET_DIR", target_dir.join("planted"))
}

/// How many bugs a closing line says were noticed, if all of them were.
pub(crate) fn count_in(line: &str) -> Option<u64> {
    let (noticed, rest) = line.split_once(" of ")?;
    let planted = rest.split_once(" planted bugs were noticed")?.0;
    (noticed == planted).then(|| noticed.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_are_counted_only_when_all_were_noticed() {
        let line = "75 of 75 planted bugs were noticed, after a median of 256 operations";
        assert_eq!(count_in(line), Some(75));
        assert_eq!(count_in("74 of 75 planted bugs were noticed, after"), None);
        assert_eq!(count_in("1 of 1 things"), None);
    }

    #[test]
    fn the_build_with_bugs_keeps_out_of_the_usual_one() {
        let shown = hunt(Path::new("r"), Path::new("t"), "Park", 7).to_string();
        assert!(shown.contains("--cfg planted") && shown.contains("t/planted"), "{shown}");
        assert!(shown.ends_with("-- --planted Park --seeds 2000 --start 7"), "{shown}");
    }
}
