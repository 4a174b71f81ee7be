//! Who scans: gossip's engine in this process, others as programs over the same files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gossip_engine::{Engine, Options, RuleSet, Scratch};
use serde_json::Value;

use crate::case::{Case, Hit};

pub(crate) enum Scanner {
    Gossip,
    Betterleaks(PathBuf),
    Kingfisher(PathBuf),
}

impl Scanner {
    /// From `NAME=PROGRAM`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some(("betterleaks", program)) => Ok(Self::Betterleaks(program.into())),
            Some(("kingfisher", program)) => Ok(Self::Kingfisher(program.into())),
            _ => Err(format!("`{text}` is neither betterleaks=PROGRAM nor kingfisher=PROGRAM")),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Gossip => "gossip",
            Self::Betterleaks(_) => "Betterleaks",
            Self::Kingfisher(_) => "Kingfisher",
        }
    }

    /// What it finds in each case. Others' findings are kept in `work`, under the set's name and
    /// the hash of its text, as they do not change from run to run.
    pub(crate) fn hits(
        &self,
        set: &str,
        cases: &[Case],
        work: &Path,
    ) -> Result<Vec<Vec<Hit>>, String> {
        let (Self::Betterleaks(program) | Self::Kingfisher(program)) = self else {
            return Ok(gossip(cases));
        };
        let hash = cases.iter().fold(cases.len() as u64, |hash, case| {
            let bytes = case.path.bytes().chain(case.text.iter().copied());
            bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
        });
        let dir = work.join(format!("{set}-{hash:016x}"));
        let report = work.join(format!("{set}-{hash:016x}-{}.jsonl", self.name()));
        if !report.exists() {
            write_cases(&dir, cases).map_err(|error| format!("{}: {error}", dir.display()))?;
            self.run(program, &dir, &report)?;
        }
        let text = fs::read_to_string(&report)
            .map_err(|error| format!("{}: {error}", report.display()))?;
        Ok(self.read_report(&text, &dir, cases.len()))
    }

    /// Over a directory: how many findings in each file.
    pub(crate) fn run(&self, program: &Path, dir: &Path, report: &Path) -> Result<(), String> {
        let unfinished = report.with_extension("unfinished.jsonl");
        let mut command = Command::new(program);
        match self {
            Self::Betterleaks(_) => {
                command.arg(dir).args(["--silent", "--no-banner", "--exit-code=0", "--redact"]);
                command.arg("--output").arg(&unfinished);
            }
            _ => {
                command.arg("scan").arg(dir).args(["--no-validate", "--quiet", "--redact"]);
                command.args(["--no-update-check", "--no-dedup", "--git-history", "none"]);
                command.args(["--format", "jsonl", "--output"]).arg(&unfinished);
            }
        }
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        if !unfinished.exists() {
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{} left no report: {words}", program.display()));
        }
        fs::rename(&unfinished, report).map_err(|error| format!("{}: {error}", report.display()))
    }

    fn read_report(&self, text: &str, dir: &Path, len: usize) -> Vec<Vec<Hit>> {
        let mut hits = vec![Vec::new(); len];
        for object in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let Some((path, hit)) = self.read_hit(&object) else { continue };
            let inside = Path::new(&path).strip_prefix(dir).ok();
            let number = inside.and_then(|path| path.components().next()?.as_os_str().to_str());
            if let Some(index) = number.and_then(|number| number.parse::<usize>().ok()) {
                hits[index].push(hit);
            }
        }
        hits
    }

    /// The path and the finding of one line of a report.
    pub(crate) fn read_hit(&self, object: &Value) -> Option<(String, Hit)> {
        let (finding, place, rule) = match self {
            Self::Betterleaks(_) => {
                (&object["finding"], &object["finding"]["location"], &object["finding"]["rule_id"])
            }
            _ => (&object["finding"], &object["finding"], &object["rule"]["id"]),
        };
        let first_line = place["start_line"].as_u64().or_else(|| finding["line"].as_u64())?;
        let last_line = place["end_line"].as_u64().unwrap_or(first_line);
        let rule = rule.as_str()?.trim_start_matches("betterleaks.").to_owned();
        Some((place["path"].as_str()?.to_owned(), Hit { rule, first_line, last_line }))
    }

    /// What a line of a report says of the secret without showing it.
    pub(crate) fn secret_hash<'o>(&self, object: &'o Value) -> Option<&'o str> {
        match self {
            Self::Gossip => None,
            Self::Betterleaks(_) => object["finding"]["match"]["fingerprint"].as_str(),
            // `[REDACTED:` and a hash; its fingerprint is one of the place, too.
            Self::Kingfisher(_) => object["finding"]["snippet"].as_str(),
        }
    }
}

fn gossip(cases: &[Case]) -> Vec<Vec<Hit>> {
    let engine = Engine::new(RuleSet::builtin(), Options::default());
    let mut scratch = Scratch::new();
    let scan = |case: &Case| {
        let mut hits = Vec::new();
        engine.scan(&mut scratch, &case.text, Some(case.path.as_bytes()), &mut |finding| {
            let first_line = finding.position().line;
            let span = finding.span();
            let text = &case.text[span.start as usize..span.end() as usize];
            let more = memchr::memchr_iter(b'\n', text).count() as u64;
            let rule = finding.rule().id().to_owned();
            hits.push(Hit { rule, first_line, last_line: first_line + more });
        });
        hits
    };
    cases.iter().map(scan).collect()
}

/// Each case as a file of its own, below its number.
fn write_cases(dir: &Path, cases: &[Case]) -> std::io::Result<()> {
    let mut made = BTreeMap::new();
    for (index, case) in cases.iter().enumerate() {
        let file = dir.join(index.to_string()).join(&case.path);
        let folder = file.parent().expect("below its number").to_owned();
        if made.insert(folder.clone(), ()).is_none() {
            fs::create_dir_all(&folder)?;
        }
        fs::write(file, &case.text)?;
    }
    Ok(())
}
