//! Walks between two pages.
//!
//! Whoever asks for the page behind the one just given finds the walk where it stopped; whoever
//! asks for another starts a walk of its own. Either way the page is the same (K2).

use std::sync::{Mutex, PoisonError};

use super::walk::Walk;

/// Most walks that are kept: one for each of many workers.
const LEN_MAX: usize = 64;

#[derive(Default)]
pub(super) struct WalkCache(Mutex<Vec<Walk>>);

impl WalkCache {
    /// Takes out a walk that can go on behind `position` up to `end`.
    pub(super) fn take(&self, position: &[u8], end: &[u8]) -> Option<Walk> {
        // A panic elsewhere leaves whole walks behind.
        let mut walks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = walks.iter().rposition(|walk| walk.is_at(position, end))?;
        Some(walks.remove(found))
    }

    /// Keeps a walk. All of them together keep about `held_size_max` bytes of names.
    pub(super) fn put(&self, mut walk: Walk, held_size_max: usize) {
        walk.rest();
        let mut walks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        walks.push(walk);
        let mut held: usize = walks.iter().map(Walk::held_size).sum();
        // The oldest go first.
        while walks.len() > LEN_MAX || held > held_size_max && walks.len() > 1 {
            held -= walks.remove(0).held_size();
        }
    }
}
