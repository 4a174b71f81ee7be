//! `cargo xtask bench NAME`: runs one benchmark and keeps its figures, dated.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::args::Args;
use crate::command::{Cmd, Stream};
use crate::date;
use crate::failure::{Failure, OrFail, Result};
use crate::git::Identity;
use crate::workspace::Workspace;

pub(crate) const HELP: &str = "\
Runs one benchmark and keeps its figures in bench/results/NAME.txt, under a line with date, commit
and machine.

Usage: cargo xtask bench                    lists the benchmarks
       cargo xtask bench NAME [-- ARGS…]    ARGS go to the benchmark

A figure is a line `name value unit ratio-to-reference`, with `-` where there is no reference.
Only ratios compare across machines.
";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let passed_on = args.passed_on();
    let name = args.at_most_one_name()?;
    let workspace = Workspace::load()?;
    let benches = benches(&workspace);
    let Some(name) = name else {
        benches.iter().for_each(|(package, bench)| println!("{bench:<20} {package}"));
        return Ok(());
    };
    let packages: Vec<_> = benches.iter().filter(|(_, bench)| *bench == name).collect();
    let package = match packages[..] {
        [(package, _)] => package,
        [] => {
            return Err(Failure::new(format!("no package has a [[bench]] called `{name}`"))
                .fix("see `cargo xtask bench` for those that there are"));
        }
        _ => {
            return Err(Failure::new(format!("several packages have a [[bench]] called `{name}`")));
        }
    };
    let figures = measure(&workspace.root, package, &name, &passed_on)?;
    let file = workspace.root.join("bench/results").join(format!("{name}.txt"));
    append(&file, &header(&Identity::read(&workspace.root)?), &figures)
        .or_fail(|| format!("writing {}", file.display()))?;
    println!("{} figures added to bench/results/{name}.txt", figures.len());
    Ok(())
}

/// Package and name of every bench target.
fn benches(workspace: &Workspace) -> Vec<(&str, &str)> {
    let mut benches = Vec::new();
    for package in &workspace.packages {
        let names = package.targets_of("bench").map(|bench| bench.name.as_str());
        benches.extend(names.map(|name| (package.name.as_str(), name)));
    }
    benches
}

fn measure(root: &Path, package: &str, name: &str, passed_on: &[String]) -> Result<Vec<String>> {
    let mut figures = Vec::new();
    let bench = Cmd::cargo()
        .args(["bench", "--package", package, "--bench", name])
        .arg("--")
        .args(passed_on)
        .dir(root);
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
