//! What is soaked, and into which chunks it is cut.
//!
//! Tests multiply their counts by `GOSSIP_SOAK_SCALE` (1 when unset), so that a soak runs the very
//! tests of the test command. Property tests on proptest's default count follow `PROPTEST_CASES`,
//! which is set alongside. Each run draws fresh seeds, so equal chunks are different tests.

use std::rc::Rc;

use crate::command::Cmd;
use crate::failure::Result;
use crate::fuzz::{self, Fuzzer};
use crate::workspace::{Package, Workspace};
use crate::{asan, git, planted, servers, sim, test};

pub(super) struct Soak {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    /// What the test command's share of it is counted in, and how many that is.
    share: (u64, &'static str),
    how: How,
}

enum How {
    /// All tests of a package at `scale`, `chunks` times, optimised but with assertions.
    Scaled { package: &'static str, scale: u64, chunks: u64 },
    /// The same under AddressSanitizer.
    Sanitized { scale: u64, chunks: u64 },
    /// Every fuzz target for `chunks` times `seconds`.
    Fuzz { seconds: u64, chunks: u64 },
    /// `chunks` times `seeds` seeds of the simulator, none twice.
    Simulated { backend: &'static str, seeds: u64, chunks: u64 },
    /// The simulator on every planted bug. The test command runs none of it: it takes a build of its
    /// own.
    Planted,
}

/// proptest's own default.
const PROPTEST_CASES: u64 = 256;

pub(super) const SOAKS: &[Soak] = &[
    Soak {
        name: "stdx-properties",
        what: "containers against their std models",
        share: (1, "shares of the property cases"),
        how: How::Scaled { package: "gossip-stdx", scale: 40, chunks: 10 },
    },
    Soak {
        name: "contracts-properties",
        what: "identities, key ranges, split plans",
        share: (1, "shares of the property cases"),
        how: How::Scaled { package: "gossip-contracts", scale: 40, chunks: 10 },
    },
    Soak {
        name: "frontier-properties",
        what: "key encodings, hints, the shard builder",
        share: (1, "shares of the property cases"),
        how: How::Scaled { package: "gossip-frontier", scale: 40, chunks: 10 },
    },
    Soak {
        name: "coordination-properties",
        what: "protocol decisions and the record codec",
        share: (1, "shares of the property cases"),
        how: How::Scaled { package: "gossip-coordination", scale: 40, chunks: 10 },
    },
    Soak {
        name: "sqlite-kills",
        what: "the embedded coordinator: kills, crowds, random lives against the reference",
        share: (20, "kills"),
        how: How::Scaled { package: "gossip-coordination-sqlite", scale: 10, chunks: 1 },
    },
    Soak {
        name: "etcd-kills",
        what: "the fleet's coordinator on real servers: kills, races, 50 000 shards on the model and on a server",
        share: (20, "kills"),
        how: How::Scaled { package: "gossip-coordination-etcd", scale: 10, chunks: 1 },
    },
    Soak {
        name: "scan-kills",
        what: "`kill -9` of `gossip scan`",
        share: (15, "kills"),
        how: How::Scaled { package: "gossip-cli", scale: 7, chunks: 1 },
    },
    Soak {
        name: "sim-memory",
        what: "the coordination protocol in memory, under faults",
        share: (sim::SHARES[0].seeds, "seeds"),
        how: How::Simulated { backend: "memory", seeds: 10_000, chunks: 10 },
    },
    Soak {
        name: "sim-sqlite",
        what: "the embedded coordinator, under faults and crashes",
        share: (sim::SHARES[1].seeds, "seeds"),
        how: How::Simulated { backend: "sqlite", seeds: 1_000, chunks: 10 },
    },
    Soak {
        name: "sim-etcd",
        what: "the fleet's coordinator on a model of etcd, under lost answers and rivals",
        share: (sim::SHARES[2].seeds, "seeds"),
        how: How::Simulated { backend: "etcd", seeds: 2_000, chunks: 10 },
    },
    Soak {
        name: "planted-bugs",
        what: "whether the simulator notices bugs planted on purpose",
        share: (0, "bugs"),
        how: How::Planted,
    },
    Soak {
        name: "slipstream-kills",
        what: "folds: kills of stores, logs with missing and changed bytes",
        share: (65, "kills"),
        how: How::Scaled { package: "slipstream", scale: 5, chunks: 2 },
    },
    Soak {
        name: "slipstream-cli-kills",
        what: "the program `slipstream fold`, killed while somebody writes",
        share: (15, "kills"),
        how: How::Scaled { package: "slipstream-cli", scale: 10, chunks: 1 },
    },
    Soak {
        name: "slipstream-rocksdb-kills",
        what: "the fold on RocksDB: kills, random lives against a map",
        share: (20, "kills"),
        how: How::Scaled { package: "slipstream-rocksdb", scale: 10, chunks: 1 },
    },
    Soak {
        name: "slipstream-fleet",
        what: "nodes that race export rounds, and readers of what they publish",
        share: (3, "generations"),
        how: How::Scaled { package: "slipstream-object-store", scale: 7, chunks: 1 },
    },
    Soak {
        name: "stdx-asan",
        what: "containers under AddressSanitizer",
        share: (1, "shares of the property cases"),
        how: How::Sanitized { scale: 10, chunks: 4 },
    },
    Soak {
        name: "fuzz",
        what: "libFuzzer on everything that parses bytes",
        share: (1, "shares of the property cases"),
        how: How::Fuzz { seconds: 300, chunks: 6 },
    },
];

/// A part of a soak that is run as a whole.
pub(super) struct Chunk {
    /// Unique in its soak, without spaces.
    pub(super) id: String,
    pub(super) command: Cmd,
    /// Who can say more about a failure, where it is a fuzz target.
    pub(super) fuzzed: Option<(Rc<Fuzzer>, String)>,
}

impl Soak {
    /// What it tests.
    fn subject(&self) -> &'static str {
        match self.how {
            How::Scaled { package, .. } => package,
            How::Sanitized { .. } => asan::PACKAGE,
            How::Fuzz { .. } => "fuzz/",
            How::Simulated { .. } | How::Planted => "the simulator",
        }
    }

    /// Why it cannot be run.
    pub(super) fn absence(&self) -> String {
        match self.how {
            How::Fuzz { .. } => "there is no fuzz/ yet".to_owned(),
            _ => format!("there are no property tests in {} yet", self.subject()),
        }
    }

    pub(super) fn is_in(&self, workspace: &Workspace) -> Result<bool> {
        match self.how {
            How::Fuzz { .. } => Ok(workspace.root.join("fuzz/Cargo.toml").is_file()),
            How::Simulated { .. } | How::Planted => Ok(true),
            How::Scaled { .. } | How::Sanitized { .. } => {
                let package = workspace.package(self.subject());
                package.map_or(Ok(false), |package| has_scaled_tests(package, workspace))
            }
        }
    }

    /// The whole of it, in words.
    pub(super) fn full(&self) -> String {
        match self.how {
            How::Scaled { scale, chunks, .. } | How::Sanitized { scale, chunks } => {
                format!("{} times the cases", scale * chunks)
            }
            How::Fuzz { seconds, chunks } => format!("{} min a target", seconds * chunks / 60),
            How::Simulated { seeds, chunks, .. } => format!("{} seeds", seeds * chunks),
            How::Planted => "every bug".to_owned(),
        }
    }

    /// The part of it that the test command runs.
    pub(super) fn share(&self) -> Option<String> {
        match self.how {
            How::Scaled { package, scale, chunks } => {
                let (count, unit) = self.share;
                Some(format!("{package}: {count} of {} {unit}", count * scale * chunks))
            }
            How::Simulated { backend, seeds, chunks } => {
                let (count, unit) = self.share;
                Some(format!("simulator on {backend}: {count} of {} {unit}", seeds * chunks))
            }
            How::Sanitized { .. } | How::Fuzz { .. } | How::Planted => None,
        }
    }

    /// What has been run, in words, once `chunks` have counted to `count`.
    pub(super) fn counted(&self, chunks: usize, count: u64) -> String {
        match self.how {
            How::Scaled { scale, .. } | How::Sanitized { scale, .. } => {
                format!("{}× the cases, {count} test runs", scale * chunks as u64)
            }
            How::Fuzz { .. } => format!("{count} inputs"),
            How::Simulated { .. } => format!("{count} seeds"),
            How::Planted => format!("{count} bugs"),
        }
    }

    /// How many chunks there are, without what it takes to run them.
    pub(super) fn chunk_count(&self, workspace: &Workspace) -> Result<Option<usize>> {
        if !self.is_in(workspace)? {
            return Ok(None);
        }
        match self.how {
            How::Scaled { chunks, .. }
            | How::Sanitized { chunks, .. }
            | How::Simulated { chunks, .. } => Ok(Some(chunks as usize)),
            How::Planted => Ok(Some(1)),
            How::Fuzz { chunks, .. } => {
                Ok(Some(fuzz::targets(&workspace.root)?.len() * chunks as usize))
            }
        }
    }

    /// All chunks, in order; none where its subject is not in the tree yet.
    pub(super) fn chunks(&self, workspace: &Workspace) -> Result<Option<Vec<Chunk>>> {
        if !self.is_in(workspace)? {
            return Ok(None);
        }
        match self.how {
            How::Scaled { package, scale, chunks } => {
                Ok(Some(scaled(chunks, scale, || tests_of(package, workspace))?))
            }
            How::Sanitized { scale, chunks } => {
                let command = || asan::command(&workspace.root, &workspace.target_dir);
                Ok(Some(scaled(chunks, scale, command)?))
            }
            How::Fuzz { seconds, chunks } => fuzzed(workspace, seconds, chunks).map(Some),
            How::Simulated { backend, seeds, chunks } => {
                let chunk = |at: u64| Chunk {
                    id: format!("{backend}-{seeds}-{at}"),
                    command: sim::sweep(&workspace.root, backend, seeds, (at - 1) * seeds + 1),
                    fuzzed: None,
                };
                Ok(Some((1..=chunks).map(chunk).collect()))
            }
            How::Planted => Ok(Some(vec![Chunk {
                id: "all".to_owned(),
                command: planted::command(&workspace.root),
                fuzzed: None,
            }])),
        }
    }
}

/// Whether a package has a test that follows the scale. Without one, multiplying would be a claim
/// and not a count.
fn has_scaled_tests(package: &Package, workspace: &Workspace) -> Result<bool> {
    let dir = package.manifest.parent().expect("a manifest is in a folder");
    let files = git::files(&workspace.root)?;
    let sources = files.iter().map(|file| workspace.root.join(file)).filter(|file| {
        file.starts_with(dir) && file.extension().is_some_and(|extension| extension == "rs")
    });
    // The suite of all folds follows the scale in whoever takes it in.
    let marks = ["proptest!", "GOSSIP_SOAK_SCALE", "snapshot_conformance!"];
    let scales = |text: String| marks.iter().any(|mark| text.contains(mark));
    Ok(sources.filter_map(|file| std::fs::read_to_string(file).ok()).any(scales))
}

fn scaled(chunks: u64, scale: u64, command: impl Fn() -> Result<Cmd>) -> Result<Vec<Chunk>> {
    let chunk = |at| {
        let command = command()?
            .env("GOSSIP_SOAK_SCALE", scale.to_string())
            .env("PROPTEST_CASES", (PROPTEST_CASES * scale).to_string());
        Ok(Chunk { id: format!("scale-{scale}-{at}"), command, fuzzed: None })
    };
    (1..=chunks).map(chunk).collect()
}

fn tests_of(package: &str, workspace: &Workspace) -> Result<Cmd> {
    let needs = workspace.package(package).into_iter().collect::<Vec<_>>();
    let servers = servers::ensure_for(&workspace.root, &needs)?;
    let cargo = Cmd::cargo().dir(&workspace.root);
    let cargo =
        servers.into_iter().fold(cargo, |cargo, found| cargo.env(found.variable, found.path));
    let cargo = if test::has_nextest() {
        cargo.args(["nextest", "run", "--profile", "soak", "--cargo-profile", "soak"])
    } else {
        cargo.args(["test", "--profile", "soak", "--lib", "--bins", "--tests"])
    };
    Ok(cargo.args(["--package", package]))
}

/// Rounds over all targets, so that a soak that is never finished has still seen each of them.
fn fuzzed(workspace: &Workspace, seconds: u64, rounds: u64) -> Result<Vec<Chunk>> {
    let targets = fuzz::targets(&workspace.root)?;
    let fuzzer = Rc::new(Fuzzer::find(&workspace.root, true)?);
    let mut chunks = Vec::new();
    for round in 1..=rounds {
        for target in &targets {
            chunks.push(Chunk {
                id: format!("{target}-{seconds}s-{round}"),
                command: fuzzer.command(target, seconds),
                fuzzed: Some((Rc::clone(&fuzzer), target.clone())),
            });
        }
    }
    Ok(chunks)
}

/// How much a closing line of nextest, `cargo test`, libFuzzer or the simulator says was run.
pub(super) fn count_in(line: &str) -> Option<u64> {
    let before = |mark: &str| line.split(mark).next()?.split_whitespace().next_back()?.parse().ok();
    if line.trim_start().starts_with("Summary [") {
        return before(" tests run:").or_else(|| before(" test run:"));
    }
    if line.starts_with("test result:") {
        return before(" passed;");
    }
    if let Some(count) = sim::count_in(line).or_else(|| planted::count_in(line)) {
        return Some(count);
    }
    if line.starts_with("Done ") && line.contains(" runs in ") {
        return before(" runs in ");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_of_every_runner_are_counted_and_other_lines_are_not() {
        let nextest = "     Summary [   0.021s] 12 tests run: 12 passed (1 slow), 3 skipped";
        assert_eq!(count_in(nextest), Some(12));
        assert_eq!(count_in("Summary [ 0.1s] 1 test run: 1 passed, 0 skipped"), Some(1));
        let cargo = "test result: ok. 34 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(count_in(cargo), Some(34));
        assert_eq!(count_in("Done 1048576 runs in 61 second(s)"), Some(1_048_576));
        assert_eq!(count_in("Done nothing"), None);
        assert_eq!(count_in("test a ... ok"), None);
        assert_eq!(count_in("    Starting 12 tests across 1 binary"), None);
    }

    #[test]
    fn names_are_unique_and_chunks_of_a_soak_have_different_ids() {
        let names: std::collections::BTreeSet<_> = SOAKS.iter().map(|soak| soak.name).collect();
        assert_eq!(names.len(), SOAKS.len());
        let chunks = scaled(10, 40, || Ok(Cmd::cargo())).unwrap();
        let ids: std::collections::BTreeSet<_> = chunks.iter().map(|chunk| &chunk.id).collect();
        assert_eq!(ids.len(), 10);
        assert!(chunks[0].command.to_string().contains("GOSSIP_SOAK_SCALE=40"));
    }
}
