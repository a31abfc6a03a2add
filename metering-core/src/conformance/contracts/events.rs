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
        }
    };
}
