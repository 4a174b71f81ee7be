//! Real lines of public repositories, labelled, by repository and by category.
//!
//! A row counts as flagged if a finding touches its line. Rows of categories that name no credential
//! (identifiers, nonces, salts, buckets) are left out, as are false rows that share their line with
//! a true one.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Request;
use crate::case::{Case, Half, Hit, read_objects};
use crate::table::{self, Counts, mean};

/// By the words of the corpus: public identifiers and material that is not secret by itself.
const NOT_SCORED: [&str; 5] = ["UUID", "Nonce", "Salt", "Bucket", "App ID"];

struct Row {
    group: u64,
    category: String,
    line: u64,
    is_secret: bool,
}

pub(crate) fn measure(request: &Request) -> Result<(), String> {
    let objects = read_objects(&request.corpora.join("labelled-lines.jsonl.gz"))?;
    let scored: Vec<_> = objects.into_iter().filter(is_scored).collect();
    let rows: Vec<_> = scored.iter().map(row).collect();
    let cases: Vec<_> = scored.iter().map(case).collect();
    let mut found = Vec::new();
    for scanner in &request.scanners {
        let hits = scanner.hits("labelled", &cases, &request.work)?;
        if let Some(path) = request.dump.as_ref().filter(|_| scanner.name() == "gossip") {
            dump(path, &scored, &rows, &hits)?;
        }
        found.push(hits);
    }
    let header: Vec<_> = ["rows", "T", "F"]
        .map(str::to_owned)
        .into_iter()
        .chain(request.scanners.iter().map(|scanner| format!("{} P/R/F1", scanner.name())))
        .collect();
    let mut lines = Vec::new();
    let halves = request.halves();
    let both = (halves.len() == Half::BOTH.len()).then_some(None);
    for half in halves.iter().copied().map(Some).chain(both) {
        let name = half.map_or("both", Half::name);
        let of_half = |row: &&Row| half.is_none_or(|half| Half::of(&row.group.to_string()) == half);
        lines.push(line(&format!("**{name}**"), &rows, &found, of_half));
        let by_group = found.iter().map(|hits| format!("{:.3}", f1_by_group(&rows, hits, of_half)));
        let by_group_name = format!("{name}, mean F1 by group");
        lines.push(
            [by_group_name, String::new(), String::new()].into_iter().chain(by_group).collect(),
        );
        let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
        rows.iter().filter(of_half).for_each(|row| {
            *categories.entry(&row.category).or_default() += usize::from(row.is_secret);
        });
        for (category, _) in categories.iter().filter(|(_, secrets)| **secrets >= 12) {
            let name = format!("{name}, {category}");
            let of_both = |row: &&Row| of_half(row) && row.category == *category;
            lines.push(line(&name, &rows, &found, of_both));
        }
    }
    table::print("Labelled lines of 169 repositories", &header, &lines);
    Ok(())
}

fn line(
    name: &str,
    rows: &[Row],
    found: &[Vec<Vec<Hit>>],
    of: impl Fn(&&Row) -> bool,
) -> Vec<String> {
    let counts = |hits: &Vec<Vec<Hit>>| {
        let mut counts = Counts::default();
        for (row, hits) in rows.iter().zip(hits).filter(|(row, _)| of(row)) {
            counts.add(row.is_secret, is_flagged(row, hits));
        }
        counts
    };
    let secrets = rows.iter().filter(|row| of(row) && row.is_secret).count();
    let others = rows.iter().filter(|row| of(row) && !row.is_secret).count();
    [name.to_owned(), secrets.to_string(), others.to_string()]
        .into_iter()
        .chain(found.iter().map(|hits| counts(hits).shown()))
        .collect()
}

/// Over groups that have a secret.
fn f1_by_group(rows: &[Row], hits: &[Vec<Hit>], of: impl Fn(&&Row) -> bool) -> f64 {
    let mut groups: BTreeMap<u64, Counts> = BTreeMap::new();
    for (row, hits) in rows.iter().zip(hits).filter(|(row, _)| of(row)) {
        groups.entry(row.group).or_default().add(row.is_secret, is_flagged(row, hits));
    }
    mean(groups.values().filter(|c| c.found + c.missed > 0).map(Counts::f1))
}

fn is_flagged(row: &Row, hits: &[Hit]) -> bool {
    hits.iter().any(|hit| hit.touches(row.line))
}

fn is_scored(object: &Value) -> bool {
    let category = object["category"].as_str().unwrap_or_default();
    object["t_on_line"].is_null()
        && !category.split(':').all(|part| NOT_SCORED.iter().any(|word| part.contains(word)))
}

fn row(object: &Value) -> Row {
    Row {
        group: object["group"].as_u64().unwrap_or_default(),
        category: object["category"].as_str().unwrap_or_default().to_owned(),
        line: object["before"].as_array().map_or(0, Vec::len) as u64 + 1,
        is_secret: object["label"] == "T",
    }
}

fn case(object: &Value) -> Case {
    let lines = |field: &str| {
        let lines = object[field].as_array().cloned().unwrap_or_default();
        lines.into_iter().filter_map(|line| line.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let mut text = lines("before");
    text.push(object["line"].as_str().unwrap_or_default().to_owned());
    text.extend(lines("after"));
    let path = object["file"].as_str().unwrap_or("file.txt").trim_start_matches('/').to_owned();
    Case { path, text: (text.join("\n") + "\n").into_bytes() }
}

/// Writes the tuning half's mistakes, text included, to a file outside the tree.
fn dump(
    path: &std::path::Path,
    objects: &[Value],
    rows: &[Row],
    hits: &[Vec<Hit>],
) -> Result<(), String> {
    let mut out = String::new();
    for ((object, row), hits) in objects.iter().zip(rows).zip(hits) {
        let flagged = is_flagged(row, hits);
        if Half::of(&row.group.to_string()) == Half::Tuning && flagged != row.is_secret {
            let rules: Vec<_> = hits.iter().filter(|hit| hit.touches(row.line)).collect();
            let rules: Vec<_> = rules.iter().map(|hit| hit.rule.as_str()).collect();
            let kind = if row.is_secret { "MISSED" } else { "WRONG" };
            out.push_str(&format!("{kind} {rules:?} {object}\n"));
        }
    }
    std::fs::write(path, out).map_err(|error| format!("{}: {error}", path.display()))
}
