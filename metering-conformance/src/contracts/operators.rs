//! The contracts of [`OperatorStore`](metering_core::store::OperatorStore).

/// The tests of [`OperatorStore`](metering_core::store::OperatorStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! operators_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            audit::audit_entries_are_listed_by_action_and_time,
            audit::audit_entries_are_listed_by_subject,
            audit::audit_entries_are_listed_newest_first,
            audit::concurrent_audit_entries_have_ascending_ids,
            audit::texts_of_the_audit_log_are_stored_unchanged,
            audit::the_audit_log_is_kept_for_ever,
            newest_lists::a_key_is_found_by_its_id,
            newest_lists::a_request_id_names_the_key_that_paid,
            newest_lists::accounts_that_run_out_are_listed,
            newest_lists::newest_accounts_are_filtered,
            newest_lists::newest_accounts_are_first,
            newest_lists::newest_entries_are_first,
            operations::an_empty_store_has_an_empty_operations_report,
            operations::an_operations_report_out_of_range_is_an_error,
            operations::operations_are_added_up_by_day,
            operations::operations_report_covers_only_its_days,
            operations::operations_report_has_the_newest_usage,
            operations::operations_report_is_one_snapshot,
            operations::refunds_reduce_the_operations_report,
            operations::top_accounts_are_ordered_and_limited,
            operations::top_routes_are_ordered_and_limited,
            operators::an_operator_is_found_by_token_until_revoked,
            operators::an_operators_name_is_used_once,
            operators::an_operators_token_in_use_is_an_error,
            operators::an_unknown_operator_is_none,
            operators::concurrent_creations_of_one_operator_create_one,
            operators::operators_are_listed_by_the_bytes_of_their_names,
            operators::revoking_an_operator_twice_changes_nothing,
            operators::a_rotated_operator_token_replaces_the_old_one,
        }
    };
}
