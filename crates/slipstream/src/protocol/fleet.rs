//! A fleet that shares artifacts: one pointer names the newest, and old payloads are deleted.
//!
//! Whoever publishes reads the pointer first, and chooses the [epoch](next_epoch) of its artifact by
//! it; then uploads the payload; then moves the pointer, by compare and swap, if it
//! [may](may_publish). Between these steps anything may happen, another round or a roll-back of the
//! log included.
//!
//! The epoch makes pointers of a log that is gone replaceable without one ever going back: whoever
//! replaces one is of a higher epoch, and so is newer than whatever was uploaded before, and may have
//! been deleted since.

use super::{Offer, Resume};
use crate::kv::CursorExpiry;

/// Which of two artifacts is the newer one: by epoch, then by log, then by how far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank {
    /// How often a pointer to a log that was gone had been replaced, when the artifact was uploaded.
    pub epoch: u64,
    /// The log that was folded.
    pub incarnation: u64,
    /// How far the fold goes.
    pub revision: u64,
}

/// What the resume guard says of an artifact's cursor at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// A node that begins with the artifact reads on from there.
    Holds,
    /// It does not, and a later one may.
    Expired,
    /// The log that the artifact was made from is gone: no node will ever read on from there.
    Dead,
}

/// The verdict that follows from what [`resume`](super::resume) decided.
///
/// # Panics
/// `NeedNextWitness` is no decision.
pub fn verdict(resume: Resume) -> Verdict {
    match resume {
        Resume::From(_) => Verdict::Holds,
        Resume::NeedNextWitness => unreachable!("a witness was not looked up"),
        Resume::Expired(why) => verdict_of(why),
    }
}

/// The same, of a cursor that has expired.
pub const fn verdict_of(why: CursorExpiry) -> Verdict {
    match why {
        CursorExpiry::Recreated
        | CursorExpiry::AheadOfLog { .. }
        | CursorExpiry::WitnessDisagrees { .. } => Verdict::Dead,
        _ => Verdict::Expired,
    }
}

/// What the pointer is, as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PointerState {
    /// Nobody has published yet, or somebody deleted it.
    Absent,
    /// There is one.
    Present {
        /// `None` if it cannot be read.
        rank: Option<Rank>,
    },
    /// A newer program wrote it, in a way that this one cannot read. It is no rubbish: only such a
    /// program may replace it.
    Newer,
}

/// The epoch of an artifact that is to be uploaded now; `None` if none may be.
///
/// `verdict` is about the pointer's cursor, if it has one. `highest` is the highest epoch of the
/// payloads that there are, if there are any: without a pointer, nothing else tells which epochs have
/// been, and the payload that the lost pointer named is still there.
pub fn next_epoch(pointer: &PointerState, verdict: Verdict, highest: Option<u64>) -> Option<u64> {
    match *pointer {
        PointerState::Present { rank: Some(rank) } => match verdict {
            Verdict::Dead => rank.epoch.checked_add(1),
            Verdict::Holds | Verdict::Expired => Some(rank.epoch),
        },
        PointerState::Absent | PointerState::Present { rank: None } => {
            highest.map_or(Some(0), |epoch| epoch.checked_add(1))
        }
        PointerState::Newer => None,
    }
}

/// Whether the pointer may move to an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Publish {
    /// Move it, if it is still what was read.
    Allowed,
    /// The pointer is newer, or is lost and may have been: give up.
    SupersededByNewer,
    /// Nobody could begin with this artifact any more: give up.
    OfNoUse,
    /// The pointer is to an artifact that lacks nothing, and this one may lack what was evicted: give up.
    LessComplete,
}

/// Decides whether the pointer may move (P7, P9, P11).
///
/// `newest` is the newest of the payloads that there are now, the candidate's own among them. Without a
/// pointer that can be read, it tells what the pointer may have been: the payload that it named is
/// still there, and what was deleted was older. So a candidate that is not the newest may have been
/// deleted itself. `offer` is what the candidate is, found after the payload was uploaded; `replaced` is
/// what the pointer's artifact is, if it can be read.
pub fn may_publish(
    pointer: &PointerState,
    newest: Option<Rank>,
    candidate: Rank,
    offer: Offer,
    replaced: Option<Offer>,
) -> Publish {
    let superseded = match *pointer {
        PointerState::Present { rank: Some(rank) } => candidate < rank,
        PointerState::Absent | PointerState::Present { rank: None } => newest != Some(candidate),
        PointerState::Newer => true,
    };
    match offer.verdict {
        _ if superseded => Publish::SupersededByNewer,
        Verdict::Expired | Verdict::Dead => Publish::OfNoUse,
        Verdict::Holds if lacks_more(offer, replaced) => Publish::LessComplete,
        Verdict::Holds => Publish::Allowed,
    }
}

/// Whether an artifact may lack what another, that nodes can begin with, has (P11).
pub fn lacks_more(offer: Offer, than: Option<Offer>) -> bool {
    let is_whole = |than: Offer| than.verdict == Verdict::Holds && !than.may_be_incomplete;
    offer.may_be_incomplete && than.is_some_and(is_whole)
}

/// Whether a payload may be deleted (P8): it is older than the one that the pointer names, so that
/// nobody will publish it any more, and old enough that nobody who reads it goes without. `pointer`
/// may be older than the one that there is now.
pub fn payload_prunable(
    payload: Option<Rank>,
    pointer: Rank,
    is_pointer_target: bool,
    aged_out: bool,
) -> bool {
    !is_pointer_target && aged_out && payload.is_some_and(|payload| payload < pointer)
}

#[cfg(test)]
mod tests;
