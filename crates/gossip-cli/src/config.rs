//! Configurations: which one holds, what it says, and what follows with the command line.

mod effect;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gossip_engine::{
    Confidence, Engine, Options, Origin, RuleSet, Severity, rules_for_gitleaks_id,
};
use serde::Deserialize;
use toml::Spanned;

use crate::args::{DetectionArgs, ReportArgs, RuleSourceArgs, parse_size};
use crate::failure::Failure;
use crate::filter::{Filter, patterns};
use crate::places::directories_above;
use crate::say::{say, shown};

use effect::Effect;

/// The names by which a configuration is found, the first that is there in a directory.
const NAMES: [&str; 3] = ["gossip.toml", ".gossip.toml", ".gitleaks.toml"];

/// What a `[scan]` table says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ScanTable {
    exclude: Vec<Spanned<String>>,
    include: Vec<Spanned<String>>,
    max_file_size: Option<Size>,
    disable_rules: Vec<Spanned<String>>,
    only_rules: Vec<Spanned<String>>,
    severity: Option<Severity>,
    confidence: Option<Confidence>,
    baseline: Option<PathBuf>,
    exit_code: Option<u8>,
}

/// The part of a file that is not the rules'.
#[derive(Debug, Default, Deserialize)]
struct FileTables {
    #[serde(default)]
    scan: ScanTable,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "toml::Value")]
struct Size(u64);

impl TryFrom<toml::Value> for Size {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Integer(size) => {
                u64::try_from(size).map(Self).map_err(|_| "a size is not negative".to_owned())
            }
            toml::Value::String(text) => parse_size(&text).map(Self),
            _ => Err("a size is a number of bytes, or text like \"10M\"".to_owned()),
        }
    }
}

/// A configuration file that was read.
pub(crate) struct Config {
    path: PathBuf,
    text: String,
    scan: ScanTable,
    origin: Origin,
}

impl Config {
    /// The one that is given, or the one that is found from what is scanned upward. Of several roots
    /// all must find the same: a run has one configuration, and that of one root says nothing of
    /// another.
    pub(crate) fn find(
        given: Option<&Path>,
        roots: &[&Path],
        no_local: bool,
    ) -> Result<Option<Self>, Failure> {
        if let Some(path) = given {
            return Self::read(path, Origin::User).map(Some);
        }
        let Some((first, others)) = roots.split_first().filter(|_| !no_local) else {
            return Ok(None);
        };
        let found = local(first);
        for root in others {
            let other = local(root);
            if other != found {
                let name = |found: &Option<PathBuf>| found.as_deref().map_or("none".into(), shown);
                return Err(Failure::new(format!(
                    "{} and {} have different configurations ({}, {}); scan them one by one, give \
                     one for both with --config FILE, or leave them out with --no-local-config",
                    shown(first),
                    shown(root),
                    name(&found),
                    name(&other),
                )));
            }
        }
        found.map(|path| Self::read(&path, Origin::Target)).transpose()
    }

    fn read(path: &Path, origin: Origin) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
        let tables: FileTables = toml::from_str(&text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let (line, column) = line_and_column(&text, at);
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            let hint = unknown_field(&message).map_or(String::new(), field_hint);
            Failure::new(format!("{}:{line}:{column}: {message}{hint}", shown(path)))
        })?;
        Ok(Self { path: path.to_owned(), text, scan: tables.scan, origin })
    }

    /// gitleaks' own files mean what they mean there: without `extend` their rules are all there are.
    fn is_of_gitleaks(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        name.contains("gitleaks")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_local(&self) -> bool {
        self.origin == Origin::Target
    }

    /// Checks words of its `[scan]` table, and names the place of the one that is wrong.
    fn checked<T>(
        &self,
        words: &[Spanned<String>],
        check: impl Fn(&[String]) -> Result<T, Failure>,
    ) -> Result<Vec<String>, Failure> {
        for word in words {
            check(std::slice::from_ref(word.get_ref())).map_err(|failure| {
                let (line, column) = line_and_column(&self.text, word.span().start);
                Failure::new(format!("{}:{line}:{column}: {failure}", shown(&self.path)))
            })?;
        }
        Ok(words.iter().map(|word| word.get_ref().clone()).collect())
    }
}

/// The configuration that is found from `root` upward.
fn local(root: &Path) -> Option<PathBuf> {
    let directories = directories_above(root);
    let mut candidates = directories.iter().flat_map(|dir| NAMES.map(|name| dir.join(name)));
    candidates.find(|path| path.is_file())
}

/// What a scan goes by: configuration and command line together.
pub(crate) struct Settings {
    pub(crate) rules: RuleSet,
    pub(crate) filter: Filter,
    pub(crate) config: Option<Config>,
}

/// What a report goes by.
pub(crate) struct ReportSettings {
    pub(crate) severity: Severity,
    pub(crate) confidence: Confidence,
    /// The configuration that has one of the two, if the command line has not.
    pub(crate) levels_of: Option<PathBuf>,
    pub(crate) baseline: Option<PathBuf>,
    pub(crate) is_baseline_of_config: bool,
    pub(crate) exit_code: u8,
}

impl Settings {
    /// Reads everything that decides what is found. Nothing is begun if anything of it is wrong.
    pub(crate) fn load(
        roots: &[&Path],
        detection: &DetectionArgs,
        no_local: bool,
    ) -> Result<Self, Failure> {
        let config = Config::find(detection.config.as_deref(), roots, no_local)?;
        let mut rules = base_rules(config.as_ref())?;
        rules = with_files(rules, &detection.rules)?;
        let scan = config.as_ref().map(|config| &config.scan);
        let known = |ids: &[String]| known_rules(&rules, ids);
        // Those of the configuration, and those of the command line.
        let both =
            |words: fn(&ScanTable) -> &[Spanned<String>], given: &[String], is_rule: bool| {
                let mut all = match &config {
                    Some(config) if is_rule => config.checked(words(&config.scan), known)?,
                    Some(config) => config.checked(words(&config.scan), patterns)?,
                    None => Vec::new(),
                };
                all.extend_from_slice(given);
                Ok::<_, Failure>(all)
            };
        let disabled = known(&both(|scan| &scan.disable_rules, &detection.disable_rule, true)?)?;
        let only = known(&both(|scan| &scan.only_rules, &detection.only_rule, true)?)?;
        let filter = Filter {
            exclude: both(|scan| &scan.exclude, &detection.exclude, false)?,
            include: both(|scan| &scan.include, &detection.include, false)?,
            max_file_size: detection
                .max_file_size
                .or_else(|| scan.and_then(|scan| scan.max_file_size.as_ref()).map(|size| size.0)),
        };
        patterns(&filter.exclude)?;
        patterns(&filter.include)?;
        if !only.is_empty() {
            rules = rules.only(&only);
        }
        let rules = rules.without(&disabled);
        Ok(Self { rules, filter, config })
    }

    pub(crate) fn engine(&self) -> Engine {
        let options = Options { report_silenced: true, ..Options::default() };
        Engine::new(self.rules.clone(), options)
    }

    /// Says what was found beside the target, and what in its files is worth telling. To whoever wants
    /// quiet, only what takes something away: who planted a secret can plant such a file.
    pub(crate) fn say(&self, detection: &DetectionArgs, report: &ReportArgs, is_quiet: bool) {
        if let Some(config) = self.config.as_ref().filter(|config| config.is_local()) {
            let Effect { words, limits } = config.effect(&self.rules, detection, report);
            if limits || !is_quiet {
                say!("using {}: {words}", shown(&config.path));
            }
        }
        for note in self.rules.notes().iter().filter(|_| !is_quiet) {
            say!("{note}");
        }
        if self.rules.is_empty() {
            say!("there are no rules, so nothing can be found");
        }
    }
}

impl ReportSettings {
    pub(crate) fn of(config: Option<&Config>, args: &ReportArgs) -> Self {
        let scan = config.map(|config| &config.scan);
        let severities = [Severity::Low, Severity::Medium, Severity::High, Severity::Critical];
        let confidences = [Confidence::Low, Confidence::Medium, Confidence::High];
        let severity = args.severity.as_deref();
        let severity =
            severity.and_then(|name| severities.into_iter().find(|s| s.as_str() == name));
        let confidence = args.confidence.as_deref();
        let confidence =
            confidence.and_then(|name| confidences.into_iter().find(|c| c.as_str() == name));
        // A path in a configuration is relative to it.
        let baseline = config.and_then(|config| {
            let path = config.scan.baseline.as_ref()?;
            Some(config.path.parent().unwrap_or(Path::new("")).join(path))
        });
        let levels_of = config.filter(|Config { scan, .. }| {
            (severity.is_none() && scan.severity.is_some())
                || (confidence.is_none() && scan.confidence.is_some())
        });
        Self {
            levels_of: levels_of.map(|config| config.path.clone()),
            severity: severity.or(scan.and_then(|scan| scan.severity)).unwrap_or(Severity::Low),
            confidence: confidence
                .or(scan.and_then(|scan| scan.confidence))
                .unwrap_or(Confidence::Low),
            is_baseline_of_config: args.baseline.is_none() && baseline.is_some(),
            baseline: args.baseline.clone().or(baseline),
            exit_code: args.exit_code.or(scan.and_then(|scan| scan.exit_code)).unwrap_or(1),
        }
    }
}

/// The rules below those that the user adds.
fn base_rules(config: Option<&Config>) -> Result<RuleSet, Failure> {
    let Some(config) = config else { return Ok(RuleSet::builtin()) };
    let base = if config.is_of_gitleaks() { RuleSet::empty() } else { RuleSet::builtin() };
    add(base, &config.path, &config.text, config.origin)
}

/// The rules that a scan of the current directory would use.
pub(crate) fn rules_here(args: &RuleSourceArgs) -> Result<RuleSet, Failure> {
    let RuleSourceArgs { config, rules, no_local_config } = args;
    let (config, rules) = (config.clone(), rules.clone());
    let detection = DetectionArgs { config, rules, ..DetectionArgs::default() };
    let here = std::env::current_dir().map_err(|error| Failure::file(Path::new("."), &error))?;
    Ok(Settings::load(&[&here], &detection, *no_local_config)?.rules)
}

fn with_files(rules: RuleSet, files: &[PathBuf]) -> Result<RuleSet, Failure> {
    files.iter().try_fold(rules, |rules, file| {
        let text = std::fs::read_to_string(file).map_err(|error| Failure::file(file, &error))?;
        let rules = add(rules, file, &text, Origin::User)?;
        // It would do nothing, and somebody would take what it leaves out for left out.
        if let Ok(ScanOnly { scan: Some(scan) }) = toml::from_str(&text) {
            let (line, column) = line_and_column(&text, scan.span().start);
            return Err(Failure::new(format!(
                "{}:{line}:{column}: `[scan]` is for a configuration, and --rules takes rules alone: \
                 give the file with --config, or leave the table out",
                shown(file)
            )));
        }
        Ok(rules)
    })
}

/// Puts a file on top, with the files that it extends: each named from the directory of the one that
/// names it, or from where the command runs, as gitleaks does it.
pub(crate) fn add(
    rules: RuleSet,
    path: &Path,
    text: &str,
    origin: Origin,
) -> Result<RuleSet, Failure> {
    let name = shown(path);
    let mut paths = HashMap::from([(name.clone(), path.to_owned())]);
    let mut resolve = |file: &str, base: &str| {
        let dir = paths.get(file).and_then(|path| path.parent()).unwrap_or(Path::new(""));
        let beside = dir.join(base);
        let path = if beside.exists() { beside } else { PathBuf::from(base) };
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{base}: {error}"))?;
        let name = shown(&path);
        paths.insert(name.clone(), path);
        Ok((name, text))
    };
    let rules = rules.with_loaded(&name, text, origin, &mut resolve);
    rules.map_err(|error| {
        let hint = match &error.fault {
            gossip_engine::RuleFault::UnknownField { field } => field_hint(field),
            _ => String::new(),
        };
        Failure::new(format!("{error}{hint}"))
    })
}

/// A file in which only that matters.
#[derive(Deserialize)]
struct ScanOnly {
    scan: Option<Spanned<serde::de::IgnoredAny>>,
}

/// Fields of rule files and of `[scan]`.
const FIELDS: &[&str] = &[
    "title",
    "description",
    "minVersion",
    "scan",
    "extend",
    "rules",
    "allowlist",
    "allowlists",
    "useDefault",
    "disabledRules",
    "path",
    "url",
    "id",
    "regex",
    "assign",
    "detect",
    "keywords",
    "entropy",
    "surprise",
    "secretGroup",
    "tags",
    "skipReport",
    "required",
    "severity",
    "confidence",
    "checksum",
    "standalone",
    "generic",
    "placeholders",
    "examples",
    "counterexamples",
    "withinLines",
    "withinColumns",
    "condition",
    "commits",
    "paths",
    "regexTarget",
    "regexes",
    "stopwords",
    "targetRules",
];
const SCAN_FIELDS: &[&str] = &[
    "exclude",
    "include",
    "max-file-size",
    "disable-rules",
    "only-rules",
    "severity",
    "confidence",
    "baseline",
    "exit-code",
];

/// The field that a parser does not know.
fn unknown_field(message: &str) -> Option<&str> {
    Some(message.strip_prefix("unknown field `")?.split_once('`')?.0)
}

/// What is to be said of a field that there is not: where it belongs, or which it is like.
fn field_hint(field: &str) -> String {
    if SCAN_FIELDS.contains(&field) {
        return format!("; `{field}` belongs under `[scan]` of a configuration");
    }
    if FIELDS.contains(&field) {
        return format!("; `{field}` belongs elsewhere");
    }
    let likeness = |known: &&&str| strsim::jaro_winkler(known, field);
    let all = FIELDS.iter().chain(SCAN_FIELDS);
    match all.max_by(|a, b| likeness(a).total_cmp(&likeness(b))) {
        Some(nearest) if likeness(&nearest) > 0.8 => format!("; is it `{nearest}`?"),
        _ => String::new(),
    }
}

/// The ids of rules that there are: as given, or those that gitleaks calls so.
pub(crate) fn known_rules(rules: &RuleSet, ids: &[String]) -> Result<Vec<String>, Failure> {
    let mut known = Vec::new();
    for id in ids {
        match rules_for_gitleaks_id(id) {
            _ if rules.get(id).is_some() => known.push(id.clone()),
            Some(ours) if !ours.is_empty() => known.extend(ours.iter().map(|id| (*id).to_owned())),
            _ => return Err(Failure::new(no_such_rule(rules, id))),
        }
    }
    Ok(known)
}

/// Names the rule that is most like the one that there is not.
pub(crate) fn no_such_rule(rules: &RuleSet, id: &str) -> String {
    let likeness = |rule: &&gossip_engine::Rule| strsim::jaro_winkler(rule.id(), id);
    let nearest = rules.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest.filter(|rule| likeness(rule) > 0.8) {
        Some(rule) => format!("there is no rule `{id}`; is it `{}`?", rule.id()),
        None => format!("there is no rule `{id}`; `gossip rules list` shows those that there are"),
    }
}

/// From one.
fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
