//! The contracts of everything else than charging, and those about several traits.

/// The tests of everything else than [`charging_conformance!`](crate::charging_conformance). Takes what
/// [`store_conformance!`](crate::store_conformance) takes.
#[macro_export]
macro_rules! accounting_conformance {
    ($fresh:expr) => {
        $crate::payments_conformance!($fresh);
        $crate::signups_conformance!($fresh);
        $crate::operators_conformance!($fresh);
        $crate::refills_conformance!($fresh);
        $crate::events_conformance!($fresh);
        $crate::authorizations_conformance!($fresh);
        $crate::imports_conformance!($fresh);
        $crate::prices_conformance!($fresh);
        $crate::browser_sessions_conformance!($fresh);
        $crate::oauth_conformance!($fresh);
        $crate::organisations_conformance!($fresh);
        // What one trait writes and another one reads.
        $crate::conformance_tests! { $fresh;
            authorization_credits::credited_authorizations_are_told,
            auto_top_ups::a_failed_top_up_is_told_and_not_repeated,
            auto_top_ups::a_reversed_top_up_stops_them,
            browser_links::a_link_signs_in_once,
            browser_links::an_expired_link_does_not_sign_in,
            browser_links::concurrent_clicks_open_one_session,
            erasure::an_erased_account_has_no_card_and_no_programs,
            erasure::an_erased_account_keeps_only_its_postings: verified,
            erasure::older_records_are_deleted,
            erasure::receipts_keep_who_bought_unless_erased,
            event_payments::a_claim_is_told,
            event_payments::a_refill_lowers_the_alert: verified,
            event_payments::a_refused_claim_is_not_told,
            event_payments::a_reversal_is_told: verified,
            event_payments::a_verified_address_lowers_the_alert,
            event_payments::credited_payments_are_told,
            lookups::failing_deliveries_are_listed,
            lookups::newest_payments_are_first,
            lookups::payments_are_found_by_hash_and_receipt,
            processors::processor_payments_are_reported,
            processors::reports_count_what_was_not_reversed,
            refills::refills_are_granted_in_the_report,
            sales_report::a_reversed_payment_is_not_sold,
            sales_report::purchases_are_sold_and_grants_are_not,
            log::a_log_begins_once_with_all_funds,
            log::a_stale_step_changes_nothing,
            log::charges_while_a_log_begins_are_in_it_once,
            log::each_posting_is_logged_once_and_in_order,
            log::the_latest_checkpoint_stays,
            log_leaves::a_restart_during_a_sweep_knows_all_accounts,
            log_leaves::a_restarted_sequencer_continues_the_tree,
            log_leaves::a_step_that_is_cut_short_is_repeated,
            log_leaves::damage_to_the_log_is_found,
            log_leaves::each_posting_is_one_leaf,
            log_leaves::two_sequencers_log_each_posting_once,
            sales_report::revenue_is_added_up_by_day,
            sales_report::sales_are_added_up_by_chain_plan_and_token,
            sales_report::sales_of_other_days_are_left_out,
            sales_report::values_are_added_up_by_day_and_currency,
            transactions::a_failed_step_fails_its_transaction,
            transactions::a_transaction_changes_accounts_for_the_next_charge,
            transactions::a_transaction_does_not_charge,
            transactions::a_transaction_that_fails_leaves_nothing: verified,
            usage_sinks::a_difference_is_sent_once,
            usage_sinks::a_stale_turn_changes_nothing,
            usage_sinks::changes_are_staged_in_whole_days_of_an_account,
            usage_sinks::one_process_has_a_turn,
            usage_sinks::what_was_sent_of_old_days_is_forgotten,
            transactions::concurrent_transactions_name_exact_balances: verified,
            transactions::steps_of_a_transaction_are_committed_together: verified,
        }
    };
}
