//! Secrets do not get out: not in any format, not in logs, not into the state directory.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gossip_engine::{RuleSet, template};

use crate::support::Place;

/// Shorter ones may be part of something harmless.
const LEN_MIN: usize = 16;

#[test]
fn no_output_and_no_file_holds_a_secret() {
    let place = Place::new();
    let mut secrets = BTreeMap::new();
    for (seed, rule) in RuleSet::builtin().iter().enumerate() {
        for (index, example) in rule.examples().iter().enumerate() {
            let example = template::expand(example, seed as u64).unwrap();
            place.write(&format!("{seed}/{index}.txt"), format!("{}\n", example.text));
            let secret = example.text[example.secret].as_bytes().to_vec();
            if secret.len() >= LEN_MIN {
                secrets.insert(secret, rule.id().to_owned());
            }
        }
    }
    assert!(secrets.len() >= 200, "{}", secrets.len());
    let check = |bytes: &[u8], what: &str| {
        for (secret, rule) in &secrets {
            let found = memchr::memmem::find(bytes, secret).is_some();
            assert!(!found, "{what} holds a secret of the rule {rule}");
        }
    };
    let mut findings = 0;
    for words in [
        "-vv scan TREE -j 2",
        "-vv scan TREE --format json",
        "-vv scan TREE --format jsonl --fresh",
        "-vv findings",
        "-vv findings --format json",
        "-vv runs --format jsonl",
        "-vv show 1 --format json",
        "-vv findings --format sarif",
        "-vv findings --format csv",
        "-vv findings --format junit",
        "-vv findings --format gitlab",
        "-vv findings --format html",
        "-vv findings --new-since 1 --format jsonl",
        "-vv baseline -o -",
        "scan TREE --quiet --redact",
        "-vv doctor",
    ] {
        let ran = place.run(words);
        check(ran.stdout.as_bytes(), &format!("the output of `gossip {words}`"));
        check(ran.stderr.as_bytes(), &format!("the log of `gossip {words}`"));
        if words.ends_with("jsonl --fresh") {
            findings = ran.jsonl().len();
        }
    }
    assert!(findings >= 200, "only {findings} were found, so little was tested");
    for option in ["proof", "output"] {
        let file = place.path(option);
        place.run(&format!("scan TREE --{option} {}", file.display())).exits(1);
        check(&fs::read(&file).unwrap(), &format!("the file of --{option}"));
    }
    let mut files = 0;
    each_file(&place.state, &mut |path| {
        files += 1;
        check(&fs::read(path).unwrap(), &path.display().to_string());
    });
    assert!(files >= 2, "the database and the key, at least");
}

fn each_file(dir: &Path, f: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { each_file(&path, f) } else { f(&path) }
    }
}
