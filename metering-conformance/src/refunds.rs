//! Contracts for refunds: the price is credited back on the day of its charge, once, and nothing else changes.

use std::sync::Arc;

use metering_core::Decision;
use metering_core::access::{KeyHash, Totals};
use metering_core::charging::{Outcome, Posting, Refund};
use metering_core::money::{Credits, LedgerKind};
use metering_core::store::Store;
use metering_core::usage::ActivityKind;

use super::scene::{
    ALWAYS, BASE, DAY, NOON, Verified, accepted, all_daily_totals, atoms, balance, charge, charge_on, commit_refund,
    customer, entry, line, new_id, post, report, totals,
};

async fn refund_of_a_charge(store: &dyn Store, key: KeyHash, price: i64) -> Refund {
    accepted(store, charge(key, price), NOON).await.into_refund().expect("there is a charge to refund")
}

/// A refund restores balance and usage; the call still counts.
pub async fn refund_restores_the_price(store: Verified<dyn Store>) {
    let customer = customer(&*store, 5 * BASE).await;
    accepted(&*store, charge(customer.key, BASE), NOON).await;
    let refund = refund_of_a_charge(&*store, customer.key, 3 * BASE).await;
    assert_eq!(commit_refund(&*store, refund, NOON).await, Some(atoms(4 * BASE)));
    let Totals { balance, used, granted, .. } = totals(&*store, &customer.id).await;
    assert_eq!((balance, used, granted), (atoms(4 * BASE), atoms(BASE), atoms(5 * BASE)));
    let report = report(&*store, &customer.id, ALWAYS).await;
    assert_eq!((report.by_day[0].usage_events, report.by_day[0].credits_used), (2, atoms(BASE)));
    assert_eq!((report.by_endpoint[0].call_count, report.by_endpoint[0].credits_used), (2, atoms(BASE)));
}

/// A refund is booked on the day and line of its charge, whenever it is made.
pub async fn a_refund_is_booked_on_the_day_of_its_charge(store: Arc<dyn Store>) {
    let customer = customer(&*store, 9 * BASE).await;
    let next_day = NOON.saturating_add(DAY);
    let (here, there) = (line("/here"), line("/there"));
    let receipt = accepted(&*store, charge_on(customer.key, 2 * BASE, here.clone()), NOON).await;
    accepted(&*store, charge_on(customer.key, BASE, there.clone()), NOON).await;
    accepted(&*store, charge_on(customer.key, BASE, here.clone()), next_day).await;
    commit_refund(&*store, receipt.into_refund().expect("there is a charge to refund"), next_day)
        .await
        .expect("the refund succeeds");
    let totals: Vec<_> = all_daily_totals(&*store).await;
    let row = |day, line| {
        let row = totals.iter().find(|total| total.day == day && total.line == line).expect("the row exists");
        (row.calls, row.credits_used)
    };
    assert_eq!(row(NOON.day(), here.clone()), (1, Credits::ZERO));
    assert_eq!(row(NOON.day(), there), (1, atoms(BASE)));
    assert_eq!(row(next_day.day(), here), (1, atoms(BASE)));
    assert_eq!(totals.len(), 3);
    let entries = store.activity(&customer.id, 10).await.unwrap();
    let refund = entries.iter().find(|entry| entry.kind == ActivityKind::UsageRefund).expect("the refund is listed");
    assert_eq!(refund.created_at, next_day, "activity has the time of the refund");
}

/// Several refunds in one batch are all applied, and each returns the balance after it.
pub async fn refunds_of_one_batch_add_up(store: Verified<dyn Store>) {
    let customer = customer(&*store, 10 * BASE).await;
    let mut batch = Vec::new();
    for price in 1..=3 {
        batch.push(Posting::Refund(refund_of_a_charge(&*store, customer.key, price * BASE).await));
    }
    assert_eq!(balance(&*store, &customer.id).await, 4 * BASE);
    let outcomes = store.commit(batch, NOON).await.unwrap();
    let expected = [5, 7, 10].map(|left| Outcome::Refunded(Some(atoms(left * BASE))));
    assert_eq!(outcomes, expected);
    assert_eq!(totals(&*store, &customer.id).await.used, Credits::ZERO);
}

/// A refund is available to later charges of its batch, not to earlier ones.
pub async fn refund_is_available_to_later_charges(store: Arc<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let refund = refund_of_a_charge(&*store, customer.key, BASE).await;
    let paid = || Posting::Charge(charge(customer.key, BASE));
    let outcomes = store.commit(vec![paid(), Posting::Refund(refund), paid(), paid()], NOON).await.unwrap();
    let accepted = outcomes.iter().map(|outcome| matches!(outcome, Outcome::Decided(Decision::Accepted(_))));
    assert!(accepted.eq([false, false, true, false]), "{outcomes:?}");
    assert_eq!(outcomes[1], Outcome::Refunded(Some(atoms(BASE))));
    assert_eq!(balance(&*store, &customer.id).await, 0);
}

/// A refund for an unknown account returns `None` and does not affect the rest of its batch.
pub async fn a_refund_of_an_unknown_account_is_none(store: Verified<dyn Store>) {
    let customer = customer(&*store, 2 * BASE).await;
    let refund = refund_of_a_charge(&*store, customer.key, BASE).await;
    let mut stray = refund;
    stray.account = new_id();
    let batch = vec![Posting::Refund(stray), Posting::Charge(charge(customer.key, BASE))];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    assert_eq!(outcomes[0], Outcome::Refunded(None));
    assert!(matches!(outcomes[1], Outcome::Decided(Decision::Accepted(_))));
    assert_eq!(balance(&*store, &customer.id).await, 0);
}

/// A refund that would take the balance out of range changes nothing.
pub async fn a_refund_beyond_range_changes_nothing(store: Verified<dyn Store>) {
    let customer = customer(&*store, BASE).await;
    let refund = refund_of_a_charge(&*store, customer.key, BASE).await;
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX), NOON).await;
    let (totals_before, days_before) = (totals(&*store, &customer.id).await, all_daily_totals(&*store).await);
    let activity_before = store.activity(&customer.id, 10).await.unwrap();
    assert_eq!(totals_before.balance, Credits::MAX);
    assert_eq!(commit_refund(&*store, refund, NOON).await, None);
    assert_eq!(totals(&*store, &customer.id).await, totals_before);
    assert_eq!(all_daily_totals(&*store).await, days_before);
    assert_eq!(store.activity(&customer.id, 10).await.unwrap(), activity_before);
}

/// One daily total may be refunded and charged with extreme amounts in the same batch; only the result must be in
/// range.
pub async fn a_refund_makes_room_for_a_charge_of_its_batch(store: Verified<dyn Store>) {
    let customer = customer(&*store, 1).await;
    let refund = refund_of_a_charge(&*store, customer.key, i64::MAX).await;
    let batch = vec![Posting::Refund(refund), Posting::Charge(charge(customer.key, i64::MAX))];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    assert!(matches!(outcomes[1], Outcome::Decided(Decision::Accepted(_))), "{outcomes:?}");
    let rows = all_daily_totals(&*store).await;
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].calls, rows[0].credits_used), (2, Credits::MAX));
}
