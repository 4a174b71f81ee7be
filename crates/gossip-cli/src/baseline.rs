//! Baselines: what is known already, by fingerprint.
//!
//! A baseline names rules, paths and fingerprints. A fingerprint is made without the secret, so who
//! reads a baseline learns where secrets are and nothing about what they are. A finding has those of all
//! versions that have it: a clone with less of the history knows it by another.

use std::collections::BTreeSet;
use std::path::Path;

use gossip_contracts::identity::RunId;
use gossip_runtime::{Fingerprints, ReportedFinding, Reports, Verdict};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Outcome;
use crate::args::{Args, BaselineArgs};
use crate::failure::Failure;
use crate::output::{counted, incomplete};
use crate::output_file::write_whole;
use crate::places::Places;
use crate::say::{say, shown, shown_bytes};
use crate::source::{as_typed, state_dir};

/// 2: a fingerprint's ordinal counts within one version of a file. One of version 1 could silence a
/// secret that came later. 3: names tell secrets of like lines apart.
const VERSION: u32 = 3;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    gossip_baseline: u32,
    findings: Vec<Known>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(deserialize_with = "fingerprint")]
    fingerprint: String,
    rule: String,
    path: String,
}

fn fingerprint<'d, D: Deserializer<'d>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_fingerprint(&text) {
        return Ok(text);
    }
    Err(serde::de::Error::custom("a fingerprint has 32 hexadecimal digits"))
}

/// Whether a text is a fingerprint.
pub(crate) fn is_fingerprint(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The fingerprints of a baseline.
pub(crate) fn read(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    let file: BaselineFile = serde_json::from_str(&text).map_err(|error| {
        // The parser ends its words with the place, which goes in front.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        let place = format!("{}:{}:{}", shown(path), error.line(), error.column());
        Failure::new(format!("{place}: this is no baseline: {message}"))
    })?;
    if file.gossip_baseline != VERSION {
        return Err(Failure::new(format!(
            "{}: a baseline of version {}; this program reads version {VERSION}, which \
             `gossip baseline` makes",
            shown(path),
            file.gossip_baseline
        )));
    }
    Ok(file.findings.into_iter().map(|known| known.fingerprint).collect())
}

/// `gossip baseline`.
pub(crate) fn run(args: &Args, baseline: &BaselineArgs) -> Result<Outcome, Failure> {
    let reports = Reports::open(&state_dir(args)?)?;
    let run = match baseline.run {
        Some(run) => RunId::from_raw(run),
        None => crate::show::newest(&reports)?,
    };
    let summary = reports.run(run)?;
    if !summary.is_done() {
        return Err(Failure::new(format!(
            "{}: what it has not scanned would be new; finish it first, or name another run",
            incomplete(&summary)
        )));
    }
    let places = Places::of(&summary.target);
    let mut prints = Fingerprints::new();
    let (mut known, mut findings, mut count) = (BTreeSet::new(), Vec::new(), 0);
    let judge = |found: &ReportedFinding| {
        let path = places.masked_in_repository(&found.path);
        let fingerprint = prints.next(found, &path);
        let is_reported = found.silenced.is_none();
        if is_reported && known.insert(fingerprint.clone()) {
            let path = String::from_utf8_lossy(&path).into_owned();
            let fingerprint = fingerprint.clone();
            findings.push(Known { fingerprint, rule: found.rule.clone(), path });
        }
        Verdict { is_reported, fingerprint, note: 0 }
    };
    reports.each_finding(run, &places.versions(false), judge, |_, verdict| {
        count += u64::from(verdict.is_reported);
        Ok::<_, Failure>(())
    })??;
    let file = BaselineFile { gossip_baseline: VERSION, findings };
    write_whole(Some(&baseline.output), |out| {
        serde_json::to_writer_pretty(&mut *out, &file).map_err(std::io::Error::from)?;
        Ok(writeln!(out)?)
    })?;
    if !args.quiet {
        let (file, target) = (shown(&baseline.output), shown_bytes(&as_typed(&summary.target)));
        say!("{file}: {} of run {run}, {target}", counted(count, "finding"));
    }
    if !summary.is_complete() {
        say!("{}", incomplete(&summary));
        return Ok(Outcome::Incomplete);
    }
    Ok(Outcome::Clean)
}
