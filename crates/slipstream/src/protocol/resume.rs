//! May a watch go on from a cursor?
//!
//! - G1: only in the log that the cursor came from: same incarnation, head not behind the cursor, and
//!   a message that the cursor remembers is still the one it was.
//! - G2: only if the log has forgotten nothing that the cursor has not covered.

use super::LogPosition;
use crate::kv::{CursorExpiry, LogInfo};

/// Whether a log that begins at `first_sequence` has everything after `revision`.
#[must_use]
pub fn resume_window_ok(revision: u64, first_sequence: u64) -> bool {
    first_sequence <= revision.saturating_add(1)
}

/// What the log has to say about one witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WitnessFinding {
    /// There is a message at the witness's revision; whether it is the same one.
    Present {
        /// Same mark.
        same: bool,
    },
    /// There is none at its revision; the newest message of its key is at `last_of_key`, if the log
    /// has one at all and the key is known.
    Gone {
        /// Revision of that message.
        last_of_key: Option<u64>,
    },
}

/// What to do next on the way to a resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResumeStep {
    /// Go on after the cursor.
    Resume,
    /// The cursor is of no use.
    Expired(CursorExpiry),
    /// Look up the witness of this index and ask again with what was found.
    Ask(usize),
}

/// Decides on a resume from `cursor` in the log `log`, read after the watch took its position there.
/// `findings` are those of the first witnesses, in order.
#[must_use]
pub fn resume_step(cursor: &LogPosition, log: &LogInfo, findings: &[WitnessFinding]) -> ResumeStep {
    let revision = cursor.revision;
    if cursor.incarnation != log.incarnation {
        return ResumeStep::Expired(CursorExpiry::Recreated);
    }
    if log.last < revision {
        return ResumeStep::Expired(CursorExpiry::AheadOfLog { revision, last: log.last });
    }
    if !resume_window_ok(revision, log.first) {
        return ResumeStep::Expired(CursorExpiry::BelowFloor { revision, first: log.first });
    }
    for (witness, finding) in cursor.witnesses.iter().zip(findings) {
        let lie = CursorExpiry::WitnessDisagrees { revision: witness.revision };
        match *finding {
            WitnessFinding::Present { same: true } => return ResumeStep::Resume,
            WitnessFinding::Present { same: false } => return ResumeStep::Expired(lie),
            // The cursor had seen the newest message of the key up to itself, and it was this one.
            WitnessFinding::Gone { last_of_key: Some(last) } if last <= revision => {
                return ResumeStep::Expired(lie);
            }
            WitnessFinding::Gone { .. } => {}
        }
    }
    if findings.len() < cursor.witnesses.len() {
        return ResumeStep::Ask(findings.len());
    }
    ResumeStep::Expired(CursorExpiry::Unproven)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::Retention;
    use crate::protocol::Witness;

    fn cursor(witnesses: &[u64]) -> LogPosition {
        let witnesses = witnesses
            .iter()
            .map(|&revision| Witness { revision, mark: 0, key: Some("k".into()) })
            .collect();
        LogPosition { incarnation: 5, revision: 10, witnesses }
    }

    fn log(incarnation: u64, first: u64, last: u64) -> LogInfo {
        LogInfo { incarnation, first, last, retention: Retention::default() }
    }

    const SAME: WitnessFinding = WitnessFinding::Present { same: true };
    const OTHER: WitnessFinding = WitnessFinding::Present { same: false };
    const SUPERSEDED: WitnessFinding = WitnessFinding::Gone { last_of_key: Some(11) };
    const REPLACED: WitnessFinding = WitnessFinding::Gone { last_of_key: Some(10) };
    const NO_MESSAGE: WitnessFinding = WitnessFinding::Gone { last_of_key: None };

    fn check(cursor: &LogPosition, log: &LogInfo, findings: &[WitnessFinding], step: ResumeStep) {
        assert_eq!(resume_step(cursor, log, findings), step, "{log:?} {findings:?}");
    }

    #[test]
    fn the_window_is_open_while_the_next_revision_can_be_there() {
        assert!(resume_window_ok(10, 11));
        assert!(!resume_window_ok(10, 12));
        assert!(resume_window_ok(u64::MAX, u64::MAX));
    }

    #[test]
    fn another_log_expires_the_cursor_before_any_witness_is_asked() {
        use CursorExpiry::{AheadOfLog, BelowFloor, Recreated};
        let cursor = cursor(&[10]);
        check(&cursor, &log(6, 1, 20), &[], ResumeStep::Expired(Recreated));
        let ahead = AheadOfLog { revision: 10, last: 9 };
        check(&cursor, &log(5, 1, 9), &[], ResumeStep::Expired(ahead));
        let below = BelowFloor { revision: 10, first: 12 };
        check(&cursor, &log(5, 12, 20), &[], ResumeStep::Expired(below));
        check(&cursor, &log(5, 11, 10), &[], ResumeStep::Ask(0));
    }

    #[test]
    fn the_first_conclusive_witness_decides() {
        let (cursor, log) = (cursor(&[10, 8]), log(5, 1, 20));
        let lie = |revision| ResumeStep::Expired(CursorExpiry::WitnessDisagrees { revision });
        check(&cursor, &log, &[SAME], ResumeStep::Resume);
        check(&cursor, &log, &[OTHER], lie(10));
        check(&cursor, &log, &[REPLACED], lie(10));
        check(&cursor, &log, &[SUPERSEDED], ResumeStep::Ask(1));
        check(&cursor, &log, &[NO_MESSAGE], ResumeStep::Ask(1));
        check(&cursor, &log, &[SUPERSEDED, SAME], ResumeStep::Resume);
        check(&cursor, &log, &[SUPERSEDED, REPLACED], lie(8));
    }

    #[test]
    fn a_cursor_that_nothing_speaks_for_expires() {
        let unproven = ResumeStep::Expired(CursorExpiry::Unproven);
        check(&cursor(&[10, 8]), &log(5, 1, 20), &[SUPERSEDED, NO_MESSAGE], unproven);
        check(&cursor(&[]), &log(5, 1, 20), &[], unproven);
    }
}
