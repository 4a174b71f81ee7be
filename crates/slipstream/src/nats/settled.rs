//! A log that looks shorter than it was.
//!
//! A copy of a replicated log that has just become its leader may answer before it has taken in all
//! that the others had agreed on. So it is asked again before it is believed. A log that did lose
//! its end may be written to meanwhile, until it looks whole; when that was tells the two apart.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::kv::{KvError, LogInfo};

/// How long it is asked again: less than a fold gives a watch to begin.
const PATIENCE: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_millis(100);

/// What a log is like, as somebody said.
pub(super) struct Reading {
    pub(super) log: LogInfo,
    /// Whether there are other copies, from which another answer may come.
    pub(super) replicated: bool,
}

/// Reads a log that once was of this `incarnation` and went to `end`. `stored_at_ms` is when the
/// first message from there on was stored, by the server's clock.
pub(super) async fn settled<R, S>(
    incarnation: u64,
    end: u64,
    read: impl Fn() -> R,
    stored_at_ms: impl Fn() -> S,
) -> Result<LogInfo, KvError>
where
    R: Future<Output = Result<Reading, KvError>>,
    S: Future<Output = Result<Option<u64>, KvError>>,
{
    let is_short = |log: &LogInfo| log.incarnation == incarnation && log.last < end;
    let Reading { log: short, replicated } = read().await?;
    if !replicated || !is_short(&short) {
        return Ok(short);
    }
    tracing::info!(last = short.last, end, "the log looks shorter than it was; asking again");
    let mut log = short;
    let give_up_at = Instant::now() + PATIENCE;
    while is_short(&log) && Instant::now() < give_up_at {
        sleep(ASK_EVERY).await;
        log = read().await?.log;
    }
    if is_short(&log) || log.incarnation != incarnation {
        return Ok(log);
    }
    let was_there = stored_at_ms().await?.is_some_and(|at_ms| at_ms < short.read_at_ms);
    Ok(if was_there { log } else { short })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use super::*;
    use crate::kv::Retention;

    const READ_AT_MS: u64 = 1000;

    fn log(incarnation: u64, last: u64) -> LogInfo {
        let retention = Retention::default();
        LogInfo { incarnation, first: 1, last, retention, subjects: 1, read_at_ms: READ_AT_MS }
    }

    /// Answers one after the other, the last one for ever; the head that is believed in a log that
    /// went to 10, and how often it was asked for.
    async fn believed(
        replicated: bool,
        stored_at_ms: Option<u64>,
        answers: &[LogInfo],
    ) -> (Result<LogInfo, KvError>, usize) {
        let asked = Cell::new(0);
        let read = || {
            let log = answers[asked.get().min(answers.len() - 1)];
            asked.set(asked.get() + 1);
            ready(Ok(Reading { log, replicated }))
        };
        let found = settled(1, 10, read, || ready(Ok(stored_at_ms))).await;
        (found, asked.get())
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_is_long_enough_or_another_one_is_believed_at_once() {
        for answer in [log(1, 10), log(1, 11), log(2, 3)] {
            assert_eq!(believed(true, None, &[answer]).await, (Ok(answer), 1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_without_copies_is_believed_at_once() {
        let answers = [log(1, 9), log(1, 10)];
        assert_eq!(believed(false, Some(0), &answers).await, (Ok(answers[0]), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_leader_that_was_late_is_waited_for() {
        let answers = [log(1, 3), log(1, 7), log(1, 12)];
        let before = Some(READ_AT_MS - 1);
        assert_eq!(believed(true, before, &answers).await, (Ok(answers[2]), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_stays_short_is_believed_in_the_end() {
        let answers = [log(1, 8), log(1, 9)];
        assert_eq!(believed(true, None, &answers).await, (Ok(answers[1]), 21));
    }

    /// It lost its end, and other messages have the numbers now.
    #[tokio::test(start_paused = true)]
    async fn a_log_that_was_written_to_while_it_was_asked_stays_short() {
        let answers = [log(1, 9), log(1, 30)];
        for since in [Some(READ_AT_MS), Some(READ_AT_MS + 50), None] {
            assert_eq!(believed(true, since, &answers).await, (Ok(answers[0]), 2));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_that_is_made_again_meanwhile_is_told() {
        let answers = [log(1, 9), log(2, 1)];
        assert_eq!(believed(true, None, &answers).await, (Ok(answers[1]), 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_not_waited_for() {
        let answers = RefCell::new(vec![
            Err(KvError::NotConnected),
            Ok(Reading { log: log(1, 9), replicated: true }),
        ]);
        let read = || ready(answers.borrow_mut().pop().unwrap());
        let found = settled(1, 10, read, || ready(Ok(None))).await;
        assert_eq!(found, Err(KvError::NotConnected));
    }
}
