//! Each of the 58 invariants has tests under the names that the requirements give (`names.txt`:
//! number and name), and each of those is a test.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_numbered_invariant_has_its_tests() {
    let mut tests = BTreeSet::new();
    collect_tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut tests);

    let mut invariants = BTreeSet::new();
    let mut missing = Vec::new();
    for line in include_str!("names.txt").lines() {
        let (number, name) = line.split_once(' ').expect("a number and a name");
        invariants.insert(number.parse::<u32>().expect("a number"));
        if !tests.contains(name) {
            missing.push(line);
        }
    }
    assert!(missing.is_empty(), "invariants without their test: {missing:#?}");
    assert!(invariants.into_iter().eq(1..=58));
}

/// Names of all functions under `#[test]` or `#[rstest]`.
fn collect_tests(path: &Path, tests: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in path.read_dir().expect("a source directory") {
            collect_tests(&entry.expect("a source file").path(), tests);
        }
        return;
    }
    let source = std::fs::read_to_string(path).expect("a source file");
    let mut is_test = false;
    for line in source.lines().map(str::trim_start) {
        if line == "#[test]" || line == "#[rstest]" {
            is_test = true;
        } else if let Some(signature) = line.strip_prefix("fn ") {
            let name = signature.split('(').next().expect("a name");
            if is_test {
                tests.insert(name.to_owned());
            }
            is_test = false;
        }
    }
}
