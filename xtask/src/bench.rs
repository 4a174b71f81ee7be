//! `cargo xtask bench NAME`: runs one benchmark and keeps its figures, dated.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::args::Args;
use crate::command::{Cmd, Stream};
use crate::date;
use crate::failure::{Failure, OrFail, Result};
use crate::git::Identity;
use crate::servers;
use crate::workspace::{Package, Target, Workspace};

pub(crate) const HELP: &str = "\
Runs one benchmark and keeps its figures in bench/results/NAME.txt, under a line with date, commit
and machine.

Usage: cargo xtask bench                    lists the benchmarks
       cargo xtask bench NAME [-- ARGS…]    ARGS go to the benchmark

What the package's tests talk to is found or installed first.

A figure is a line `name value unit ratio-to-reference`, with `-` where there is no reference.
Only ratios compare across machines.
";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let passed_on = args.passed_on();
    let name = args.at_most_one_name()?;
    let workspace = Workspace::load()?;
    let benches = benches(&workspace);
    let Some(name) = name else {
        benches.iter().for_each(|(package, bench)| println!("{:<20} {}", bench.name, package.name));
        return Ok(());
    };
    let named: Vec<_> = benches.iter().filter(|(_, bench)| bench.name == name).collect();
    let (package, bench) = match named[..] {
        [bench] => bench,
        [] => {
            return Err(Failure::new(format!("no package has a [[bench]] called `{name}`"))
                .fix("see `cargo xtask bench` for those that there are"));
        }
        _ => {
            return Err(Failure::new(format!("several packages have a [[bench]] called `{name}`")));
        }
    };
    let figures = measure(&workspace.root, package, bench, &passed_on)?;
    let file = workspace.root.join("bench/results").join(format!("{name}.txt"));
    append(&file, &header(&Identity::read(&workspace.root)?), &figures)
        .or_fail(|| format!("writing {}", file.display()))?;
    println!("{} figures added to bench/results/{name}.txt", figures.len());
    Ok(())
}

/// Every bench target and its package.
fn benches(workspace: &Workspace) -> Vec<(&Package, &Target)> {
    let packages = workspace.packages.iter();
    packages
        .flat_map(|package| package.targets_of("bench").map(move |bench| (package, bench)))
        .collect()
}

fn measure(
    root: &Path,
    package: &Package,
    target: &Target,
    passed_on: &[String],
) -> Result<Vec<String>> {
    let (name, mut figures) = (&target.name, Vec::new());
    let servers = servers::ensure_for(root, &[package])?;
    let mut bench = Cmd::cargo().args(["bench", "--package", &package.name, "--bench", name]);
    if !target.features.is_empty() {
        bench = bench.arg("--features").arg(target.features.join(","));
    }
    let bench = bench.arg("--").args(passed_on).dir(root);
    let bench =
        servers.into_iter().fold(bench, |bench, found| bench.env(found.variable, found.path));
    let success = bench.watch(|stream, line| {
        if stream == Stream::Stdout && is_figure(line) {
            figures.push(line.to_owned());
        }
    })?;
    if !success {
        return Err(Failure::new(format!("failed: {bench}")));
    }
    if figures.is_empty() {
        return Err(Failure::new(format!("`{name}` printed no line `name value unit ratio`"))
            .fix("print figures through gossip-bench"));
    }
    Ok(figures)
}

/// `name value unit ratio`.
fn is_figure(line: &str) -> bool {
    let words: Vec<_> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().is_ok_and(f64::is_finite);
    matches!(words[..], [_, value, _, ratio] if number(value) && (ratio == "-" || number(ratio)))
}

fn header(identity: &Identity) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("# {} | {identity} | {} | {cores} cores", date::now(), cpu_model())
}

fn cpu_model() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let model = line.and_then(|line| line.split_once(':')).map(|(_, model)| model.trim());
    model.unwrap_or("unknown CPU").to_owned()
}

fn append(file: &Path, header: &str, figures: &[String]) -> std::io::Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut text = format!("{header}\n");
    figures.iter().for_each(|figure| {
        text.push_str(figure);
        text.push('\n');
    });
    OpenOptions::new().create(true).append(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_told_from_other_lines() {
        assert!(is_figure("byte_midpoint-1024 41.20 ns 3.101"));
        assert!(is_figure("claims 12 ops -"));
        assert!(!is_figure("running 3 tests ok"));
        assert!(!is_figure("name 1.0 ns"));
        assert!(!is_figure("name NaN ns 1.0"));
        assert!(!is_figure("name 1.0 ns 1.0 more"));
    }

    #[test]
    fn results_are_appended_below_what_is_there() {
        let dir = std::env::temp_dir().join(format!("gossip-xtask-bench-{}", std::process::id()));
        let file = dir.join("results/a.txt");
        append(&file, "# first", &["a 1 ns -".into()]).unwrap();
        append(&file, "# second", &["a 2 ns -".into(), "b 3 ns 1.5".into()]).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "# first\na 1 ns -\n# second\na 2 ns -\nb 3 ns 1.5\n");
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn the_header_names_date_commit_and_machine() {
        let header = header(&Identity { commit: "abc".into(), dirty: true });
        assert!(header.starts_with("# 20") && header.contains("| abc-dirty |"), "{header}");
        assert!(header.ends_with(" cores"), "{header}");
    }
}
