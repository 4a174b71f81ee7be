//! Paths as numbers: a name and the directory that it is in.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// The top directory.
pub(crate) const ROOT: u32 = 0;

struct Node {
    parent: u32,
    start: u64,
    len: u32,
    /// Of the whole path.
    text_len: u32,
}

/// All paths that were met, each once.
pub(crate) struct Paths {
    nodes: Vec<Node>,
    names: Vec<u8>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Paths {
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![Node { parent: ROOT, start: 0, len: 0, text_len: 0 }],
            names: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The number of the path `name` in the directory `parent`. A name may itself be a path.
    pub(crate) fn of(&mut self, parent: u32, name: &[u8]) -> u32 {
        let Self { nodes, names, table, hasher } = self;
        let name_of = |node: &Node| &names[node.start as usize..][..node.len as usize];
        let is_it = |&at: &u32| {
            let node = &nodes[at as usize];
            node.parent == parent && name_of(node) == name
        };
        let hash = hasher.hash_one((parent, name));
        if let Some(&known) = table.find(hash, is_it) {
            return known;
        }
        let number = u32::try_from(nodes.len()).expect("fewer paths than objects and names");
        let len = u32::try_from(name.len()).expect("a name is part of an object in memory");
        table.insert_unique(hash, number, |&at| {
            let node = &nodes[at as usize];
            hasher.hash_one((node.parent, name_of(node)))
        });
        let text_len = nodes[parent as usize].text_len.saturating_add(len).saturating_add(1);
        nodes.push(Node { parent, start: names.len() as u64, len, text_len });
        names.extend_from_slice(name);
        number
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// About how long the path of a number is.
    pub(crate) fn text_len(&self, number: u32) -> u64 {
        u64::from(self.nodes[number as usize].text_len)
    }

    /// Replaces what `path` holds by the path of a number.
    pub(crate) fn write(&self, number: u32, path: &mut Vec<u8>) {
        path.clear();
        let mut at = number;
        while at != ROOT {
            let node = &self.nodes[at as usize];
            let name = &self.names[node.start as usize..][..node.len as usize];
            if !path.is_empty() {
                path.push(b'/');
            }
            // Turned round as a whole in the end.
            path.extend(name.iter().rev());
            at = node.parent;
        }
        path.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_number_and_reads_back() {
        let mut paths = Paths::new();
        let src = paths.of(ROOT, b"src");
        let main = paths.of(src, b"main.rs");
        let other = paths.of(ROOT, b"main.rs");
        assert_eq!((paths.of(ROOT, b"src"), paths.of(src, b"main.rs")), (src, main));
        assert_ne!(main, other);
        let mut text = Vec::new();
        for (number, expected) in [(ROOT, ""), (src, "src"), (main, "src/main.rs")] {
            paths.write(number, &mut text);
            assert_eq!(text, expected.as_bytes());
        }
    }
}
