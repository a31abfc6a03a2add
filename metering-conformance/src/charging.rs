//! Contracts for charges: exact, in order, and only as the charge rule allows.

use std::sync::Arc;

use metering_core::access::Totals;
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{ATOMS_PER_CREDIT, Credits, LedgerKind};
use metering_core::store::Store;
use metering_core::usage::ClientSource;
use metering_core::{Decision, Refusal};

use super::scene::{
    ALWAYS, BASE, DAY, NOON, Verified, accepted, adjustment, all_daily_totals, atoms, balance, charge, charge_on,
    commit, customer, entry, line, new_key, post, refused, report, totals,
};

/// 7200 requests of weight 1 cost exactly one credit, in any batches.
pub async fn a_credit_is_7200_base_calls(store: Verified<dyn Store>) {
    let customer = customer(&*store, ATOMS_PER_CREDIT).await;
    let mut made = 0;
    for size in [1, 2, 7, 90, 1_100, 6_000] {
        let decisions = commit(&*store, vec![charge(customer.key, BASE); size], NOON).await;
        for decision in decisions {
            made += 1;
            let Decision::Accepted(receipt) = decision else { panic!("request {made}: {decision:?}") };
            assert_eq!(receipt.balance, atoms(ATOMS_PER_CREDIT - made * BASE));
        }
    }
    assert_eq!(made, 7_200);
    assert_eq!(balance(&*store, &customer.id).await, 0);
    assert!(matches!(
        refused(&*store, charge(customer.key, BASE), NOON).await,
        Refusal::InsufficientCredits { balance: Credits::ZERO, required: Credits::BASE_CALL, .. }
    ));
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!((report.by_day[0].usage_events, report.by_day[0].credits_used), (7_200, atoms(ATOMS_PER_CREDIT)));
}

/// A receipt has the account, the charge, the usage line, the balance and the rate limits.
pub async fn receipt_reports_the_charge(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let mut sought = line("/mpp/ethPrice/{block_number}");
    sought.source = ClientSource::Mcp;
    let mut request = charge_on(customer.key, 3 * BASE, sought.clone());
    request.request_path = "/mpp/ethPrice/17".into();
    let receipt = accepted(&*store, request, NOON).await;
    assert_eq!(receipt.account, customer.id);
    assert_eq!((receipt.charged, receipt.balance), (atoms(3 * BASE), atoms(7 * BASE)));
    assert_eq!((receipt.line, receipt.day, &*receipt.request_path), (sought, NOON.day(), "/mpp/ethPrice/17"));
    assert_eq!((receipt.rate.minute.count, receipt.rate.day.count, receipt.rate.at), (1, 1, NOON));
    assert!(!receipt.repeated);
}

/// An empty batch returns no outcomes and changes nothing.
pub async fn empty_batch_has_no_outcomes(store: Arc<dyn Store>) {
    customer(&*store, BASE).await;
    assert_eq!(store.commit(Vec::new(), NOON).await.unwrap(), []);
    assert_eq!(all_daily_totals(&*store).await, []);
}

/// A charge with an unknown key is refused and changes nothing.
pub async fn an_unknown_key_is_refused(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    assert_eq!(refused(&*store, charge(new_key(), BASE), NOON).await, Refusal::UnknownKey);
    assert_eq!(balance(&*store, &customer.id).await, BASE);
    assert_eq!(all_daily_totals(&*store).await, []);
}

/// In a mixed batch (live, empty, revoked and unknown accounts, and a refund), each posting gets its own outcome.
pub async fn mixed_batch_has_outcomes_in_order(store: Verified<dyn Store>) {
    let (rich, poor, gone) =
        (customer(&*store, 10 * BASE).await, customer(&*store, 1).await, customer(&*store, BASE).await);
    let receipt = accepted(&*store, charge(rich.key, 2 * BASE), NOON).await;
    store.revoke_account(&gone.id, NOON).await.unwrap();
    let paid = |key, price| Posting::Charge(charge(key, price));
    let batch = vec![
        paid(rich.key, BASE),
        paid(poor.key, BASE),
        paid(gone.key, BASE),
        paid(poor.key, BASE),
        Posting::Refund(receipt.into_refund().expect("there is a charge to refund")),
        paid(new_key(), BASE),
        paid(rich.key, 4 * BASE),
    ];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    let results: Vec<Result<i64, &str>> = outcomes.iter().map(summary).collect();
    let expected = [
        Ok(7 * BASE),
        Ok(1 - BASE),
        Err("unknown key"),
        Err("insufficient credits"),
        Ok(9 * BASE),
        Err("unknown key"),
        Ok(5 * BASE),
    ];
    assert_eq!(results, expected);
    assert_eq!(balance(&*store, &rich.id).await, 5 * BASE);
    assert_eq!(balance(&*store, &poor.id).await, 1 - BASE);
    assert_eq!(balance(&*store, &gone.id).await, BASE);
}

/// The balance after the posting, or why there is none.
fn summary(outcome: &Outcome) -> Result<i64, &'static str> {
    match outcome {
        Outcome::Decided(Decision::Accepted(receipt)) => Ok(receipt.balance.atoms()),
        Outcome::Decided(Decision::Refused(Refusal::UnknownKey)) => Err("unknown key"),
        Outcome::Decided(Decision::Refused(Refusal::RateLimited { .. })) => Err("rate limited"),
        Outcome::Decided(Decision::Refused(Refusal::InsufficientCredits { .. })) => Err("insufficient credits"),
        Outcome::Decided(Decision::Refused(Refusal::Key(_))) => Err("key"),
        Outcome::Decided(Decision::Refused(Refusal::TooManyInFlight)) => Err("too many in flight"),
        Outcome::Decided(Decision::Refused(Refusal::KeyBudget { .. })) => Err("key budget"),
        Outcome::Refunded(balance) => balance.map(Credits::atoms).ok_or("not refunded"),
        Outcome::Decided(Decision::Refused(Refusal::MaxCostExceeded { .. })) => Err("max cost"),
        Outcome::Decided(Decision::Refused(Refusal::Repeated(_))) => Err("repeated"),
        Outcome::Decided(Decision::Refused(_)) => Err("another refusal"),
        Outcome::Settled => Err("settled"),
        Outcome::Hold(updated) => updated.as_ref().map(|updated| updated.balance.atoms()).ok_or("no hold"),
        Outcome::Failed(_) => Err("failed"),
    }
}

/// The balance must be above zero, but need not cover the price: only the last request may overdraw.
pub async fn the_last_charge_may_go_below_zero(store: Verified<dyn Store>) {
    // balance before, price, balance after
    let table = [
        (1, BASE, Some(1 - BASE)),
        (BASE, BASE, Some(0)),
        (BASE + 1, BASE, Some(1)),
        (0, BASE, None),
        (-1, BASE, None),
        (0, 0, None),
        (1, 0, Some(1)),
    ];
    for (before, price, after) in table {
        let customer = customer(&*store, before).await;
        match after {
            Some(after) => assert_eq!(accepted(&*store, charge(customer.key, price), NOON).await.balance, atoms(after)),
            None => {
                let refusal = refused(&*store, charge(customer.key, price), NOON).await;
                let Refusal::InsufficientCredits { balance, required, .. } = refusal else { panic!("{refusal:?}") };
                assert_eq!((balance, required), (atoms(before), atoms(price)));
            }
        }
        assert_eq!(balance(&*store, &customer.id).await, after.unwrap_or(before), "{before} {price}");
    }
}

/// A refusal changes nothing: no usage, no activity, no rate limit window.
pub async fn refused_charge_changes_nothing(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    for _ in 0..3 {
        let refusal = refused(&*store, charge(customer.key, BASE), NOON).await;
        let Refusal::InsufficientCredits { rate, .. } = refusal else { panic!("{refusal:?}") };
        assert_eq!((rate.minute.count, rate.day.count), (0, 0));
    }
    assert_eq!(totals(&*store, &customer.id).await, Totals::default());
    assert_eq!(all_daily_totals(&*store).await, []);
    assert_eq!(store.activity(&customer.id, 10).await.unwrap(), []);
}

/// A free request is counted like any other.
pub async fn a_free_request_is_counted(store: Arc<dyn Store>) {
    let customer = customer(&*store, 1).await;
    let receipt = accepted(&*store, charge(customer.key, 0), NOON).await;
    assert_eq!((receipt.balance, receipt.rate.day.count), (atoms(1), 1));
    assert_eq!(receipt.into_refund(), None);
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!((report.by_day[0].usage_events, report.by_day[0].credits_used), (1, Credits::ZERO));
    assert_eq!(store.activity(&customer.id, 10).await.unwrap().len(), 2);
}

/// A top-up can be spent by the next commit.
pub async fn top_up_takes_effect_immediately(store: Arc<dyn Store>) {
    let customer = customer(&*store, 0).await;
    refused(&*store, charge(customer.key, BASE), NOON).await;
    post(&*store, &customer.id, adjustment(BASE), NOON).await;
    assert_eq!(accepted(&*store, charge(customer.key, BASE), NOON).await.balance, Credits::ZERO);
    post(&*store, &customer.id, adjustment(BASE), NOON).await;
    post(&*store, &customer.id, adjustment(-BASE), NOON).await;
    refused(&*store, charge(customer.key, BASE), NOON).await;
}

/// Accepted requests are booked on the UTC day of their commit.
pub async fn usage_is_booked_on_the_day_of_the_commit(store: Arc<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let midnight = NOON.saturating_add(DAY).day().start();
    let last_milli = midnight.saturating_sub(std::time::Duration::from_millis(1));
    for at in [last_milli, midnight, midnight] {
        assert_eq!(accepted(&*store, charge(customer.key, BASE), at).await.day, at.day());
    }
    let report = report(&*store, &customer.id, ALWAYS).await;
    let days: Vec<_> = report.by_day.iter().map(|day| (day.day, day.usage_events)).collect();
    assert_eq!(days, [(midnight.day(), 2), (last_milli.day(), 1)]);
}

/// Amounts at the ends of the range are added exactly or refused; none wraps or is rounded.
pub async fn prices_at_the_end_of_the_range_are_exact(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1).await;
    let receipt = accepted(&*store, charge(customer.key, i64::MAX), NOON).await;
    assert_eq!(receipt.balance, atoms(1 - i64::MAX));
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX), NOON).await;
    // The total used cannot grow any further, so the next charge is refused although the balance is positive.
    let refusal = refused(&*store, charge(customer.key, 1), NOON).await;
    assert!(matches!(refusal, Refusal::InsufficientCredits { .. }), "{refusal:?}");
    let Totals { balance, used, .. } = totals(&*store, &customer.id).await;
    assert_eq!((balance.atoms(), used), (1, Credits::MAX));
}
