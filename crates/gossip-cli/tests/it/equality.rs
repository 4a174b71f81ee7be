//! A repository has the findings that its blobs have as files: on random repositories, with edits,
//! renames, copies, deletions, branches and merges, in loose objects, several packs and long chains of
//! deltas.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::git::git;
use crate::kill::scale;
use crate::support::{Place, Ran, gossip, token, zip_of};

const SEEDS: u64 = 2;
const ROUNDS: u64 = 3;
const COMMITS: u64 = 12;

/// A blob, a path inside of it if it is an archive, where a finding begins, its line and its rule.
type Found = BTreeSet<(String, String, u64, u64, String)>;

/// The files of every commit.
type Trees = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn a_random_repository_has_the_findings_of_its_blobs_as_files() {
    for seed in 0..SEEDS * scale() {
        println!("seed {seed}");
        let mut random = Random(seed);
        let place = Place::new();
        git(&place.tree, &["init", "-q", "-b", "branch0"]);
        let mut history = History::default();
        for round in 0..ROUNDS {
            let stream = history.grow(&mut random);
            import(&place.tree, &stream, random.below(2) == 0);
            pack(&place.tree, (seed + round) % 4);
        }
        let trees = trees(&place.tree);
        let blobs = place.path("blobs");
        write_blobs(&place.tree, &trees, &blobs);
        let files = scan(&place.path("state of files"), &blobs, "--no-history");
        let as_files = found_in_files(&files);
        let ran = scan(&place.state, &place.tree, "--only-history");
        let as_history = found_in_history(&ran, &trees);
        assert!(as_files.len() > 15, "{} findings", as_files.len());
        assert_eq!(as_files, as_history);
        assert_eq!(ran.json().len(), as_history.len(), "none is reported twice");
    }
}

fn scan(state: &Path, at: &Path, option: &str) -> Ran {
    let mut command = gossip(state);
    command.current_dir(at).args(["scan", "--format", "json", "--all-versions", "-q", option, "."]);
    Ran::of(command.output().unwrap(), option).exits(1)
}

fn found_in_files(ran: &Ran) -> Found {
    found(ran, |path, _| {
        let (blob, path) = path.split_once('/').unwrap();
        (blob.to_owned(), path.to_owned())
    })
}

fn found_in_history(ran: &Ran, trees: &Trees) -> Found {
    found(ran, |path, commit| {
        let (outer, _) = path.split_once('!').unwrap_or((path, ""));
        (trees[commit][outer].clone(), path.to_owned())
    })
}

/// `blob_of` gives a finding's blob and its path there.
fn found(ran: &Ran, blob_of: impl Fn(&str, &str) -> (String, String)) -> Found {
    let rows = ran.json();
    let text = |row: &serde_json::Value, field: &str| row[field].as_str().unwrap_or("").to_owned();
    let found = rows.iter().map(|row| {
        let (blob, path) = blob_of(&text(row, "path"), &text(row, "commit"));
        let inner = path.split_once('!').map_or("", |(_, inner)| inner).to_owned();
        let number = |field: &str| row[field].as_u64().unwrap();
        (blob, inner, number("start"), number("line"), text(row, "rule"))
    });
    found.collect()
}

fn trees(repository: &Path) -> Trees {
    let commits = git(repository, &["rev-list", "--all"]);
    let files = |commit: &str| {
        let listing = git(repository, &["ls-tree", "-r", commit]);
        let file = |line: &str| {
            let (head, path) = line.split_once('\t').unwrap();
            (path.to_owned(), head.rsplit(' ').next().unwrap().to_owned())
        };
        listing.lines().map(file).collect()
    };
    commits.lines().map(|commit| (commit.to_owned(), files(commit))).collect()
}

/// Every blob at `ID/PATH`, under one of its paths.
fn write_blobs(repository: &Path, trees: &Trees, to: &Path) {
    let blobs: BTreeMap<&String, &String> =
        trees.values().flatten().map(|(path, id)| (id, path)).collect();
    let mut command = Command::new("git");
    command.current_dir(repository).args(["cat-file", "--batch"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for (id, path) in blobs {
        writeln!(input, "{id}").unwrap();
        let mut head = String::new();
        output.read_line(&mut head).unwrap();
        let len: usize = head.trim_end().rsplit(' ').next().unwrap().parse().unwrap();
        let mut content = vec![0; len + 1];
        output.read_exact(&mut content).unwrap();
        let path = to.join(id).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &content[..len]).unwrap();
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// Into a pack of its own, or as loose objects.
fn import(repository: &Path, stream: &[u8], is_loose: bool) {
    let limit = format!("fastimport.unpackLimit={}", if is_loose { 100_000 } else { 1 });
    let mut command = Command::new("git");
    command.current_dir(repository).args(["-c", &limit, "fast-import", "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(stream).unwrap();
    assert!(child.wait().unwrap().success());
}

fn pack(repository: &Path, way: u64) {
    match way {
        0 => {}
        1 => drop(git(repository, &["repack", "-q", "-d"])),
        2 => drop(git(repository, &["gc", "-q"])),
        _ => {
            let deep = ["repack", "-q", "-a", "-d", "-f", "--depth=200", "--window=50"];
            git(repository, &deep);
        }
    }
}

/// What fast-import was told so far.
#[derive(Default)]
struct History {
    /// The files of each branch.
    branches: Vec<BTreeMap<String, Vec<u8>>>,
    /// Where each branch stands, as fast-import knows it.
    tips: Vec<String>,
    commits: u64,
    tokens: u64,
}

impl History {
    /// Some commits more, as fast-import reads them.
    fn grow(&mut self, random: &mut Random) -> Vec<u8> {
        let mut stream = Vec::new();
        // Marks are of one import.
        for (at, tip) in self.tips.iter_mut().enumerate() {
            *tip = format!("refs/heads/branch{at}^0");
        }
        for _ in 0..COMMITS {
            self.commit(random, &mut stream);
        }
        stream
    }

    fn commit(&mut self, random: &mut Random, stream: &mut Vec<u8>) {
        let known = self.branches.len() as u64;
        // A new branch begins where another stands, or from nothing.
        let branch = random.below((known + 1).min(4)) as usize;
        let is_new = branch as u64 == known;
        let from = if is_new { random.below(known + 1) } else { branch as u64 };
        self.commits += 1;
        let time = 1_700_000_000 + 60 * self.commits;
        let mark = self.commits;
        let mut head = format!("commit refs/heads/branch{branch}\nmark :{mark}\n");
        write!(head, "committer A <a@example.com> {time} +0000\ndata 6\ncommit\n").unwrap();
        if let Some(tip) = self.tips.get(from as usize) {
            writeln!(head, "from {tip}").unwrap();
        }
        let other = random.below(known.max(1));
        if known > 1 && other != from && random.below(4) == 0 {
            writeln!(head, "merge {}", self.tips[other as usize]).unwrap();
        }
        stream.extend(head.as_bytes());
        let mut files = self.branches.get(from as usize).cloned().unwrap_or_default();
        for _ in 0..1 + random.below(3) {
            self.change(random, &mut files, stream);
        }
        stream.push(b'\n');
        if is_new {
            self.branches.push(files);
            self.tips.push(format!(":{mark}"));
        } else {
            self.branches[branch] = files;
            self.tips[branch] = format!(":{mark}");
        }
    }

    fn change(
        &mut self,
        random: &mut Random,
        files: &mut BTreeMap<String, Vec<u8>>,
        stream: &mut Vec<u8>,
    ) {
        let nth = random.below(files.len().max(1) as u64) as usize;
        let existing = files.keys().nth(nth).cloned();
        let path = format!("dir{}/file{}.txt", random.below(3), random.below(5));
        match (random.below(10), existing) {
            (0, Some(gone)) => {
                files.remove(&gone);
                writeln!(stream, "D {gone}").unwrap();
            }
            (1, Some(from)) if from != path => {
                let content = files.remove(&from).unwrap();
                files.insert(path.clone(), content);
                writeln!(stream, "R {from} {path}").unwrap();
            }
            (2, Some(from)) if from != path => {
                files.insert(path.clone(), files[&from].clone());
                writeln!(stream, "C {from} {path}").unwrap();
            }
            (3, _) => {
                let inner = self.edited(random, b"");
                let zip = zip_of(&[("inner.txt", &inner)]);
                put(files, stream, format!("dir{}/a.zip", random.below(2)), zip);
            }
            _ => {
                let before = files.get(&path).cloned().unwrap_or_default();
                let content = self.edited(random, &before);
                put(files, stream, path, content);
            }
        }
    }

    /// A text with one line changed, now and then to one with a token. An archive that came to the
    /// place of a text gives way to a new one: edited, it would be a damaged archive.
    fn edited(&mut self, random: &mut Random, before: &[u8]) -> Vec<u8> {
        let text = str::from_utf8(before).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        while lines.len() < 60 {
            lines.push(format!("line {} of a file that is long enough", random.below(1 << 30)));
        }
        let at = random.below(lines.len() as u64) as usize;
        lines[at] = if random.below(2) == 0 {
            self.tokens += 1;
            format!("GITHUB_TOKEN={}", token(self.tokens))
        } else {
            format!("changed in {} to {}", self.commits, random.below(1 << 30))
        };
        (lines.join("\n") + "\n").into_bytes()
    }
}

fn put(
    files: &mut BTreeMap<String, Vec<u8>>,
    stream: &mut Vec<u8>,
    path: String,
    content: Vec<u8>,
) {
    write!(stream, "M 100644 inline {path}\ndata {}\n", content.len()).unwrap();
    stream.extend(&content);
    stream.push(b'\n');
    files.insert(path, content);
}

/// Small numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}
