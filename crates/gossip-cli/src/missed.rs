//! What a scan should have covered and did not, by name.

use std::convert::Infallible;

use gossip_contracts::identity::RunId;
use gossip_runtime::{Missed, Reports};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::path_of;
use crate::places::Places;
use crate::say::{say, shown_bytes};

/// How many are named at the end of a scan.
const NAMED: usize = 10;

/// Something that was missed, in JSON.
#[derive(Serialize)]
pub(crate) struct MissedJson {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    reason: String,
    count: u64,
    failed: bool,
}

impl MissedJson {
    pub(crate) fn new(missed: &Missed, places: &Places) -> Self {
        let (path, path_hex) = path_of(&places.as_seen(&missed.path));
        let Missed { reason, number: count, is_failure: failed, .. } = missed.clone();
        Self { path, path_hex, reason, count, failed }
    }
}

/// Everything that a run missed, what could not be read first.
pub(crate) fn all(reports: &Reports, run: RunId) -> Result<Vec<Missed>, Failure> {
    let mut all = Vec::new();
    let Ok(()) = reports.each_missed(run, |missed| {
        all.push(missed);
        Ok::<_, Infallible>(())
    })?;
    all.sort_by_key(|missed| !missed.is_failure);
    Ok(all)
}

/// For people.
pub(crate) fn line(missed: &Missed, places: &Places) -> String {
    let count = if missed.number > 1 { format!(" ({})", missed.number) } else { String::new() };
    format!("{}: {}{count}", shown_bytes(&places.as_seen(&missed.path)), missed.reason)
}

/// Names what a scan missed, the first few of it. With `failures_only` what is out of reach is left
/// out: nothing went wrong there.
pub(crate) fn say(
    reports: &Reports,
    run: RunId,
    places: &Places,
    failures_only: bool,
) -> Result<(), Failure> {
    let (mut failures, mut others, mut number) = (Vec::new(), Vec::new(), 0);
    let Ok(()) = reports.each_missed(run, |missed| {
        if missed.is_failure || !failures_only {
            number += 1;
            let into = if missed.is_failure { &mut failures } else { &mut others };
            if into.len() < NAMED {
                into.push(missed);
            }
        }
        Ok::<_, Infallible>(())
    })?;
    let named = failures.iter().chain(&others).take(NAMED);
    named.clone().for_each(|missed| say!("  {}", line(missed, places)));
    let more = number - named.count();
    if more > 0 {
        say!("  {more} more: `gossip show {run}` names them all");
    }
    Ok(())
}
