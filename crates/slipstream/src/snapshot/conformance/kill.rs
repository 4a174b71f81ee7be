//! Processes that are killed while they apply as fast as they can.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use super::{Model, batch, contents, cursor, fold_into, libtest_name, number, place, scale};
use crate::snapshot::SnapshotStore;

/// Set in a process that is to be killed: the path of its fold.
pub const CHILD: &str = "SLIPSTREAM_CONFORMANCE_CHILD";

/// `name` is the test that calls, with the crate's name before it.
pub fn killed<S: SnapshotStore>(name: &str) {
    if let Some(path) = std::env::var_os(CHILD) {
        apply_for_ever::<S>(Path::new(&path));
    }
    let (_dir, path) = place();
    let name = libtest_name(name);
    let (mut model, mut modelled) = (Model::new(), 0);
    let mut killed_in_the_middle = 0;
    for kill in 0..20 * scale() {
        let acknowledged = run_and_kill(&path, name, Duration::from_millis(3 + kill * 7 % 40));
        let (at, store) = S::load(&path).unwrap();
        let at = number(&at);
        assert!(at >= acknowledged, "batch {acknowledged} was applied, the fold is at {at}");
        assert!(at >= modelled, "the fold went back from {modelled} to {at}");
        killed_in_the_middle += u64::from(at > modelled);
        while modelled < at {
            modelled += 1;
            fold_into(&mut model, &batch(modelled));
        }
        assert!(contents(&store) == model, "the fold is not what {at} batches make");
    }
    assert!(killed_in_the_middle > 0, "nobody got to apply anything");
}

/// The test binary again, for one test and with a fold of its own.
pub(super) fn child(path: &Path, name: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets a child apply for a while; the last batch of which it said that it was applied.
fn run_and_kill(path: &Path, name: &str, after: Duration) -> u64 {
    let mut child = child(path, name);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut acknowledged = 0;
    let mut note = |line: String| {
        if let Some(n) = line.strip_prefix('@') {
            acknowledged = n.parse().unwrap();
        }
    };
    // The clock starts when it is at work.
    for line in lines.by_ref() {
        let at_work = line.starts_with('@');
        note(line);
        if at_work {
            break;
        }
    }
    let reaper = thread::spawn(move || {
        thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap()
    });
    let mut whole = String::new();
    for line in lines {
        // The last line may have been cut off: it counts when another follows.
        note(std::mem::replace(&mut whole, line));
    }
    assert!(!reaper.join().unwrap().success());
    acknowledged
}

fn apply_for_ever<S: SnapshotStore>(path: &Path) -> ! {
    let (at, mut store) = S::load(path).unwrap();
    let mut n = number(&at);
    let mut out = std::io::stdout().lock();
    // libtest has begun a line.
    writeln!(out).unwrap();
    loop {
        n += 1;
        store.apply(&batch(n), &cursor(n)).unwrap();
        writeln!(out, "@{n}").unwrap();
        out.flush().unwrap();
    }
}
