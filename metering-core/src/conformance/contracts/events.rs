//! The list of the contracts about events and webhooks.

/// The tests of [`EventStore`](crate::store::EventStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! events_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            event_alerts::a_batch_tells_each_level_once,
            event_alerts::a_low_balance_is_told_once,
            event_alerts::a_new_threshold_arms_the_alert_again,
            event_alerts::a_refusal_for_lack_of_credits_is_told_once,
            event_alerts::a_settled_hold_tells_the_new_threshold,
            event_alerts::a_threshold_is_stored_with_its_account,
            event_alerts::alerts_follow_the_order_of_a_batch,
            event_alerts::entries_raise_and_lower_alerts,
            event_alerts::holds_and_captures_are_told,
            event_alerts::only_lack_of_credits_exhausts_a_balance,
            event_alerts::racing_requests_tell_each_level_once,
            event_alerts::without_a_threshold_only_exhaustion_is_told,
            event_budgets::a_budget_is_told_low_and_exhausted_once,
            event_budgets::a_budgets_threshold_is_stored_with_its_key,
            event_budgets::a_first_keys_budget_is_told,
            event_budgets::a_new_period_tells_a_budget_again,
            event_budgets::a_raised_limit_arms_the_alert_again,
            event_budgets::a_refusal_by_a_budget_is_told_once,
            event_budgets::a_settled_hold_tells_its_keys_new_threshold_once,
            event_budgets::an_ended_period_tells_nothing,
            event_budgets::keys_above_are_told_too,
            event_budgets::racing_requests_tell_a_budget_once,
            event_causes::a_leak_is_told_once,
            event_causes::a_recovery_tells_the_revoked_managers,
            event_causes::an_expired_hold_is_told_once,
            event_causes::changed_and_rotated_keys_are_not_told,
            event_causes::created_keys_are_told,
            event_causes::events_are_paged_newest_first,
            event_causes::names_in_events_are_stored_exactly,
            event_causes::refused_changes_are_not_told,
            event_causes::revoked_keys_are_told_with_those_below,
        }
    };
}
