//! The storage contract as tests, for any backend.
//!
//! Each module holds the contracts of one noun, as async functions that take a fresh, empty store and panic where it
//! breaks the contract. [`store_conformance!`](crate::store_conformance) stamps a test for each of them:
//!
//! ```
//! use std::sync::Arc;
//!
//! use metering_core::{MemoryStore, Store};
//!
//! /// A fresh store, and what must live as long as it: a temporary directory, for example.
//! async fn fresh() -> (Arc<dyn Store>, ()) {
//!     (Arc::new(MemoryStore::new()), ())
//! }
//!
//! metering_core::store_conformance!(fresh);
//! ```
//!
//! Beyond that, [`agrees_on_random_operations`] holds a store against a plain model of the whole contract.
#![allow(clippy::unwrap_used, reason = "these are tests, compiled as a library so that every backend can run them")]

use std::future::Future;
use std::sync::Arc;

use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use tokio::runtime::{Builder, Runtime};

use crate::store::Store;

pub mod accounts;
pub mod activity;
mod agreement;
pub mod caps;
pub mod charging;
pub mod emails;
pub mod keys;
pub mod ledger;
mod model;
mod operation;
pub mod paging;
pub mod plans;
pub mod races;
mod reading;
pub mod refunds;
pub mod request_ids;
pub mod revocation;
mod scene;
pub mod signups;
pub mod usage;
pub mod verification;

pub use agreement::agrees_with_model;
pub use operation::{Item, Operation, operations};

/// Runs one contract on a fresh store; what [`store_conformance!`](crate::store_conformance) stamps.
///
/// The runtime has several threads, so that races in a contract are races.
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

/// Holds fresh stores against the model, with so many random sequences of [`operations`].
///
/// # Panics
/// When they disagree, with the shortest sequence found that shows it.
pub fn agrees_on_random_operations<G, F>(cases: u32, fresh: impl Fn() -> F)
where
    F: Future<Output = (Arc<dyn Store>, G)>,
{
    let runtime = runtime();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&operations(), |operations| {
        runtime.block_on(async {
            let (store, _guard) = fresh().await;
            agrees_with_model(store, operations).await;
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
    Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime can be started")
}

/// Stamps one test per contract of [`conformance`](crate::conformance) for one backend.
///
/// Takes a path to a function without arguments, or a closure, that makes a fresh and empty store:
/// `async fn() -> (Arc<dyn Store>, G)`, where `G` is what must live as long as the store does.
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
            caps::refused_requests_are_not_counted,
            caps::a_capped_account_without_credits_is_rate_limited,
            caps::new_limits_count_what_was_accepted,
            caps::no_cap_admits_everything,
            caps::the_largest_cap_is_held,
            caps::caps_are_each_accounts_own,
            caps::a_refund_gives_no_allowance_back,
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
            emails::an_email_is_taken_in_any_case,
            emails::a_taken_email_spends_neither_id_nor_key,
            emails::an_email_is_free_again_after_revocation,
            emails::accounts_without_email_do_not_collide,
            keys::a_replaced_key_is_refused_and_the_new_one_works,
            keys::old_and_new_key_in_one_batch_are_told_apart,
            keys::a_replaced_key_keeps_balance_and_windows,
            keys::a_key_in_use_is_not_put_in_place,
            keys::live_keys_are_answered_in_order,
            ledger::entries_change_the_balance_and_their_total,
            ledger::entries_are_listed_as_written,
            ledger::an_entry_beyond_range_changes_nothing,
            ledger::a_total_beyond_range_changes_nothing,
            ledger::a_lifetime_beyond_range_adds_up,
            paging::an_empty_list_is_one_empty_page,
            paging::accounts_are_paged_in_the_order_of_their_making,
            paging::the_ledger_is_paged_in_the_order_of_its_writing,
            paging::daily_totals_are_paged_by_rising_day,
            paging::items_made_between_pages_move_nothing,
            paging::a_made_up_cursor_is_an_error,
            plans::plans_are_kept_as_given,
            plans::plans_are_listed_in_order,
            plans::a_plan_of_the_same_key_is_replaced,
            plans::a_plan_is_removed_once,
            plans::a_plan_is_put_on_sale_and_taken_off,
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
