//! `gossip rules` and `gossip config`.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gossip_engine::{Engine, Options, Origin, RuleSet, Scratch, template};
use serde::Serialize;

use crate::Outcome;
use crate::args::{
    ConfigArgs, ConfigCommand, DetectionArgs, Format, ReportArgs, RulesArgs, RulesCommand,
};
use crate::config::{ReportSettings, Settings, add, rules};
use crate::failure::Failure;
use crate::output::{counted, stdout};
use crate::places::Places;
use crate::say::{harmless, say, shown};
use crate::silence::Silencer;

#[derive(Serialize)]
struct RuleJson<'r> {
    id: &'r str,
    description: &'r str,
    severity: String,
}

pub(crate) fn run(args: &RulesArgs) -> Result<Outcome, Failure> {
    match &args.command {
        RulesCommand::List { rules: files, output } => list(&rules(files)?, output.format),
        RulesCommand::Test { path, rules: files } => test(rules(files)?, path),
        RulesCommand::Check { file } => check(file),
    }
}

/// Whether a file can be used, and each of its rules finds its examples and not its counterexamples.
fn check(file: &Path) -> Result<Outcome, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    let set = add(RuleSet::empty(), file, &text, Origin::User)
        .or_else(|_| add(RuleSet::builtin(), file, &text, Origin::User))?;
    set.notes().iter().for_each(|note| say!("{note}"));
    let mut faults = Vec::new();
    for rule in set.iter() {
        let alone = RuleSet::clone(&set).only(&[rule.id().to_owned()]);
        let engine = Engine::new(alone, Options::default());
        let finds = |text: &str| -> Result<bool, Failure> {
            let example = template::expand(text, 1).map_err(|error| {
                Failure::new(format!("{}: rule `{}`: {error}", shown(file), rule.id()))
            })?;
            let mut found = false;
            let path = Some(b"example.txt".as_slice());
            engine.scan(&mut Scratch::new(), example.text.as_bytes(), path, &mut |_| found = true);
            Ok(found)
        };
        for example in rule.examples() {
            if !finds(example)? {
                faults.push(format!("rule `{}` does not find its example `{example}`", rule.id()));
            }
        }
        for example in rule.counterexamples() {
            if finds(example)? {
                faults.push(format!("rule `{}` finds its counterexample `{example}`", rule.id()));
            }
        }
        if !rule.has_literals() && rule.examples().is_empty() {
            say!(
                "rule `{}` has neither a literal nor a keyword: it is tried on every byte",
                rule.id()
            );
        }
    }
    faults.iter().for_each(|fault| say!("{}: {fault}", shown(file)));
    if faults.is_empty() {
        let mut out = stdout();
        writeln!(out, "{}: {}, all in order", shown(file), counted(set.len() as u64, "rule"))?;
        out.flush()?;
    }
    Ok(if faults.is_empty() { Outcome::Clean } else { Outcome::Incomplete })
}

/// `gossip config check`.
pub(crate) fn config(args: &ConfigArgs) -> Result<Outcome, Failure> {
    let ConfigCommand::Check { path } = &args.command;
    let path = path.canonicalize().map_err(|error| Failure::file(path, &error))?;
    let is_config = path.extension().is_some_and(|ending| ending == "toml");
    let given = is_config.then(|| path.clone());
    let detection = DetectionArgs { config: given, ..DetectionArgs::default() };
    let Settings { rules: set, config, .. } = Settings::load(&[&path], &detection, false)?;
    set.notes().iter().for_each(|note| say!("{note}"));
    // The files beside it, too: a scan reads them all first.
    let settings = ReportSettings::of(config.as_ref(), &ReportArgs::default());
    let places = Places::of(&[b"fs:", path.as_os_str().as_bytes()].concat());
    Silencer::load(&places, &settings, config.as_ref(), is_config)?;
    let mut out = stdout();
    match &config {
        Some(config) => writeln!(out, "{}: {}", shown(config.path()), config.effect(&set))?,
        None => writeln!(out, "no configuration: {} built-in rules", set.len())?,
    }
    out.flush()?;
    Ok(Outcome::Clean)
}

fn list(rules: &RuleSet, format: Format) -> Result<Outcome, Failure> {
    let rows: Vec<RuleJson<'_>> = rules
        .iter()
        .map(|rule| RuleJson {
            id: rule.id(),
            description: rule.description(),
            severity: rule.severity().to_string(),
        })
        .collect();
    let mut out = stdout();
    match format {
        Format::Text => {
            for row in &rows {
                let (id, description) = (harmless(row.id), harmless(row.description));
                writeln!(out, "{id:<40} {:<9} {description}", row.severity)?;
            }
        }
        Format::Json => {
            serde_json::to_writer_pretty(&mut out, &rows).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
        Format::Jsonl => {
            for row in &rows {
                serde_json::to_writer(&mut out, row).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
        }
    }
    out.flush()?;
    Ok(Outcome::Clean)
}

fn test(rules: RuleSet, path: &Path) -> Result<Outcome, Failure> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        bytes = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
    }
    let engine = Engine::new(rules, Options::default());
    let mut lines = Vec::new();
    engine.scan(&mut Scratch::new(), &bytes, None, &mut |found| {
        lines.push(format!(
            "{}:{}: {} ({:?} confidence): {}",
            found.position().line,
            found.position().column,
            harmless(found.rule().id()),
            found.confidence(),
            found.secret().redact(),
        ));
    });
    let mut out = stdout();
    for line in &lines {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(if lines.is_empty() { Outcome::Clean } else { Outcome::Found(1) })
}
