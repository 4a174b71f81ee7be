//! A report of findings and one of all their versions say the same: made-up histories, each looked at under
//! everything that silences.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::git::git;
use crate::kill::scale;
use crate::support::{Place, token};

/// Numbers that follow from a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.next(of.len())]
    }
}

/// Files and their lines.
struct Tree {
    files: Vec<(String, Vec<String>)>,
}

impl Tree {
    fn line(dice: &mut Dice) -> String {
        let secret = token(1 + dice.next(3) as u64);
        match dice.next(8) {
            0 => "# nothing".to_owned(),
            1 => "apikey: kX9vQ2mT7pLw4ZrB".to_owned(),
            2 => "key: kX9vQ2mT7pLw4ZrB".to_owned(),
            3 => format!("OTHER={secret}"),
            4 => format!("KEY={secret} # gossip:allow"),
            _ => format!("KEY={secret}"),
        }
    }

    /// One step of a history: a line comes, goes, moves or changes; a file is copied, renamed or deleted.
    fn change(&mut self, dice: &mut Dice) {
        let line = Self::line(dice);
        if self.files.is_empty() || dice.next(10) == 0 {
            let name = ["a.env", "dir/a.env", "dir/b.env"][dice.next(3)].to_owned();
            self.files.retain(|(other, _)| *other != name);
            self.files.push((name, vec![line]));
            return;
        }
        let at = dice.next(self.files.len());
        let lines = &mut self.files[at].1;
        let place = dice.next(lines.len() + 1);
        match dice.next(9) {
            0 | 1 => lines.insert(place, line),
            2 => lines.insert(0, "# above".to_owned()),
            3 | 4 if place < lines.len() => lines[place] = line,
            5 if place < lines.len() => drop(lines.remove(place)),
            6 => {
                let copy = (format!("copy{}.env", dice.next(2)), self.files[at].1.clone());
                self.files.retain(|(name, _)| *name != copy.0);
                self.files.push(copy);
            }
            7 => {
                let name = format!("new/{}.env", dice.next(2));
                let (_, lines) = self.files.remove(at);
                self.files.retain(|(other, _)| *other != name);
                self.files.push((name, lines));
            }
            8 => drop(self.files.remove(at)),
            _ => {}
        }
    }

    fn write(&self, place: &Place) {
        for entry in fs::read_dir(&place.tree).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with(".git") {
                continue;
            }
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        for (name, lines) in &self.files {
            place.write(name, lines.join("\n"));
        }
    }
}

/// Entries of an ignore file that name something which was found.
fn ignored(dice: &mut Dice, all: &[Value]) -> String {
    let mut entries = String::new();
    for _ in 0..=dice.next(3) {
        let row = dice.pick(all);
        let text = |name: &str| row[name].as_str().unwrap_or_default();
        let (path, line) = (text("path"), &row["line"]);
        let rule = text("rule");
        let entry = match dice.next(5) {
            0 => text("fingerprint").to_owned(),
            1 => format!("/{path}"),
            2 => path.split_once('/').map_or("*.env", |(dir, _)| dir).to_owned(),
            3 => format!("{path}:{rule}:{line}"),
            _ => format!("{}:{path}:{rule}:{line}", row["commit"].as_str().unwrap_or("0")),
        };
        entries += &format!("{entry}\n");
    }
    entries
}

/// The reports of a run with these options: the exit code is the same, every version is in some finding, and
/// what stands for a finding is one of its versions.
fn check(place: &Place, words: &str, seed: u64) {
    let report = |more: &str| place.run(&format!("findings -q -f jsonl {words} {more}"));
    let (grouped, all) = (report(""), report("--all-versions"));
    let about = format!("seed {seed}, {words}: {grouped:?} {all:?}");
    assert_eq!(grouped.code, all.code, "{about}");
    assert!(matches!(grouped.code, Some(0 | 1)), "{about}");
    let (grouped, all) = (grouped.jsonl(), all.jsonl());
    let place = |row: &Value| {
        let names = ["fingerprint", "path", "line", "column", "commit", "in_work_tree", "finding"];
        names.map(|name| row[name].to_string())
    };
    let places: BTreeSet<_> = all.iter().map(place).collect();
    assert!(grouped.iter().all(|row| places.contains(&place(row))), "{about}");
    let versions = |row: &Value| {
        row["versions"].as_u64().unwrap_or(0) + u64::from(row["in_work_tree"] == true)
    };
    assert_eq!(grouped.iter().map(versions).sum::<u64>(), all.len() as u64, "{about}");
    assert!(grouped.iter().all(|row| versions(row) > 0), "{about}");
}

fn history(seed: u64) {
    let (place, mut dice) = (Place::new(), Dice(seed));
    git(&place.tree, &["init", "-q", "-b", "main"]);
    let mut tree = Tree { files: vec![("a.env".to_owned(), vec![format!("KEY={}", token(1))])] };
    let commits = 3 + dice.next(5);
    let scanned_after = 1 + dice.next(commits - 1);
    let file = place.path("baseline.json");
    for number in 1..=commits {
        tree.write(&place);
        git(&place.tree, &["add", "-A"]);
        git(&place.tree, &["commit", "-q", "--allow-empty", "-m", "step"]);
        if number == scanned_after {
            place.run("scan TREE -q");
            place.run(&format!("baseline -o {}", file.display())).exits(0);
        }
        for _ in 0..=dice.next(2) {
            tree.change(&mut dice);
        }
    }
    if dice.next(2) == 0 {
        tree.write(&place);
    }
    place.run("scan TREE -q");
    // The number of a run is that of its report.
    let findings = place.run("findings -q -f jsonl").jsonl().len();
    let runs = place.run("runs -f json").exits(0).json();
    assert_eq!(runs.last().unwrap()["findings"], findings, "seed {seed}");
    let baseline = format!("--baseline {}", file.display());
    let options = ["", &baseline, "--confidence medium", "--confidence high", "--new-since 1"];
    for words in options {
        check(&place, words, seed);
    }
    let all = place.run("findings -q -f jsonl --all-versions").jsonl();
    for _ in 0..3 {
        place.write(".gossipignore", ignored(&mut dice, &all));
        let words = format!("{} {}", dice.pick(&options), dice.pick(&options));
        let twice = words.matches("--baseline").count() > 1 || words.matches("--con").count() > 1;
        let words = if twice || words.matches("--new").count() > 1 { "" } else { &words };
        check(&place, words, seed);
    }
}

#[test]
fn findings_and_their_versions_are_reported_or_silenced_alike() {
    // A soak has more: each scans a dozen times.
    (0..4 * scale()).for_each(history);
}
