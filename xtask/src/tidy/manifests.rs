//! What every package's manifest says.

use std::path::Path;

use super::Violation;
use crate::workspace::Package;

/// Crates with `unsafe` code, which the workspace's lints forbid: they carry tables of their own.
const OWN_LINTS: [&str; 2] =
    ["crates/gossip-stdx/Cargo.toml", "crates/gossip-testalloc/Cargo.toml"];

/// Edition, licence and lints come from the workspace, so that there is one of each.
pub(super) fn inherited(path: &Path, text: &str) -> Vec<Violation> {
    let mut wanted = vec![("package", "edition"), ("package", "license")];
    if !OWN_LINTS.iter().any(|own| path == Path::new(own)) {
        wanted.push(("", "lints"));
    }
    let missing = wanted.into_iter().filter(|(table, key)| !inherits(text, table, key));
    missing
        .map(|(_, key)| {
            Violation::new(path, 0, format!("`{key}.workspace = true` is missing or overruled"))
        })
        .collect()
}

/// Whether `table.key.workspace` is set to true, in any of the ways that manifests write it.
fn inherits(text: &str, table: &str, key: &str) -> bool {
    let mut current = String::new();
    for line in text.lines() {
        let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        let line = line.split('#').next().unwrap_or_default();
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            current = name.to_owned();
            continue;
        }
        let full = [current.as_str(), line].join(".");
        let full = full.trim_start_matches('.');
        let wanted = [table, key].join(".");
        let wanted = wanted.trim_start_matches('.');
        if full == format!("{wanted}.workspace=true")
            || full == format!("{wanted}={{workspace=true}}")
        {
            return true;
        }
    }
    false
}

pub(super) fn described(path: &Path, package: &Package) -> Vec<Violation> {
    if package.description.trim().is_empty() {
        return vec![Violation::new(path, 0, "a package says in `description` what it is for")];
    }
    if package.publish && (package.keywords.is_empty() || package.categories.is_empty()) {
        let wanted = "a package that users may depend on has `keywords` and `categories`";
        return vec![Violation::new(path, 0, wanted)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/a/Cargo.toml";

    #[test]
    fn a_manifest_that_inherits_nothing_is_caught_three_times() {
        let text = "[package]\nedition = \"2024\"\nlicense = \"MIT\"\n[lints.rust]\n";
        assert_eq!(inherited(Path::new(PATH), text).len(), 3);
        assert_eq!(inherited(Path::new(OWN_LINTS[0]), text).len(), 2);
    }

    #[test]
    fn every_way_to_inherit_passes() {
        for text in [
            "[package]\nedition.workspace = true\nlicense.workspace=true # ours\n[lints]\nworkspace = true",
            "lints.workspace = true\n[package]\nedition = { workspace = true }\nlicense = {workspace=true}",
        ] {
            assert_eq!(inherited(Path::new(PATH), text), [], "{text}");
        }
    }

    #[test]
    fn a_key_of_another_table_does_not_count() {
        let text = "[dependencies]\nedition.workspace = true\nlicense.workspace = true\n";
        assert_eq!(inherited(Path::new(OWN_LINTS[0]), text).len(), 2);
    }

    #[test]
    fn a_package_that_does_not_say_what_it_is_for_is_caught() {
        let mut package = Package::default();
        assert_eq!(described(Path::new(PATH), &package).len(), 1);
        package.description = "Containers.".into();
        assert!(described(Path::new(PATH), &package).is_empty());
        package.publish = true;
        package.keywords = vec!["containers".into()];
        assert_eq!(described(Path::new(PATH), &package).len(), 1);
        package.categories = vec!["data-structures".into()];
        assert!(described(Path::new(PATH), &package).is_empty());
    }
}
