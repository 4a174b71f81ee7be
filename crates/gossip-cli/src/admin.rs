//! `gossip cancel`, `gossip unpark` and `gossip doctor`.

use std::io::Write;

use gossip_contracts::identity::RunId;
use gossip_runtime::Admin;

use crate::Outcome;
use crate::args::{Args, RunArgs};
use crate::failure::Failure;
use crate::output::{counted, stdout};
use crate::say::{say, shown};
use crate::source::state_dir;

pub(crate) fn cancel(args: &Args, run: &RunArgs) -> Result<Outcome, Failure> {
    Admin::open(&state_dir(args)?)?.cancel(RunId::from_raw(run.run))?;
    say!("run {} is cancelled", run.run);
    Ok(Outcome::Clean)
}

pub(crate) fn unpark(args: &Args, run: &RunArgs) -> Result<Outcome, Failure> {
    let shards = Admin::open(&state_dir(args)?)?.unpark(RunId::from_raw(run.run))?;
    match shards {
        0 => say!("run {} has no parked shards", run.run),
        _ => {
            let shards = counted(shards as u64, "parked shard");
            say!("{shards} may be worked on again; `gossip resume {}` does it", run.run);
        }
    }
    Ok(Outcome::Clean)
}

pub(crate) fn doctor(args: &Args) -> Result<Outcome, Failure> {
    let state = state_dir(args)?;
    let faults = Admin::open(&state)?.verify()?;
    state.tenant_key()?;
    let mut out = stdout();
    writeln!(out, "state directory: {}", shown(state.path()))?;
    for fault in &faults {
        writeln!(out, "fault: {fault}")?;
    }
    if faults.is_empty() {
        writeln!(out, "everything is in order")?;
    }
    out.flush()?;
    if !faults.is_empty() {
        say!("{} in the records of {}", counted(faults.len() as u64, "fault"), shown(state.path()));
    }
    Ok(if faults.is_empty() { Outcome::Clean } else { Outcome::Incomplete })
}
