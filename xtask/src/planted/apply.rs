//! Putting planted bugs into a source file, each behind a switch.
//!
//! An expression becomes `(if switch { wrong } else { right })`, statements the same without the
//! parentheses. Wrong texts of the same place are chained. A place may lie inside another one; two
//! that overlap by half are refused.

use std::cmp::Reverse;
use std::ops::Range;

use super::parse::{Change, Patch};

/// A patch of a bug, found in its source.
#[derive(Debug)]
struct Edit<'b> {
    bug: usize,
    name: &'b str,
    /// What the switch decides about. Empty for statements that are inserted.
    range: Range<usize>,
    wrong: &'b str,
}

/// Why a patch does not apply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) bug: usize,
    pub(super) why: String,
}

/// What of a bug belongs into one file: its number, its name, its patch.
pub(super) type Planted<'b> = (usize, &'b str, &'b Patch);

/// `source` with all `planted` behind switches.
pub(super) fn apply(source: &str, planted: &[Planted<'_>]) -> Result<String, Vec<Fault>> {
    let (mut edits, mut faults) = (Vec::new(), Vec::new());
    for &(bug, name, patch) in planted {
        match locate(source, patch) {
            Ok(range) => edits.push(match &patch.change {
                Change::Replace(wrong) => Edit { bug, name, range, wrong },
                Change::Insert(wrong) => Edit { bug, name, range: range.start..range.start, wrong },
            }),
            Err(why) => faults.push(Fault { bug, why: format!("{}: {why}", patch.file) }),
        }
    }
    // What is inserted at the beginning of a place comes before it; what encloses, before what is
    // inside.
    edits.sort_by_key(|edit| (edit.range.start, !edit.range.is_empty(), Reverse(edit.range.end)));
    faults.extend(overlaps(&edits));
    if !faults.is_empty() {
        return Err(faults);
    }
    let mut out = String::with_capacity(source.len() * 2);
    render(source, 0..source.len(), &edits, &mut out);
    Ok(out)
}

/// Where the text of a patch stands.
fn locate(source: &str, patch: &Patch) -> Result<Range<usize>, String> {
    let Patch { find, function, change, .. } = patch;
    if find.starts_with("let ") && find.ends_with(';') && matches!(change, Change::Replace(_)) {
        return Err("a `let` inside a switch is gone after it: find what is behind its `=`".into());
    }
    let is_function = |(at, _): (usize, &str)| function_at(source, at) == Some(function);
    if !source.match_indices("fn ").any(is_function) {
        return Err(format!("there is no function `{function}`"));
    }
    let mut found = occurrences(source, find)
        .filter(|range| function_around(source, range.start) == Some(function));
    match (found.next(), found.count()) {
        (Some(range), 0) => Ok(range),
        (None, _) => Err(format!("`{function}` has no text `{find}`")),
        (Some(_), more) => Err(format!("`{function}` has the text `{find}` {} times", more + 1)),
    }
}

/// Where `text` stands, its white space standing for any. It begins and ends where words do.
fn occurrences<'s>(source: &'s str, text: &'s str) -> impl Iterator<Item = Range<usize>> {
    let first = text.split_whitespace().next().unwrap_or_default();
    source.match_indices(first).filter_map(move |(start, _)| {
        let mut rest = &source[start..];
        for (at, word) in text.split_whitespace().enumerate() {
            let behind = rest.trim_start();
            // No white space where the text has some.
            if at > 0 && behind.len() == rest.len() {
                return None;
            }
            rest = behind.strip_prefix(word)?;
        }
        let end = source.len() - rest.len();
        let begins_inside = text.starts_with(is_word) && source[..start].ends_with(is_word);
        let ends_inside = text.ends_with(is_word) && rest.starts_with(is_word);
        (!begins_inside && !ends_inside).then_some(start..end)
    })
}

/// The function that begins last before `at`.
fn function_around(source: &str, at: usize) -> Option<&str> {
    source[..at].rmatch_indices("fn ").find_map(|(at, _)| function_at(source, at))
}

/// The name of the function whose `fn` stands at `at`, if it is one and not a word of a comment.
fn function_at(source: &str, at: usize) -> Option<&str> {
    let line = source[..at].rsplit('\n').next().unwrap_or_default();
    let name = &source[at + "fn ".len()..];
    let name = &name[..name.find(|c| !is_word(c)).unwrap_or(name.len())];
    let is_item = !source[..at].ends_with(is_word) && !line.trim_start().starts_with("//");
    (is_item && !name.is_empty()).then_some(name)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn overlaps(edits: &[Edit<'_>]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, outer) in edits.iter().enumerate() {
        for inner in &edits[at + 1..] {
            if inner.range.start < outer.range.end && inner.range.end > outer.range.end {
                let why = format!("its text overlaps half of that of `{}`", outer.name);
                faults.push(Fault { bug: inner.bug, why });
            }
        }
    }
    faults
}

/// Writes `source[range]` with `edits`, which are in order and inside.
fn render(source: &str, range: Range<usize>, mut edits: &[Edit<'_>], out: &mut String) {
    let mut written = range.start;
    while let Some(first) = edits.first() {
        let place = first.range.clone();
        out.push_str(&source[written..place.start]);
        written = place.end;
        let same = edits.iter().take_while(|edit| edit.range == place).count();
        let (here, others) = edits.split_at(same);
        if place.is_empty() {
            here.iter().for_each(|edit| out.push_str(&arm(edit)));
            edits = others;
            continue;
        }
        let inside = others.iter().take_while(|edit| edit.range.start < place.end).count();
        let (inside, behind) = others.split_at(inside);
        let is_expression = !source[place.clone()].ends_with([';', '}']);
        out.push_str(if is_expression { "(" } else { "" });
        for edit in here {
            out.push_str(&arm(edit));
            out.push_str(" else ");
        }
        out.push_str("{\n");
        render(source, place, inside, out);
        out.push_str(if is_expression { "\n})" } else { "\n}" });
        edits = behind;
    }
    out.push_str(&source[written..range.end]);
}

/// Stands before and after what a bug puts into a file, each on a line of its own.
const BEGIN: &str = "// planted: ";
const END: &str = "// planted.";

fn arm(Edit { bug, name, wrong, .. }: &Edit<'_>) -> String {
    format!("if crate::planted::is_on({bug}) {{\n{BEGIN}{name}\n{wrong}\n{END}\n}}")
}

/// The bug that put a line (counted from 1) into a file that `apply` made.
pub(super) fn bug_at(applied: &str, line: usize) -> Option<&str> {
    let marks = applied.lines().take(line).filter(|line| line.starts_with("// planted"));
    marks.last()?.strip_prefix(BEGIN)
}

/// The environment variable that switches a bug on, by its name.
pub(super) const SELECTED: &str = "GOSSIP_PLANTED";

/// The module of the switch, for every crate that has bugs; `names` in the order of their numbers.
pub(super) fn switch<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: String = names.map(|name| format!("    \"{name}\",\n")).collect();
    format!(
        "//! Which planted bug this process has.

static SELECTED: std::sync::LazyLock<Option<usize>> = std::sync::LazyLock::new(|| {{
    let name = std::env::var(\"{SELECTED}\").ok()?;
    let number = NAMES.iter().position(|known| *known == name);
    Some(number.unwrap_or_else(|| panic!(\"no planted bug is called `{{name}}`\")))
}});

pub(crate) fn is_on(bug: usize) -> bool {{
    *SELECTED == Some(bug)
}}

const NAMES: &[&str] = &[
{names}];
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
// The old fn g is gone.
fn f(a: u8, b: u8) -> bool {
    let c = a
        < b;
    if c {
        log(a);
        return a < b_max;
    }
    c
}
fn fun() {
    log(a);
}
";

    fn patch(function: &str, find: &str, change: Change) -> Patch {
        Patch { file: "a.rs".into(), function: function.into(), find: find.into(), change }
    }

    fn replace(find: &str, wrong: &str) -> Patch {
        patch("f", find, Change::Replace(wrong.into()))
    }

    fn insert(find: &str, wrong: &str) -> Patch {
        patch("f", find, Change::Insert(wrong.into()))
    }

    /// The source with these patches, without white space and marks.
    fn applied(patches: &[Patch]) -> String {
        squeeze(&apply(SOURCE, &numbered(patches)).unwrap())
    }

    fn numbered(patches: &[Patch]) -> Vec<Planted<'_>> {
        patches.iter().enumerate().map(|(bug, patch)| (bug, ["x", "y", "z"][bug], patch)).collect()
    }

    fn squeeze(text: &str) -> String {
        let code = text.lines().filter(|line| !line.starts_with("// planted"));
        code.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    fn faults(patches: &[Patch]) -> Vec<String> {
        let faults = apply(SOURCE, &numbered(patches)).unwrap_err();
        faults.into_iter().map(|fault| format!("{} {}", fault.bug, fault.why)).collect()
    }

    #[test]
    fn an_expression_is_switched_in_parentheses_whatever_its_white_space() {
        let on = "let c = (if crate::planted::is_on(0) { a <= b } else { a < b });";
        assert!(applied(&[replace("a < b", "a <= b")]).contains(on));
    }

    #[test]
    fn statements_are_switched_and_may_be_left_out() {
        let on = "{ if crate::planted::is_on(0) { } else { log(a); } return";
        assert!(applied(&[replace("log(a);", "")]).contains(on));
    }

    #[test]
    fn what_is_inserted_runs_before_and_leaves_a_let_in_its_scope() {
        let on = "if crate::planted::is_on(0) { log(b); }let c = a < b;";
        assert!(applied(&[insert("let c = a", "log(b);")]).contains(on));
    }

    #[test]
    fn bugs_of_the_same_text_are_chained_and_one_inside_another_is_kept() {
        let whole = "if c {\n log(a);\n return a < b_max;\n}";
        let inside = insert("log(a);", "log(b);");
        let on = "if crate::planted::is_on(0) { } else if crate::planted::is_on(1) { stop(); } \
                  else { if c { if crate::planted::is_on(2) { log(b); }log(a); return a < b_max; } }";
        let all = applied(&[replace(whole, ""), replace(whole, "stop();"), inside]);
        assert!(all.contains(on), "{all}");
    }

    #[test]
    fn texts_that_overlap_by_half_are_refused_by_name() {
        let half = replace("return a < b_max;\n }\n c", "c");
        let fault = &faults(&[replace("log(a); return a < b_max;", "c"), half])[..];
        assert_eq!(fault, ["1 its text overlaps half of that of `x`"]);
    }

    #[test]
    fn a_text_stands_in_its_function_once() {
        let missing = faults(&[replace("a > b", "true"), replace("a<b", "true")]);
        assert_eq!(missing[0], "0 a.rs: `f` has no text `a > b`");
        assert_eq!(missing[1], "1 a.rs: `f` has no text `a<b`");
        assert_eq!(faults(&[replace("c", "!c")])[0], "0 a.rs: `f` has the text `c` 3 times");
        let elsewhere = patch("g", "log(a);", Change::Replace(String::new()));
        assert_eq!(faults(&[elsewhere])[0], "0 a.rs: there is no function `g`");
        let scoped = faults(&[replace("let c = a < b;", "let c = true;")]);
        assert!(scoped[0].contains("find what is behind its `=`"), "{scoped:?}");
    }

    #[test]
    fn a_line_leads_to_the_bug_that_put_it_there() {
        let patches = [replace("a < b", "a\n<= b")];
        let text = apply(SOURCE, &numbered(&patches)).unwrap();
        let line = |part: &str| text.lines().position(|line| line == part).unwrap() + 1;
        assert_eq!(bug_at(&text, line("<= b")), Some("x"));
        assert_eq!(bug_at(&text, line("        < b")), None);
        assert_eq!(bug_at(&text, 1), None);
    }
}
