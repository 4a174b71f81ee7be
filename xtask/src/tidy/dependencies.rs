//! Which workspace crate may depend on which: the map of ARCHITECTURE.md, as a table.

use std::path::Path;

use super::Violation;
use crate::workspace::Package;

/// What one crate may use of ours.
struct Row {
    name: &'static str,
    /// In the crate itself and its build script.
    normal: &'static [&'static str],
    /// In its tests and benches, beyond `normal`, itself and [`TEST_TOOLS`].
    dev: Dev,
}

enum Dev {
    NoMore,
    /// Restores are tested with the transport.
    Also(&'static str),
    /// End-to-end benches put anything beside its reference.
    Anything,
}

/// Tools that any crate's tests and benches may use, and no crate otherwise.
const TEST_TOOLS: [&str; 2] = ["gossip-testalloc", "gossip-bench"];

const fn row(name: &'static str, normal: &'static [&'static str]) -> Row {
    Row { name, normal, dev: Dev::NoMore }
}

/// From the floor up. Frontier and coordination never meet; the engine and the connectors know the
/// contracts; slipstream stands alone.
const TABLE: &[Row] = &[
    row("gossip-stdx", &[]),
    row("gossip-testalloc", &[]),
    Row { name: "gossip-bench", normal: &[], dev: Dev::Anything },
    row("gossip-contracts", &["gossip-stdx"]),
    row("gossip-frontier", &["gossip-stdx", "gossip-contracts"]),
    row("gossip-coordination", &["gossip-stdx", "gossip-contracts"]),
    row("slipstream", &[]),
    row("slipstream-object-store", &["slipstream"]),
    Row {
        name: "slipstream-rocksdb",
        normal: &["slipstream"],
        dev: Dev::Also("slipstream-object-store"),
    },
    row("slipstream-cli", &["slipstream", "slipstream-object-store"]),
    row("gossip-coordination-sqlite", &["gossip-stdx", "gossip-contracts", "gossip-coordination"]),
    row("gossip-coordination-etcd", &["gossip-stdx", "gossip-contracts", "gossip-coordination"]),
    row(
        "gossip-simulator",
        &[
            "gossip-stdx",
            "gossip-contracts",
            "gossip-coordination",
            "gossip-coordination-sqlite",
            "gossip-coordination-etcd",
        ],
    ),
    row("gossip-engine", &["gossip-contracts"]),
    row("gossip-archive", &[]),
    row("gossip-connectors", &["gossip-contracts", "gossip-frontier"]),
    row("gossip-git", &["gossip-contracts", "gossip-frontier", "gossip-connectors"]),
    row("gossip-object-store", &["gossip-contracts", "gossip-frontier", "gossip-connectors"]),
    row(
        "gossip-runtime",
        &[
            "gossip-stdx",
            "gossip-contracts",
            "gossip-frontier",
            "gossip-coordination",
            "gossip-coordination-sqlite",
            "gossip-coordination-etcd",
            "gossip-engine",
            "gossip-archive",
            "gossip-connectors",
            "slipstream",
        ],
    ),
    row(
        "gossip-cli",
        &[
            "gossip-stdx",
            "gossip-contracts",
            "gossip-frontier",
            "gossip-coordination",
            "gossip-coordination-sqlite",
            "gossip-coordination-etcd",
            "gossip-engine",
            "gossip-connectors",
            "gossip-git",
            "gossip-object-store",
            "gossip-runtime",
            "slipstream",
            "slipstream-rocksdb",
        ],
    ),
    row("xtask", &[]),
];

/// `ours` are the names of all workspace members.
pub(super) fn direction(manifest: &Path, package: &Package, ours: &[&str]) -> Vec<Violation> {
    let Some(row) = TABLE.iter().find(|row| row.name == package.name) else {
        let message = format!(
            "`{}` is not in the table of xtask/src/tidy/dependencies.rs: decide what it may use",
            package.name
        );
        return vec![Violation::new(manifest, 0, message)];
    };
    let used = package.dependencies.iter().filter(|used| ours.contains(&used.name.as_str()));
    let wrong = used.filter(|used| !row.allows(&used.name, used.dev));
    wrong
        .map(|used| {
            let kind = if used.dev { "in tests" } else { "at all" };
            let message = format!("`{}` may not depend on `{}` {kind}", row.name, used.name);
            Violation::new(manifest, 0, message)
        })
        .collect()
}

impl Row {
    fn allows(&self, other: &str, dev: bool) -> bool {
        if self.normal.contains(&other) {
            return true;
        }
        let in_tests = match self.dev {
            Dev::NoMore => false,
            Dev::Also(one) => other == one,
            Dev::Anything => true,
        };
        dev && (in_tests || other == self.name || TEST_TOOLS.contains(&other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn violations(package: &str, uses: &str, dev: bool) -> usize {
        let ours: Vec<_> = TABLE.iter().map(|row| row.name).collect();
        let package = Package {
            name: package.to_owned(),
            dependencies: vec![Dependency { name: uses.to_owned(), dev }],
            ..Package::default()
        };
        direction(Path::new("Cargo.toml"), &package, &ours).len()
    }

    #[test]
    fn the_table_points_down_only() {
        for (at, row) in TABLE.iter().enumerate() {
            for used in row.normal {
                let below = TABLE[..at].iter().any(|other| other.name == *used);
                assert!(below, "{} uses {used}, which is not below it", row.name);
            }
        }
    }

    #[test]
    fn a_dependency_against_the_direction_is_caught() {
        assert_eq!(violations("gossip-contracts", "gossip-frontier", false), 1);
        assert_eq!(violations("gossip-frontier", "gossip-coordination", false), 1);
        assert_eq!(violations("gossip-coordination", "gossip-frontier", true), 1);
        assert_eq!(violations("slipstream", "gossip-stdx", false), 1);
        assert_eq!(violations("gossip-engine", "gossip-stdx", false), 1);
        assert_eq!(violations("gossip-connectors", "gossip-coordination", false), 1);
    }

    #[test]
    fn test_tools_are_for_tests() {
        assert_eq!(violations("gossip-frontier", "gossip-testalloc", true), 0);
        assert_eq!(violations("gossip-frontier", "gossip-testalloc", false), 1);
        assert_eq!(violations("gossip-cli", "gossip-bench", false), 1);
        assert_eq!(violations("slipstream-rocksdb", "slipstream-object-store", true), 0);
        assert_eq!(violations("slipstream-rocksdb", "slipstream-object-store", false), 1);
        assert_eq!(violations("gossip-bench", "slipstream", true), 0);
        assert_eq!(violations("gossip-bench", "slipstream", false), 1);
    }

    #[test]
    fn downward_foreign_and_self_dependencies_pass() {
        assert_eq!(violations("gossip-frontier", "gossip-contracts", false), 0);
        assert_eq!(violations("gossip-frontier", "gossip-contracts", true), 0);
        assert_eq!(violations("gossip-coordination", "gossip-coordination", true), 0);
        assert_eq!(violations("gossip-engine", "regex", false), 0);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_caught() {
        assert_eq!(violations("gossip-misc", "regex", false), 1);
    }
}
