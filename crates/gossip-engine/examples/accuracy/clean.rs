//! Code that is not known to hold secrets: how many findings a gigabyte has.
//!
//! A finding is a file, a rule and a secret, as in the product: a secret that stands in a file ten
//! times is found once, and occurs ten times.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};

use gossip_engine::{Engine, Options, RuleSet, Scratch};

use crate::Request;
use crate::case::fnv1a;
use crate::scanners::Scanner;
use crate::table;

/// Larger files are data.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// An occurrence, by place and rule.
struct Place {
    file: String,
    line: u64,
    rule: String,
    confidence: &'static str,
    /// The same secret is found in this file before, by the same rule.
    is_again: bool,
}

pub(crate) fn measure(request: &Request) -> Result<(), String> {
    if request.clean.is_empty() {
        println!("\n# clean code: name directories with --clean");
        return Ok(());
    }
    let mut files = Vec::new();
    request.clean.iter().for_each(|dir| collect(dir, &mut files));
    let bytes: u64 = files.iter().map(|(_, len)| len).sum();
    let gigabytes = bytes as f64 / 1e9;
    println!("\n# clean code: {} files, {:.0} MB", files.len(), bytes as f64 / 1e6);
    let places = scan(&request.clean, &files);
    let header = ["scanner", "findings", "per GB", "occurrences", "per GB"].map(str::to_owned);
    let row = |name: &str, findings: usize, occurrences: usize| {
        let per_gigabyte = |count: usize| format!("{:.0}", count as f64 / gigabytes);
        let counts = [findings, occurrences];
        let counts = counts.map(|count| [count.to_string(), per_gigabyte(count)]);
        std::iter::once(name.to_owned()).chain(counts.into_iter().flatten()).collect()
    };
    let findings = || places.iter().filter(|place| !place.is_again);
    let mut rows: Vec<Vec<String>> = vec![row("gossip", findings().count(), places.len())];
    for scanner in &request.scanners {
        let (Scanner::Betterleaks(program) | Scanner::Kingfisher(program)) = scanner else {
            continue;
        };
        let mut found = HashSet::new();
        let mut occurrences = 0;
        for dir in &request.clean {
            let name = format!("clean-{:016x}", fnv1a(&dir.to_string_lossy()));
            let report = request.work.join(format!("{name}-{}.jsonl", scanner.name()));
            fs::create_dir_all(&request.work).map_err(|error| error.to_string())?;
            if !report.exists() {
                scanner.run(program, dir, &report)?;
            }
            let text = fs::read_to_string(&report).map_err(|error| error.to_string())?;
            let objects = text.lines().filter_map(|line| serde_json::from_str(line).ok());
            for object in objects {
                let Some((path, hit)) = scanner.read_hit(&object) else { continue };
                // Without the secret's hash each occurrence counts.
                let secret = match scanner.secret_hash(&object) {
                    Some(hash) => hash.to_owned(),
                    None => format!("occurrence {occurrences}"),
                };
                found.insert((path, hit.rule, secret));
                occurrences += 1;
            }
        }
        rows.push(row(scanner.name(), found.len(), occurrences));
    }
    table::print("Clean code", &header, &rows);
    let mut rules: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for place in findings() {
        *rules.entry((&place.rule, place.confidence)).or_default() += 1;
    }
    let header = ["rule", "confidence", "findings"].map(str::to_owned);
    let mut rows: Vec<_> = rules.into_iter().collect();
    rows.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let rows: Vec<_> = rows
        .into_iter()
        .map(|((rule, confidence), count)| {
            vec![rule.to_owned(), confidence.to_owned(), count.to_string()]
        })
        .collect();
    table::print("Clean code, by rule", &header, &rows);
    match &request.dump {
        Some(path) => write_places(path, findings()),
        None => Ok(()),
    }
}

/// Where each finding is first, and its rule, in an order that mixes them: its start is a sample.
fn write_places<'p>(path: &Path, findings: impl Iterator<Item = &'p Place>) -> Result<(), String> {
    let mut lines: Vec<_> = findings
        .map(|place| format!("{}:{}\t{}\t{}", place.file, place.line, place.rule, place.confidence))
        .collect();
    lines.sort_by_key(|line| fnv1a(line));
    fs::write(path, lines.join("\n") + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

fn scan(roots: &[PathBuf], files: &[(PathBuf, u64)]) -> Vec<Place> {
    let engine = Engine::new(RuleSet::builtin(), Options::default());
    let mut scratch = Scratch::new();
    let mut places = Vec::new();
    let hasher = RandomState::new();
    let mut found = HashSet::new();
    for (path, _) in files {
        let Ok(bytes) = fs::read(path) else { continue };
        found.clear();
        let inside = roots.iter().find_map(|root| path.strip_prefix(root).ok()).unwrap_or(path);
        let name = inside.to_string_lossy().into_owned();
        engine.scan(&mut scratch, &bytes, Some(name.as_bytes()), &mut |finding| {
            let secret = hasher.hash_one(finding.secret().expose());
            places.push(Place {
                is_again: !found.insert((finding.rule_index(), secret)),
                file: name.clone(),
                line: finding.position().line,
                rule: finding.rule().id().to_owned(),
                confidence: finding.confidence().as_str(),
            });
        });
    }
    places
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, u64)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            collect(&entry.path(), files);
        } else if let Some(len) = entry.metadata().ok().filter(|_| kind.is_file()).map(|m| m.len())
            && len <= MAX_FILE_BYTES
        {
            files.push((entry.path(), len));
        }
    }
}
