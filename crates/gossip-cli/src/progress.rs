//! The progress line on a terminal: how far, how fast, how long still.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gossip_runtime::{Reports, ScanStats, StateDir};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

/// How often the line is drawn, and after how many times the database is asked for shards.
const TICK: Duration = Duration::from_millis(100);
const TICKS_PER_LOOK: u32 = 10;

/// What a scan has done so far.
pub(crate) struct Progress<'p> {
    pub(crate) state: &'p StateDir,
    pub(crate) target: &'p [u8],
    pub(crate) stats: &'p ScanStats,
    /// What the last complete scan of the same target read or knew; with it there is an estimate of
    /// the time left.
    pub(crate) expected_bytes: Option<u64>,
}

impl Progress<'_> {
    /// Runs `scan`, and draws the line meanwhile if there is a terminal.
    pub(crate) fn shown_during<R>(&self, scan: impl FnOnce() -> R) -> R {
        if !std::io::stderr().is_terminal() {
            return scan();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| self.draw(&done));
            // However the scan ends: the scope waits for the line.
            let _done = SetOnDrop(&done);
            scan()
        })
    }

    fn draw(&self, done: &AtomicBool) {
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a valid template"));
        let started = Instant::now();
        // A line that cannot tell the shards is no reason to stop a scan.
        let reports = Reports::open(self.state).ok();
        let mut shards = None;
        for tick in 0_u32.. {
            if done.load(Ordering::Relaxed) {
                break;
            }
            // A run that is just being planned has none yet.
            if tick % TICKS_PER_LOOK == 0 || shards.is_none() {
                let progress = reports.as_ref().map(|reports| reports.open_progress(self.target));
                let progress = progress.and_then(|progress| progress.ok().flatten());
                shards = progress.map(|shards| (shards.done, shards.active + shards.done));
            }
            let elapsed = started.elapsed();
            let passed = self.stats.bytes() + self.stats.unchanged_bytes();
            let left = time_left(passed, self.expected_bytes, elapsed);
            bar.set_message(message(self.stats, shards, left, elapsed));
            bar.tick();
            std::thread::sleep(TICK);
        }
        bar.finish_and_clear();
    }
}

struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn message(
    stats: &ScanStats,
    shards: Option<(u64, u64)>,
    left: Option<Duration>,
    elapsed: Duration,
) -> String {
    let bytes = stats.bytes();
    let rate = bytes as f64 / elapsed.as_secs_f64().max(0.001);
    let mut message = String::new();
    if let Some((done, all)) = shards.filter(|(_, all)| *all > 0) {
        message.push_str(&format!("{done} of {all} shards, "));
    }
    message.push_str(&format!(
        "{} items ({} unchanged), {}, {}/s, {} matches",
        stats.items(),
        stats.unchanged(),
        HumanBytes(bytes),
        HumanBytes(rate as u64),
        stats.findings(),
    ));
    if let Some(left) = left {
        message.push_str(&format!(", about {} left", HumanDuration(left)));
    }
    message
}

/// What has passed, read or known to be unchanged, at the pace of what has passed so far.
fn time_left(done: u64, expected_bytes: Option<u64>, elapsed: Duration) -> Option<Duration> {
    let left = expected_bytes?.checked_sub(done).filter(|left| *left > 0)?;
    let rate = done as f64 / elapsed.as_secs_f64();
    let is_known = elapsed > Duration::from_secs(1) && rate > 1.0;
    is_known.then(|| Duration::from_secs_f64(left as f64 / rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_how_fast_and_how_long() {
        let (stats, second) = (ScanStats::default(), Duration::from_secs(1));
        let line = message(&stats, Some((3, 8)), Some(second * 90), second);
        assert!(line.starts_with("3 of 8 shards, 0 items (0 unchanged), 0 B, 0 B/s"), "{line}");
        assert!(line.ends_with("about 2 minutes left"), "{line}");
        assert!(message(&stats, None, None, second).starts_with("0 items"));
    }

    #[test]
    fn the_time_left_follows_from_the_pace_so_far() {
        let minute = Duration::from_secs(60);
        assert_eq!(time_left(600, Some(1_200), minute), Some(minute));
        assert_eq!(time_left(600, Some(600), minute), None);
        assert_eq!(time_left(700, Some(600), minute), None);
        assert_eq!(time_left(600, None, minute), None);
        assert_eq!(time_left(0, Some(600), minute), None);
        assert_eq!(time_left(600, Some(1_200), Duration::from_millis(10)), None);
    }
}
