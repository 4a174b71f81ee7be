//! What a configuration does, in words: it may have come with what is scanned, and then nobody who
//! scans has read it.

use gossip_engine::{Rule, RuleSet};
use toml::Spanned;

use super::{Config, ScanTable};
use crate::args::{DetectionArgs, ReportArgs};
use crate::output::counted;
use crate::say::{say, shown};

impl Config {
    /// What it does to a scan that has `rules` with it, in words.
    pub(crate) fn effect(
        &self,
        rules: &RuleSet,
        detection: &DetectionArgs,
        report: &ReportArgs,
    ) -> Effect {
        let (words, mut limits) = effect_on_rules(rules);
        let mut parts: Vec<String> = words.into_iter().collect();
        let limiting = [allowed(rules), self.effect_on_listing(detection)];
        let limiting: Vec<String> = limiting.into_iter().flatten().collect();
        let of_report = self.effect_on_report(report);
        limits |= !limiting.is_empty() || !of_report.is_empty();
        parts.extend(limiting);
        parts.extend(of_report);
        if parts.is_empty() {
            parts.push("the built-in rules, all of them".to_owned());
        }
        Effect { words: parts.join("; "), limits }
    }

    /// What it leaves out of a scan, unless the command line says otherwise.
    fn effect_on_listing(&self, args: &DetectionArgs) -> Vec<String> {
        let ScanTable { exclude, include, max_file_size, .. } = &self.scan;
        let words = |words: &[Spanned<String>]| few(words.iter().map(|word| word.get_ref()));
        let mut parts = Vec::new();
        parts.extend(words(exclude).map(|patterns| format!("leaves out {patterns}")));
        parts.extend(words(include).map(|patterns| format!("scans only {patterns}")));
        let size = max_file_size.as_ref().filter(|_| args.max_file_size.is_none());
        parts.extend(
            size.map(|size| format!("leaves out files above {}", indicatif::HumanBytes(size.0))),
        );
        parts
    }

    /// What it does to a report, unless the command line says otherwise.
    fn effect_on_report(&self, args: &ReportArgs) -> Vec<String> {
        let ScanTable { severity, confidence, baseline, exit_code, .. } = &self.scan;
        let severity = severity.filter(|_| args.severity.is_none());
        let confidence = confidence.filter(|_| args.confidence.is_none());
        let baseline = baseline.as_ref().filter(|_| args.baseline.is_none());
        let exit_code = exit_code.filter(|_| args.exit_code.is_none());
        let parts = [
            severity.map(|level| format!("reports nothing below {level} severity")),
            confidence.map(|level| format!("reports nothing below {level} confidence")),
            baseline.map(|path| format!("reports nothing that {} knows", shown(path))),
            exit_code.map(|code| format!("exits with {code} when secrets are found")),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Says what a report goes by that nobody gave on the command line.
    pub(crate) fn say_effect_on_report(&self, args: &ReportArgs) {
        let parts = self.effect_on_report(args);
        if self.is_local() && !parts.is_empty() {
            say!("using {}: {}", shown(&self.path), parts.join("; "));
        }
    }
}

/// What a configuration does, in words.
pub(crate) struct Effect {
    pub(crate) words: String,
    /// It takes something away: rules, files, findings, or the exit code.
    pub(super) limits: bool,
}

/// What became of the built-in rules, if anything, and whether they may find less.
fn effect_on_rules(rules: &RuleSet) -> (Option<String>, bool) {
    let builtin = RuleSet::builtin();
    if !rules.has_builtin() {
        let rules = counted(rules.len() as u64, "rule");
        return (Some(format!("{rules} in place of the {} built-in ones", builtin.len())), true);
    }
    let added = rules.iter().filter(|rule| builtin.get(rule.id()).is_none()).count() as u64;
    let gone = builtin.iter().filter(|rule| rules.get(rule.id()).is_none()).count() as u64;
    let added = (added > 0).then(|| format!("{} added", counted(added, "rule")));
    let disabled = (gone > 0).then(|| format!("{} disabled", counted(gone, "built-in rule")));
    // One that was not touched is the very same.
    let is_changed =
        |rule: &Rule| builtin.get(rule.id()).is_some_and(|original| !std::ptr::eq(original, rule));
    let changed = rules.iter().filter(|rule| is_changed(rule)).count() as u64;
    let altered = (changed > 0).then(|| format!("{} changed", counted(changed, "built-in rule")));
    let parts: Vec<String> = added.into_iter().chain(disabled).chain(altered).collect();
    ((!parts.is_empty()).then(|| parts.join(", ")), gone + changed > 0)
}

/// What the allow-lists that came with the target let pass.
fn allowed(rules: &RuleSet) -> Vec<String> {
    let lists = rules.local_allowlists().count() as u64;
    let paths = few(rules.local_allowlists().flatten());
    let of_paths = paths.map_or(String::new(), |paths| format!(", of paths {paths}"));
    (lists > 0).then(|| format!("{}{of_paths}", counted(lists, "allow-list"))).into_iter().collect()
}

/// The first of them, and how many more there are; `None` if there are none.
fn few(words: impl Iterator<Item = impl AsRef<str>>) -> Option<String> {
    const SHOWN: usize = 3;
    let words: Vec<String> = words.map(|word| format!("`{}`", word.as_ref())).collect();
    let more = words.len().saturating_sub(SHOWN);
    let shown = words[..words.len() - more].join(", ");
    match more {
        0 => (!words.is_empty()).then_some(shown),
        more => Some(format!("{shown} and {more} more")),
    }
}
