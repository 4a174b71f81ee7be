//! One suite for every connector: implement [`Harness`], write one line, and get a test per case.
//!
//! ```text
//! gossip_contracts::connector_conformance_suite!(MyHarness);
//! ```
//!
//! The cases ask for what the [contract](super) promises (K1 to K4) of a target whose keys and
//! contents they choose, from every cursor, in every page size, over every range that makes a
//! difference. What a source cannot do, or a harness cannot arrange, a case says aloud and leaves
//! out.

mod harness;
mod items;
mod lists;
mod probe;
mod splits;
#[cfg(test)]
mod tests;

pub use harness::{Harness, Item, sample_paths};

/// Hands the list of cases to a macro; it is the only one.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_connector_case {
    ([$($emit:tt)+]) => { $($emit)+! {
        lists {
            every_key_is_listed_once_in_byte_order
            an_empty_target_lists_nothing_and_says_so
            every_key_lies_in_the_key_range
            any_page_size_gives_the_same_listing
            listing_from_any_cursor_gives_what_follows
            listing_a_range_gives_what_is_in_it
            a_cursor_inside_a_range_and_one_before_it
            a_page_is_replaced_not_continued
            tokens_lead_where_keys_lead
            another_connector_goes_on_where_one_stopped
            listings_in_turns_do_not_disturb_each_other
            threads_list_at_once
            what_is_removed_is_no_longer_listed
            what_appears_ahead_of_the_cursor_is_listed
            sizes_are_listed
        }
        items {
            an_item_reads_as_it_was_put
            an_item_is_called_the_same_open_or_not
            reads_may_start_anywhere
            a_read_at_or_behind_the_end_gives_nothing
            versions_are_as_declared
            an_unchanged_item_keeps_its_version
            a_changed_item_has_another_version
            a_version_settles_once_and_for_all
            a_change_under_a_reader_shows
            a_removed_item_is_not_found
            a_key_that_never_was_is_not_found
            a_denied_item_is_reported_and_the_rest_is_not_lost
            nothing_outside_the_target_is_read
            errors_hold_no_key
        }
        splits {
            points_are_ascending_inside_and_behind_the_cursor
            the_parts_together_are_the_whole
            a_source_that_declares_points_finds_some
        }
    } };
}

macro_rules! as_bodies {
    ($($family:ident { $($name:ident)* })*) => {
        /// Runs the case called `name`, as `family::case`, for `H`.
        ///
        /// # Panics
        /// If the connector does not do what the case asks for, or there is no such case.
        pub fn run_case<H: Harness>(name: &str) {
            match name {
                $($(concat!(stringify!($family), "::", stringify!($name)) => {
                    $family::$name::<H>();
                })*)*
                _ => panic!("there is no case {name}"),
            }
        }
    };
}
for_each_connector_case! { [as_bodies] }

/// Emits one `#[test]` for each case of the suite, in a module for each family, for the
/// [`Harness`](crate::connector::conformance::Harness) named. Put it into a module of its own.
#[macro_export]
macro_rules! connector_conformance_suite {
    ($harness:ty) => {
        /// What the suite is run against.
        type ConformanceSubject = $harness;

        $crate::for_each_connector_case! { [$crate::__emit_connector_tests] }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __emit_connector_tests {
    ($($family:ident { $($name:ident)* })*) => {$(
        mod $family {
            $(
                #[test]
                fn $name() {
                    $crate::connector::conformance::run_case::<super::ConformanceSubject>(
                        concat!(stringify!($family), "::", stringify!($name)),
                    );
                }
            )*
        }
    )*};
}
