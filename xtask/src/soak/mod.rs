//! `cargo xtask soak`: the tests of the test command with their full counts.
//!
//! - K1: a soak is a fixed list of chunks; one that passed is not run again for the same commit.
//! - K2: a row of bench/results/soaks.md says no more than what ran: a chunk that tested nothing fails, the
//!   code may not change between chunks, and a changed tree is never recorded as a commit.

mod progress;
mod record;
mod registry;

use std::time::{Instant, SystemTime};

use crate::args::Args;
use crate::date;
use crate::failure::{Failure, Result};
use crate::git::Identity;
use crate::workspace::Workspace;
use progress::{Done, Progress};
use record::Row;
use registry::{Chunk, SOAKS, Soak};

pub(crate) const HELP: &str = "\
Runs tests with their full counts, and records commit, counts and result in bench/results/soaks.md.

Usage: cargo xtask soak [NAME] [--list]     without a name: all of them, one after the other

  --list   what there is, how much of it the test command runs, and what is done for this commit

A soak is cut into chunks. Kill it at any time: started again on the same commit, it goes on with
the chunk in which it was. A tree with changes is soaked from the start each time and recorded as
`COMMIT-dirty`.
";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let list = args.flag("--list");
    let name = args.at_most_one_name()?;
    let workspace = Workspace::load()?;
    let identity = Identity::read(&workspace.root)?;
    if list {
        return SOAKS.iter().try_for_each(|soak| show(soak, &workspace, &identity));
    }
    let Some(name) = name else {
        for soak in SOAKS {
            match soak.chunks(&workspace)? {
                Some(chunks) => run_soak(soak, &chunks, &workspace, &identity)?,
                None => println!("{}: {}", soak.name, soak.absence()),
            }
        }
        return Ok(());
    };
    let Some(soak) = SOAKS.iter().find(|soak| soak.name == name) else {
        return Err(Failure::usage(format!("there is no soak `{name}`; see --list")));
    };
    match soak.chunks(&workspace)? {
        Some(chunks) => run_soak(soak, &chunks, &workspace, &identity),
        None => Err(Failure::new(soak.absence())),
    }
}

/// Says which share of each soak the test command runs.
pub(crate) fn announce_shares(workspace: &Workspace) -> Result<()> {
    for soak in SOAKS {
        if let Some(share) = soak.share()
            && soak.is_in(workspace)?
        {
            println!("{share}; all of them: cargo xtask soak {}", soak.name);
        }
    }
    Ok(())
}

fn show(soak: &Soak, workspace: &Workspace, identity: &Identity) -> Result<()> {
    let state = match soak.chunk_count(workspace)? {
        None => soak.absence(),
        Some(chunks) => {
            let done = Progress::peek(&workspace.target_dir, soak.name, identity);
            format!("{} of {chunks} chunks done at {identity}", done.len())
        }
    };
    println!("{}: {}\n    full: {}; {state}", soak.name, soak.what, soak.full());
    if let Some(share) = soak.share() {
        println!("    test command: {share}");
    }
    Ok(())
}

fn run_soak(
    soak: &Soak,
    chunks: &[Chunk],
    workspace: &Workspace,
    identity: &Identity,
) -> Result<()> {
    let mut progress = Progress::open(&workspace.target_dir, soak.name, identity)?;
    for (at, chunk) in chunks.iter().enumerate() {
        let title = format!("{}, chunk {} of {} ({})", soak.name, at + 1, chunks.len(), chunk.id);
        if progress.has(&chunk.id) {
            println!("== soak {title}: done before ==");
            continue;
        }
        println!("\n== soak {title} ==");
        if Identity::read(&workspace.root)? != *identity {
            return Err(Failure::new(format!("the tree is no longer {identity}"))
                .fix("let the tree be while a soak runs; start it again"));
        }
        match run_chunk(chunk) {
            Ok(done) => progress.add(done)?,
            Err(failure) => {
                let result = format!("FAILED in chunk {}: `{}`", chunk.id, chunk.command);
                record(soak, &progress, chunks, workspace, identity, &result)?;
                return Err(failure.within(title));
            }
        }
    }
    record(soak, &progress, chunks, workspace, identity, "passed")?;
    progress.finish()
}

fn run_chunk(chunk: &Chunk) -> Result<Done> {
    let (started, started_at) = (Instant::now(), SystemTime::now());
    let mut count = 0;
    let success = chunk.command.watch(|_, line| count += registry::count_in(line).unwrap_or(0))?;
    if !success {
        return Err(match &chunk.fuzzed {
            Some((fuzzer, target)) => fuzzer.crash(target, started_at),
            None => Failure::new(format!("failed: {}", chunk.command)),
        });
    }
    if count == 0 {
        return Err(Failure::new(format!("nothing was tested by: {}", chunk.command)));
    }
    Ok(Done { id: chunk.id.clone(), count, seconds: started.elapsed().as_secs() })
}

fn record(
    soak: &Soak,
    progress: &Progress,
    chunks: &[Chunk],
    workspace: &Workspace,
    identity: &Identity,
    result: &str,
) -> Result<()> {
    let row = Row {
        date: date::now(),
        identity: identity.to_string(),
        soak: soak.name,
        chunks: format!("{} of {}", progress.done().len(), chunks.len()),
        count: soak.counted(progress.done().len(), progress.count()),
        seconds: progress.seconds(),
        result,
    };
    row.append_to(&workspace.root.join("bench/results/soaks.md"))?;
    println!("\nrecorded in bench/results/soaks.md: {}, {}, {result}", row.chunks, row.count);
    Ok(())
}
