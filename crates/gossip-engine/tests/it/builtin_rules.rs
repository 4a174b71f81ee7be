//! Every built-in rule keeps what it promises, on its own examples.

use std::collections::BTreeSet;

use gossip_engine::{Confidence, Engine, Options, Rule, RuleSet, Scratch, template};

use crate::support::{builtin, scan, scan_with};

const INSTANCES: u64 = 12;
const FILES: [&str; 12] = [
    "ai", "chat", "cloud", "code", "files", "keys", "otp", "payment", "places", "programs", "saas",
    "services",
];

/// Rules for paths and for bytes that are no text have tests of their own, in `key_files`.
fn is_of_files(rule: &Rule) -> bool {
    let text = include_str!("../../rules/files.toml");
    text.contains(&format!("id = \"{}\"", rule.id()))
}

#[test]
fn there_are_enough_rules_and_ids_are_unique() {
    let rules = RuleSet::builtin();
    let ids: BTreeSet<_> = rules.iter().map(Rule::id).collect();
    assert_eq!(ids.len(), rules.len());
    assert!(rules.len() >= 60, "{} rules", rules.len());
    let headers: usize = FILES
        .iter()
        .map(|file| {
            let path = format!("{}/rules/{file}.toml", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().filter(|line| *line == "[[rules]]").count()
        })
        .sum();
    assert_eq!(headers, rules.len(), "an id that two files use hides a rule");
}

#[test]
fn every_rule_is_described_and_has_examples_both_ways() {
    for rule in RuleSet::builtin().iter().filter(|rule| !is_of_files(rule)) {
        assert!(!rule.description().is_empty(), "{}", rule.id());
        assert!(!rule.examples().is_empty(), "{} has no example", rule.id());
        assert!(!rule.counterexamples().is_empty(), "{} has no counterexample", rule.id());
    }
}

/// A rule without a literal is tried on every byte: each one must be worth it.
#[test]
fn every_rule_has_literals() {
    let rules = RuleSet::builtin();
    let without = rules.iter().filter(|rule| !rule.has_literals() && !is_of_files(rule));
    let without: Vec<_> = without.map(Rule::id).collect();
    assert_eq!(without, [] as [&str; 0]);
}

#[test]
fn every_example_is_found_by_its_rule_with_the_exact_span() {
    let engine = builtin();
    let mut scratch = Scratch::new();
    let mut failures = BTreeSet::new();
    for rule in engine.rules().iter() {
        for example in rule.examples() {
            for seed in 0..INSTANCES {
                let expanded = template::expand(example, seed).unwrap();
                if rule.id() == "terraform-password" {
                    continue;
                }
                let found = scan_with(engine, &mut scratch, expanded.text.as_bytes());
                let exact = found.iter().any(|found| {
                    found.rule == rule.id()
                        && (found.start..found.end) == expanded.secret
                        && found.secret == expanded.text.as_bytes()[expanded.secret.clone()]
                });
                if !exact {
                    let spans: Vec<_> =
                        found.iter().map(|f| (f.rule.clone(), f.start, f.end)).collect();
                    failures.insert(format!(
                        "{} `{example}` wants {:?}, found {spans:?}",
                        rule.id(),
                        expanded.secret
                    ));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_rule_bound_to_paths_is_found_there_and_nowhere_else() {
    let engine = builtin();
    let rule = engine.rules().get("terraform-password").unwrap();
    let expanded = template::expand(&rule.examples()[0], 1).unwrap();
    for (path, wanted) in [(&b"infra/main.tf"[..], true), (b"infra/main.txt", false)] {
        let mut found = false;
        engine.scan(&mut Scratch::new(), expanded.text.as_bytes(), Some(path), &mut |f| {
            found |= f.rule().id() == rule.id()
        });
        assert_eq!(found, wanted, "{}", String::from_utf8_lossy(path));
    }
}

#[test]
fn no_counterexample_is_found_by_its_rule() {
    let engine = builtin();
    let mut scratch = Scratch::new();
    let mut failures = BTreeSet::new();
    for rule in engine.rules().iter() {
        for example in rule.counterexamples() {
            for seed in 0..INSTANCES {
                let expanded = template::expand(example, seed).unwrap();
                let found = scan_with(engine, &mut scratch, expanded.text.as_bytes());
                if found.iter().any(|found| found.rule == rule.id()) {
                    failures.insert(format!("{} `{example}`", rule.id()));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn right_checksums_give_high_confidence_and_wrong_ones_low() {
    let engine = builtin();
    for rule in engine.rules().iter().filter(|rule| rule.checksum().is_some()) {
        let highs = (0..INSTANCES)
            .filter(|seed| {
                let expanded = template::expand(&rule.examples()[0], *seed).unwrap();
                let found = scan(engine, expanded.text.as_bytes());
                found.iter().any(|f| f.rule == rule.id() && f.confidence == Confidence::High)
            })
            .count() as u64;
        // Some account numbers are impossible for chance's key ids, which then prove nothing.
        let wanted = if rule.id() == "aws-access-key-id" { INSTANCES / 2 } else { INSTANCES };
        assert!(highs >= wanted, "{}: {highs} of {INSTANCES}", rule.id());
    }
    let wrong = template::expand("ghp_{base62:36}", 5).unwrap();
    let found = scan(engine, wrong.text.as_bytes());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].confidence, Confidence::Low);
    let options = Options { bad_checksum: gossip_engine::BadChecksum::Drop, ..Options::default() };
    let strict = Engine::new(RuleSet::builtin(), options);
    assert_eq!(scan(&strict, wrong.text.as_bytes()), []);
}

/// The anchor and the expression agree for every built-in rule, and every expression compiles, also
/// those of allow-lists.
#[test]
fn every_builtin_file_is_accepted_as_a_users_file() {
    for file in FILES {
        let path = format!("{}/rules/{file}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        RuleSet::from_toml(file, &text).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A private key holds its public key, which everybody may have.
#[test]
fn private_keys_are_found_though_they_hold_their_public_keys() {
    let body = |start: &str| format!("{start}{}", "Qm7xLr2vT9wKc4Zb".repeat(2));
    for public in
        ["AAAAB3NzaC1yc2EAAAADAQAB", "AAAAC3NzaC1lZDI1NTE5AAAAI", "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY"]
    {
        let openssh = format!(
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaA{}\n-----END OPENSSH PRIVATE KEY-----\n",
            body(public)
        );
        let putty = format!(
            "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: x\nPublic-Lines: 1\n{}\nPrivate-Lines: 1\n{}\nPrivate-MAC: {}\n",
            body(public),
            body("AAAB"),
            "0f".repeat(20)
        );
        for text in [openssh.clone(), openssh.replace('\n', "\\n"), putty] {
            let found = scan(builtin(), text.as_bytes());
            assert!(found.iter().any(|found| found.rule.contains("private-key")), "{text}");
        }
    }
}
