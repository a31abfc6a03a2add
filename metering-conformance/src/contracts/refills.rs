//! The list of the contracts about recurring credits.

/// The tests of [`RefillStore`](metering_core::store::RefillStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! refills_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            refills::a_changed_rule_does_not_refill_again,
            refills::a_lagging_clock_refills_nobody,
            refills::a_new_account_waits_for_the_next_period,
            refills::a_refill_is_a_grant_in_the_ledger: verified,
            refills::a_refill_rule_is_stored_unchanged,
            refills::a_refill_stops_at_the_cap: verified,
            refills::a_revoked_account_is_not_refilled,
            refills::a_rule_changed_halfway_refills_the_rest,
            refills::an_account_at_the_cap_had_its_turn,
            refills::an_account_is_refilled_once_in_a_period: verified,
            refills::an_unverified_account_gets_nothing,
            refills::concurrent_refills_are_written_once: verified,
            refills::held_credits_count_up_to_the_cap: verified,
            refills::refills_are_limited_and_continue,
            refills::refills_at_the_end_of_the_range_are_exact: verified,
            refills::without_a_rule_nobody_is_refilled,
        }
    };
}
