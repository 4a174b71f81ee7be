//! `gossip rules list` and `gossip rules test`.

use std::io::{Read, Write};
use std::path::Path;

use gossip_engine::{Engine, Options, Scratch};
use serde::Serialize;

use crate::Outcome;
use crate::args::{Format, RulesArgs, RulesCommand};
use crate::failure::Failure;
use crate::output::stdout;
use crate::say::harmless;
use crate::source::rules;

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
    }
}

fn list(rules: &gossip_engine::RuleSet, format: Format) -> Result<Outcome, Failure> {
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

fn test(rules: gossip_engine::RuleSet, path: &Path) -> Result<Outcome, Failure> {
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
    Ok(if lines.is_empty() { Outcome::Clean } else { Outcome::Found })
}
