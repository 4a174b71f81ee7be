//! Reading planted bugs: one file a bug, in `crates/gossip-simulator/planted/`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::{OrFail, Result};

/// Where the files are, from the root of the workspace.
pub(super) const FOLDER: &str = "crates/gossip-simulator/planted";

/// A bug as its file describes it.
#[derive(Debug)]
pub(super) struct Bug {
    /// The name of its file without `.toml`.
    pub(super) name: String,
    pub(super) described: Described,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Described {
    /// What a user would suffer.
    pub(super) harm: String,
    /// The backend on which the simulator can notice it.
    pub(super) backend: Backend,
    #[serde(rename = "patch")]
    pub(super) patches: Vec<Patch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Backend {
    Memory,
    Sqlite,
    Etcd,
}

impl Backend {
    /// As the simulator's `--backend` takes it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Etcd => "etcd",
        }
    }
}

/// Text of one function, and what stands there when the bug is on.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PatchFields")]
pub(super) struct Patch {
    /// A source file, from the root of the workspace.
    pub(super) file: String,
    /// The function in which the text stands.
    pub(super) function: String,
    /// The text. It stands in the function once; where it has white space the source has some, too.
    pub(super) find: String,
    pub(super) change: Change,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Stands in the place of the text, which is an expression, or statements if it ends in `;` or
    /// `}`.
    Replace(String),
    /// Statements that run before the text, which is the beginning of a statement.
    Insert(String),
}

/// A `[[patch]]` as it is written: with one of `replace` and `insert`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PatchFields {
    file: String,
    function: String,
    find: String,
    replace: Option<String>,
    insert: Option<String>,
}

impl TryFrom<PatchFields> for Patch {
    type Error = &'static str;

    fn try_from(fields: PatchFields) -> std::result::Result<Self, Self::Error> {
        let PatchFields { file, function, find, replace, insert } = fields;
        let trim = |text: String| text.trim().to_owned();
        let find = trim(find);
        let change = match (replace.map(trim), insert.map(trim)) {
            (Some(wrong), None) => Change::Replace(wrong),
            (None, Some(wrong)) => Change::Insert(wrong),
            _ => return Err("a patch has `replace` or `insert`"),
        };
        if find.is_empty() || change == Change::Insert(String::new()) {
            return Err("there is no text to find or to insert");
        }
        if change == Change::Replace(find.clone()) {
            return Err("`replace` is what `find` is");
        }
        Ok(Self { file, function, find, change })
    }
}

/// A file that cannot be read as a bug, and why.
pub(super) struct Unreadable {
    pub(super) path: PathBuf,
    pub(super) why: String,
}

/// Every bug, in the order of their names; and the files that are none.
pub(super) fn read_all(root: &Path) -> Result<(Vec<Bug>, Vec<Unreadable>)> {
    let folder = root.join(FOLDER);
    let reading = || format!("reading {}", folder.display());
    let (mut bugs, mut unreadable) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&folder).or_fail(reading)? {
        let path = entry.or_fail(reading)?.path();
        let text = std::fs::read_to_string(&path).or_fail(|| path.display().to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match parse(&name, &text) {
            Ok(bug) => bugs.push(bug),
            Err(why) => unreadable.push(Unreadable { path: Path::new(FOLDER).join(name), why }),
        }
    }
    bugs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok((bugs, unreadable))
}

impl Bug {
    /// Its file, from the root of the workspace.
    pub(super) fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(format!("{}.toml", self.name))
    }
}

fn parse(file_name: &str, text: &str) -> std::result::Result<Bug, String> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let name = file_name
        .strip_suffix(".toml")
        .filter(|name| !name.is_empty() && name.chars().all(is_plain))
        .ok_or("a planted bug is called some_harm.toml, in lower case")?;
    let described: Described = toml::from_str(text).map_err(|error| error.to_string())?;
    if described.patches.is_empty() {
        return Err("it changes nothing: there is no [[patch]]".to_owned());
    }
    Ok(Bug { name: name.to_owned(), described })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUG: &str = "harm = \"h\"\nbackend = \"sqlite\"\n\n[[patch]]\nfile = \"a.rs\"\n\
                       function = \"f\"\nfind = '''\n  a < b\n'''\nreplace = \"a <= b\"\n";

    #[test]
    fn a_bug_says_what_stands_where() {
        let bug = parse("off_by_one.toml", BUG).unwrap();
        assert_eq!((bug.name.as_str(), bug.described.backend.name()), ("off_by_one", "sqlite"));
        let [patch] = &bug.described.patches[..] else { panic!("{bug:?}") };
        assert_eq!((patch.find.as_str(), patch.function.as_str()), ("a < b", "f"));
        assert_eq!(patch.change, Change::Replace("a <= b".to_owned()));
        let inserted = parse("a.toml", &BUG.replace("replace", "insert")).unwrap();
        assert!(matches!(&inserted.described.patches[0].change, Change::Insert(_)));
    }

    #[test]
    fn files_that_describe_no_bug_are_refused() {
        let refused = |name: &str, text: &str| assert!(parse(name, text).is_err(), "{name} {text}");
        refused("README.md", BUG);
        refused("OffByOne.toml", BUG);
        refused("a.toml", "");
        refused("a.toml", "harm = \"h\"\nbackend = \"memory\"\npatch = []\n");
        refused("a.toml", &BUG.replace("sqlite", "redis"));
        refused("a.toml", &BUG.replace("function = \"f\"\n", ""));
        refused("a.toml", &BUG.replace("replace = \"a <= b\"\n", ""));
        refused("a.toml", &BUG.replace("a <= b", "a < b"));
        refused("a.toml", &BUG.replace("  a < b", ""));
        refused("a.toml", &format!("{BUG}insert = \"a();\"\n"));
        refused("a.toml", &format!("{BUG}line = 7\n"));
    }
}
