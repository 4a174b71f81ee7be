//! `gossip rules` and `gossip config`.

use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gossip_engine::{Engine, Options, Origin, Rule, RuleSet, Scratch, template};
use serde::Serialize;

use crate::Outcome;
use crate::args::{
    ConfigArgs, ConfigCommand, DetectionArgs, Format, ReportArgs, RulesArgs, RulesCommand,
};
use crate::config::{ReportSettings, Settings, add, rules_here};
use crate::failure::Failure;
use crate::output::{counted, stdout, write_rows};
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
        RulesCommand::List { rules, output } => list(&rules_here(rules)?, output.format),
        RulesCommand::Test { path, rules } => test(rules_here(rules)?, path),
        RulesCommand::Check { file } => check(file),
    }
}

/// Whether a file can be used, and each of its rules finds its examples and not its counterexamples.
fn check(file: &Path) -> Result<Outcome, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
    let set = add(RuleSet::empty(), file, &text, Origin::User)
        .or_else(|_| add(RuleSet::builtin(), file, &text, Origin::User))?;
    set.notes().iter().for_each(|note| say!("{note}"));
    let builtin = RuleSet::builtin();
    // What the file neither adds nor adjusts is the very same rule.
    let is_untouched =
        |rule: &Rule| builtin.get(rule.id()).is_some_and(|own| std::ptr::eq(own, rule));
    let own: Vec<&Rule> = set.iter().filter(|rule| !is_untouched(rule)).collect();
    let mut faults = Vec::new();
    for rule in &own {
        let id = harmless(rule.id());
        let finds = Finds::new(&set, rule);
        let finds = |example: &str| {
            let found = finds.example(example);
            found.map_err(|error| Failure::new(format!("{}: rule `{id}`: {error}", shown(file))))
        };
        for example in rule.examples() {
            if !finds(example)? {
                faults.push(format!("rule `{id}` does not find its example `{example}`"));
            }
        }
        for example in rule.counterexamples() {
            if finds(example)? {
                faults.push(format!("rule `{id}` finds its counterexample `{example}`"));
            }
        }
        if !rule.has_literals() && !rule.is_of_paths() {
            say!("rule `{id}` has neither a literal nor a keyword: it is tried on every byte");
        }
    }
    faults.iter().for_each(|fault| say!("{}: {fault}", shown(file)));
    if faults.is_empty() {
        let mut out = stdout();
        writeln!(out, "{}: {}, all in order", shown(file), counted(own.len() as u64, "rule"))?;
        out.flush()?;
    }
    Ok(if faults.is_empty() { Outcome::Clean } else { Outcome::Incomplete })
}

/// Whether a rule finds an example, wherever that would be; of a rule for paths, an example is a path.
struct Finds<'r> {
    rule: &'r Rule,
    engine: Engine,
}

impl<'r> Finds<'r> {
    fn new(set: &RuleSet, rule: &'r Rule) -> Self {
        let alone = set.clone().only(&[rule.id().to_owned()]).in_every_path();
        Self { rule, engine: Engine::new(alone, Options::default()) }
    }

    fn example(&self, text: &str) -> Result<bool, template::TemplateError> {
        let example = template::expand(text, 1)?.text;
        let (path, text) = match self.rule.is_of_paths() {
            true => (Some(example.as_bytes()), ""),
            false => (None, example.as_str()),
        };
        let mut found = false;
        self.engine.scan(&mut Scratch::new(), text.as_bytes(), path, &mut |finding| {
            found |= finding.rule().id() == self.rule.id();
        });
        Ok(found)
    }
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
        Some(config) => {
            let effect = config.effect(&set, &detection, &ReportArgs::default());
            writeln!(out, "{}: {}", shown(config.path()), effect.words)?;
        }
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
    let text = |out: &mut dyn Write, row: &RuleJson<'_>| {
        let (id, description) = (harmless(row.id), harmless(row.description));
        writeln!(out, "{id:<40} {:<9} {description}", row.severity)
    };
    write_rows(&rows, format, text, |row| row)?;
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
            "{}:{}: {} ({} confidence): {}",
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
