//! What the items of a target are called: their keys are for the machine.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use gossip_connectors::many::Shown;
use gossip_git::object_of;

use crate::git;
use crate::source::{Target, parse_names};

/// Bytes before the key and the version of an item of several sources: the source's number.
const NUMBER_SIZE: usize = 2;

/// The items of a target.
pub(crate) struct Items<'t> {
    target: &'t Target,
    /// Of each part, whether it is a repository's history.
    histories: Vec<bool>,
    is_many: bool,
}

impl<'t> Items<'t> {
    pub(crate) fn of(target: &'t Target) -> Self {
        let names = parse_names(&target.name);
        let is_many = names.is_some();
        let names = names.unwrap_or_else(|| vec![&target.name[..]]);
        let is_history = |name| git::parse_name(name).is_some();
        Self { target, histories: names.into_iter().map(is_history).collect(), is_many }
    }

    /// What reports call the item with this key.
    pub(crate) fn path(&self, key: &[u8]) -> Vec<u8> {
        self.target.source.shown_path(key).unwrap_or_else(|| key.to_vec())
    }

    /// The object that this version of an item is, if it is of a repository's history.
    pub(crate) fn object(&self, key: &[u8], version: &[u8]) -> Option<String> {
        let (part, number_size) = match key.first_chunk::<NUMBER_SIZE>() {
            _ if !self.is_many => (0, 0),
            number => (usize::from(u16::from_be_bytes(*number?)), NUMBER_SIZE),
        };
        let is_history = *self.histories.get(part)?;
        is_history.then(|| object_of(version.get(number_size..)?)).flatten()
    }
}

/// How reports call the items of the target of this name, which may be one of several.
pub(crate) fn shown_as(name: &[u8], is_one_place: bool) -> Shown {
    // The files of a repository without a work tree are no versions of those that it tracks.
    let is_own = Target::parse_name(name).is_some_and(|(root, _)| git::is_bare(&root));
    match Target::root_of(name) {
        // Files and history of one repository.
        _ if is_one_place && !is_own => Shown::Below(Vec::new()),
        Some(root) if root.is_file() => Shown::As(root.into_os_string().into_vec()),
        Some(root) => Shown::Below([root.as_os_str().as_bytes(), b"/"].concat()),
        None => Shown::Below(Vec::new()),
    }
}
