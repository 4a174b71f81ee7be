//! The suite of the contract, on files of an index: rows of a manifest are in the order of the suite's
//! items, which no history would have them in.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use gossip_contracts::connector::conformance::{Harness, Item};
use gossip_contracts::connector::{Connector, NewRun, RunName};
use gossip_contracts::identity::RunId;
use gossip_frontier::{KeyBuf, KeyEncoding, ManifestRowKey};
use gossip_git::{GitOptions, GitSource, Selection};

use crate::support::Repo;

const ITEMS: u64 = 12;

struct Index {
    repo: Repo,
    /// The objects of its files.
    ids: Vec<String>,
}

impl Index {
    /// Writes an object, and puts it into the index as the file at `path`.
    fn add(&self, path: &str, content: &[u8]) -> String {
        let mut command = self.repo.command(&["hash-object", "-w", "--stdin"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        let id = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        let id = id.trim().to_owned();
        let file = format!("100644,{id},{path}");
        self.repo.git(&["update-index", "--add", "--cacheinfo", &file]);
        id
    }

    /// Moves an object into a pack of its own. Packs of one size are read in the order of their names.
    fn pack(&self, id: &str, number: usize) {
        let dir = self.repo.path.join(".git/objects/pack");
        let mut command = self.repo.command(&["pack-objects", "-q"]);
        command.arg(dir.join("new")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{id}").unwrap();
        let hash = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        for ending in ["idx", "pack"] {
            let from = dir.join(format!("new-{}.{ending}", hash.trim()));
            fs::rename(from, dir.join(format!("pack-{number:04}.{ending}"))).unwrap();
        }
        fs::remove_file(self.loose(id)).unwrap();
    }

    fn loose(&self, id: &str) -> std::path::PathBuf {
        self.repo.path.join(".git/objects").join(&id[..2]).join(&id[2..])
    }
}

impl Harness for Index {
    type Connector = GitSource;

    /// Two empty files would be one object.
    const EMPTY_ITEMS: bool = false;
    const IS_FIXED: bool = true;

    fn build(items: &[Item]) -> Self {
        let mut index = Self { repo: Repo::new(), ids: Vec::new() };
        for (number, item) in items.iter().enumerate() {
            let id = index.add(&format!("{number:04}"), &item.content);
            index.ids.push(id);
        }
        // Rows of one object are in the order of its paths.
        if index.ids.first() != index.ids.last() {
            index.ids.iter().enumerate().for_each(|(number, id)| index.pack(id, number));
        }
        index
    }

    fn connect(&self) -> GitSource {
        let mut options = GitOptions::default();
        options.selection = Selection::Staged;
        let source = self.repo.source_with(options);
        let run = NewRun {
            run: RunName { number: RunId::from_raw(1), nonce: [1; 16] },
            last: None,
            settled: &|_| Ok(()),
            // No two paths are alike, so that each has its row.
            path_class: &|path| path.to_vec(),
            is_left_out: &|_| false,
        };
        source.begin(run).unwrap();
        source
    }

    fn put(&mut self, _: &[u8], content: &[u8]) {
        self.add("0000", content);
    }

    fn remove(&mut self, key: &[u8]) {
        let number = Self::keys().iter().position(|known| known == key).unwrap();
        // The same object may have been removed under another key.
        fs::remove_file(self.loose(&self.ids[number])).ok();
    }

    fn keys() -> Vec<Vec<u8>> {
        let key = |row| {
            let mut buf = KeyBuf::new();
            ManifestRowKey::new(1, row).encode_into(&mut buf);
            buf.as_bytes().to_vec()
        };
        (0..ITEMS).map(key).collect()
    }
}

gossip_contracts::connector_conformance_suite!(Index);
