//! Called off: while it is planned, while it is worked on, and half.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::identity::RunId;
use gossip_coordination::RunStatus;
use gossip_coordination_sqlite::rusqlite::Connection;
use gossip_runtime::{Admin, Reports, ScanEnd, ScanOptions, ScanOutcome};

use crate::support::{Place, Watched, content, file_name};

const FIRST: RunId = RunId::from_raw(1);

/// The first run is called off in some way while it is planned, another scans everything, and the first
/// goes on.
fn cancelled_while_planned(
    call_off: impl Fn(&Place) -> ScanOutcome + Sync,
) -> (Place, ScanOutcome) {
    let place = Place::with_files(60);
    let second = Mutex::new(None);
    let mut source = place.source();
    source.on_plan = Some(Box::new(|| {
        second.lock().unwrap().get_or_insert_with(|| call_off(&place));
    }));
    let first = place.scan(&source).unwrap();
    assert_eq!(source.keys_read(), Vec::<String>::new());
    drop(source);
    assert_eq!((first.run, first.end), (FIRST, ScanEnd::Cancelled));
    let second = second.into_inner().unwrap().expect("it was planned");
    (place, second)
}

fn check_the_second_has_everything(place: &Place, second: &ScanOutcome) {
    assert_eq!((second.run, second.end), (RunId::from_raw(2), ScanEnd::Finished));
    assert_eq!(place.places(second), place.undisturbed());
    let summary = place.summary(second);
    assert_eq!((summary.status, summary.items, summary.findings), (RunStatus::Done, 60, 20));
    let first = Reports::open(&place.state).unwrap().run(FIRST).unwrap();
    assert_eq!((first.status, first.ended_ms.is_some()), (RunStatus::Cancelled, true));
    let source = place.source();
    let third = place.scan(&source).unwrap();
    assert_eq!(source.keys_read(), Vec::<String>::new());
    assert_eq!(place.places(&third), place.undisturbed());
}

/// It used to be worked on all the same, and took items from the run after it, which then forgot them.
#[test]
fn a_run_that_is_called_off_while_it_is_planned_is_not_worked_on() {
    let (place, second) = cancelled_while_planned(|place| {
        Admin::open(&place.state).unwrap().cancel(FIRST).unwrap();
        place.scan(&place.source()).unwrap()
    });
    check_the_second_has_everything(&place, &second);
}

#[test]
fn a_fresh_scan_calls_off_a_run_that_is_being_planned() {
    let (place, second) = cancelled_while_planned(|place| {
        let options = ScanOptions { fresh: true, ..place.options.clone() };
        place.scan_with(&options, &place.source()).unwrap()
    });
    check_the_second_has_everything(&place, &second);
}

/// As a process leaves it that dies between the two ends: that of the scan and that in coordination.
fn cancel_half(place: &Place) {
    let database = Connection::open(place.state.database_path()).unwrap();
    let half = "UPDATE scan_runs SET ended_ms = 7, cancelled = 1 WHERE run = 1";
    assert_eq!(database.execute(half, []).unwrap(), 1);
}

#[test]
fn nothing_more_is_committed_for_a_run_of_which_only_the_scan_was_called_off() {
    let mut place = Place::with_files(60);
    place.options.threads = 1;
    let (second, is_cancelled) = (Mutex::new(None), AtomicBool::new(false));
    let source = Watched::with_hook(&place.tree, |key, _| {
        if key == file_name(2).as_bytes() && !is_cancelled.swap(true, Ordering::Relaxed) {
            cancel_half(&place);
            // One that the second has before the first commits.
            place.write(&file_name(2), &content(3));
            *second.lock().unwrap() = Some(place.scan(&place.source()).unwrap());
        }
    });
    let first = place.scan(&source).unwrap();
    assert_eq!((first.run, first.end), (FIRST, ScanEnd::Cancelled));
    let second = second.lock().unwrap().expect("it was read");
    assert_eq!((second.run, second.end), (RunId::from_raw(2), ScanEnd::Finished));
    assert_eq!(place.places(&second), place.undisturbed());
    assert_eq!(place.summary(&second).findings, 21);
}

/// It used to be shown as done.
#[test]
fn a_run_of_which_only_the_scan_was_called_off_is_shown_as_cancelled() {
    let place = Place::with_files(6);
    let source = Watched::with_hook(&place.tree, |_, _| panic!("this panic is part of the test"));
    place.scan(&source).unwrap_err();
    cancel_half(&place);
    let first = Reports::open(&place.state).unwrap().run(FIRST).unwrap();
    assert_eq!(first.status, RunStatus::Cancelled);
    Admin::open(&place.state).unwrap().cancel(FIRST).unwrap();
    assert_eq!(place.scan(&place.source()).unwrap().run, RunId::from_raw(2));
}
