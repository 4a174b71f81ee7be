//! Measures the built-in rules on examples that other scanners' authors wrote for theirs.
//!
//! `cargo run --release -p gossip-engine --example corpus -- rule-examples.jsonl.gz [details]`
//!
//! Prints a table of counts per source, never the text of an example. A vendor is ours if one of
//! our rules, or its description, names it; an example counts as found if any rule finds something
//! in it. With `details`, the source's rules of which we find less than half follow.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use gossip_engine::{Confidence, Engine, Options, RuleSet, Scratch};

#[derive(Default)]
struct Count {
    positive: usize,
    found: usize,
    found_specific: usize,
    negative: usize,
    wrong: usize,
    wrong_sure: usize,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: corpus <rule-examples.jsonl.gz> [details]");
        return ExitCode::from(2);
    };
    let details = arguments.next().is_some();
    let file = match std::fs::File::open(&path) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("{path}: {error}");
            return ExitCode::from(2);
        }
    };
    let engine = Engine::new(RuleSet::builtin(), Options::default());
    let ours = vendors(engine.rules());
    let mut scratch = Scratch::new();
    let mut sources: BTreeMap<(String, bool), Count> = BTreeMap::new();
    let mut rules: BTreeMap<(String, String), Count> = BTreeMap::new();
    for line in BufReader::new(flate2::read::GzDecoder::new(file)).lines() {
        let line = line.expect("the corpus is readable");
        let example: serde_json::Value = serde_json::from_str(&line).expect("one object a line");
        let field = |name: &str| example[name].as_str().unwrap_or_default();
        let (source, rule) = (field("source"), field("rule"));
        let path = example["path"].as_str().map(str::as_bytes);
        let (mut found, mut specific, mut sure) = (false, false, false);
        engine.scan(&mut scratch, field("text").as_bytes(), path, &mut |finding| {
            found = true;
            specific |= !finding.rule().is_generic();
            sure |= finding.confidence() > Confidence::Low;
        });
        let known = ours.contains(vendor(rule));
        let source_count = sources.entry((source.to_owned(), known)).or_default();
        let rule_count = rules.entry((source.to_owned(), rule.to_owned())).or_default();
        for count in [source_count, rule_count] {
            if example["positive"] == true {
                count.positive += 1;
                count.found += usize::from(found);
                count.found_specific += usize::from(specific);
            } else {
                count.negative += 1;
                count.wrong += usize::from(found);
                count.wrong_sure += usize::from(sure);
            }
        }
    }
    println!(
        "| source | vendors | positive | found | by a specific rule | negative | found | not low |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for ((source, known), count) in &sources {
        let vendors = if *known { "ours" } else { "others" };
        let Count { positive, found, found_specific, negative, wrong, wrong_sure } = count;
        let share = |part: &usize| 100.0 * *part as f64 / (*positive).max(1) as f64;
        println!(
            "| {source} | {vendors} | {positive} | {found} ({:.0} %) | {found_specific} ({:.0} %) | \
             {negative} | {wrong} | {wrong_sure} |",
            share(found),
            share(found_specific),
        );
    }
    if details {
        for ((source, rule), count) in &rules {
            let known = ours.contains(vendor(rule));
            if known && count.found * 2 < count.positive {
                println!("{source} {rule}: {} of {}", count.found, count.positive);
            }
        }
        for ((source, rule), count) in &rules {
            if count.wrong > 0 {
                println!("{source} {rule}: {} of {} negatives", count.wrong, count.negative);
            }
        }
    }
    ExitCode::SUCCESS
}

/// `kingfisher.slack.2` and `np.slack.3` and `slack-bot-token` are all slack's.
fn vendor(rule: &str) -> &str {
    let name = rule.strip_prefix("kingfisher.").or_else(|| rule.strip_prefix("np."));
    match name {
        Some(name) => name.split('.').next().unwrap_or(name),
        None => rule.split('-').next().unwrap_or(rule),
    }
}

/// The vendors that ids and descriptions of rules name, in lower case.
fn vendors(rules: &RuleSet) -> BTreeSet<String> {
    let mut vendors = BTreeSet::new();
    for rule in rules.iter() {
        let words = rule.description().split(|c: char| !c.is_ascii_alphanumeric());
        let ids = rule.id().split('-');
        vendors.extend(words.chain(ids).map(str::to_ascii_lowercase));
    }
    // Spelled differently elsewhere, or words that happen to be names.
    for (theirs, ours) in [
        ("cratesio", "crates"),
        ("dockerhub", "docker"),
        ("newrelic", "relic"),
        ("launchdarkly", "darkly"),
        ("pagerduty", "pagerduty"),
        ("1password", "onepassword"),
        ("privkey", "private"),
        ("pem", "private"),
        ("google", "gcp"),
        ("twitter", "twitter"),
        ("privkey", "private"),
        ("digitalocean", "digitalocean"),
        ("mongodb", "database"),
        ("postgres", "database"),
        ("odbc", "odbc"),
        ("gcs", "gcp"),
        ("msteams", "teams"),
        ("hashicorp", "vault"),
        ("uri", "basic"),
        ("square", "square"),
        ("pwhash", "htpasswd"),
    ] {
        if vendors.contains(ours) {
            vendors.insert(theirs.to_owned());
        }
    }
    for word in ["token", "key", "secret", "line", "front", "box", "float", "column", "magnetic"] {
        if word != "line" {
            vendors.remove(word);
        }
    }
    vendors
}
