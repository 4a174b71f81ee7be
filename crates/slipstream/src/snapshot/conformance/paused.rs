//! A reader in the middle of a call.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::snapshot::{SnapshotError, SnapshotReader};

/// Somebody who has the first entry of a range, and waits.
pub(super) struct Paused {
    told: Sender<()>,
    reading: JoinHandle<Result<Vec<String>, SnapshotError>>,
}

impl Paused {
    pub(super) fn in_a_range(reader: impl SnapshotReader + 'static) -> Self {
        let (reached, middle) = mpsc::channel();
        let (told, go_on) = mpsc::channel();
        let reading = thread::spawn(move || {
            let mut seen = Vec::new();
            let range = reader.for_each_in_range("", &mut |entry| {
                if seen.is_empty() {
                    reached.send(()).unwrap();
                    go_on.recv().unwrap();
                }
                seen.push(entry.key.to_owned());
                ControlFlow::Continue(())
            });
            range.map(|()| seen)
        });
        middle.recv().unwrap();
        Self { told, reading }
    }

    /// The keys of all of it.
    pub(super) fn go_on(self) -> Result<Vec<String>, SnapshotError> {
        self.told.send(()).unwrap();
        self.reading.join().unwrap()
    }
}
