//! Runs a case and holds it to what it claims to cover.

use std::cell::{Cell as StdCell, RefCell};
use std::collections::BTreeSet;
use std::process::Command;

use super::harness::Harness;
use super::list::{CASES, body};
use super::matrix::{Aspect, Cell, MATRIX, Operation};

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The family that it belongs to: the module of its test.
    pub family: &'static str,
    /// What it states: the name of its test.
    pub name: &'static str,
    /// What it covers.
    pub covers: &'static [Covers],
}

/// Some cells of the matrix: each of the operations with each of the aspects.
#[derive(Clone, Copy, Debug)]
pub struct Covers {
    /// The operations that the case calls.
    pub operations: &'static [Operation],
    /// The answers that it asks for.
    pub aspects: &'static [Aspect],
}

impl Case {
    /// The cells that it covers.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.covers.iter().flat_map(|covers| {
            let aspects =
                |&operation| covers.aspects.iter().map(move |&aspect| (operation, aspect));
            covers.operations.iter().flat_map(aspects)
        })
    }
}

thread_local! {
    static SEEN: RefCell<BTreeSet<Cell>> = const { RefCell::new(BTreeSet::new()) };
    static SKIPPED: StdCell<Option<&'static str>> = const { StdCell::new(None) };
}

/// Notes that an operation has answered or done this.
///
/// # Panics
/// If it never may.
pub(super) fn observe(cell: Cell) {
    let known = MATRIX.iter().copied().flat_map(|row| row.cells()).any(|known| known == cell);
    assert!(known, "{cell:?} is not in the matrix: no {:?} may do that", cell.0);
    SEEN.with_borrow_mut(|seen| seen.insert(cell));
}

/// Ends a case that asks for something which the backend does not have.
pub(super) fn skip(reason: &'static str) {
    SKIPPED.set(Some(reason));
}

/// Runs one case.
///
/// # Panics
/// If the backend fails it, if there is no such case, or if the case has not seen all that it
/// claims to cover.
pub fn run_case<H: Harness>(family: &str, name: &str) {
    let case = CASES
        .iter()
        .find(|case| (case.family, case.name) == (family, name))
        .unwrap_or_else(|| panic!("there is no case {family}::{name}"));
    let body = body::<H>(family, name).expect("every case has a body");
    SEEN.with_borrow_mut(BTreeSet::clear);
    SKIPPED.set(None);
    body();
    if let Some(reason) = SKIPPED.get() {
        println!("{family}::{name} was skipped: {reason}");
        return;
    }
    let unseen: Vec<Cell> =
        SEEN.with_borrow(|seen| case.cells().filter(|cell| !seen.contains(cell)).collect());
    assert!(unseen.is_empty(), "{family}::{name} claims to cover {unseen:?} but did not see it");
}

/// Asks the running test binary for its tests and panics unless every case is one of them.
///
/// # Panics
/// If a case is missing, or if the binary cannot be asked.
pub fn assert_all_emitted(module: &str) {
    let binary = std::env::current_exe().expect("a test knows its binary");
    let listed = Command::new(binary)
        .args(["--list", "--format", "terse"])
        .output()
        .expect("the test binary lists its tests");
    let listed = String::from_utf8(listed.stdout).expect("test names are text");
    let listed: BTreeSet<&str> = listed.lines().collect();
    // The first segment is the crate, which test names leave out.
    let prefix = module.split_once("::").map_or(String::new(), |(_, path)| format!("{path}::"));
    for case in CASES {
        let line = format!("{prefix}{}::{}: test", case.family, case.name);
        assert!(listed.contains(line.as_str()), "no test runs {}::{}", case.family, case.name);
    }
}
