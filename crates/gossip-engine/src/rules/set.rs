//! Sets of rules, and how a file goes on top of one.

use std::sync::Arc;

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

use super::build::Builder;
use super::gitleaks_ids::rules_for_gitleaks_id;
use super::read::{Extended, RuleFile, read};
use super::schema::RuleSchema;
use super::{Allowlist, Rule, RuleFault, RuleFileError, RuleNote, Syntax, builtin};
use crate::limits::MAX_RULES;

/// How many files of a chain are read behind the first, as in gitleaks.
const CHAIN_MAX: usize = 2;

/// Rules and the allow-lists that hold for all of them.
///
/// ```
/// use gossip_engine::{Origin, RuleSet};
///
/// let rules = RuleSet::builtin().with_toml("mine.toml", r#"
///     [extend]
///     disabledRules = ["generic-assignment"]
///
///     [[rules]]
///     id = "acme-token"
///     description = "ACME deploy token"
///     regex = '''\bacme_[a-z0-9]{32}\b'''
/// "#, Origin::User)?;
/// assert!(rules.get("acme-token").is_some());
/// assert!(rules.get("generic-assignment").is_none());
/// # Ok::<(), gossip_engine::RuleFileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    /// With the name of the file that each is from.
    allowlists: Vec<(Arc<Allowlist>, Arc<str>)>,
    notes: Vec<RuleNote>,
    has_builtin: bool,
}

/// Where a rule file comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Whoever scans chose it.
    User,
    /// It came with the scanned tree: what its allow-lists let pass is reported as silenced if
    /// [`Options::report_silenced`](crate::Options) asks for it.
    Target,
}

/// Finds the file that another extends: its name for errors, and its text, or why not.
type Resolve<'r> = dyn FnMut(&str, &str) -> Result<(String, String), String> + 'r;

impl RuleSet {
    /// The rules that come with gossip.
    #[must_use]
    pub fn builtin() -> Self {
        Self { has_builtin: true, ..builtin::rules() }
    }

    /// Whether it stands on the rules that come with gossip; some of them may be disabled.
    #[must_use]
    pub fn has_builtin(&self) -> bool {
        self.has_builtin
    }

    /// Whether its rules are those that come with gossip, all of them and as they come.
    pub(crate) fn are_builtin(&self) -> bool {
        if !self.has_builtin {
            return false;
        }
        let builtin = builtin::rules().rules;
        let is_same = |(one, other): (&Arc<Rule>, &Arc<Rule>)| Arc::ptr_eq(one, other);
        self.rules.len() == builtin.len() && self.rules.iter().zip(&builtin).all(is_same)
    }

    /// No rules.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The rules of a file by itself; errors call it `name`. With `extend.useDefault` they go on top
    /// of the built-in ones.
    ///
    /// # Errors
    /// If anything in the file is not understood, or it extends another.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, RuleFileError> {
        Self::load(name, text, Origin::User, &mut not_found)
    }

    /// The rules of a file by itself, as [`from_toml`](Self::from_toml), with those of the files
    /// that it extends: `resolve` is given the name of a file and what its `extend.path` says.
    ///
    /// # Errors
    /// If anything in one of the files is not understood.
    pub fn load(
        name: &str,
        text: &str,
        origin: Origin,
        resolve: &mut Resolve<'_>,
    ) -> Result<Self, RuleFileError> {
        let set = Self::empty().with_chain(name, text, origin, resolve, 0)?;
        set.check()?;
        Ok(set)
    }

    /// This set with a file on top, which extends no other: what it says of a rule that there is
    /// adjusts that, as in gitleaks; others are added, and those that it disables are gone.
    ///
    /// # Errors
    /// If anything in the file is not understood.
    pub fn with_toml(self, name: &str, text: &str, origin: Origin) -> Result<Self, RuleFileError> {
        self.with_loaded(name, text, origin, &mut not_found)
    }

    /// As [`with_toml`](Self::with_toml), for a file that may extend others.
    ///
    /// # Errors
    /// If anything in one of the files is not understood.
    pub fn with_loaded(
        self,
        name: &str,
        text: &str,
        origin: Origin,
        resolve: &mut Resolve<'_>,
    ) -> Result<Self, RuleFileError> {
        let set = self.with_chain(name, text, origin, resolve, 0)?;
        set.check()?;
        Ok(set)
    }

    /// Puts what a file extends, and then the file, on top.
    fn with_chain(
        self,
        name: &str,
        text: &str,
        origin: Origin,
        resolve: &mut Resolve<'_>,
        depth: usize,
    ) -> Result<Self, RuleFileError> {
        let mut file = read(name, text, Syntax::Go, origin == Origin::Target)?;
        let base = match file.extends.take() {
            None => self,
            Some((_, at)) if depth == CHAIN_MAX => {
                file.notes.push(RuleNote::ChainTooLong { file: name.to_owned(), at });
                self
            }
            Some((Extended::Builtin, _)) => self.on_builtin(),
            Some((Extended::File(path), at)) => {
                let (base, text) = resolve(name, &path).map_err(|message| RuleFileError {
                    file: name.to_owned(),
                    at: Some(at),
                    rule: None,
                    fault: RuleFault::BaseNotRead { message },
                })?;
                self.with_chain(&base, &text, origin, resolve, depth + 1)?
            }
        };
        base.with(file, Syntax::Go)
    }

    /// The built-in rules that this set does not have go below it.
    fn on_builtin(self) -> Self {
        let mut set = Self::builtin();
        for rule in self.rules {
            set.put(rule);
        }
        set.allowlists.extend(self.allowlists);
        set.notes.extend(self.notes);
        set
    }

    /// This set with what a file says on top.
    pub(super) fn with(mut self, file: RuleFile, syntax: Syntax) -> Result<Self, RuleFileError> {
        let RuleFile { name, text, rules, allowlists, disabled, notes, .. } = file;
        let builder = Builder { name: &name, text: &text, syntax, rule: None };
        self.notes.extend(notes);
        for (id, at) in disabled {
            let ids = rules_for_gitleaks_id(&id).unwrap_or_default();
            let before = self.rules.len();
            self.rules.retain(|rule| rule.id() != id && !ids.contains(&rule.id()));
            if self.rules.len() == before {
                self.notes.push(RuleNote::NothingToDisable { file: name.clone(), at, id });
            }
        }
        for (schema, at) in rules {
            self.put_schema(&builder, schema, at)?;
        }
        let file: Arc<str> = name.as_str().into();
        self.allowlists.extend(allowlists.into_iter().map(|list| (list.into(), Arc::clone(&file))));
        if self.rules.len() > MAX_RULES {
            return Err(builder.error(None, RuleFault::TooManyRules { limit: MAX_RULES }));
        }
        Ok(self)
    }

    /// Adds a rule, or adjusts the one that there is; those of ours, if gitleaks calls them by that
    /// id.
    fn put_schema(
        &mut self,
        builder: &Builder<'_>,
        schema: RuleSchema,
        at: usize,
    ) -> Result<(), RuleFileError> {
        if let Some(base) = self.get(&schema.id) {
            let schema = schema.over(&base.schema);
            self.put(Arc::new(builder.rule(schema, at)?));
            return Ok(());
        }
        let may_be_ours = self.has_builtin && !schema.matches_something();
        let ours = rules_for_gitleaks_id(&schema.id).filter(|_| may_be_ours);
        let Some(ours) = ours else {
            self.put(Arc::new(builder.rule(schema, at)?));
            return Ok(());
        };
        let mut adjusted = false;
        for id in ours {
            if let Some(base) = self.get(id) {
                let schema = schema.clone().over(&base.schema);
                self.put(Arc::new(builder.rule(schema, at)?));
                adjusted = true;
            }
        }
        if !adjusted {
            let (file, id) = (builder.name.to_owned(), schema.id);
            let at = super::Location::of(builder.text, at);
            self.notes.push(RuleNote::NothingToAdjust { file, at, id });
        }
        Ok(())
    }

    fn put(&mut self, rule: Arc<Rule>) {
        match self.rules.iter_mut().find(|own| own.id() == rule.id()) {
            Some(own) => *own = rule,
            None => self.rules.push(rule),
        }
    }

    /// Refuses what points to rules that do not exist. Until a set is complete nobody can tell.
    fn check(&self) -> Result<(), RuleFileError> {
        for (list, file) in &self.allowlists {
            for id in &list.target_rules {
                let is_of_gitleaks = self.has_builtin && rules_for_gitleaks_id(id).is_some();
                if self.get(id).is_none() && !is_of_gitleaks {
                    return Err(RuleFileError {
                        file: file.as_ref().to_owned(),
                        at: Some(list.at),
                        rule: None,
                        fault: RuleFault::UnknownTarget { id: id.clone() },
                    });
                }
            }
        }
        for rule in self.iter() {
            if let Some(required) = rule.required.iter().find(|other| self.get(&other.id).is_none())
            {
                let fault = RuleFault::UnknownRequired { id: required.id.clone() };
                let (file, at) = rule.declared.clone();
                let rule = Some(rule.id().to_owned());
                return Err(RuleFileError { file, at: Some(at), rule, fault });
            }
        }
        Ok(())
    }

    /// This set without the rules of these ids.
    #[must_use]
    pub fn without(mut self, ids: &[String]) -> Self {
        self.rules.retain(|rule| !ids.iter().any(|id| id == rule.id()));
        self
    }

    /// Of this set only the rules of these ids, and those that they require.
    #[must_use]
    pub fn only(mut self, ids: &[String]) -> Self {
        let mut wanted: Vec<String> = ids.to_vec();
        for id in ids {
            let required = self.get(id).map(|rule| rule.required.as_slice()).unwrap_or_default();
            wanted.extend(required.iter().map(|required| required.id.clone()));
        }
        self.rules.retain(|rule| wanted.iter().any(|id| id == rule.id()));
        self
    }

    /// This set with rules that find what they find in every path, and in text without one: to try
    /// them by themselves. Those that look at paths only are as they were.
    #[must_use]
    pub fn in_every_path(mut self) -> Self {
        for rule in self.rules.iter_mut().filter(|rule| !rule.is_of_paths()) {
            if rule.path.is_some() {
                Arc::make_mut(rule).path = None;
            }
        }
        self
    }

    /// The allow-lists that came with the scanned tree, whether for all rules or for one: the
    /// patterns of their paths, which may be none.
    pub fn local_allowlists(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        let of_rules = self.rules.iter().flat_map(|rule| &rule.allowlists);
        let local = self.allowlists().chain(of_rules).filter(|list| list.is_local);
        local.map(Allowlist::path_patterns)
    }

    /// What the files of this set say that is worth telling.
    #[must_use]
    pub fn notes(&self) -> &[RuleNote] {
        &self.notes
    }

    /// The rule with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.iter().find(|rule| rule.id() == id)
    }

    /// All rules, in the order in which findings number them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Rule> {
        self.rules.iter().map(AsRef::as_ref)
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn rule(&self, index: usize) -> &Rule {
        &self.rules[index]
    }

    pub(crate) fn allowlists(&self) -> impl Iterator<Item = &Allowlist> {
        self.allowlists.iter().map(|(list, _)| list.as_ref())
    }

    /// Whether some rule requires another.
    pub(crate) fn has_required(&self) -> bool {
        self.rules.iter().any(|rule| !rule.required.is_empty())
    }

    /// Whether some rule compares columns of different lines. A scan that begins in the middle of a line
    /// does not know those of that line.
    #[must_use]
    pub fn compares_columns(&self) -> bool {
        let mut required = self.rules.iter().flat_map(|rule| &rule.required);
        required.any(|required| required.within_columns.is_some())
    }
}

fn not_found(_: &str, path: &str) -> Result<(String, String), String> {
    Err(format!("{path} is not read: give the file itself"))
}

/// Everything that a report may show of the set, so unlike fingerprints also severity, confidence
/// and the global allow-lists.
impl CanonicalBytes for RuleSet {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&(self.rules.len() as u32));
        for rule in &self.rules {
            hasher.value(&rule.fingerprint());
            hasher.value(&(rule.severity() as u8)).value(&(rule.confidence() as u8));
        }
        hasher.value(&(self.allowlists.len() as u32));
        for allowlist in self.allowlists() {
            hasher.value(allowlist);
        }
    }
}
