//! Contracts for rate limits: exact per calendar minute and UTC day, despite batching, clock errors and key changes.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{KeyTerms, RateLimits};
use metering_core::charging::{LimitWindow, RateWindows};
use metering_core::clock::Timestamp;
use metering_core::store::Store;
use metering_core::{Decision, Refusal};

use super::key_scene::{issue, manager};
use super::scene::{
    BASE, Customer, DAY, MINUTE, NOON, accepted, account, adjustment, balance, charge, commit, commit_refund, customer,
    customer_with, post, refused,
};

const PLENTY: i64 = 1_000_000 * BASE;

/// Commits a batch of `size` charges and returns how many are accepted; the limit of `window` must refuse the rest.
async fn admitted(store: &dyn Store, customer: &Customer, size: usize, window: LimitWindow, now: Timestamp) -> usize {
    let decisions = commit(store, vec![charge(customer.key, BASE); size], now).await;
    let is_accepted = |decision: &Decision| match decision {
        Decision::Accepted(_) => true,
        Decision::Refused(Refusal::RateLimited { window: full, .. }) if *full == window => false,
        other => panic!("neither accepted nor refused by the limit per {}: {other:?}", window.as_str()),
    };
    decisions.iter().filter(|decision| is_accepted(decision)).count()
}

/// A limit of ten admits exactly ten requests, for any batch sizes.
pub async fn caps_are_exact_across_batches(store: Arc<dyn Store>) {
    for sizes in [vec![12], vec![4, 4, 4], vec![1; 12], vec![9, 3], vec![10, 2]] {
        for (limits, window) in
            [(RateLimits::per_minute(10), LimitWindow::Minute), (RateLimits::per_day(10), LimitWindow::Day)]
        {
            let customer = customer_with(&*store, PLENTY, limits).await;
            let mut total = 0;
            for size in &sizes {
                total += admitted(&*store, &customer, *size, window, NOON).await;
            }
            assert_eq!(total, 10, "{sizes:?} {window:?}");
            assert_eq!(balance(&*store, &customer.id).await, PLENTY - 10 * BASE);
        }
    }
}

/// A refusal names the limit and reports the account's use of its limits.
pub async fn refusal_reports_the_accounts_rate_status(store: Arc<dyn Store>) {
    let limits = RateLimits::per_minute(1).and_per_day(9);
    let customer = customer_with(&*store, PLENTY, limits).await;
    let at = NOON.saturating_add(Duration::from_secs(20));
    accepted(&*store, charge(customer.key, BASE), at).await;
    let Refusal::RateLimited { window, rate } = refused(&*store, charge(customer.key, BASE), at).await else {
        panic!("the limit is reached");
    };
    assert_eq!((window, rate.limits, rate.at), (LimitWindow::Minute, limits, at));
    assert_eq!((rate.remaining(LimitWindow::Minute), rate.remaining(LimitWindow::Day)), (Some(0), Some(8)));
    assert_eq!((rate.reset_seconds(LimitWindow::Minute), rate.reset_seconds(LimitWindow::Day)), (40, 43_180));
}

/// When both limits are reached, the refusal names the day: waiting for the next minute would not help.
pub async fn day_limit_is_reported_before_minute_limit(store: Arc<dyn Store>) {
    let limits = RateLimits::per_minute(2).and_per_day(2);
    let customer = customer_with(&*store, PLENTY, limits).await;
    assert_eq!(admitted(&*store, &customer, 3, LimitWindow::Day, NOON).await, 2);
}

/// A new minute or day starts with a count of zero at its first millisecond, not before.
pub async fn new_window_starts_at_zero(store: Arc<dyn Store>) {
    let table = [
        (RateLimits::per_minute(2), LimitWindow::Minute, NOON.saturating_add(MINUTE)),
        (RateLimits::per_day(2), LimitWindow::Day, NOON.saturating_add(DAY).day().start()),
    ];
    for (limits, window, next) in table {
        let customer = customer_with(&*store, PLENTY, limits).await;
        let last = next.saturating_sub(Duration::from_millis(1));
        assert_eq!(admitted(&*store, &customer, 1, window, NOON).await, 1);
        assert_eq!(admitted(&*store, &customer, 3, window, last).await, 1, "still the old window");
        assert_eq!(admitted(&*store, &customer, 3, window, next).await, 2, "the new window");
    }
}

/// A node whose clock lags counts in the newest window, so that clock skew never gives the same window twice.
pub async fn a_lagging_clock_counts_in_the_newest_window(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, PLENTY, RateLimits::per_minute(3)).await;
    let ahead = NOON.saturating_add(MINUTE);
    assert_eq!(admitted(&*store, &customer, 1, LimitWindow::Minute, ahead).await, 1);
    assert_eq!(admitted(&*store, &customer, 1, LimitWindow::Minute, NOON).await, 1);
    assert_eq!(admitted(&*store, &customer, 5, LimitWindow::Minute, ahead).await, 1);
    assert_eq!(admitted(&*store, &customer, 5, LimitWindow::Minute, NOON).await, 0);
    let minute_later = ahead.saturating_add(MINUTE);
    assert_eq!(admitted(&*store, &customer, 5, LimitWindow::Minute, minute_later).await, 3);
}

/// A clock reading that was far ahead does not block an account until that time.
pub async fn clock_that_jumped_ahead_blocks_no_account(store: Arc<dyn Store>) {
    for (limits, window) in
        [(RateLimits::per_minute(3), LimitWindow::Minute), (RateLimits::per_day(3), LimitWindow::Day)]
    {
        let customer = customer_with(&*store, PLENTY, limits).await;
        let ahead = NOON.saturating_add(DAY * 400);
        assert_eq!(admitted(&*store, &customer, 5, window, ahead).await, 3);
        assert_eq!(admitted(&*store, &customer, 5, window, NOON).await, 3, "{window:?}");
        assert_eq!(admitted(&*store, &customer, 5, window, NOON).await, 0, "{window:?}");
    }
}

/// Only accepted requests count towards the limits.
pub async fn refused_requests_are_not_counted(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, 0, RateLimits::per_day(2)).await;
    commit(&*store, vec![charge(customer.key, BASE); 5], NOON).await;
    post(&*store, &customer.id, adjustment(PLENTY), NOON).await;
    assert_eq!(admitted(&*store, &customer, 5, LimitWindow::Day, NOON).await, 2);
    let next_day = NOON.saturating_add(DAY);
    assert_eq!(admitted(&*store, &customer, 5, LimitWindow::Day, next_day).await, 2);
}

/// The rate limit is checked before the balance.
pub async fn a_capped_account_without_credits_is_rate_limited(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, BASE, RateLimits::per_minute(1)).await;
    assert_eq!(admitted(&*store, &customer, 4, LimitWindow::Minute, NOON).await, 1);
}

/// New limits take effect immediately, and requests already accepted in the current windows still count.
pub async fn new_limits_count_what_was_accepted(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, PLENTY, RateLimits::per_minute(5)).await;
    assert_eq!(admitted(&*store, &customer, 9, LimitWindow::Minute, NOON).await, 5);
    let result = store.set_limits(&customer.id, RateLimits::per_minute(7)).await.unwrap().expect("the account exists");
    assert_eq!(result.limits, RateLimits::per_minute(7));
    assert_eq!(account(&*store, &customer.id).await, result);
    assert_eq!(admitted(&*store, &customer, 9, LimitWindow::Minute, NOON).await, 2);
    store.set_limits(&customer.id, RateLimits::per_minute(3)).await.unwrap();
    assert_eq!(admitted(&*store, &customer, 9, LimitWindow::Minute, NOON).await, 0);
    store.set_limits(&customer.id, RateLimits::per_day(8)).await.unwrap();
    assert_eq!(admitted(&*store, &customer, 9, LimitWindow::Day, NOON).await, 1);
}

/// A limit of zero means no limit.
pub async fn without_a_cap_all_requests_are_accepted(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    assert_eq!(admitted(&*store, &customer, 2_000, LimitWindow::Minute, NOON).await, 2_000);
    let receipt = accepted(&*store, charge(customer.key, BASE), NOON).await;
    assert_eq!((receipt.rate.remaining(LimitWindow::Minute), receipt.rate.minute.count), (None, 2_001));
}

/// The largest possible limit is stored exactly.
pub async fn largest_cap_is_enforced(store: Arc<dyn Store>) {
    let largest = RateLimits::per_minute(u32::MAX).and_per_day(u32::MAX);
    let customer = customer_with(&*store, PLENTY, RateLimits::NONE).await;
    store.set_limits(&customer.id, largest).await.unwrap();
    let receipt = accepted(&*store, charge(customer.key, BASE), NOON).await;
    assert_eq!(receipt.rate.limits, largest);
    assert_eq!(receipt.rate.remaining(LimitWindow::Minute), Some(u32::MAX - 1));
}

/// One account's requests do not count towards another's limits.
pub async fn caps_are_separate_per_account(store: Arc<dyn Store>) {
    let (first, second) = (
        customer_with(&*store, PLENTY, RateLimits::per_minute(2)).await,
        customer_with(&*store, PLENTY, RateLimits::per_minute(2)).await,
    );
    let keys = [first.key, second.key, first.key, first.key, second.key, second.key];
    let decisions = commit(&*store, keys.map(|key| charge(key, BASE)).to_vec(), NOON).await;
    let accepted = decisions.iter().map(|decision| matches!(decision, Decision::Accepted(_)));
    assert!(accepted.eq([true, true, true, false, true, false]));
}

/// A refund returns the price, but the request still counts.
pub async fn refund_does_not_restore_the_rate_limit(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, PLENTY, RateLimits::per_day(1)).await;
    let receipt = accepted(&*store, charge(customer.key, BASE), NOON).await;
    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), NOON)
        .await
        .expect("the refund succeeds");
    assert_eq!(admitted(&*store, &customer, 1, LimitWindow::Day, NOON).await, 0);
}

/// A lookup of a key returns the rate-limit usage of its account and keys, so a request can be refused before it is
/// charged.
pub async fn key_holder_has_what_counts_against_the_limits(store: Arc<dyn Store>) {
    let customer = customer_with(&*store, PLENTY, RateLimits::per_minute(5)).await;
    let limited = KeyTerms { limits: RateLimits::per_day(9), ..manager() };
    let parent = issue(&*store, &customer.id, None, limited).await;
    let child = issue(&*store, &customer.id, Some(&parent), manager()).await;
    for key in [customer.key, parent.secret, child.secret] {
        accepted(&*store, charge(key, BASE), NOON).await;
    }
    let holder = store.key_holder(&child.secret).await.unwrap().expect("the secret works");
    let RateWindows { minute, day } = holder.windows;
    assert_eq!((minute.index, minute.count), (NOON.minute(), 3));
    assert_eq!((day.index, day.count), (NOON.day().unix_days(), 3));
    let counted: Vec<_> = holder.key_windows.iter().map(|windows| windows.day.count).collect();
    assert_eq!(counted, [0, 2, 0], "only the key with limits is counted, and its child key");
}
