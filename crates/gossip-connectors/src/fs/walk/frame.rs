//! A directory on the way of a walk.

use crate::fs::dir_stamp::{DirStamp, Since};
use crate::fs::ignore::Ignores;
use crate::fs::names::Names;

/// Names may be used although their directory has changed since, if it has more than so many and few
/// of them have been passed: else a huge directory in which something happens all the time would be
/// read anew for every page, and not just once for each of so many parts.
const CHANGED_LEN_MIN: usize = 4096;
const CHANGED_PARTS: usize = 16;

/// A directory on the way.
pub(super) struct Frame {
    /// Length of its key.
    pub(super) path_len: usize,
    pub(super) stamp: DirStamp,
    /// None if they had to make room. The one on top has them.
    pub(super) names: Option<Names>,
    pub(super) ignores: Ignores,
}

impl Frame {
    pub(super) fn still_holds(&self, now: &DirStamp) -> bool {
        let Some(names) = &self.names else {
            return false;
        };
        match self.stamp.compare(now) {
            Since::Unchanged => true,
            Since::Replaced => false,
            Since::Changed => {
                names.seen() > CHANGED_LEN_MIN && names.passed() < names.seen() / CHANGED_PARTS
            }
        }
    }
}

/// What holds below the last of these.
pub(super) fn ignores_of(frames: &[Frame]) -> &Ignores {
    frames.last().map_or(const { &Ignores::NONE }, |frame| &frame.ignores)
}
