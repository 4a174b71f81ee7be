//! The rules of the tree that no compiler checks. A test of this crate runs them too.
//!
//! Each rule is a small function over one file's path and text, or over one package; this file
//! only feeds them.

mod dependencies;
mod docs;
mod invariants;
mod manifests;
mod sources;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::failure::{Failure, OrFail, Result};
use crate::workspace::Workspace;
use crate::{git, planted};
use invariants::Invariants;

pub(crate) const HELP: &str = "\
Checks the rules of the tree that no compiler checks.

Usage: cargo xtask tidy

  dependencies   workspace crates depend downwards only; every crate is in the table
  manifests      edition, licence and lints come from the workspace; descriptions, keywords
  docs           a library's front page shows an example, and the example is tested
  sources        file size
  invariants     a number names one invariant of its crate; ARCHITECTURE.md leads to each
  planted        every planted bug of the simulator finds its text, exactly once
  everything     no file names a path of somebody's machine, or is half merged
";

pub(crate) fn run(args: Args) -> Result<()> {
    args.nothing_left()?;
    check_and_report()
}

pub(crate) fn check_and_report() -> Result<()> {
    let report = check(&Workspace::load()?)?;
    for violation in &report.violations {
        println!("{violation}");
    }
    println!(
        "tidy: {} files and {} packages checked, {} violations",
        report.files,
        report.packages,
        report.violations.len()
    );
    if report.violations.is_empty() {
        return Ok(());
    }
    Err(Failure::new("the tree is not tidy")
        .fix("change what is listed above; rules and exceptions are in xtask/src/tidy/"))
}

/// A broken rule, at the place that breaks it.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    path: PathBuf,
    /// Zero where the whole file is meant.
    line: usize,
    message: String,
}

impl Violation {
    fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

struct Report {
    files: usize,
    packages: usize,
    violations: Vec<Violation>,
}

fn check(workspace: &Workspace) -> Result<Report> {
    let files = git::files(&workspace.root)?;
    let mut violations = Vec::new();
    let mut invariants = Invariants::default();
    for path in &files {
        let text = read(&workspace.root.join(path))?;
        violations.extend(sources::machine_paths(path, &text));
        violations.extend(sources::conflict_markers(path, &text));
        if path.extension().is_some_and(|extension| extension == "rs") {
            violations.extend(sources::size(path, &text));
            invariants.read(path, &text);
        }
    }
    violations.extend(invariants.check(&read(&workspace.root.join("ARCHITECTURE.md"))?));
    for package in &workspace.packages {
        let manifest = relative(&package.manifest, &workspace.root);
        let names: Vec<_> = workspace.packages.iter().map(|other| other.name.as_str()).collect();
        violations.extend(dependencies::direction(manifest, package, &names));
        violations.extend(manifests::inherited(manifest, &read(&package.manifest)?));
        violations.extend(manifests::described(manifest, package));
        for library in package.targets.iter().filter(|target| docs::is_library(&target.kind)) {
            let path = relative(&library.source, &workspace.root);
            violations.extend(docs::front_page(path, &read(&library.source)?));
        }
    }
    let planted = planted::check(&workspace.root)?;
    violations.extend(planted.into_iter().map(|(path, why)| Violation::new(path, 0, why)));
    Ok(Report { files: files.len(), packages: workspace.packages.len(), violations })
}

/// The text of a file; bytes that are not UTF-8 are of no interest to any rule.
fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).or_fail(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn relative<'a>(path: &'a Path, root: &Path) -> &'a Path {
    path.strip_prefix(root).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let report = check(&Workspace::load().unwrap()).unwrap();
        let listed: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
        assert!(listed.is_empty(), "\n{}", listed.join("\n"));
    }

    #[test]
    fn a_violation_names_its_place() {
        assert_eq!(Violation::new("a.rs", 3, "why").to_string(), "a.rs:3: why");
        assert_eq!(Violation::new("a.rs", 0, "why").to_string(), "a.rs: why");
    }
}
