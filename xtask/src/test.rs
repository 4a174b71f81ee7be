//! `cargo xtask test`: everything that has to pass before a merge, in one command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::args::Args;
use crate::command::{Cmd, on_path};
use crate::failure::{Failure, Result};
use crate::workspace::{Package, Workspace};
use crate::{servers, sim, soak, tidy};

pub(crate) const HELP: &str = "\
Runs everything that has to pass before a merge. Stops at the first step that fails.

Usage: cargo xtask test [--rocksdb] [--only STEP[,STEP…]]

  setup      finds or installs what the workspace's packages say they need; always runs
  fmt        cargo fmt --check
  clippy     all targets, warnings are errors
  tidy       the rules that no compiler checks
  tests      nextest, or `cargo test` where nextest is absent
  sim        the coordination simulator: 2 000 seeds in memory, 200 on SQLite, 600 on a model of etcd
  doctests   every example in the documentation
  docs       the documentation builds without a warning

slipstream-rocksdb is left out: its C++ takes longer to build than everything else together.
--rocksdb takes it in, as CI does.

Tests find servers by variables such as GOSSIP_NATS_SERVER, which setup prints.
With CI set, a directory gossip-ci/target in the user's cache directory is used as the target
directory if it exists, unless CARGO_TARGET_DIR says otherwise.
";

const ROCKSDB: &str = "slipstream-rocksdb";

/// What cargo is told of the packages that are tested.
const fn packages(with_rocksdb: bool) -> &'static [&'static str] {
    if with_rocksdb { &["--workspace"] } else { &["--workspace", "--exclude", ROCKSDB] }
}

struct Step {
    name: &'static str,
    run: fn(&Context) -> Result<()>,
}

const STEPS: [Step; 7] = [
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: |_| tidy::check_and_report() },
    Step { name: "tests", run: tests },
    Step { name: "sim", run: simulate },
    Step { name: "doctests", run: doctests },
    Step { name: "docs", run: docs },
];

/// What every step needs to know.
struct Context {
    workspace: Workspace,
    fuzz: Option<Workspace>,
    /// Whether `slipstream-rocksdb` is part of it.
    with_rocksdb: bool,
    /// What children get beyond our own environment.
    env: Vec<(String, OsString)>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let steps = selected(args.value("--only")?.as_deref())?;
    let with_rocksdb = args.flag("--rocksdb");
    args.nothing_left()?;
    let mut outcomes = Vec::new();
    let started = Instant::now();
    let result = run_steps(&steps, with_rocksdb, &mut outcomes);
    summarize(&steps, &outcomes, started.elapsed());
    if !with_rocksdb {
        println!("{ROCKSDB} was left out; --rocksdb takes it in");
    }
    result
}

fn selected(only: Option<&str>) -> Result<Vec<&'static Step>> {
    let Some(only) = only else { return Ok(STEPS.iter().collect()) };
    let names: Vec<_> = only.split(',').filter(|name| *name != "setup").collect();
    for name in &names {
        if !STEPS.iter().any(|step| step.name == *name) {
            let known: Vec<_> = STEPS.iter().map(|step| step.name).collect();
            let known = known.join(", ");
            return Err(Failure::usage(format!("there is no step `{name}`; there are {known}")));
        }
    }
    Ok(STEPS.iter().filter(|step| names.contains(&step.name)).collect())
}

/// A step that ran.
struct Outcome {
    name: &'static str,
    took: Duration,
    passed: bool,
}

fn run_steps(
    steps: &[&'static Step],
    with_rocksdb: bool,
    outcomes: &mut Vec<Outcome>,
) -> Result<()> {
    let context = timed("setup", outcomes, || setup(with_rocksdb))?;
    steps.iter().try_for_each(|step| timed(step.name, outcomes, || (step.run)(&context)))
}

fn timed<T>(
    name: &'static str,
    outcomes: &mut Vec<Outcome>,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    println!("\n== {name} ==");
    let started = Instant::now();
    let result = run();
    let took = started.elapsed();
    println!("== {name}: {} after {:.1} s ==", verdict(result.is_ok()), took.as_secs_f64());
    outcomes.push(Outcome { name, took, passed: result.is_ok() });
    result.map_err(|failure| {
        failure.within(name).or_fix(format!("run it again alone: cargo xtask test --only {name}"))
    })
}

fn verdict(passed: bool) -> &'static str {
    if passed { "ok" } else { "FAILED" }
}

fn summarize(steps: &[&'static Step], outcomes: &[Outcome], total: Duration) {
    println!("\n== summary ==");
    for name in ["setup"].into_iter().chain(steps.iter().map(|step| step.name)) {
        match outcomes.iter().find(|outcome| outcome.name == name) {
            Some(Outcome { took, passed, .. }) => {
                println!("{name:<9} {:<8} {:>7.1} s", verdict(*passed), took.as_secs_f64());
            }
            None => println!("{name:<9} not run"),
        }
    }
    println!("{:<9} {:<8} {:>7.1} s", "total", "", total.as_secs_f64());
}

fn setup(with_rocksdb: bool) -> Result<Context> {
    let workspace = Workspace::load()?;
    let fuzz = Workspace::load_fuzz(&workspace.root)?;
    let mut env = Vec::new();
    if let Some(dir) = shared_target_dir() {
        println!("builds go to CARGO_TARGET_DIR={}", dir.display());
        env.push(("CARGO_TARGET_DIR".to_owned(), dir.into_os_string()));
    }
    let packages: Vec<&Package> = workspace
        .packages
        .iter()
        .chain(fuzz.iter().flat_map(|fuzz| &fuzz.packages))
        .filter(|package| with_rocksdb || package.name != ROCKSDB)
        .collect();
    let found = servers::ensure_for(&workspace.root, &packages)?;
    if found.is_empty() {
        println!("no package needs a server");
    }
    env.extend(found.into_iter().map(|found| (found.variable.to_owned(), found.path.into())));
    Ok(Context { workspace, fuzz, with_rocksdb, env })
}

/// A target directory that outlives the clone, for CI, if somebody made one.
fn shared_target_dir() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if variable("CI").is_none() || variable("CARGO_TARGET_DIR").is_some() {
        return None;
    }
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")))?;
    Some(cache.join("gossip-ci/target")).filter(|dir| dir.is_dir())
}

impl Context {
    /// `cargo` in the main workspace.
    fn cargo(&self, arguments: &[&str]) -> Cmd {
        let cargo = Cmd::cargo().args(arguments.iter().copied()).dir(&self.workspace.root);
        self.env.iter().fold(cargo, |cargo, (name, value)| cargo.env(name, value))
    }

    /// `cargo` on every package that is tested.
    fn cargo_packages(&self, arguments: &[&str]) -> Cmd {
        self.cargo(arguments).args(packages(self.with_rocksdb).iter().copied())
    }

    /// Where builds go.
    fn target_dir(&self) -> &Path {
        let chosen = self.env.iter().find(|(name, _)| name == "CARGO_TARGET_DIR");
        chosen.map_or(&self.workspace.target_dir, |(_, dir)| Path::new(dir))
    }

    /// The same command in the workspace of `fuzz/`, which builds into the main one's target
    /// directory.
    fn cargo_fuzz(&self, arguments: &[&str]) -> Result<()> {
        let Some(fuzz) = &self.fuzz else { return Ok(()) };
        let target_dir = self.target_dir();
        self.cargo(arguments).dir(&fuzz.root).env("CARGO_TARGET_DIR", target_dir).run()
    }
}

fn fmt(context: &Context) -> Result<()> {
    need_component("rustfmt")?;
    let arguments = ["fmt", "--all", "--check"];
    context.cargo(&arguments).run()?;
    context.cargo_fuzz(&arguments)
}

/// Never `--all-features`: heavy backends live in leaf crates so that a build without them is quick.
fn clippy(context: &Context) -> Result<()> {
    need_component("clippy")?;
    // The first step that resolves dependencies: a manifest whose lock file lags stops here.
    let deny = ["--", "-D", "warnings"];
    context.cargo_packages(&["clippy", "--locked", "--all-targets"]).args(deny).run()?;
    context.cargo_fuzz(&["clippy", "--locked", "--all-targets", "--", "-D", "warnings"])
}

fn need_component(name: &str) -> Result<()> {
    if on_path(&format!("cargo-{}", name.trim_start_matches("rust"))).is_some() {
        return Ok(());
    }
    Err(Failure::new(format!("{name} is missing")).fix(format!("rustup component add {name}")))
}

fn tests(context: &Context) -> Result<()> {
    soak::announce_shares(&context.workspace)?;
    if has_nextest() {
        let threads = test_threads().to_string();
        return context.cargo_packages(&["nextest", "run", "--test-threads", &threads]).run();
    }
    println!("nextest is absent (cargo install --locked cargo-nextest), so cargo test does it");
    context
        .cargo_packages(&["test", "--lib", "--bins", "--tests", "--examples", "--no-fail-fast"])
        .run()
}

/// Two a core: every second test waits for a server, a timeout or a process.
fn test_threads() -> usize {
    2 * std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn has_nextest() -> bool {
    Cmd::cargo().args(["nextest", "--version"]).capture().is_ok_and(|nextest| nextest.success)
}

/// In a process of its own, on all cores. The program is that of the simulator's own tests: an
/// optimised build takes longer than these seeds.
fn simulate(context: &Context) -> Result<()> {
    context.cargo_packages(&["test", "--no-run", "--quiet"]).run()?;
    let simulator = context.target_dir().join("debug").join(sim::PACKAGE);
    for command in sim::SHARES.iter().flat_map(|share| share.commands(&simulator)) {
        if !command.dir(&context.workspace.root).succeeds()? {
            return Err(sim::failed(&context.workspace.root)?);
        }
    }
    Ok(())
}

fn doctests(context: &Context) -> Result<()> {
    context.cargo_packages(&["test", "--doc"]).run()
}

fn docs(context: &Context) -> Result<()> {
    // With examples, so that dev-dependencies count as in the other steps: they change features of
    // what build scripts are made of, and RocksDB would be built a second time for the docs.
    // Binaries by name: the others are called like their library and would write over its pages.
    let arguments =
        ["doc", "--no-deps", "--lib", "--examples", "--bin", "gossip", "--bin", "xtask"];
    context.cargo_packages(&arguments).env("RUSTDOCFLAGS", "-Dwarnings").run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_selects_steps_in_their_order_and_refuses_unknown_ones() {
        let names = |only| -> Vec<_> {
            selected(only).unwrap().into_iter().map(|step| step.name).collect()
        };
        assert_eq!(names(None).len(), STEPS.len());
        assert_eq!(names(Some("tests,fmt")), ["fmt", "tests"]);
        assert_eq!(names(Some("setup")), [""; 0]);
        assert!(selected(Some("lint")).is_err());
    }

    #[test]
    fn a_failed_step_says_how_to_run_it_alone_and_is_the_last_outcome() {
        let mut outcomes = Vec::new();
        let failure = timed("clippy", &mut outcomes, || -> Result<()> {
            Err(Failure::new("failed: cargo clippy"))
        });
        let said = failure.unwrap_err().to_string();
        assert!(said.starts_with("clippy: failed"), "{said}");
        assert!(said.contains("cargo xtask test --only clippy"), "{said}");
        assert!(outcomes.len() == 1 && !outcomes[0].passed);
    }

    #[test]
    fn rocksdb_is_left_out_unless_it_is_asked_for() {
        assert!(packages(false).ends_with(&["--exclude", ROCKSDB]));
        assert_eq!(packages(true), ["--workspace"]);
        assert!(Workspace::load().unwrap().packages.iter().any(|it| it.name == ROCKSDB));
    }

    #[test]
    fn the_help_text_lists_every_step() {
        assert!(STEPS.iter().all(|step| HELP.contains(&format!("\n  {} ", step.name))));
    }
}
