//! The list of the contracts about holds.

/// The tests of holds, which every backend has: part of [`charging_conformance!`](crate::charging_conformance), on a
/// store for charging.
#[macro_export]
macro_rules! holds_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            hold_batches::a_batch_holds_the_last_credits_in_order,
            hold_batches::a_batch_settles_holds_of_several_accounts,
            hold_batches::a_hold_is_opened_and_settled_in_one_batch,
            hold_batches::a_hold_is_settled_by_one_caller,
            hold_batches::a_lease_of_nothing_ends_at_once,
            hold_batches::a_renewal_races_with_the_end_of_the_lease,
            hold_batches::a_settled_hold_makes_room_in_its_batch,
            hold_batches::racing_holds_and_captures_add_up,
            hold_batches::the_last_credits_are_held_once,
            hold_batches::updates_of_one_batch_are_decided_in_order,
            hold_usage::a_capture_on_the_next_day_counts_for_no_window,
            hold_usage::a_hold_alone_books_nothing,
            hold_usage::captured_usage_is_booked_on_the_day_of_the_hold,
            hold_usage::entries_of_settled_holds_are_separate_by_kind,
            hold_usage::rate_limits_count_a_hold_once,
            hold_usage::settled_holds_are_listed_with_their_kind,
            holds::a_capture_in_full_may_make_a_debt,
            holds::a_capture_returns_the_rest,
            holds::a_fallback_is_at_most_what_is_held,
            holds::a_hold_expires_with_its_lease,
            holds::a_hold_is_settled_once,
            holds::a_hold_must_be_covered,
            holds::a_late_capture_counts,
            holds::a_release_returns_everything,
            holds::a_renewed_hold_expires_later,
            holds::an_open_hold_lowers_the_balance,
            holds::an_unknown_hold_is_none,
            holds::held_credits_are_part_of_every_account,
            holds::leases_are_stored_to_the_millisecond,
        }
    };
}
