//! The lists of contracts, and the macros that generate a test for each. Each list has the contracts of one trait, so that
//! a backend tests what it implements. Contracts about several traits are in the list of `accounting_conformance!` itself.

mod authorizations;
mod browser_sessions;
mod events;
mod holds;
mod imports;
mod keys;
mod oauth;
mod operators;
mod organisations;
mod prices;
mod refills;
mod signups;

/// Generates one test per contract, for a backend that has all traits of the storage contract.
///
/// Takes a closure, or a path to a function without arguments, that makes a fresh, empty store:
/// `async fn() -> (Arc<S>, G)`, where `G` is a guard that must live as long as the store.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:expr) => {
        $crate::charging_conformance!($fresh);
        $crate::accounting_conformance!($fresh);
    };
}

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
            erasure::an_erased_account_keeps_only_its_postings,
            erasure::older_records_are_deleted,
            erasure::receipts_keep_who_bought_unless_erased,
            event_payments::a_claim_is_told,
            event_payments::a_refill_lowers_the_alert,
            event_payments::a_refused_claim_is_not_told,
            event_payments::a_reversal_is_told,
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
            sales_report::revenue_is_added_up_by_day,
            sales_report::sales_are_added_up_by_chain_plan_and_token,
            sales_report::sales_of_other_days_are_left_out,
            transactions::a_failed_step_fails_its_transaction,
            transactions::a_transaction_changes_accounts_for_the_next_charge,
            transactions::a_transaction_does_not_charge,
            transactions::a_transaction_that_fails_leaves_nothing,
            usage_sinks::a_difference_is_sent_once,
            usage_sinks::a_stale_turn_changes_nothing,
            usage_sinks::changes_are_staged_in_whole_days_of_an_account,
            usage_sinks::one_process_has_a_turn,
            usage_sinks::what_was_sent_of_old_days_is_forgotten,
            transactions::concurrent_transactions_name_exact_balances,
            transactions::steps_of_a_transaction_are_committed_together,
        }
    };
}

/// The tests of [`Store`](metering_core::Store) alone, for a backend without payments and signups. Takes what
/// [`store_conformance!`](crate::store_conformance) takes.
#[macro_export]
macro_rules! charging_conformance {
    ($fresh:expr) => {
        $crate::keys_conformance!($fresh);
        $crate::holds_conformance!($fresh);
        $crate::conformance_tests! { $fresh;
            accounts::a_new_account_is_found_as_it_was_made,
            accounts::account_without_entries_has_no_credits,
            accounts::first_entries_add_up_to_the_first_totals,
            accounts::id_or_key_in_use_creates_no_account,
            accounts::out_of_range_first_entries_create_no_account,
            accounts::smallest_and_largest_amounts_are_stored,
            accounts::times_are_stored_to_the_millisecond,
            accounts::unknown_account_is_none,
            activity::activity_entries_describe_their_change,
            activity::activity_entries_may_merge_but_totals_are_exact,
            activity::activity_is_newest_first,
            activity::activity_is_searched_and_paged,
            activity::activity_is_separate_per_account,
            activity::activity_keeps_only_the_newest_entries,
            activity::ids_are_unique_and_stable,
            caps::a_capped_account_without_credits_is_rate_limited,
            caps::a_lagging_clock_counts_in_the_newest_window,
            caps::caps_are_exact_across_batches,
            caps::caps_are_separate_per_account,
            caps::clock_that_jumped_ahead_blocks_no_account,
            caps::day_limit_is_reported_before_minute_limit,
            caps::key_holder_has_what_counts_against_the_limits,
            caps::largest_cap_is_enforced,
            caps::new_limits_count_what_was_accepted,
            caps::new_window_starts_at_zero,
            caps::refund_does_not_restore_the_rate_limit,
            caps::refusal_reports_the_accounts_rate_status,
            caps::refused_requests_are_not_counted,
            caps::without_a_cap_all_requests_are_accepted,
            charging::a_credit_is_7200_base_calls,
            charging::a_free_request_is_counted,
            charging::an_unknown_key_is_refused,
            charging::empty_batch_has_no_outcomes,
            charging::mixed_batch_has_outcomes_in_order,
            charging::prices_at_the_end_of_the_range_are_exact,
            charging::receipt_reports_the_charge,
            charging::refused_charge_changes_nothing,
            charging::the_last_charge_may_go_below_zero,
            charging::top_up_takes_effect_immediately,
            charging::usage_is_booked_on_the_day_of_the_commit,
            emails::accounts_without_email_do_not_collide,
            emails::an_email_is_free_again_after_revocation,
            emails::email_uniqueness_ignores_case,
            emails::refused_email_leaves_id_and_key_unused,
            idempotency_keys::a_charge_is_refunded_once,
            idempotency_keys::a_delivered_key_is_used_up,
            idempotency_keys::attempts_are_limited,
            idempotency_keys::batch_decides_keys_in_order,
            idempotency_keys::expired_key_can_be_used_again,
            idempotency_keys::key_can_be_retried_after_its_lease,
            idempotency_keys::keys_and_request_ids_are_separate,
            idempotency_keys::keys_are_separate_per_account,
            idempotency_keys::keys_are_separate_per_api_key,
            idempotency_keys::only_the_last_attempt_refunds_the_charge,
            idempotency_keys::refunded_key_is_charged_again,
            keys::a_live_key_is_replaced_once,
            keys::a_replaced_key_is_refused_and_the_new_one_works,
            keys::a_replaced_key_keeps_balance_and_windows,
            keys::key_in_use_cannot_replace_another,
            keys::live_keys_are_returned_in_order,
            keys::old_and_new_key_in_one_batch_are_distinguished,
            ledger::a_total_beyond_range_changes_nothing,
            ledger::an_entry_beyond_range_changes_nothing,
            ledger::entries_are_listed_as_written,
            ledger::entries_change_the_balance_and_their_total,
            ledger::lifetime_totals_can_exceed_the_amount_range,
            paging::accounts_are_paged_by_creation,
            paging::an_accounts_ledger_is_paged_in_write_order,
            paging::an_empty_list_is_one_empty_page,
            paging::daily_totals_are_paged_by_ascending_day,
            paging::invalid_cursor_is_an_error,
            paging::items_added_between_pages_shift_nothing,
            paging::ledger_is_paged_in_write_order,
            races::a_balance_is_spent_once,
            races::a_cap_is_filled_once,
            races::a_live_key_is_replaced_by_one_caller,
            races::a_request_id_is_charged_once,
            races::an_email_is_given_once,
            races::concurrent_ledger_entries_have_ascending_numbers,
            races::no_charge_is_accepted_after_revocation_returned,
            races::overlapping_batches_lose_nothing,
            races::rotations_leave_one_live_key,
            races::top_ups_charges_and_refunds_add_up,
            races::usage_report_is_one_snapshot,
            refunds::a_refund_beyond_range_changes_nothing,
            refunds::a_refund_is_booked_on_the_day_of_its_charge,
            refunds::a_refund_makes_room_for_a_charge_of_its_batch,
            refunds::a_refund_of_an_unknown_account_is_none,
            refunds::refund_is_available_to_later_charges,
            refunds::refund_restores_the_price,
            refunds::refunds_of_one_batch_add_up,
            request_ids::a_free_request_is_remembered,
            request_ids::a_refunded_request_is_still_remembered,
            request_ids::a_retry_in_the_same_batch_is_not_charged,
            request_ids::a_retry_shows_the_running_window,
            request_ids::deleted_request_ids_stay_deleted,
            request_ids::expired_request_id_can_be_used_again,
            request_ids::expiry_deletes_expired_request_ids,
            request_ids::ids_are_compared_exactly,
            request_ids::lagging_clock_finds_the_stored_result,
            request_ids::refusals_are_not_remembered,
            request_ids::request_ids_are_of_a_key,
            request_ids::request_ids_are_separate_per_account,
            request_ids::retry_needs_no_credits_and_no_rate_limit,
            request_ids::retry_returns_the_first_result,
            revocation::a_revoked_account_gets_no_new_key,
            revocation::a_revoked_account_keeps_its_records,
            revocation::a_revoked_key_is_refused,
            revocation::revoked_account_accepts_new_limits,
            revocation::revoked_account_accepts_no_entry,
            revocation::revoked_account_is_refunded,
            revocation::revoking_twice_changes_nothing,
            usage::a_report_without_usage_is_empty,
            usage::an_accounts_daily_totals_are_listed_in_order,
            usage::added_credits_are_the_sum_of_the_ledger,
            usage::daily_totals_are_stored_by_day_and_line,
            usage::day_includes_its_first_and_last_millisecond,
            usage::endpoints_are_ordered_and_merge_sources,
            usage::out_of_range_additions_are_an_error,
            usage::report_covers_only_its_days,
            usage::report_matches_the_account_totals,
            usage::routes_are_ranked_by_the_requests_of_all_accounts,
            verification::a_working_store_passes_its_check,
            verification::an_empty_store_is_verified,
            verification::verify_recomputes_every_account,
            volumes::a_free_allowance_needs_no_balance,
            volumes::a_hold_is_counted_until_it_is_released,
            volumes::a_new_month_begins_with_the_first_tier,
            volumes::a_refund_at_the_months_border_gives_back_its_place,
            volumes::a_refund_gives_back_its_place,
            volumes::a_refused_request_is_not_counted,
            volumes::a_repeated_request_is_counted_once,
            volumes::a_request_has_the_price_of_its_tier,
            volumes::a_tier_above_the_bound_is_refused,
            volumes::counts_are_separate_per_account_and_route,
            volumes::refunded_places_are_taken_again,
            volumes::refunded_places_end_with_their_month_and_price,
            volumes::released_places_are_taken_again,
            volumes::tiers_are_filled_once,
            wallets::a_payer_is_free_again_after_revocation,
            wallets::payer_has_one_account_across_chains,
            wallets::payer_is_checked_after_email_and_before_range,
        }
    };
}

/// The tests of [`PaymentStore`](metering_core::PaymentStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! payments_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            auto_top_ups::accounts_with_a_low_balance_are_due,
            auto_top_ups::concurrent_top_ups_charge_once,
            auto_top_ups::saved_cards_are_stored_unchanged,
            auto_top_ups::top_ups_are_within_the_limit_of_the_month,
            buyers::a_receipt_gets_its_buyer_once,
            buyers::purchases_keep_their_buyer,
            challenges::a_challenge_with_a_nonce_in_use_is_an_error,
            challenges::an_expired_challenge_is_still_found,
            challenges::an_unknown_nonce_finds_no_challenge,
            challenges::challenge_is_used_up_after_five_failures,
            challenges::challenges_are_stored_unchanged,
            challenges::failing_an_unknown_challenge_does_nothing,
            challenges::failures_continue_from_the_stored_count,
            claim_refusals::a_claim_with_an_id_or_key_in_use_changes_nothing,
            claim_refusals::a_payer_with_an_account_claims_nothing,
            claim_refusals::a_used_transaction_claims_nothing,
            claim_refusals::claim_refusals_have_a_fixed_order,
            claim_refusals::out_of_range_entries_claim_nothing,
            claims::a_claims_entries_name_its_payment,
            claims::a_quote_is_claimed_once,
            claims::claim_after_quote_expiry_is_accepted,
            claims::claim_creates_the_account,
            claims::claim_omits_email_taken_since_the_quote,
            claims::claim_without_quote_creates_nothing,
            claims::same_hash_can_be_used_once_per_chain,
            expiry::awaited_quotes_are_not_deleted,
            expiry::deleted_rows_are_counted,
            expiry::expired_challenges_are_deleted,
            expiry::expired_quotes_are_deleted,
            late_claims::a_late_claim_with_a_key_in_use_changes_nothing,
            late_claims::key_delivered_otherwise_claims_the_quote,
            late_claims::late_claim_leaves_other_awaited_quotes,
            late_claims::only_its_own_payment_gets_the_key,
            late_claims::owner_gets_the_key_by_a_later_claim,
            late_claims::revoked_account_cannot_be_claimed,
            late_claims::watcher_claim_keeps_the_key_for_the_owner,
            paging::an_empty_list_of_payments_is_one_empty_page,
            paging::invalid_cursor_of_payments_is_an_error,
            paging::payments_are_paged_in_write_order,
            payment_races::a_challenge_rotates_once,
            payment_races::a_claim_and_a_credit_share_no_transaction,
            payment_races::a_payment_is_credited_once,
            payment_races::a_transaction_claims_one_quote,
            payment_races::a_wallet_gets_one_account,
            payment_races::awaited_key_is_delivered_once,
            payment_races::concurrent_claims_of_a_quote_create_one_account,
            payment_races::concurrent_claims_share_no_email,
            payment_races::concurrent_credits_of_a_payment_credit_one_account,
            payment_races::concurrent_quotes_share_no_amount,
            payment_races::every_failure_is_counted,
            payment_races::highest_scanned_block_is_the_mark,
            payment_races::payments_and_charges_add_up,
            payment_races::watcher_and_owner_create_one_account,
            payment_records::an_unused_transaction_has_no_record,
            payment_records::claim_stores_the_judged_payment,
            payment_records::payment_record_is_never_deleted,
            payment_records::payments_are_stored_unchanged,
            payment_records::records_are_listed_as_written,
            plans::a_plan_is_put_on_sale_and_taken_off,
            plans::a_plan_is_removed_once,
            plans::a_plan_of_the_same_key_is_replaced,
            plans::plans_are_listed_in_order,
            plans::plans_are_stored_unchanged,
            processors::a_reversal_counts_once,
            processors::concurrent_processor_payments_credit_once,
            processors::concurrent_reversals_count_once,
            processors::processor_payment_is_credited_once,
            processors::reversals_of_a_processor_payment_add_up,
            quote_amounts::amount_is_reserved_for_its_payer_during_the_grace_period,
            quote_amounts::amounts_at_other_targets_do_not_collide,
            quote_amounts::amounts_that_differ_by_a_unit_do_not_collide,
            quote_amounts::other_payers_may_use_the_same_amount,
            quote_amounts::paid_amount_stays_reserved_for_its_payer,
            quotes::a_payment_finds_its_quote,
            quotes::an_unknown_nonce_finds_no_quote,
            quotes::each_payment_finds_its_own_quote,
            quotes::paid_quote_awaits_no_payment,
            quotes::payment_targets_are_stored_with_quotes,
            quotes::quote_refusals_have_a_fixed_order,
            quotes::quote_that_is_not_new_is_an_error,
            quotes::quotes_are_stored_unchanged,
            quotes::revoked_accounts_do_not_prevent_a_quote,
            recipients::changed_recipient_is_reported,
            recipients::recipient_is_known_since_first_registration,
            recipients::recipients_are_listed_in_order,
            rotation::a_challenge_replaces_the_key_once,
            rotation::a_revoked_account_is_not_rotated,
            rotation::a_rotated_key_keeps_balance_and_windows,
            rotation::another_wallet_rotates_nothing,
            rotation::each_of_several_challenges_can_be_used,
            rotation::expired_challenge_rotates_nothing,
            rotation::key_in_use_cannot_be_rotated_in,
            scan_marks::a_chain_starts_without_a_mark,
            scan_marks::marks_are_kept_for_each_chain,
            scan_marks::scan_mark_never_decreases,
            settlements::a_claim_is_reversed_without_its_bonus,
            settlements::a_payment_is_unsettled_until_it_is_final,
            settlements::a_payment_moves_to_another_block,
            settlements::a_payment_that_reappears_is_credited_again,
            settlements::a_reversal_beyond_range_changes_nothing,
            settlements::a_reversed_payment_stays_used,
            settlements::a_revoked_account_is_reversed_too,
            settlements::concurrent_watchers_reverse_a_payment_once,
            settlements::payment_without_block_hash_is_final_immediately,
            settlements::reversal_removes_the_purchased_credits,
            settlements::reversals_and_charges_add_up,
            settlements::stale_settlement_step_changes_nothing,
            settlements::unsettled_payments_are_paged_by_chain,
            top_up_quotes::a_top_up_quote_cannot_be_claimed,
            top_up_quotes::a_top_up_quote_is_used_once_by_its_account,
            top_up_quotes::a_top_up_quote_waits_again_when_its_payment_is_reversed,
            top_up_quotes::amount_of_a_top_up_quote_is_reserved_from_everybody,
            top_up_quotes::amount_of_a_top_up_quote_returns_to_its_account,
            top_up_quotes::any_wallet_pays_a_top_up_quote,
            top_up_quotes::top_up_quotes_are_listed_for_their_account,
            top_up_quotes::unpaid_top_up_quotes_are_kept_for_a_month,
            top_up_quotes::unpaid_top_up_quotes_are_limited,
            top_up_quotes::unpaid_top_up_quotes_are_limited_in_a_race,
            topups::a_credit_beyond_range_changes_nothing,
            topups::a_payment_is_credited,
            topups::a_repeated_credit_changes_nothing,
            topups::a_used_transaction_credits_nothing,
            topups::account_may_take_precedence_over_a_quote,
            topups::credit_delivers_no_key,
            topups::credit_equals_its_ledger_entry,
            topups::credit_refusals_have_a_fixed_order,
            topups::credited_payment_takes_effect_immediately,
            topups::only_live_accounts_are_credited,
            topups::payment_awaited_by_a_quote_is_not_credited_elsewhere,
            unclaimed::newest_unclaimed_payments_are_first,
            unclaimed::removed_payments_are_not_unclaimed,
            unclaimed::unclaimed_payments_are_paged,
            unclaimed::unclaimed_payment_is_stored_once,
            unclaimed::used_payment_is_not_unclaimed,
            unreadable::arrival_is_deleted_once_it_was_read,
            unreadable::newer_record_of_an_unreadable_arrival_replaces_it,
            unreadable::unreadable_arrivals_are_due_at_their_next_attempt,
            unreadable::unreadable_arrivals_are_listed_in_chain_order,
            wallets::accounts_without_payer_do_not_collide,
            wallets::an_account_is_found_by_its_payer,
            wallets::links_are_listed_in_the_order_of_linking,
            wallets::links_of_revoked_accounts_are_left_out,
            wallets::wallet_is_linked_on_request,
        }
    };
}

/// One test per contract of a list.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($fresh:expr; $($noun:ident::$contract:ident,)+) => {
        $(
            #[test]
            fn $contract() {
                // The closure turns a store of any type into the trait object that the contract takes.
                $crate::run($fresh, |store| $crate::$noun::$contract(store));
            }
        )+
    };
}
