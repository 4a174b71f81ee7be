//! The list of cases against the matrix of operations and answers.

use std::collections::BTreeSet;

use gossip_coordination::conformance::{CASES, Cell, MATRIX, Operation, out_of_reach};

fn matrix() -> BTreeSet<Cell> {
    MATRIX.iter().flat_map(|row| row.cells()).collect()
}

fn covered() -> BTreeSet<Cell> {
    CASES.iter().flat_map(|case| case.cells()).collect()
}

#[test]
fn every_cell_of_the_matrix_is_covered_by_a_case() {
    let covered = covered();
    let missing: Vec<Cell> = matrix()
        .into_iter()
        .filter(|cell| !covered.contains(cell) && out_of_reach(*cell).is_none())
        .collect();
    assert!(missing.is_empty(), "no case covers {missing:?}");
}

#[test]
fn no_case_claims_a_cell_that_does_not_exist_or_cannot_be_reached() {
    let matrix = matrix();
    for case in CASES {
        for cell in case.cells() {
            assert!(matrix.contains(&cell), "{} claims {cell:?}", case.name);
            assert_eq!(out_of_reach(cell), None, "{} claims {cell:?}", case.name);
        }
    }
}

#[test]
fn every_case_covers_something_and_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for case in CASES {
        assert!(names.insert((case.family, case.name)), "{} stands twice", case.name);
        assert!(case.cells().next().is_some(), "{} covers nothing", case.name);
    }
}

#[test]
fn every_operation_has_one_row() {
    let rows: Vec<Operation> = MATRIX.iter().map(|row| row.operation).collect();
    assert_eq!(rows, Operation::ALL);
}

/// The documents' routing matrix, written out: which refusals each leased operation may return.
#[test]
fn the_matrix_is_the_one_of_the_documents() {
    let leased = "ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal";
    let cursor = "CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge \
                  CheckpointMissingKey";
    let matrix: BTreeSet<String> = matrix()
        .into_iter()
        .map(|(operation, aspect)| format!("{operation:?} {aspect:?}"))
        .collect();
    let all = format!("{leased} OpIdConflict {cursor} SplitInvalid");
    for (operation, accepted) in [
        ("Renew", leased.to_owned()),
        ("Checkpoint", format!("{leased} OpIdConflict {cursor}")),
        ("Complete", format!("{leased} OpIdConflict {cursor}")),
        ("Park", format!("{leased} OpIdConflict")),
        ("SplitReplace", format!("{leased} OpIdConflict SplitInvalid")),
        ("SplitResidual", format!("{leased} OpIdConflict SplitInvalid")),
    ] {
        for variant in all.split_whitespace() {
            let expected = accepted.split_whitespace().any(|accepted| accepted == variant);
            let found = matrix.contains(&format!("{operation} {variant}"));
            assert_eq!(found, expected, "{operation} {variant}");
        }
    }
}
