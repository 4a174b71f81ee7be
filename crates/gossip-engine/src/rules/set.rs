//! Sets of rules, and how one goes on top of another.

use std::sync::Arc;

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

use super::read::{Compile, read};
use super::{Allowlist, Location, Rule, RuleFault, RuleFileError, builtin};
use crate::limits::MAX_RULES;

/// Rules and the allow-lists that hold for all of them.
///
/// ```
/// use gossip_engine::RuleSet;
///
/// let mine = RuleSet::from_toml("mine.toml", r#"
///     [extend]
///     disabledRules = ["generic-assignment"]
///
///     [[rules]]
///     id = "acme-token"
///     description = "ACME deploy token"
///     regex = '''\bacme_[a-z0-9]{32}\b'''
/// "#)?;
/// let rules = RuleSet::builtin().merged(mine)?;
/// assert!(rules.get("acme-token").is_some());
/// assert!(rules.get("generic-assignment").is_none());
/// # Ok::<(), gossip_engine::RuleFileError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    allowlists: Vec<Arc<Allowlist>>,
    /// To be taken from the set that this one is put on.
    disabled: Vec<(String, Location)>,
    /// What errors call the file.
    name: String,
}

impl RuleSet {
    /// The rules that come with gossip.
    #[must_use]
    pub fn builtin() -> Self {
        builtin::rules()
    }

    /// No rules.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// The rules of a file; errors call it `name`. With `extend.useDefault` they go on top of the
    /// built-in ones.
    ///
    /// # Errors
    /// If anything in the file is not understood.
    pub fn from_toml(name: &str, text: &str) -> Result<Self, RuleFileError> {
        Self::read(name, text, Compile::Now)
    }

    pub(super) fn read(name: &str, text: &str, compile: Compile) -> Result<Self, RuleFileError> {
        let file = read(name, text, compile)?;
        let set = Self {
            rules: file.rules.into_iter().map(Arc::new).collect(),
            allowlists: file.allowlists.into_iter().map(Arc::new).collect(),
            disabled: file.disabled,
            name: name.to_owned(),
        };
        set.check_size()?;
        if file.use_default { Self::builtin().merged(set) } else { Ok(set) }
    }

    /// This set with `over` on top: rules of the same id are replaced, others added, and those that
    /// `over` disables are gone.
    ///
    /// # Errors
    /// If `over` disables a rule that does not exist, or there are too many rules.
    pub fn merged(mut self, over: Self) -> Result<Self, RuleFileError> {
        for (id, at) in over.disabled {
            let before = self.rules.len();
            self.rules.retain(|rule| rule.id() != id);
            if self.rules.len() == before {
                let fault = RuleFault::NothingToDisable { id };
                return Err(RuleFileError { file: over.name, at: Some(at), rule: None, fault });
            }
        }
        for rule in over.rules {
            match self.rules.iter_mut().find(|own| own.id() == rule.id()) {
                Some(own) => *own = rule,
                None => self.rules.push(rule),
            }
        }
        self.allowlists.extend(over.allowlists);
        if !over.name.is_empty() {
            self.name = over.name;
        }
        self.check_size()?;
        Ok(self)
    }

    fn check_size(&self) -> Result<(), RuleFileError> {
        if self.rules.len() <= MAX_RULES {
            return Ok(());
        }
        let fault = RuleFault::TooManyRules { limit: MAX_RULES };
        Err(RuleFileError { file: self.name.clone(), at: None, rule: None, fault })
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
        self.allowlists.iter().map(AsRef::as_ref)
    }
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
        for allowlist in &self.allowlists {
            hasher.value(&**allowlist);
        }
    }
}
