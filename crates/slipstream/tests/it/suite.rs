//! One suite over every backend: each case is a test of its own per backend.

macro_rules! cases {
    ($module:ident: $($case:ident),+ $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                crate::$module::$case(crate::backend::Memory::start().await).await;
            })+
        }
        mod nats {
            $(#[tokio::test]
            async fn $case() {
                crate::$module::$case(crate::backend::Nats::start().await).await;
            })+
        }
    };
}

mod reads {
    cases!(reads:
        a_key_that_was_never_written_has_no_entry,
        the_last_value_and_its_version_are_read,
        deletes_hide_the_value_and_leave_the_version,
        a_bucket_that_exists_is_returned_as_it_is,
        the_capabilities_of_a_connection_are_those_of_its_buckets,
        a_bucket_that_does_not_exist_is_not_found,
        names_that_cannot_be_are_refused,
        many_keys_are_read_in_their_order,
        buckets_are_named,
        listings_have_every_key_of_the_prefix,
        a_prefix_is_one_of_text,
        listings_hide_what_was_deleted,
        a_listing_of_thousands_is_complete,
        a_listing_beside_a_writer_has_every_key_once,
        a_listing_beside_a_writer_has_every_key_once_with_history,
        keys_and_values_over_the_limits_are_refused_and_change_nothing,
        a_full_bucket_refuses,
        a_full_bucket_that_evicts_says_so,
    );
}

mod cas {
    cases!(cas:
        create_is_exclusive,
        one_of_many_creators_wins,
        create_works_over_every_kind_of_delete,
        update_needs_the_current_version,
        a_deleted_key_is_updated_at_its_version,
        versioned_delete_needs_the_current_version,
        versioned_delete_hides_the_key_and_shows_its_version,
        versions_of_other_stores_are_refused,
    );
}

mod watches {
    cases!(watches:
        a_watch_lists_the_state_and_goes_on,
        a_watch_of_a_prefix_lists_the_state_and_goes_on,
        an_empty_bucket_is_in_sync_at_once,
        deletes_are_part_of_the_state,
        updates_ascend_and_come_once,
        a_prefix_is_watched,
        a_prefix_that_ends_within_a_token_is_watched,
        many_prefixes_are_one_watch,
        a_scope_without_a_prefix_is_refused,
        a_resumed_watch_brings_the_delta_only,
        a_resumed_watch_of_a_prefix_brings_the_delta_only,
        a_cursor_from_the_middle_of_a_state_sync_loses_nothing,
        a_cursor_from_the_middle_of_a_watch_says_how_far_the_log_went,
        a_cursor_outlives_many_resumes_without_news,
        without_a_position_there_is_no_cursor,
        a_cursor_below_the_floor_has_expired,
        a_cursor_of_other_keys_is_refused,
        a_cursor_at_the_floor_goes_on,
        a_bucket_made_again_is_told_from_the_old_one,
        bytes_that_are_no_cursor_have_expired,
        an_overwritten_witness_leaves_it_to_the_next,
        a_cursor_whose_witnesses_are_all_overwritten_has_expired,
        long_keys_leave_room_for_a_witness,
        a_chunk_has_no_more_updates_than_were_asked_for,
        a_dropped_wait_takes_nothing,
        a_slow_reader_loses_nothing,
        what_is_evicted_under_a_watch_is_skipped_in_silence,
        progress_tells_what_is_pending_and_where_the_log_begins,
        an_advanced_watch_resumes_from_there,
        updates_are_pushed_into_a_channel,
        a_channel_without_a_reader_ends_the_watch,
    );
}

mod ttl {
    cases!(ttl:
        a_bucket_without_expiry_vends_no_expiring_writes,
        an_expired_key_is_gone_and_watches_report_it,
        create_with_expiry_is_exclusive_until_then,
        an_expiry_is_whole_seconds,
        an_expiry_above_a_history_is_refused,
        what_is_too_old_leaves_the_log,
    );
}
