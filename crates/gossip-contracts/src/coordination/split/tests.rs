use proptest::prelude::*;

use super::*;
use crate::identity::OP_PAYLOAD_V1;

fn spec<'a>(start: &'a [u8], end: &'a [u8]) -> ShardSpecRef<'a> {
    ShardSpecRef::new(start, end, b"meta")
}

#[test]
fn points_cut_a_range_into_adjacent_parts_with_its_metadata() {
    let plan = plan_split_replace_at_points(spec(b"a", b"z"), &[b"f", b"m"]).unwrap();
    assert_eq!(plan.children(), [spec(b"a", b"f"), spec(b"f", b"m"), spec(b"m", b"z")]);
}

#[test]
fn an_unbounded_range_can_be_cut() {
    let plan = plan_split_replace_at_points(spec(b"", b""), &[b"m"]).unwrap();
    assert_eq!(plan.children(), [spec(b"", b"m"), spec(b"m", b"")]);
}

#[test]
fn points_on_or_outside_the_ends_or_out_of_order_are_refused() {
    let inverted = |index| SplitValidationError::ChildInvalid {
        index,
        source: ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 },
    };
    for (points, expected) in [
        (&[&b"a"[..]][..], inverted(0)),
        (&[b"z"], inverted(1)),
        (&[b"m", b"f"], inverted(1)),
        (&[b"f", b""], SplitValidationError::EmptyPoint { index: 1 }),
        (&[], SplitValidationError::TooFewChildren { count: 1 }),
    ] {
        assert_eq!(plan_split_replace_at_points(spec(b"a", b"z"), points), Err(expected));
    }
}

#[test]
fn the_number_of_parts_is_limited() {
    let keys: Vec<[u8; 2]> = (1..=256u16).map(u16::to_be_bytes).collect();
    let points: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let parent = spec(b"\0\0", b"\xff");
    assert_eq!(plan_split_replace_at_points(parent, &points[..255]).unwrap().children().len(), 256);
    assert_eq!(
        plan_split_replace_at_points(parent, &points),
        Err(SplitValidationError::TooManyChildren { count: 257, max: 256 })
    );
}

#[test]
fn each_coverage_fault_has_its_own_error() {
    let parent = spec(b"b", b"y");
    for (children, expected) in [
        ([spec(b"a", b"m"), spec(b"m", b"y")], SplitValidationError::StartMismatch),
        ([spec(b"b", b"m"), spec(b"n", b"y")], SplitValidationError::Gap { index: 0 }),
        ([spec(b"b", b"n"), spec(b"m", b"y")], SplitValidationError::Overlap { index: 0 }),
        ([spec(b"b", b""), spec(b"m", b"y")], SplitValidationError::Overlap { index: 0 }),
        ([spec(b"b", b"m"), spec(b"m", b"z")], SplitValidationError::EndMismatch),
        ([spec(b"b", b"m"), spec(b"m", b"")], SplitValidationError::EndMismatch),
    ] {
        assert_eq!(validate_split_coverage(parent, &children), Err(expected));
        assert_eq!(
            validate_residual_split_bounds(
                parent,
                &SplitResidualPlan::new(children[0], children[1])
            ),
            Err(expected)
        );
    }
}

#[test]
fn a_residual_split_keeps_the_cursor_in_the_parent() {
    let parent = spec(b"a", b"z");
    let at = |key| CursorUpdate::at(key);
    let plan = plan_split_residual_from_cursor(parent, at(b"g"), b"h").unwrap();
    assert_eq!((plan.parent, plan.residual), (spec(b"a", b"h"), spec(b"h", b"z")));
    assert!(plan_split_residual_from_cursor(parent, CursorUpdate::initial(), b"h").is_ok());
    for cursor in [at(b"h"), at(b"i")] {
        assert_eq!(
            plan_split_residual_from_cursor(parent, cursor, b"h"),
            Err(SplitValidationError::CursorNotKept)
        );
        assert_eq!(
            validate_residual_split(parent, cursor, &plan),
            Err(SplitValidationError::CursorNotKept)
        );
    }
    assert_eq!(
        plan_split_residual_at_point(parent, b""),
        Err(SplitValidationError::EmptyPoint { index: 0 })
    );
}

#[test]
fn a_replacement_from_a_cursor_leaves_handled_keys_in_the_first_child() {
    let parent = spec(b"a", b"z");
    assert!(plan_split_replace_from_cursor(parent, CursorUpdate::at(b"c"), &[b"d", b"m"]).is_ok());
    assert_eq!(
        plan_split_replace_from_cursor(parent, CursorUpdate::at(b"d"), &[b"d", b"m"]),
        Err(SplitValidationError::CursorNotKept)
    );
}

#[test]
fn plans_that_differ_hash_differently() {
    let hash = |children: &[ShardSpecRef<'_>]| {
        OP_PAYLOAD_V1.hash(&SplitReplacePlan::new(children.iter().copied()))
    };
    let base = hash(&[spec(b"a", b"b"), spec(b"b", b"c")]);
    assert_eq!(base, hash(&[spec(b"a", b"b"), spec(b"b", b"c")]));
    assert_ne!(base, hash(&[spec(b"a", b"bb"), spec(b"b", b"c")]));
    assert_ne!(base, hash(&[spec(b"a", b"b"), spec(b"b", b"c").with_metadata(b"")]));
    assert_ne!(base, hash(&[spec(b"a", b"b")]));
}

proptest! {
    /// P1, from the keys' side: every key of the parent belongs to exactly one part, every other to none.
    #[test]
    fn a_valid_split_gives_every_key_exactly_one_part(
        mut points in proptest::collection::btree_set("[b-y]{1,3}", 1..20),
        keys in proptest::collection::vec("[a-z]{0,4}", 50),
    ) {
        points.remove("b");
        prop_assume!(!points.is_empty());
        let points: Vec<&[u8]> = points.iter().map(|point| point.as_bytes()).collect();
        let parent = spec(b"b", b"z");
        let plan = plan_split_replace_at_points(parent, &points).unwrap();
        for key in &keys {
            let owners = plan.children().iter().filter(|child| child.contains(key.as_bytes())).count();
            prop_assert_eq!(owners, usize::from(parent.contains(key.as_bytes())));
        }
    }
}
