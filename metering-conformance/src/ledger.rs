//! Contracts for the ledger: every change of a balance except usage, as written.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::Totals;
use metering_core::money::{Credits, LedgerKind, NewLedgerEntry};
use metering_core::store::{Posted, Store};

use super::scene::{BASE, NOON, Verified, accepted, adjustment, atoms, charge, customer, entry, post, totals};

/// Every entry changes the balance and the total of its kind.
pub async fn entries_change_the_balance_and_their_total(store: Verified<dyn Store>) {
    // kind, amount, purchased after, granted after
    let table = [
        (LedgerKind::SignupBonus, 100, 0, 100),
        (LedgerKind::PurchasePaySignup, 20, 20, 0),
        (LedgerKind::PurchaseTopup, 3, 3, 0),
        (LedgerKind::PurchaseTopup, -3, -3, 0),
        (LedgerKind::Adjustment, 4, 0, 4),
        (LedgerKind::Adjustment, -5, 0, -5),
        (LedgerKind::Adjustment, 0, 0, 0),
    ];
    for (kind, amount, purchased, granted) in table {
        let customer = customer(&*store, 0).await;
        let result = post(&*store, &customer.id, entry(kind, amount), NOON).await;
        let expected = Totals {
            balance: atoms(amount),
            purchased: atoms(purchased),
            granted: atoms(granted),
            used: Credits::ZERO,
            held: Credits::ZERO,
        };
        assert_eq!(result.totals, expected, "{kind:?} {amount}");
        assert_eq!(totals(&*store, &customer.id).await, expected, "{kind:?} {amount}");
    }
}

/// The ledger lists entries as written, in the order of writing, regardless of the clock.
pub async fn entries_are_listed_as_written(store: Arc<dyn Store>) {
    let (first, second) = (customer(&*store, 0).await, customer(&*store, 0).await);
    let lagging = NOON.saturating_sub(Duration::from_millis(90_001));
    let long = "sentence ".repeat(500);
    let written = [
        (&first.id, LedgerKind::PurchaseTopup, 7, "plan 5 USDC, “Größe M” ✓", NOON),
        (&second.id, LedgerKind::Adjustment, -9, "it's; DROP TABLE ledger --", lagging),
        (&first.id, LedgerKind::Adjustment, 1, "", NOON),
        (&first.id, LedgerKind::SignupBonus, 2, long.as_str(), NOON),
    ];
    for (id, kind, amount, description, at) in &written {
        let description = (*description).to_owned();
        post(&*store, id, NewLedgerEntry::new(*kind, atoms(*amount), description), *at).await;
    }
    let page = store.ledger(None, 10).await.unwrap();
    assert_eq!(page.next, None);
    let listed = page
        .items
        .iter()
        .map(|entry| (&entry.account, entry.kind, entry.amount.atoms(), entry.description.as_str(), entry.created_at));
    assert!(listed.eq(written), "{:?}", page.items);
    assert!(page.items.windows(2).all(|pair| pair[0].id < pair[1].id), "numbers increase");
}

/// An entry that would take the balance out of range is refused and changes nothing.
pub async fn an_entry_beyond_range_changes_nothing(store: Verified<dyn Store>) {
    // the account's balance, an amount that does not fit
    let table = [
        (adjustment(i64::MAX), adjustment(1)),
        (adjustment(i64::MAX), entry(LedgerKind::PurchaseTopup, 1)),
        (entry(LedgerKind::PurchaseTopup, i64::MAX), adjustment(i64::MAX)),
        (adjustment(i64::MIN), adjustment(-1)),
    ];
    for (has, beyond) in table {
        let customer = customer(&*store, 0).await;
        post(&*store, &customer.id, has, NOON).await;
        let before = totals(&*store, &customer.id).await;
        let count = store.ledger(None, 100).await.unwrap().items.len();
        assert_eq!(store.post_entry(&customer.id, beyond, NOON).await.unwrap(), Posted::OutOfRange);
        assert_eq!(totals(&*store, &customer.id).await, before);
        assert_eq!(store.ledger(None, 100).await.unwrap().items.len(), count);
    }
}

/// The total of purchases or grants must stay in range too, even if the balance would.
pub async fn a_total_beyond_range_changes_nothing(store: Verified<dyn Store>) {
    for kind in [LedgerKind::PurchaseTopup, LedgerKind::Adjustment] {
        let customer = customer(&*store, 0).await;
        post(&*store, &customer.id, entry(kind, i64::MAX), NOON).await;
        accepted(&*store, charge(customer.key, BASE), NOON).await;
        let before = totals(&*store, &customer.id).await;
        assert_eq!(store.post_entry(&customer.id, entry(kind, 1), NOON).await.unwrap(), Posted::OutOfRange);
        assert_eq!(totals(&*store, &customer.id).await, before);
        let other = if kind.is_purchase() { LedgerKind::Adjustment } else { LedgerKind::PurchaseTopup };
        post(&*store, &customer.id, entry(other, 1), NOON).await;
    }
}

/// Over its lifetime, an account may receive and spend more credits than the range of an amount; verification still
/// adds them up exactly.
pub async fn lifetime_totals_can_exceed_the_amount_range(store: Verified<dyn Store>) {
    let customer = customer(&*store, 0).await;
    post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, i64::MAX), NOON).await;
    accepted(&*store, charge(customer.key, i64::MAX), NOON).await;
    post(&*store, &customer.id, adjustment(i64::MAX), NOON).await;
    post(&*store, &customer.id, adjustment(-i64::MAX), NOON).await;
    post(&*store, &customer.id, adjustment(i64::MAX), NOON).await;
    let max = Credits::MAX;
    let expected = Totals { balance: max, purchased: max, granted: max, used: max, held: Credits::ZERO };
    assert_eq!(totals(&*store, &customer.id).await, expected);
}
