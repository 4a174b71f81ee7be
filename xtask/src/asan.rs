//! `cargo xtask asan`: the one crate with raw memory, under AddressSanitizer.

use std::path::Path;

use crate::args::Args;
use crate::command::Cmd;
use crate::failure::{Failure, Result};
use crate::workspace::Workspace;

pub(crate) const HELP: &str = "\
Runs gossip-stdx's tests under AddressSanitizer (nightly), in a target directory of their own.

Usage: cargo xtask asan [-- ARGS…]          ARGS go to the test runner, such as a filter
";

/// The crate that the sanitizer looks at.
pub(crate) const PACKAGE: &str = "gossip-stdx";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let passed_on = args.passed_on();
    args.nothing_left()?;
    let workspace = Workspace::load()?;
    command(&workspace.root, &workspace.target_dir)?.args(passed_on).run()
}

/// Its tests with the sanitizer; arguments that follow go to the test runner.
pub(crate) fn command(root: &Path, target_dir: &Path) -> Result<Cmd> {
    need_nightly()?;
    let host = host()?;
    // Naming the target, even the host, keeps the sanitizer out of build scripts and macros.
    Ok(Cmd::cargo()
        .args(["+nightly", "test", "--package", PACKAGE, "--tests", "--target", &host, "--"])
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", target_dir.join("asan"))
        .dir(root))
}

fn host() -> Result<String> {
    let said = Cmd::new("rustc").args(["+nightly", "--version", "--verbose"]).stdout()?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("rustc does not tell its host"))
}

/// Sanitizers need flags that only nightly takes.
pub(crate) fn need_nightly() -> Result<()> {
    if Cmd::cargo().args(["+nightly", "--version"]).capture()?.success {
        return Ok(());
    }
    Err(Failure::new("the nightly toolchain is missing")
        .fix("rustup toolchain install nightly --profile minimal"))
}
