//! The list of the contracts about holds.

/// The tests of holds, which every backend has: part of [`charging_conformance!`](crate::charging_conformance), on a
/// store for charging.
#[macro_export]
macro_rules! holds_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
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
