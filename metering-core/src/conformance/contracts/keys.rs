//! The list of the contracts about keys.

/// The tests of [`KeyStore`](crate::KeyStore), which every backend has: part of
/// [`charging_conformance!`](crate::charging_conformance), on a store for charging.
#[macro_export]
macro_rules! keys_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            key_budgets::budget_is_exact_across_batches,
            key_budgets::budget_is_removed_raised_and_lowered,
            key_budgets::budget_must_cover_the_price,
            key_budgets::budget_set_later_counts_what_was_spent,
            key_budgets::budget_starts_again_with_its_period,
            key_budgets::clock_set_back_begins_the_period_again,
            key_budgets::lagging_clock_gets_no_second_budget,
            key_budgets::racing_keys_share_the_budget_above,
            key_budgets::racing_requests_spend_a_budget_once,
            key_budgets::refund_returns_to_the_budget_of_its_period,
            key_budgets::refund_takes_no_budget_below_zero,
            key_budgets::repeated_request_takes_no_budget,
            key_chains::dead_parent_is_refused_before_the_terms,
            key_chains::key_stops_with_each_key_above_it,
            key_chains::narrowed_terms_apply_to_the_keys_below,
            key_chains::racing_keys_fill_a_limit_once,
            key_chains::rate_limits_count_the_keys_below,
            key_chains::refused_requests_are_not_under_way,
            key_chains::request_counts_for_all_limits_or_none,
            key_chains::requests_under_way_are_limited,
            key_changes::change_completes_only_what_it_sets,
            key_changes::change_refusals_have_a_fixed_order,
            key_changes::created_key_takes_over_what_it_leaves_open,
            key_changes::creation_refusals_have_a_fixed_order,
            key_changes::expired_keys_make_room,
            key_changes::first_key_keeps_its_power,
            key_changes::key_is_changed_from_above,
            key_changes::key_may_only_narrow_itself,
            key_changes::parent_that_is_not_live_makes_no_keys,
            key_changes::racing_creations_stay_below_the_limit,
            key_changes::repeated_creation_returns_the_same_key,
            key_changes::replaced_secret_belongs_to_its_key,
            key_changes::revoked_key_revokes_the_keys_below,
            key_changes::rotated_key_keeps_all_but_its_secret,
            key_recovery::leaked_key_works_again_after_a_rotation,
            key_recovery::only_a_working_secret_is_reported,
            key_recovery::replaced_key_ends_grace_periods,
            key_recovery::replaced_key_resets_the_first_key,
            key_recovery::replaced_key_revokes_the_managers,
            key_recovery::report_of_a_replaced_secret_ends_it_early,
            key_terms::created_key_charges_its_account,
            key_terms::first_key_has_all_scopes,
            key_terms::key_that_is_not_live_is_unknown,
            key_terms::keys_are_paged_by_creation,
            key_terms::labels_include_revoked_keys,
            key_terms::terms_refuse_with_the_reason,
            key_terms::usage_is_recorded_by_key,
            key_terms::usage_of_a_key_is_its_own,
        }
    };
}
