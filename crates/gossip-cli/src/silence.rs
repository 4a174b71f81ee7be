//! What is not reported, and why: ignore files, baselines and local configurations, with counts.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use gossip_engine::rules_for_gitleaks_id;
use gossip_runtime::{ReportedFinding, Silence};
use ignore::gitignore::Gitignore;
use serde::{Deserialize, Serialize};

use crate::baseline;
use crate::config::{Config, ReportSettings};
use crate::failure::Failure;
use crate::filter::{matches, patterns};
use crate::places::Places;
use crate::say::{say, shown};

/// The names of ignore files, in the directories in which configurations are looked for.
const NAMES: [&str; 2] = [".gossipignore", ".gitleaksignore"];

/// A rule, and the commit where one is named.
type RuleAndCommit = (String, Option<String>);

/// A file that names findings.
struct IgnoreFile {
    path: PathBuf,
    fingerprints: BTreeSet<String>,
    /// By path from the repository's root, and line.
    places: HashMap<(Vec<u8>, u64), Vec<RuleAndCommit>>,
    paths: Gitignore,
}

impl IgnoreFile {
    /// One entry a line: a fingerprint, gitleaks' `path:rule:line` or `commit:path:rule:line`, or a
    /// pattern of paths in gitignore's syntax. `#` begins a comment.
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(path).map_err(|error| Failure::file(path, &error))?;
        let mut fingerprints = BTreeSet::new();
        let mut places: HashMap<_, Vec<_>> = HashMap::new();
        let mut globs = Vec::new();
        for (bytes, number) in text.split(|byte| *byte == b'\n').zip(1..) {
            let fault = |fault: &str| Failure::new(format!("{}:{number}: {fault}", shown(path)));
            let line = std::str::from_utf8(bytes).map_err(|_| fault("this is not UTF-8"))?.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if baseline::is_fingerprint(line) {
                fingerprints.insert(line.to_owned());
            } else if let Some(place) = gitleaks_place(line) {
                let Place { path, rule, line, commit } = place;
                places.entry((path.as_bytes().to_vec(), line)).or_default().push((rule, commit));
            } else {
                let glob = line.to_owned();
                patterns(std::slice::from_ref(&glob)).map_err(|error| fault(&error.to_string()))?;
                globs.push(glob);
            }
        }
        Ok(Self { path: path.to_owned(), fingerprints, places, paths: patterns(&globs)? })
    }

    /// Whether it names this version, whatever its paths are.
    fn names(&self, found: &ReportedFinding, path: &[u8], fingerprint: &str) -> bool {
        self.fingerprints.contains(fingerprint)
            || found.provenance.as_ref().is_some_and(|from| {
                let is_commit = |commit: Option<&String>| commit == Some(&from.commit);
                self.names_place(found, path, is_commit)
            })
    }

    /// Whether it names this one of the version's paths.
    fn names_path(&self, found: &ReportedFinding, path: &[u8]) -> bool {
        self.names_place(found, path, |commit| commit.is_none()) || matches(&self.paths, path)
    }

    fn names_place(
        &self,
        found: &ReportedFinding,
        path: &[u8],
        is_commit: impl Fn(Option<&String>) -> bool,
    ) -> bool {
        let is_rule = |rule: &str| {
            rule == found.rule
                || rules_for_gitleaks_id(rule)
                    .is_some_and(|ours| ours.contains(&found.rule.as_str()))
        };
        let entries = self.places.get(&(path.to_vec(), found.line));
        let mut entries = entries.map(Vec::as_slice).unwrap_or_default().iter();
        entries.any(|(rule, commit)| is_rule(rule) && is_commit(commit.as_ref()))
    }
}

struct Place {
    path: String,
    rule: String,
    line: u64,
    commit: Option<String>,
}

/// `path:rule:line` or `commit:path:rule:line`.
fn gitleaks_place(text: &str) -> Option<Place> {
    let (rest, line) = text.rsplit_once(':')?;
    let line = line.parse().ok()?;
    let (path, rule) = rest.rsplit_once(':')?;
    let (commit, path) = match path.split_once(':') {
        Some((commit, path)) if commit.len() == 40 => (Some(commit.to_owned()), path),
        _ => (None, path),
    };
    Some(Place { path: path.to_owned(), rule: rule.to_owned(), line, commit })
}

/// How many findings were not reported, and why.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Silenced {
    by_ignore_files: u64,
    by_baseline: u64,
    by_local_config: u64,
    /// Of a lower severity or confidence than was asked for.
    below: u64,
    /// They were there before what `--staged` or `--diff` scans.
    before: u64,
    by_comments: u64,
}

impl Silenced {
    /// Those that a run counts among its findings.
    pub(crate) fn of_findings(&self) -> u64 {
        let Self { by_ignore_files, by_baseline, below, .. } = *self;
        by_ignore_files.saturating_add(by_baseline).saturating_add(below)
    }

    /// Those that it does not.
    pub(crate) fn by_local_config(&self) -> u64 {
        self.by_local_config
    }

    /// Those that it does not, as they are not new.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Those that it does not, as a comment in their line allows them.
    pub(crate) fn by_comments(&self) -> u64 {
        self.by_comments
    }
}

/// Why a version is not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Config,
    Comment,
    Before,
    Baseline,
    Level,
    /// The ignore file of this number.
    File(u32),
}

impl By {
    const WITHOUT_FILES: [Self; 5] =
        [Self::Config, Self::Comment, Self::Before, Self::Baseline, Self::Level];

    /// As a number, for whoever asks again later.
    pub(crate) fn to_note(self) -> u32 {
        match self {
            Self::File(file) => Self::WITHOUT_FILES.len() as u32 + file,
            by => by.place() as u32,
        }
    }

    pub(crate) fn from_note(note: u32) -> Self {
        let file = note.saturating_sub(Self::WITHOUT_FILES.len() as u32);
        Self::WITHOUT_FILES.get(note as usize).copied().unwrap_or(Self::File(file))
    }

    fn place(self) -> usize {
        Self::WITHOUT_FILES.iter().position(|by| *by == self).unwrap_or(0)
    }
}

/// Decides what is not reported, version by version, and counts findings of which no version is.
pub(crate) struct Silencer {
    files: Vec<(IgnoreFile, u64)>,
    baseline: Option<(PathBuf, BTreeSet<String>, u64)>,
    /// A configuration that came with the target names it.
    is_baseline_local: bool,
    /// The local configuration, and what it allows.
    config: Option<PathBuf>,
    by_config: u64,
    severity: gossip_engine::Severity,
    confidence: gossip_engine::Confidence,
    levels_of: Option<PathBuf>,
    below: u64,
    before: u64,
    by_comments: u64,
}

impl Silencer {
    /// Reads every file first: nothing is reported by half of them.
    pub(crate) fn load(
        places: &Places,
        settings: &ReportSettings,
        config: Option<&Config>,
        no_local: bool,
    ) -> Result<Self, Failure> {
        let directories = if no_local { Vec::new() } else { places.directories() };
        let found = directories.iter().flat_map(|dir| NAMES.map(|name| dir.join(name)));
        let files = found.filter(|path| path.is_file());
        let files = files.map(|path| IgnoreFile::read(&path).map(|file| (file, 0)));
        let baseline = settings.baseline.as_ref();
        let baseline =
            baseline.map(|path| baseline::read(path).map(|known| (path.clone(), known, 0)));
        let config = config.filter(|config| config.is_local());
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
            baseline: baseline.transpose()?,
            is_baseline_local: config.is_some() && settings.is_baseline_of_config,
            config: config.map(|config| config.path().to_owned()),
            by_config: 0,
            severity: settings.severity,
            confidence: settings.confidence,
            levels_of: settings.levels_of.clone(),
            below: 0,
            before: 0,
            by_comments: 0,
        })
    }

    /// Which path of a version is reported: 0 is its own, and those after it are the other ones. Or why none
    /// is.
    pub(crate) fn judge(
        &self,
        found: &ReportedFinding,
        places: &Places,
        fingerprint: &str,
    ) -> Result<u32, By> {
        match found.silenced {
            None => {}
            Some(Silence::Before) => return Err(By::Before),
            Some(Silence::Comment) => return Err(By::Comment),
            Some(_) => return Err(By::Config),
        }
        let path = self.first_unnamed(found, places, fingerprint)?;
        if self.baseline.as_ref().is_some_and(|(_, known, _)| known.contains(fingerprint)) {
            return Err(By::Baseline);
        }
        let is_below = rank(&found.severity) < self.severity as usize
            || rank(&found.confidence) < self.confidence as usize;
        if is_below { Err(By::Level) } else { Ok(path) }
    }

    /// Counts a finding that is not reported.
    pub(crate) fn count(&mut self, by: By) {
        let count = match by {
            By::Config => &mut self.by_config,
            By::Comment => &mut self.by_comments,
            By::Before => &mut self.before,
            By::Level => &mut self.below,
            By::Baseline => match &mut self.baseline {
                Some((_, _, count)) => count,
                None => return,
            },
            By::File(file) => match self.files.get_mut(file as usize) {
                Some((_, count)) => count,
                None => return,
            },
        };
        *count += 1;
    }

    /// The first of a version's paths that no ignore file names; or, if one names the version, or
    /// together they name all paths, the one that names the first.
    fn first_unnamed(
        &self,
        found: &ReportedFinding,
        places: &Places,
        fingerprint: &str,
    ) -> Result<u32, By> {
        let first = places.in_repository(&found.path);
        let by = self.files.iter().position(|(file, _)| {
            file.names(found, &first, fingerprint) || file.names_path(found, &first)
        });
        let Some(by) = by else { return Ok(0) };
        if !self.files.iter().any(|(file, _)| file.names(found, &first, fingerprint)) {
            let is_named = |path: &Vec<u8>| {
                let path = places.in_repository(path);
                self.files.iter().any(|(file, _)| file.names_path(found, &path))
            };
            let from = found.provenance.as_ref();
            let others = from.map(|from| &from.other_paths[..]).unwrap_or_default();
            if let Some((_, at)) = others.iter().zip(1..).find(|(path, _)| !is_named(path)) {
                return Ok(at);
            }
            // Of paths that are not kept nobody can say.
            if from.is_some_and(|from| from.more_paths > 0) {
                return Ok(0);
            }
        }
        Err(By::File(by as u32))
    }

    pub(crate) fn counts(&self) -> Silenced {
        Silenced {
            by_ignore_files: self.files.iter().map(|(_, count)| count).sum(),
            by_baseline: self.baseline.as_ref().map_or(0, |(_, _, count)| *count),
            by_local_config: self.by_config,
            below: self.below,
            before: self.before,
            by_comments: self.by_comments,
        }
    }

    /// Says what was not reported, with counts. To whoever wants quiet, only what was not because of
    /// files beside the target.
    pub(crate) fn say(&self, is_quiet: bool) {
        let mut parts = Vec::new();
        let mut part = |count: u64, is_local: bool, by: String| {
            if count > 0 && (is_local || !is_quiet) {
                parts.push(format!("{count} by {by}"));
            }
        };
        let config = self.config.as_deref();
        let is_of_config = |path: Option<&Path>| path.is_some() && path == config;
        let name = config.map_or("a local configuration".to_owned(), shown);
        part(self.by_config, true, format!("allow-lists of {name}"));
        part(self.by_comments, true, "comments in their lines".to_owned());
        for (file, count) in &self.files {
            part(*count, true, shown(&file.path));
        }
        if let Some((path, _, count)) = &self.baseline {
            part(*count, self.is_baseline_local, format!("the baseline {}", shown(path)));
        }
        let levels_of = self.levels_of.as_deref();
        let levels = levels_of.map_or("--severity or --confidence".to_owned(), |path| {
            format!("the severity or confidence of {}", shown(path))
        });
        part(self.below, is_of_config(levels_of), levels);
        if !parts.is_empty() {
            say!("not reported: {}", parts.join(", "));
        }
        if self.before > 0 && !is_quiet {
            let (were, them) = if self.before == 1 { ("was", "it") } else { ("were", "them") };
            say!("{} {were} there before; `gossip scan` shows {them}", self.before);
        }
    }
}

/// Levels in their order, as the engine has them.
fn rank(level: &str) -> usize {
    ["low", "medium", "high", "critical"].iter().position(|name| *name == level).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_gitleaks_are_told_from_patterns() {
        let place = gitleaks_place("src/a.env:github-pat:3").unwrap();
        assert_eq!(
            (place.path.as_str(), place.rule.as_str(), place.line),
            ("src/a.env", "github-pat", 3)
        );
        assert_eq!(place.commit, None);
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let place = gitleaks_place(&format!("{commit}:a b.env:jwt:12")).unwrap();
        assert_eq!((place.path.as_str(), place.commit.as_deref()), ("a b.env", Some(commit)));
        for text in ["src/", "*.env", "a:b", "a:b:c"] {
            assert!(gitleaks_place(text).is_none(), "{text}");
        }
    }

    #[test]
    fn reasons_come_back_from_their_numbers() {
        for by in By::WITHOUT_FILES.into_iter().chain([By::File(0), By::File(7)]) {
            assert_eq!(By::from_note(by.to_note()), by);
        }
    }

    #[test]
    fn ranks_are_those_of_the_engine() {
        use gossip_engine::{Confidence, Severity};
        for level in [Severity::Low, Severity::Medium, Severity::High, Severity::Critical] {
            assert_eq!(rank(level.as_str()), level as usize);
        }
        for level in [Confidence::Low, Confidence::Medium, Confidence::High] {
            assert_eq!(rank(level.as_str()), level as usize);
        }
    }
}
