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
        bar.set_message(line(stats, expected_bytes, started.elapsed()));
        bar.tick();
        std::thread::sleep(Duration::from_millis(100));
    }
    bar.finish_and_clear();
}

fn line(stats: &ScanStats, expected_bytes: Option<u64>, elapsed: Duration) -> String {
    let bytes = stats.bytes();
    let rate = bytes as f64 / elapsed.as_secs_f64().max(0.001);
    let mut line = format!(
        "{} items ({} unchanged), {}, {}/s, {} findings",
        stats.items(),
        stats.unchanged(),
        HumanBytes(bytes),
        HumanBytes(rate as u64),
        stats.findings(),
    );
    if let Some(left) = expected_bytes.and_then(|expected| expected.checked_sub(bytes))
        && left > 0
        && rate > 1.0
        && elapsed > Duration::from_secs(1)
    {
        let left = Duration::from_secs_f64(left as f64 / rate);
        line.push_str(&format!(", about {} left", HumanDuration(left)));
    }
    line
}
