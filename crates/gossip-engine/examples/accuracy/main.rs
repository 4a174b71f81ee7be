//! Measures detection beside other scanners, on the same files. `cargo xtask accuracy` runs it.
//!
//! `accuracy --corpora DIR --work DIR [--scanner NAME=PROGRAM]… [--set NAME]… [--misses] [--tuning-only]`
//!
//! Prints tables of counts, never the text of a case. `--misses` lists what gossip gets wrong in
//! the tuning halves only, by the corpus' own ids; nothing is ever listed of the held-out halves.

mod case;
mod clean;
mod examples;
mod generated;
mod labelled;
mod random;
mod scanners;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use case::Half;
use scanners::Scanner;

/// What was asked for.
struct Request {
    corpora: PathBuf,
    work: PathBuf,
    scanners: Vec<Scanner>,
    sets: Vec<String>,
    misses: bool,
    tuning_only: bool,
    dump: Option<PathBuf>,
    clean: Vec<PathBuf>,
}

impl Request {
    /// The halves that are scored: rules are tuned without looking at the other one.
    fn halves(&self) -> &'static [Half] {
        if self.tuning_only { &Half::BOTH[..1] } else { &Half::BOTH }
    }

    fn wants(&self, set: &str) -> bool {
        self.sets.is_empty() || self.sets.iter().any(|name| name == set)
    }
}

fn main() -> ExitCode {
    let request = match request(std::env::args().skip(1)) {
        Ok(request) => request,
        Err(message) => {
            eprintln!("accuracy: {message}");
            return ExitCode::from(2);
        }
    };
    match measure(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("accuracy: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(request: &Request) -> Result<(), String> {
    if request.wants("examples") {
        examples::measure(request)?;
    }
    if request.wants("labelled") {
        labelled::measure(request)?;
    }
    if request.wants("generated") {
        generated::measure(request)?;
    }
    if request.wants("clean") {
        clean::measure(request)?;
    }
    Ok(())
}

fn request(mut words: impl Iterator<Item = String>) -> Result<Request, String> {
    let mut request = Request {
        corpora: PathBuf::from("../shared/corpora"),
        work: std::env::temp_dir().join("gossip-accuracy"),
        scanners: vec![Scanner::Gossip],
        sets: Vec::new(),
        misses: false,
        tuning_only: false,
        dump: None,
        clean: Vec::new(),
    };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--corpora" => request.corpora = value()?.into(),
            "--work" => request.work = value()?.into(),
            "--scanner" => request.scanners.push(Scanner::parse(&value()?)?),
            "--set" => request.sets.push(value()?),
            "--clean" => request.clean.push(value()?.into()),
            "--dump" => request.dump = Some(value()?.into()),
            "--misses" => request.misses = true,
            "--tuning-only" => request.tuning_only = true,
            _ => return Err(format!("`{word}` has no meaning here")),
        }
    }
    Ok(request)
}
