//! From the text of a rule file to what it says.

use std::collections::BTreeMap;

use super::build::Builder;
use super::schema::{ExtendSchema, FileSchema, RuleSchema};
use super::{Allowlist, Location, RuleFault, RuleFileError, RuleNote, Syntax, go_syntax};

/// What a file says.
pub(super) struct RuleFile {
    pub(super) name: String,
    pub(super) text: String,
    /// With the place of each.
    pub(super) rules: Vec<(RuleSchema, usize)>,
    pub(super) allowlists: Vec<Allowlist>,
    /// What it extends, and where it says so.
    pub(super) extends: Option<(Extended, Location)>,
    pub(super) disabled: Vec<(String, Location)>,
    pub(super) notes: Vec<RuleNote>,
}

/// What a file goes on top of.
pub(super) enum Extended {
    /// The built-in rules.
    Builtin,
    /// The file of this path.
    File(String),
}

/// Reads `text`, which errors call `name`. If it came with the scanned tree it is local.
pub(super) fn read(
    name: &str,
    text: &str,
    syntax: Syntax,
    is_local: bool,
) -> Result<RuleFile, RuleFileError> {
    let builder = Builder { name, text, syntax, rule: None };
    let mut schema: FileSchema =
        toml::from_str(text).map_err(|error| builder.toml_error(&error))?;
    let extends = extended(&builder, &schema.extend)?;
    if let (Some(old), false) = (&schema.allowlist, schema.allowlists.is_empty()) {
        return Err(builder.error(Some(old.span().start), RuleFault::OldAndNewAllowlists));
    }
    let (rules, notes) = rules(&builder, std::mem::take(&mut schema.rules), is_local)?;
    let mut allowlists = Vec::new();
    for list in schema.allowlist.iter_mut().chain(&mut schema.allowlists) {
        list.get_mut().is_local = is_local;
        if syntax == Syntax::Go {
            list.get_mut().translate(go_syntax::translate);
        }
        allowlists.push(builder.allowlist(list)?);
    }
    let disabled = schema.extend.disabled_rules.iter();
    let disabled = disabled.map(|id| (id.get_ref().clone(), Location::of(text, id.span().start)));
    Ok(RuleFile {
        name: name.to_owned(),
        text: text.to_owned(),
        rules,
        allowlists,
        extends,
        disabled: disabled.collect(),
        notes,
    })
}

/// What a file extends, if anything.
fn extended(
    builder: &Builder<'_>,
    extend: &ExtendSchema,
) -> Result<Option<(Extended, Location)>, RuleFileError> {
    if let Some(url) = &extend.url {
        let reason = "nothing is fetched from the network: keep a copy, and name it by `path`";
        let fault = RuleFault::Unsupported { field: "extend.url", reason };
        return Err(builder.error(Some(url.span().start), fault));
    }
    let place = |at: usize| Location::of(builder.text, at);
    let use_default = extend.use_default.as_ref().filter(|wanted| *wanted.get_ref());
    match (use_default, &extend.path) {
        (Some(_), Some(path)) => Err(builder.error(Some(path.span().start), RuleFault::TwoBases)),
        (Some(wanted), None) => Ok(Some((Extended::Builtin, place(wanted.span().start)))),
        (None, Some(path)) => {
            Ok(Some((Extended::File(path.get_ref().clone()), place(path.span().start))))
        }
        (None, None) => Ok(None),
    }
}

type Placed = (RuleSchema, usize);

/// The rules of a file. Of those with the same id the last counts, as in gitleaks; an empty table is
/// none.
fn rules(
    builder: &Builder<'_>,
    schemas: Vec<toml::Spanned<RuleSchema>>,
    is_local: bool,
) -> Result<(Vec<Placed>, Vec<RuleNote>), RuleFileError> {
    let mut rules: Vec<Placed> = Vec::new();
    let mut notes = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for schema in schemas {
        let at = schema.span().start;
        let mut schema = schema.into_inner();
        if schema == RuleSchema::default() {
            continue;
        }
        if schema.id.trim().is_empty() {
            return Err(builder.error(Some(at), RuleFault::EmptyId));
        }
        let reader = Builder { rule: Some(&schema.id), ..*builder };
        if let (Some(old), false) = (&schema.allowlist, schema.allowlists.is_empty()) {
            return Err(reader.error(Some(old.span().start), RuleFault::OldAndNewAllowlists));
        }
        // The lists of a rule that the file itself brings are part of what that rule finds.
        let is_local = is_local && !schema.matches_something();
        let lists = schema.allowlist.iter_mut().chain(&mut schema.allowlists);
        lists.for_each(|list| list.get_mut().is_local = is_local);
        if builder.syntax == Syntax::Go {
            schema.translate(go_syntax::translate);
        }
        match places.get(&schema.id) {
            Some(&place) => {
                let (file, id) = (builder.name.to_owned(), schema.id.clone());
                notes.push(RuleNote::IdTwice { file, at: Location::of(builder.text, at), id });
                rules[place] = (schema, at);
            }
            None => {
                places.insert(schema.id.clone(), rules.len());
                rules.push((schema, at));
            }
        }
    }
    Ok((rules, notes))
}
