//! The progress line on a terminal.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gossip_runtime::ScanStats;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};

/// Draws what `stats` says until `done` is set. `expected_bytes` is what the last complete scan of
/// the same target read or knew; with it there is an estimate of the time left.
pub(crate) fn draw(stats: &ScanStats, expected_bytes: Option<u64>, done: &AtomicBool) {
    if !std::io::stderr().is_terminal() {
        return;
    }
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("{spinner} {msg}").expect("a valid template"));
    let started = Instant::now();
    while !done.load(Ordering::Relaxed) {
        let mut message = counts(stats, started.elapsed());
        let done = stats.bytes() + stats.unchanged_bytes();
        if let Some(left) = time_left(done, expected_bytes, started.elapsed()) {
            message.push_str(&format!(", about {} left", HumanDuration(left)));
        }
        bar.set_message(message);
        bar.tick();
        std::thread::sleep(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

fn counts(stats: &ScanStats, elapsed: Duration) -> String {
    let bytes = stats.bytes();
    let rate = bytes as f64 / elapsed.as_secs_f64().max(0.001);
    format!(
        "{} items ({} unchanged), {}, {}/s, {} findings",
        stats.items(),
        stats.unchanged(),
        HumanBytes(bytes),
        HumanBytes(rate as u64),
        stats.findings(),
    )
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
