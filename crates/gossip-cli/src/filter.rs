//! `--exclude`, `--include` and `--max-file-size`: entries that a listing has and a scan leaves out.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gossip_contracts::connector::{
    Classifier, Connector, ConnectorError, ContentKind, NewRun, Page, SkipReason, Wrapper,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::failure::Failure;

/// What is left out of a scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) exclude: Vec<String>,
    pub(crate) include: Vec<String>,
    pub(crate) max_file_size: Option<u64>,
}

impl Filter {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Patterns in gitignore's syntax, relative to what is scanned.
pub(crate) fn patterns(patterns: &[String]) -> Result<Gitignore, Failure> {
    let mut builder = GitignoreBuilder::new("");
    for pattern in patterns {
        let added = builder.add_line(None, pattern);
        added.map_err(|error| Failure::new(format!("`{pattern}` is no pattern: {error}")))?;
    }
    builder.build().map_err(|error| Failure::new(error.to_string()))
}

/// Whether one of the patterns matches the path, or a directory that it is in.
pub(crate) fn matches(patterns: &Gitignore, path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    path.is_relative() && patterns.matched_path_or_any_parents(path, false).is_ignore()
}

/// A source without what a filter leaves out.
pub(crate) struct Filtered<'s> {
    source: &'s dyn Connector,
    exclude: Gitignore,
    include: Option<Gitignore>,
    max_file_size: u64,
    classifier: FilteredClassifier<'s>,
}

/// A source's own, for a policy of its own: what is left out is as good as not scanned.
struct FilteredClassifier<'s> {
    classifier: &'s dyn Classifier,
    filter: Filter,
}

impl<'s> Filtered<'s> {
    pub(crate) fn new(source: &'s dyn Connector, filter: &Filter) -> Result<Self, Failure> {
        let include = (!filter.include.is_empty()).then(|| patterns(&filter.include));
        Ok(Self {
            source,
            exclude: patterns(&filter.exclude)?,
            include: include.transpose()?,
            max_file_size: filter.max_file_size.unwrap_or(u64::MAX),
            classifier: FilteredClassifier {
                classifier: source.classifier(),
                filter: filter.clone(),
            },
        })
    }

    /// One that has several paths is listed once for those that are left out, and once for others.
    fn leaves_out(&self, key: &[u8], size: u64) -> Option<SkipReason> {
        let path = self.source.path_of(key);
        if self.leaves_path_out(path.as_deref().unwrap_or(key)) {
            return Some(SkipReason::Excluded);
        }
        (size > self.max_file_size).then_some(SkipReason::TooLarge)
    }

    fn leaves_path_out(&self, path: &[u8]) -> bool {
        let wanted = self.include.as_ref().is_none_or(|include| matches(include, path));
        !wanted || matches(&self.exclude, path)
    }
}

impl Wrapper for Filtered<'_> {
    fn inner(&self) -> &dyn Connector {
        self.source
    }

    fn classifier(&self) -> &dyn Classifier {
        &self.classifier
    }

    fn begin(&self, run: NewRun<'_>) -> Result<(), ConnectorError> {
        let is_left_out = &|path: &[u8]| self.leaves_path_out(path) || (run.is_left_out)(path);
        self.source.begin(NewRun { is_left_out, ..run })
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        let mut whole = Page::new();
        page.clear();
        self.source.list(range, cursor, max_entries, &mut whole)?;
        for mut entry in whole.iter() {
            // Also of what the source does not offer: nobody misses what they left out. But what is
            // missed because of too many paths may be at any of them.
            if entry.skip != Some(SkipReason::ManyPaths) {
                entry.skip = self.leaves_out(entry.key, entry.size).or(entry.skip);
            }
            page.push(entry);
        }
        page.finish(whole.is_last(), whole.token().map(<[u8]>::to_vec));
        Ok(())
    }
}

impl Classifier for FilteredClassifier<'_> {
    fn kind(&self, key: &[u8], head: &[u8]) -> ContentKind {
        self.classifier.kind(key, head)
    }
}

impl CanonicalBytes for FilteredClassifier<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(self.classifier);
        let Filter { exclude, include, max_file_size } = &self.filter;
        for patterns in [exclude, include] {
            hasher.value(&(patterns.len() as u32));
            patterns.iter().for_each(|pattern| {
                hasher.value(pattern.as_str());
            });
        }
        hasher.value(max_file_size);
    }
}
