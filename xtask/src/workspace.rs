//! What cargo knows about this checkout, read through `cargo metadata`.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::Cmd;
use crate::failure::{Failure, OrFail, Result};

/// One cargo workspace: the main one, or that of `fuzz/`.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target_dir: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: PathBuf,
    pub(crate) description: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// Whether it may be given to a registry.
    pub(crate) publish: bool,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
    /// Servers that its tests talk to: `[package.metadata.gossip] servers = […]`.
    pub(crate) servers: Vec<String>,
    /// Debian packages that its build needs: `[package.metadata.gossip] debian = […]`.
    pub(crate) debian: Vec<String>,
}

/// A dependency as it is declared.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Of tests, benches and examples only.
    pub(crate) dev: bool,
}

/// Something that cargo builds: `kind` is `lib`, `bin`, `bench` and so on.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) source: PathBuf,
    /// Features without which cargo does not build it.
    pub(crate) features: Vec<String>,
}

/// The directory of the main workspace.
pub(crate) fn root() -> Result<PathBuf> {
    // Set by cargo for `cargo run` and for tests. Not taken at compile time: a target directory
    // may be shared by several clones.
    let Some(own) = std::env::var_os("CARGO_MANIFEST_DIR") else {
        return Err(Failure::new("xtask does not know which checkout it belongs to")
            .fix("run it as `cargo xtask`"));
    };
    Ok(Path::new(&own).parent().expect("xtask lives in the workspace").to_owned())
}

impl Workspace {
    /// The main workspace.
    pub(crate) fn load() -> Result<Self> {
        Self::load_at(&root()?)
    }

    /// The workspace of `fuzz/`, if there is one.
    pub(crate) fn load_fuzz(root: &Path) -> Result<Option<Self>> {
        let dir = root.join("fuzz");
        if dir.join("Cargo.toml").is_file() { Self::load_at(&dir).map(Some) } else { Ok(None) }
    }

    fn load_at(dir: &Path) -> Result<Self> {
        let text = Cmd::cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .dir(dir)
            .stdout()?;
        let metadata = serde_json::from_str(&text).or_fail(|| "reading `cargo metadata`".into())?;
        Ok(Self::parse(&metadata))
    }

    fn parse(metadata: &Value) -> Self {
        Self {
            root: PathBuf::from(text(&metadata["workspace_root"])),
            target_dir: PathBuf::from(text(&metadata["target_directory"])),
            packages: list(&metadata["packages"]).map(Package::parse).collect(),
        }
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    fn parse(package: &Value) -> Self {
        let gossip = &package["metadata"]["gossip"];
        Self {
            name: text(&package["name"]),
            manifest: PathBuf::from(text(&package["manifest_path"])),
            description: text(&package["description"]),
            keywords: list(&package["keywords"]).map(text).collect(),
            categories: list(&package["categories"]).map(text).collect(),
            // Absent or null is anywhere, and an empty list is nowhere.
            publish: package["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            dependencies: list(&package["dependencies"]).map(Dependency::parse).collect(),
            targets: list(&package["targets"]).map(Target::parse).collect(),
            servers: list(&gossip["servers"]).map(text).collect(),
            debian: list(&gossip["debian"]).map(text).collect(),
        }
    }

    pub(crate) fn targets_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Target> {
        self.targets.iter().filter(move |target| target.kind == kind)
    }
}

impl Dependency {
    fn parse(dependency: &Value) -> Self {
        Self { name: text(&dependency["name"]), dev: dependency["kind"] == "dev" }
    }
}

impl Target {
    fn parse(target: &Value) -> Self {
        Self {
            name: text(&target["name"]),
            kind: text(&target["kind"][0]),
            source: PathBuf::from(text(&target["src_path"])),
            features: list(&target["required-features"]).map(text).collect(),
        }
    }
}

/// A string; empty when it is absent or null, as an unset description is.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_says_what_it_needs() {
        let metadata = r#"{ "workspace_root": "r", "target_directory": "t", "packages": [{
            "name": "slipstream", "manifest_path": "m", "description": null,
            "dependencies": [{"name": "a", "kind": null}, {"name": "b", "kind": "dev"}],
            "targets": [{"name": "watch", "kind": ["bench"], "src_path": "b.rs",
                "required-features": ["nats"]}],
            "metadata": {"gossip": {"servers": ["nats"], "debian": ["protobuf-compiler"]}}
        }, {"name": "plain", "metadata": null}]}"#;
        let workspace = Workspace::parse(&serde_json::from_str(metadata).unwrap());
        let package = workspace.package("slipstream").unwrap();
        assert_eq!(package.servers, ["nats"]);
        assert_eq!(package.targets[0].features, ["nats"]);
        assert_eq!(package.debian, ["protobuf-compiler"]);
        assert_eq!(package.description, "");
        assert_eq!(package.targets_of("bench").next().unwrap().name, "watch");
        let dev: Vec<_> = package.dependencies.iter().map(|dependency| dependency.dev).collect();
        assert_eq!(dev, [false, true]);
        assert!(workspace.package("plain").unwrap().servers.is_empty());
    }

    #[test]
    fn this_workspace_loads_and_contains_this_crate() {
        assert!(Workspace::load().unwrap().package("xtask").is_some());
    }
}
