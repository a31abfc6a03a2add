//! The conformance suite: the storage contract as tests for any backend.
//!
//! Each module has the contracts of one subject: async functions that take a fresh, empty store and panic if it breaks
//! the contract. [`store_conformance!`](crate::store_conformance) generates a test for each of them:
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_core::{MemoryStore, Store};
//!
//! /// A fresh store, and a guard that must live as long as it, for example a temporary directory.
//! async fn fresh() -> (Arc<dyn Store>, ()) {
//!     (Arc::new(MemoryStore::new()), ())
//! }
//!
//! metering_core::store_conformance!(fresh);
//! ```
//!
//! In addition, [`agrees_on_random_operations`] compares a store with a simple model of the whole contract, and
//! [`openers_agree`] does so for several openers (stores opened on the same database) that take turns.
#![allow(clippy::unwrap_used, reason = "these are tests, compiled as a library so that every backend can run them")]

use std::future::Future;
use std::sync::Arc;

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tokio::runtime::{Builder, Runtime};

use crate::store::Store;

pub mod accounts;
pub mod activity;
mod agreement;
pub mod caps;
pub mod challenges;
pub mod charging;
pub mod claim_refusals;
pub mod claims;
pub mod emails;
pub mod expiry;
pub mod idempotency_keys;
pub mod keys;
pub mod late_claims;
pub mod ledger;
mod model;
mod operation;
pub mod paging;
pub mod payment_races;
pub mod payment_records;
pub mod plans;
pub mod quote_amounts;
pub mod quotes;
pub mod races;
mod reading;
pub mod recipients;
pub mod refunds;
pub mod request_ids;
pub mod revocation;
pub mod rotation;
mod sale;
pub mod scan_marks;
mod scene;
pub mod settlements;
pub mod signups;
pub mod topups;
pub mod unreadable;
pub mod usage;
pub mod verification;
pub mod wallets;

pub use agreement::agrees_with_model;
pub use operation::{Item, Operation, Price, Sale, Signup, operations, operations_by_turns};

/// Runs one contract on a fresh store. [`store_conformance!`](crate::store_conformance) generates calls to this.
///
/// The runtime has several threads, so that tasks of a contract really run in parallel.
///
/// # Panics
/// When the store breaks the contract.
pub fn run<G, F, C>(fresh: impl FnOnce() -> F, contract: impl FnOnce(Arc<dyn Store>) -> C)
where
    F: Future<Output = (Arc<dyn Store>, G)>,
    C: Future<Output = ()>,
{
    runtime().block_on(async {
        let (store, _guard) = fresh().await;
        contract(store).await;
    });
}

/// Compares fresh stores with the model, on `cases` random sequences of [`operations`].
///
/// # Panics
/// When they disagree, with the shortest sequence found that shows it.
pub fn agrees_on_random_operations<G, F>(cases: u32, fresh: impl Fn() -> F)
where
    F: Future<Output = (Arc<dyn Store>, G)>,
{
    hold_against_model(cases, &operations(), || async {
        let (store, guard) = fresh().await;
        ([store], guard)
    });
}

/// Compares two openers of one fresh database with the model, on `cases` random sequences of [`operations_by_turns`]:
/// whatever one of them caches, it must see the other's changes immediately.
///
/// # Panics
/// When they disagree, with the shortest sequence found that shows it.
pub fn openers_agree<G, F>(cases: u32, fresh_pair: impl Fn() -> F)
where
    F: Future<Output = ([Arc<dyn Store>; 2], G)>,
{
    hold_against_model(cases, &operations_by_turns(), fresh_pair);
}

fn hold_against_model<const OPENERS: usize, G, F>(
    cases: u32,
    sequences: &impl Strategy<Value = Vec<Operation>>,
    fresh: impl Fn() -> F,
) where
    F: Future<Output = ([Arc<dyn Store>; OPENERS], G)>,
{
    let runtime = runtime();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(sequences, |operations| {
        runtime.block_on(async {
            let (openers, _guard) = fresh().await;
            agrees_with_model(openers.into(), operations).await;
        });
        Ok::<(), TestCaseError>(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, shortest)) => panic!("{reason}\nafter these operations: {shortest:#?}"),
        Err(abort @ TestError::Abort(_)) => panic!("{abort}"),
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("the runtime starts")
}

/// Generates one test per contract of [`conformance`](crate::conformance) for one backend.
///
/// Takes a closure, or a path to a function without arguments, that makes a fresh, empty store:
/// `async fn() -> (Arc<dyn Store>, G)`, where `G` is a guard that must live as long as the store.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:expr) => {
        $crate::store_conformance! { @stamp $fresh;
            accounts::a_new_account_is_found_as_it_was_made,
            accounts::a_bare_account_has_nothing,
            accounts::an_unknown_account_is_none,
            accounts::first_entries_add_up_to_the_first_totals,
            accounts::first_entries_beyond_range_make_nothing,
            accounts::the_ends_of_the_range_are_held,
            accounts::an_id_or_key_in_use_makes_nothing,
            accounts::times_are_kept_to_the_millisecond,
            activity::entries_say_what_happened,
            activity::what_was_written_last_comes_first,
            activity::entries_may_share_but_totals_hold,
            activity::ids_are_unique_and_stable,
            activity::activity_is_each_accounts_own,
            activity::activity_is_bounded_and_keeps_the_last,
            caps::caps_hold_exactly_over_batches,
            caps::a_refusal_says_where_the_account_stands,
            caps::the_day_is_named_first,
            caps::a_new_window_starts_afresh,
            caps::a_lagging_clock_counts_in_the_newest_window,
            caps::a_clock_that_jumped_ahead_holds_nobody,
            caps::refused_requests_are_not_counted,
            caps::a_capped_account_without_credits_is_rate_limited,
            caps::new_limits_count_what_was_accepted,
            caps::no_cap_admits_everything,
            caps::the_largest_cap_is_held,
            caps::caps_are_each_accounts_own,
            caps::a_refund_gives_no_allowance_back,
            challenges::challenges_are_kept_as_given,
            challenges::an_unknown_nonce_finds_no_challenge,
            challenges::a_challenge_with_a_nonce_in_use_is_an_error,
            challenges::five_failures_use_a_challenge_up,
            challenges::failures_are_counted_from_what_is_kept,
            challenges::failing_an_unknown_challenge_does_nothing,
            challenges::an_expired_challenge_is_still_found,
            charging::a_credit_is_7200_base_calls,
            charging::a_receipt_says_what_was_charged,
            charging::an_empty_batch_is_answered_with_nothing,
            charging::an_unknown_key_is_refused,
            charging::a_mixed_batch_is_answered_in_order,
            charging::the_last_charge_may_go_below_zero,
            charging::a_refused_charge_leaves_no_trace,
            charging::a_free_request_is_counted,
            charging::a_top_up_counts_at_once,
            charging::usage_is_booked_on_the_day_of_the_commit,
            charging::prices_at_the_end_of_the_range_are_exact,
            claim_refusals::a_used_transaction_claims_nothing,
            claim_refusals::a_payer_with_an_account_claims_nothing,
            claim_refusals::entries_beyond_range_claim_nothing,
            claim_refusals::refusals_of_claims_come_in_their_order,
            claim_refusals::a_claim_with_an_id_or_key_in_use_changes_nothing,
            claims::a_claim_makes_the_account,
            claims::a_claims_entries_name_its_payment,
            claims::a_quote_is_claimed_once,
            claims::a_claim_without_a_quote_makes_nothing,
            claims::a_claim_counts_however_late_it_comes,
            claims::a_hash_counts_once_on_each_chain,
            claims::an_email_taken_meanwhile_is_left_out,
            emails::an_email_is_taken_in_any_case,
            emails::a_taken_email_spends_neither_id_nor_key,
            emails::an_email_is_free_again_after_revocation,
            emails::accounts_without_email_do_not_collide,
            expiry::quotes_are_forgotten_when_their_time_is_over,
            expiry::awaited_quotes_are_not_forgotten,
            expiry::challenges_are_forgotten_when_their_time_is_over,
            expiry::everything_forgotten_is_counted,
            idempotency_keys::a_key_is_tried_again_after_its_lease,
            idempotency_keys::tries_are_bounded,
            idempotency_keys::a_delivered_key_is_used_up,
            idempotency_keys::a_refunded_key_is_charged_anew,
            idempotency_keys::the_last_try_pays_the_charge_back,
            idempotency_keys::a_batch_decides_keys_in_its_order,
            idempotency_keys::keys_and_request_ids_are_apart,
            idempotency_keys::keys_belong_to_the_account,
            idempotency_keys::a_key_is_new_after_its_time,
            keys::a_replaced_key_is_refused_and_the_new_one_works,
            keys::old_and_new_key_in_one_batch_are_told_apart,
            keys::a_replaced_key_keeps_balance_and_windows,
            keys::a_key_in_use_is_not_put_in_place,
            keys::live_keys_are_answered_in_order,
            late_claims::a_watchers_claim_waits_for_the_owner,
            late_claims::the_owner_gets_the_key_later,
            late_claims::only_its_own_payment_gets_the_key,
            late_claims::a_key_given_out_otherwise_claims_the_quote,
            late_claims::other_awaited_quotes_stay_awaited,
            late_claims::a_revoked_account_is_claimed_by_nobody,
            late_claims::a_late_claim_with_a_key_in_use_changes_nothing,
            ledger::entries_change_the_balance_and_their_total,
            ledger::entries_are_listed_as_written,
            ledger::an_entry_beyond_range_changes_nothing,
            ledger::a_total_beyond_range_changes_nothing,
            ledger::a_lifetime_beyond_range_adds_up,
            paging::an_empty_list_is_one_empty_page,
            paging::accounts_are_paged_in_the_order_of_their_making,
            paging::the_ledger_is_paged_in_the_order_of_its_writing,
            paging::daily_totals_are_paged_by_rising_day,
            paging::payments_are_paged_in_the_order_of_their_writing,
            paging::items_made_between_pages_move_nothing,
            paging::a_made_up_cursor_is_an_error,
            payment_races::a_quote_makes_one_account,
            payment_races::an_awaited_key_is_given_out_once,
            payment_races::watcher_and_owner_make_one_account,
            payment_races::a_transaction_claims_one_quote,
            payment_races::a_wallet_gets_one_account,
            payment_races::an_email_goes_to_one_claim,
            payment_races::a_payment_is_credited_once,
            payment_races::a_payment_goes_to_one_account,
            payment_races::a_claim_and_a_credit_share_no_transaction,
            payment_races::payments_and_charges_add_up,
            payment_races::a_challenge_rotates_once,
            payment_races::every_failure_is_counted,
            payment_races::an_amount_is_promised_once,
            payment_races::the_furthest_scan_is_the_mark,
            payment_records::an_unused_transaction_has_no_record,
            payment_records::payments_are_kept_as_given,
            payment_records::a_claims_payment_is_kept_as_judged,
            payment_records::records_are_listed_as_written,
            payment_records::a_record_stays_for_ever,
            plans::plans_are_kept_as_given,
            plans::plans_are_listed_in_order,
            plans::a_plan_of_the_same_key_is_replaced,
            plans::a_plan_is_removed_once,
            plans::a_plan_is_put_on_sale_and_taken_off,
            quote_amounts::quotes_of_others_use_up_no_amounts,
            quote_amounts::an_amount_is_kept_for_its_payer_through_the_grace,
            quote_amounts::amounts_at_other_targets_do_not_collide,
            quote_amounts::amounts_that_differ_by_a_unit_do_not_collide,
            quote_amounts::a_paid_amount_is_kept_for_its_payer,
            quotes::quotes_are_kept_as_given,
            quotes::an_unknown_nonce_finds_no_quote,
            quotes::a_quote_that_cannot_be_new_is_an_error,
            quotes::refusals_of_quotes_come_in_their_order,
            quotes::only_live_accounts_stand_against_a_quote,
            quotes::a_payment_finds_its_quote,
            quotes::each_payment_finds_its_own_quote,
            quotes::a_paid_quote_waits_for_no_payment,
            quotes::where_quotes_were_to_be_paid_is_remembered_with_them,
            races::a_balance_is_spent_once,
            races::a_cap_is_filled_once,
            races::a_request_id_is_charged_once,
            races::overlapping_batches_lose_nothing,
            races::an_email_is_given_once,
            races::top_ups_charges_and_refunds_add_up,
            races::a_revocation_counts_once_it_returned,
            races::rotations_leave_one_live_key,
            races::a_report_is_of_one_moment,
            races::ledger_numbers_rise_in_a_race,
            recipients::a_recipient_is_known_since_it_was_first_registered,
            recipients::recipients_are_listed_in_order,
            recipients::a_changed_recipient_is_told,
            refunds::a_refund_gives_the_price_back,
            refunds::a_refund_is_booked_on_the_day_of_its_charge,
            refunds::refunds_of_one_batch_add_up,
            refunds::a_refund_counts_for_what_follows_it,
            refunds::a_refund_of_an_unknown_account_is_none,
            refunds::a_refund_beyond_range_changes_nothing,
            refunds::a_refund_makes_room_for_a_charge_of_its_batch,
            request_ids::a_retry_is_answered_as_the_first_try_was,
            request_ids::a_retry_in_the_same_batch_is_not_charged,
            request_ids::a_retry_needs_neither_credits_nor_allowance,
            request_ids::refusals_are_not_remembered,
            request_ids::a_free_request_is_remembered,
            request_ids::a_refunded_request_is_still_remembered,
            request_ids::an_id_is_new_again_after_its_time,
            request_ids::a_lagging_clock_finds_the_answer,
            request_ids::ids_belong_to_the_account,
            request_ids::ids_are_compared_exactly,
            request_ids::a_retry_shows_the_running_window,
            request_ids::forgetting_takes_what_has_expired,
            request_ids::the_forgotten_stays_forgotten,
            revocation::a_revoked_key_is_refused,
            revocation::revoking_twice_changes_nothing,
            revocation::a_revoked_account_keeps_its_records,
            revocation::a_revoked_account_takes_no_entry,
            revocation::a_revoked_account_gets_no_new_key,
            revocation::a_revoked_account_takes_limits,
            revocation::a_revoked_account_is_paid_back,
            rotation::a_challenge_replaces_the_key_once,
            rotation::a_rotated_key_keeps_balance_and_windows,
            rotation::each_of_several_challenges_can_be_answered,
            rotation::a_challenge_is_answered_in_time_or_not_at_all,
            rotation::a_revoked_account_is_not_rotated,
            rotation::another_wallet_rotates_nothing,
            rotation::a_key_in_use_is_not_rotated_in,
            scan_marks::a_chain_starts_without_a_mark,
            scan_marks::marks_are_kept_for_each_chain,
            scan_marks::a_mark_never_goes_back,
            settlements::a_payment_is_unsettled_until_it_is_final,
            settlements::a_payment_without_a_blocks_hash_is_final_at_once,
            settlements::a_reversal_takes_back_what_was_bought,
            settlements::a_payment_that_reappears_is_credited_again,
            settlements::a_claim_is_reversed_without_its_bonus,
            settlements::a_payment_moves_to_another_block,
            settlements::a_revoked_account_is_reversed_too,
            settlements::a_step_that_does_not_fit_changes_nothing,
            settlements::a_reversal_beyond_range_changes_nothing,
            settlements::a_reversed_payment_stays_used,
            settlements::unsettled_payments_are_paged_by_chain,
            settlements::of_many_watchers_one_reverses,
            settlements::reversals_and_charges_add_up,
            unreadable::unreadable_arrivals_are_listed_in_the_order_of_their_chain,
            unreadable::an_unreadable_arrival_is_replaced_by_what_is_known_later,
            unreadable::unreadable_arrivals_are_due_when_their_time_has_come,
            unreadable::an_arrival_that_was_read_is_forgotten,
            topups::a_payment_is_credited,
            topups::a_payment_counts_at_once,
            topups::a_credit_is_what_its_entry_says,
            topups::a_repeated_credit_changes_nothing,
            topups::a_used_transaction_credits_nothing,
            topups::a_payment_that_a_quote_waits_for_is_the_quotes,
            topups::an_account_may_go_before_a_quote,
            topups::no_account_is_credited_that_is_not_live,
            topups::a_credit_beyond_range_changes_nothing,
            topups::refusals_of_credits_come_in_their_order,
            topups::a_credit_gives_no_key_out,
            signups::a_session_is_found_as_it_was_opened,
            signups::a_session_needs_a_free_email_and_code,
            signups::a_session_is_approved_once_in_time,
            signups::an_email_given_away_is_refused_later_too,
            signups::a_session_is_redeemed_once,
            signups::what_is_not_approved_is_not_redeemed,
            signups::a_redemption_beyond_range_changes_nothing,
            signups::one_of_many_redemptions_wins,
            signups::a_solution_is_used_once,
            signups::old_sessions_are_forgotten,
            usage::a_report_adds_up_with_its_account,
            usage::a_report_covers_its_days_only,
            usage::a_days_first_and_last_milliseconds_belong_to_it,
            usage::a_report_without_usage_is_empty,
            usage::endpoints_are_ordered_and_not_parted_by_source,
            usage::what_was_added_is_the_sum_of_the_ledger,
            usage::additions_beyond_range_are_an_error,
            usage::daily_totals_are_kept_by_day_and_line,
            verification::an_empty_store_is_verified,
            verification::every_account_is_recomputed,
            verification::a_working_store_passes_its_check,
            wallets::a_payer_is_taken_on_every_chain,
            wallets::a_taken_payer_comes_between_email_and_range,
            wallets::a_payer_is_free_again_after_revocation,
            wallets::accounts_without_payer_do_not_collide,
            wallets::an_account_is_found_by_its_payer,
            wallets::a_wallet_is_linked_when_it_is_said,
            wallets::links_are_listed_in_the_order_of_linking,
            wallets::links_of_revoked_accounts_are_left_out,
        }
    };
    (@stamp $fresh:expr; $($noun:ident::$contract:ident,)+) => {
        $(
            #[test]
            fn $contract() {
                $crate::conformance::run($fresh, $crate::conformance::$noun::$contract);
            }
        )+
    };
}
