//! Examples that other scanners' authors wrote for their own rules, by vendor.
//!
//! A positive counts as found if any rule finds anything in it. A negative says only that one rule
//! must not match, so it counts as wrong only if something is found by a rule that also finds one of
//! that rule's positives: its counterpart here. A token of the same vendor but of another kind is no
//! false alarm for a scanner that tells the kinds apart.

use std::collections::{BTreeMap, BTreeSet};

use crate::Request;
use crate::case::{Case, Half, Hit, read_objects};
use crate::table::{self, Counts, mean};

struct Example {
    source: String,
    rule: String,
    vendor: String,
    positive: bool,
}

impl Example {
    /// The rule that it was written for.
    fn key(&self) -> (&str, &str) {
        (&self.source, &self.rule)
    }
}

pub(crate) fn measure(request: &Request) -> Result<(), String> {
    let objects = read_objects(&request.corpora.join("rule-examples.jsonl.gz"))?;
    let text = |object: &serde_json::Value, field: &str| {
        object[field].as_str().unwrap_or_default().to_owned()
    };
    let examples: Vec<_> = objects
        .iter()
        .map(|object| {
            let rule = text(object, "rule");
            let vendor = vendor(&rule);
            let positive = object["positive"] == true;
            Example { source: text(object, "source"), rule, vendor, positive }
        })
        .collect();
    let cases: Vec<_> = objects
        .iter()
        .map(|object| {
            let path = object["path"].as_str().unwrap_or("example.txt");
            let path = path.trim_start_matches(['/', '.']).to_owned();
            let path = if path.is_empty() { "example.txt".to_owned() } else { path };
            Case { path, text: text(object, "text").into_bytes() }
        })
        .collect();
    let mut rows = Vec::new();
    let mut header = vec!["set".to_owned(), "vendors".to_owned()];
    let mut columns: Vec<BTreeMap<(Half, &str), Counts>> = Vec::new();
    for scanner in &request.scanners {
        let hits = scanner.hits("examples", &cases, &request.work)?;
        let flagged = flagged(&examples, &hits);
        let mut vendors: BTreeMap<(Half, &str), Counts> = BTreeMap::new();
        for (example, flagged) in examples.iter().zip(flagged.iter().copied()) {
            let key = (Half::of(&example.vendor), example.vendor.as_str());
            vendors.entry(key).or_default().add(example.positive, flagged);
        }
        header.push(format!("{}: recall by vendor, false", scanner.name()));
        columns.push(vendors);
        if request.misses && scanner.name() == "gossip" {
            list_misses(&examples, &flagged);
            if let Some(path) = &request.dump {
                dump(path, &objects, &examples, &hits, &flagged)?;
            }
        }
    }
    for half in request.halves().iter().copied() {
        let names: Vec<_> = columns[0].keys().filter(|(of, _)| *of == half).collect();
        let mut row = vec![half.name().to_owned(), names.len().to_string()];
        for vendors in &columns {
            let counts = || vendors.iter().filter(|((of, _), _)| *of == half).map(|(_, c)| c);
            let with_positives = counts().filter(|c| c.found + c.missed > 0);
            let recall = mean(with_positives.map(Counts::recall));
            let wrong: usize = counts().map(|c| c.wrong).sum();
            let negatives: usize = counts().map(|c| c.wrong + c.right_to_pass).sum();
            let rate = wrong as f64 / negatives.max(1) as f64;
            row.push(format!("{recall:.3}, {wrong} of {negatives} ({rate:.3})"));
        }
        rows.push(row);
    }
    table::print("Examples of other scanners' rules", &header, &rows);
    Ok(())
}

/// The rules of a scanner that find positives of each source's rule.
type Counterparts<'e> = BTreeMap<(&'e str, &'e str), BTreeSet<&'e str>>;

fn counterparts<'e>(examples: &'e [Example], hits: &'e [Vec<Hit>]) -> Counterparts<'e> {
    let mut rules = Counterparts::new();
    for (example, hits) in examples.iter().zip(hits).filter(|(example, _)| example.positive) {
        // A general rule is no counterpart of a vendor's.
        let fits = |rule: &&str| !is_general(rule) || is_general(&example.rule);
        let found = hits.iter().map(|hit| hit.rule.as_str()).filter(fits);
        rules.entry(example.key()).or_default().extend(found);
    }
    rules
}

/// Whether a rule knows places and names in general, and no vendor.
fn is_general(rule: &str) -> bool {
    const GENERAL: [&str; 8] =
        ["generic", "curl", "basic", "api", "hashes", "uri", "auth", "service"];
    GENERAL.contains(&vendor(rule).as_str())
}

/// Whether each example is flagged: a positive by anything, a negative by its rule's counterpart.
fn flagged(examples: &[Example], hits: &[Vec<Hit>]) -> Vec<bool> {
    let counterparts = counterparts(examples, hits);
    let is_flagged = |(example, hits): (&Example, &Vec<Hit>)| {
        let own = counterparts.get(&example.key());
        let is_own = |hit: &Hit| own.is_some_and(|own| own.contains(hit.rule.as_str()));
        if example.positive { !hits.is_empty() } else { hits.iter().any(is_own) }
    };
    examples.iter().zip(hits).map(is_flagged).collect()
}

/// `kingfisher.slack.2`, `np.slack.3` and `slack-bot-token` are all slack's.
fn vendor(rule: &str) -> String {
    let name = rule.strip_prefix("kingfisher.").or_else(|| rule.strip_prefix("np."));
    let name = match name {
        Some(name) => name.split('.').next().unwrap_or(name),
        None => rule,
    };
    name.split(['-', '_']).next().unwrap_or(name).to_ascii_lowercase()
}

/// The tuning half only.
fn list_misses(examples: &[Example], flagged: &[bool]) {
    let mut rules: BTreeMap<(&str, &str), Counts> = BTreeMap::new();
    for (example, flagged) in examples.iter().zip(flagged) {
        if Half::of(&example.vendor) == Half::Tuning {
            rules.entry(example.key()).or_default().add(example.positive, *flagged);
        }
    }
    for ((source, rule), counts) in rules {
        if counts.missed > 0 || counts.wrong > 0 {
            let Counts { found, missed, wrong, right_to_pass } = counts;
            println!(
                "{source} {rule}: missed {missed} of {}, wrong {wrong} of {}",
                found + missed,
                wrong + right_to_pass
            );
        }
    }
}

/// Writes the tuning half's misses and false alarms, text included, to a file outside the tree.
fn dump(
    path: &std::path::Path,
    objects: &[serde_json::Value],
    examples: &[Example],
    hits: &[Vec<Hit>],
    flagged: &[bool],
) -> Result<(), String> {
    let mut out = String::new();
    let all = objects.iter().zip(examples).zip(hits.iter().zip(flagged));
    for ((object, example), (hits, flagged)) in all {
        if Half::of(&example.vendor) == Half::Tuning && example.positive != *flagged {
            let rules: Vec<_> = hits.iter().map(|hit| hit.rule.as_str()).collect();
            out.push_str(&format!("{object} {rules:?}\n"));
        }
    }
    std::fs::write(path, out).map_err(|error| format!("{}: {error}", path.display()))
}
