//! Proofs: what was scanned, what was not and why, under which policy, with a hash over all of it.
//!
//! A proof is lines of JSON: what the run is, one line for each item in the order of keys, and the
//! hash. It names files and their versions, of a history paths and objects, and no secret.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use gossip_contracts::identity::{CanonicalHasher, PolicyHash, RunId, SCAN_PROOF_V1};
use gossip_engine::limits::ENGINE_VERSION;
use gossip_engine::{BadChecksum, Decoding, Engine, Options};
use gossip_runtime::Reports;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::failure::Failure;
use crate::filter::Filter;
use crate::items::Items;
use crate::output::{counted, path_of, stdout};
use crate::output_file::write_whole;
use crate::say::shown;
use crate::silence::Silenced;
use crate::source::{Target, as_typed};

/// 2: what the policy is made of, and what was not reported. 3: what was not scanned inside of archives.
/// 4: what was there before, and what comments allow.
const VERSION: u32 = 4;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Head {
    gossip_proof: u32,
    program: String,
    run: u64,
    target: String,
    policy: String,
    policy_of: Policy,
    status: String,
    started_ms: u64,
    ended_ms: Option<u64>,
    findings: u64,
    /// Of the findings. What a local configuration allows is not among them.
    not_reported: Silenced,
}

/// What decided what was found. The policy is a hash over all of it and over the limits of this version of
/// the program.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    engine: u32,
    rules: u64,
    rules_hash: String,
    /// Encodings that were looked into.
    decoded: Vec<String>,
    decode_depth: u8,
    drops_wrong_checksums: bool,
    allow_comments: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    excluded: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    included: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_file_size: Option<u64>,
}

impl Policy {
    fn of(engine: &Engine, filter: &Filter) -> Self {
        let (rules, Options { decoding, bad_checksum, allow_comments, .. }) =
            (engine.rules(), *engine.options());
        let Decoding { base64, percent, escapes, hex, utf16, max_depth } = decoding;
        let encodings = [
            (base64, "base64"),
            (percent, "percent"),
            (escapes, "escapes"),
            (hex, "hex"),
            (utf16, "utf-16"),
        ];
        let decoded = encodings.into_iter().filter(|(is_decoded, _)| *is_decoded);
        let Filter { exclude, include, max_file_size } = filter.clone();
        Self {
            engine: ENGINE_VERSION,
            rules: rules.len() as u64,
            rules_hash: PolicyHash::derive(rules).to_string(),
            decoded: decoded.map(|(_, name)| name.to_owned()).collect(),
            decode_depth: max_depth,
            drops_wrong_checksums: bad_checksum == BadChecksum::Drop,
            allow_comments,
            excluded: exclude,
            included: include,
            max_file_size,
        }
    }
}

/// What a proof says of a scan beside what is remembered of it.
pub(crate) struct Scanned<'s> {
    pub(crate) target: &'s Target,
    pub(crate) engine: &'s Engine,
    pub(crate) filter: &'s Filter,
    /// Counted like what was not reported: each version by itself, if that is how they are reported.
    pub(crate) findings: u64,
    pub(crate) not_reported: Silenced,
}

/// What became of one item.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Item {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    /// What of a file was read, in words of its source; not there if it changed meanwhile.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version: String,
    /// Of a repository's history: the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    object: Option<String>,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_scanned: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    /// Of an archive: how many of the files in it were not scanned, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    inside_not_scanned: BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct Foot {
    items: u64,
    scanned: u64,
    not_scanned: u64,
    failed: u64,
    /// Files in archives.
    inside_not_scanned: u64,
    /// Over every byte of the lines before.
    hash: String,
}

impl Foot {
    fn count(&mut self, item: &Item) {
        self.items += 1;
        match (&item.failed, &item.not_scanned) {
            (Some(_), _) => self.failed += 1,
            (None, Some(_)) => self.not_scanned += 1,
            (None, None) => self.scanned += 1,
        }
        let inside = item.inside_not_scanned.values();
        self.inside_not_scanned =
            inside.fold(self.inside_not_scanned, |sum, n| sum.saturating_add(*n));
    }

    fn empty() -> Self {
        Self {
            items: 0,
            scanned: 0,
            not_scanned: 0,
            failed: 0,
            inside_not_scanned: 0,
            hash: String::new(),
        }
    }
}

/// Writes the proof of a run.
pub(crate) fn write(
    reports: &Reports,
    run: RunId,
    scanned: Scanned<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let summary = reports.run(run)?;
    let items = Items::of(scanned.target);
    let head = Head {
        gossip_proof: VERSION,
        program: format!("gossip {}", env!("CARGO_PKG_VERSION")),
        run: run.as_raw(),
        target: path_of(&as_typed(&summary.target)).0,
        policy: summary.policy.to_string(),
        policy_of: Policy::of(scanned.engine, scanned.filter),
        status: summary.status.to_string(),
        started_ms: summary.started_ms,
        ended_ms: summary.ended_ms,
        findings: scanned.findings,
        not_reported: scanned.not_reported,
    };
    write_whole(Some(path), |out| {
        let mut hasher = CanonicalHasher::new(&SCAN_PROOF_V1);
        let mut foot = Foot::empty();
        let mut line = |out: &mut dyn Write, json: String| {
            hasher.raw(json.as_bytes()).raw(b"\n");
            writeln!(out, "{json}")
        };
        line(out, to_json(&head)?)?;
        reports.each_item(run, |item| {
            let (path, path_hex) = path_of(&items.path(&item.key));
            let object = items.object(&item.key, &item.version);
            let item = Item {
                path,
                path_hex,
                version: if object.is_none() { hex(&item.version) } else { String::new() },
                object,
                bytes: item.bytes,
                not_scanned: item.skipped,
                failed: item.failed,
                inside_not_scanned: item.inside.into_iter().collect(),
            };
            foot.count(&item);
            line(out, to_json(&item)?)?;
            Ok::<_, Failure>(())
        })??;
        foot.hash = hex(&hasher.finish());
        Ok(writeln!(out, "{}", to_json(&foot)?)?)
    })
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(error.to_string()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Before the rest of the line, in which other versions have other fields.
fn check_version(line: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Kind {
        gossip_proof: u32,
    }
    match serde_json::from_str(line) {
        Ok(Kind { gossip_proof: VERSION }) => Ok(()),
        Ok(Kind { gossip_proof }) => Err(format!(
            "a proof of version {gossip_proof}, and this gossip reads version {VERSION}: \
             verify it with the one that wrote it"
        )),
        Err(_) => Err("this is no proof".to_owned()),
    }
}

/// `gossip proof verify`: whether a proof is whole and unchanged.
pub(crate) fn verify(path: &Path) -> Result<Outcome, Failure> {
    let file = std::fs::File::open(path).map_err(|error| Failure::file(path, &error))?;
    let mut hasher = CanonicalHasher::new(&SCAN_PROOF_V1);
    let mut head = None;
    let mut counted_foot = Foot::empty();
    let mut before: Option<(usize, String)> = None;
    let fault =
        |line: usize, fault: String| Failure::new(format!("{}:{line}: {fault}", shown(path)));
    // The last line is the foot, so each is looked at when the next has come.
    for (line, number) in BufReader::new(file).lines().zip(1_usize..) {
        let line = line.map_err(|error| fault(number, error.to_string()))?;
        if let Some((number, text)) = before.replace((number, line)) {
            hasher.raw(text.as_bytes()).raw(b"\n");
            let read = if head.is_none() {
                check_version(&text).map_err(|found| fault(number, found))?;
                serde_json::from_str(&text).map(|read: Head| head = Some(read))
            } else {
                serde_json::from_str(&text).map(|item: Item| counted_foot.count(&item))
            };
            read.map_err(|error| fault(number, format!("this is no line of a proof: {error}")))?;
        }
    }
    let (Some(head), Some((number, last))) = (head, before) else {
        return Err(fault(1, "this is no proof".to_owned()));
    };
    let foot: Foot = serde_json::from_str(&last)
        .map_err(|_| fault(number, "it ends without its hash: something is missing".to_owned()))?;
    counted_foot.hash = hex(&hasher.finish());
    if counted_foot.hash != foot.hash {
        return Err(fault(number, "the hash is wrong: something was changed".to_owned()));
    }
    if counted_foot != foot {
        return Err(fault(number, "the counts are not those of its lines".to_owned()));
    }
    let mut out = stdout();
    let inside = match foot.inside_not_scanned {
        0 => String::new(),
        count => format!(", {} in archives not scanned", counted(count, "file")),
    };
    let of_findings = match head.not_reported.of_findings() {
        0 => String::new(),
        count => format!(" ({count} not reported)"),
    };
    let not_reported = match head.not_reported.by_local_config() {
        0 => of_findings,
        count => format!("{of_findings}, {count} allowed by a local configuration"),
    };
    let not_reported = match head.not_reported.before() {
        0 => not_reported,
        count => format!("{not_reported}, {count} there before"),
    };
    let not_reported = match head.not_reported.by_comments() {
        0 => not_reported,
        count => format!("{not_reported}, {count} allowed by comments"),
    };
    writeln!(
        out,
        "run {} of {}: {} scanned, {} not scanned, {} could not be read{inside}, {}{not_reported}; {}",
        head.run,
        crate::say::harmless(&head.target),
        counted(foot.scanned, "item"),
        foot.not_scanned,
        foot.failed,
        counted(head.findings, "finding"),
        head.status,
    )?;
    let Policy { engine, rules, rules_hash, .. } = &head.policy_of;
    let rules_hash = crate::say::harmless(rules_hash);
    writeln!(out, "policy {}", crate::say::harmless(&head.policy))?;
    writeln!(out, "       {} {rules_hash}, engine {engine}", counted(*rules, "rule"))?;
    writeln!(out, "hash   {}", foot.hash)?;
    out.flush()?;
    Ok(Outcome::Clean)
}
