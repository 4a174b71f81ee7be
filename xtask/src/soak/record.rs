//! bench/results/soaks.md: what was soaked, when, at which commit, with which result.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::failure::{OrFail, Result};

pub(super) const HEADER: &str = "\
# Soaks

Tests run with their full counts by `cargo xtask soak`, which adds a row when a soak ends. A commit
marked `-dirty` had changes that nobody can get back.

| date | commit | soak | chunks | count | time | result |
|---|---|---|---|---|---|---|
";

pub(super) struct Row<'a> {
    pub(super) date: String,
    pub(super) identity: String,
    pub(super) soak: &'a str,
    pub(super) chunks: String,
    pub(super) count: String,
    pub(super) seconds: u64,
    pub(super) result: &'a str,
}

impl Row<'_> {
    pub(super) fn append_to(&self, file: &Path) -> Result<()> {
        self.try_append_to(file).or_fail(|| format!("writing {}", file.display()))
    }

    fn try_append_to(&self, file: &Path) -> std::io::Result<()> {
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir)?;
        }
        let header = if file.exists() { "" } else { HEADER };
        let Self { date, identity, soak, chunks, count, result, .. } = self;
        let (minutes, seconds) = (self.seconds / 60, self.seconds % 60);
        // A bar would end the cell.
        let result = result.replace('|', "\\|");
        let row = format!(
            "| {date} | {identity} | {soak} | {chunks} | {count} | {minutes} min {seconds} s | {result} |\n"
        );
        let mut file = OpenOptions::new().create(true).append(true).open(file)?;
        file.write_all(format!("{header}{row}").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_below_the_header_and_never_replace_one() {
        let dir = std::env::temp_dir().join(format!("gossip-xtask-row-{}", std::process::id()));
        let file = dir.join("bench/results/soaks.md");
        let row = |result| Row {
            date: "2031-02-03 04:05 UTC".into(),
            identity: "abc-dirty".into(),
            soak: "a",
            chunks: "2 of 2".into(),
            count: "80× the cases, 24 test runs".into(),
            seconds: 61,
            result,
        };
        row("passed").append_to(&file).unwrap();
        row("FAILED in `a|b`").append_to(&file).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let rows = text.strip_prefix(HEADER).unwrap();
        let start = "| 2031-02-03 04:05 UTC | abc-dirty | a | 2 of 2 | 80× the cases, 24 test runs | 1 min 1 s |";
        assert_eq!(rows, format!("{start} passed |\n{start} FAILED in `a\\|b` |\n"));
        fs::remove_dir_all(dir).unwrap();
    }
}
