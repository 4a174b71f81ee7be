//! Looks into the expressions of the built-in rules, so that a program need not whenever it starts:
//! their literals above all. Writes a table that `src/rules/known.rs` reads.

#[expect(dead_code, reason = "the engine needs the rest")]
#[path = "src/rules/assign.rs"]
mod assign;
#[expect(dead_code, unused_imports, reason = "the engine needs the rest")]
#[path = "src/literals/mod.rs"]
mod literals;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use literals::{Anchor, Facts, Reach};
use toml::Table;

fn main() -> Result<(), Box<dyn Error>> {
    for path in ["build.rs", "rules", "src/literals", "src/rules/assign.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut sources = BTreeSet::new();
    for entry in fs::read_dir("rules")? {
        let file: Table = fs::read_to_string(entry?.path())?.parse()?;
        let rules = file.get("rules").and_then(toml::Value::as_array);
        sources.extend(rules.into_iter().flatten().filter_map(expression));
    }
    let mut table = String::from("&[\n");
    for source in &sources {
        writeln!(table, "{},", known(source)?)?;
    }
    table.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("expressions.rs"), table)?;
    Ok(())
}

/// What of a rule is looked into.
fn expression(rule: &toml::Value) -> Option<String> {
    let name = || rule.get("assign")?.get("name")?.as_str().map(assign::name_expression);
    rule.get("regex").and_then(|regex| regex.as_str().map(str::to_owned)).or_else(name)
}

/// The row of an expression. Its syntax is that of `src/pattern.rs`, as a test sees.
fn known(source: &str) -> Result<String, Box<dyn Error>> {
    let mut parser =
        regex_syntax::ParserBuilder::new().unicode(false).utf8(false).nest_limit(100).build();
    let facts = Facts::of(&parser.parse(source)?);
    let anchors = facts.anchors.map(|anchors| anchors.iter().map(anchor).collect::<String>());
    let anchors = anchors.map_or("None".to_owned(), |anchors| format!("Some(&[{anchors}])"));
    let Facts { groups, matches_empty, max_len, .. } = facts;
    Ok(format!("({source:?}, {groups}, {matches_empty}, {max_len:?}, {anchors})"))
}

fn anchor(anchor: &Anchor) -> String {
    let Anchor { bytes, ignore_case, next, reach, before } = anchor;
    let next = (next.bytes.bits(), next.open);
    let Reach { min, max } = reach;
    format!("(&{bytes:?}, {ignore_case}, {next:?}, ({min}, {max}), &{before:?}),")
}
