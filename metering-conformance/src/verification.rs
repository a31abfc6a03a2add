//! Contracts for verification: a correct store finds no discrepancies.

use std::sync::Arc;

use metering_core::money::LedgerKind;
use metering_core::store::{Store, Verification};

use super::scene::{DAY, NOON, accepted, adjustment, charge, commit_refund, customer, entry, post};

/// An empty store has no discrepancies.
pub async fn an_empty_store_is_verified(store: Arc<dyn Store>) {
    assert_eq!(
        store.verify().await.unwrap(),
        Verification { accounts: 0, discrepancies: Vec::new(), restarted_budgets: Vec::new() }
    );
}

/// Every account is recomputed, including revoked and unused ones, and all add up.
pub async fn verify_recomputes_every_account(store: Arc<dyn Store>) {
    for n in 0..7_i64 {
        let customer = customer(&*store, 1_000 * n).await;
        post(&*store, &customer.id, entry(LedgerKind::PurchaseTopup, 10 + n), NOON).await;
        accepted(&*store, charge(customer.key, 3 * n), NOON).await;
        let undelivered = accepted(&*store, charge(customer.key, 5), NOON.saturating_add(DAY)).await;
        commit_refund(&*store, undelivered.into_refund().expect("there is a charge to refund"), NOON)
            .await
            .expect("the amount is in range");
        post(&*store, &customer.id, adjustment(-n), NOON).await;
        if n % 2 == 0 {
            store.revoke_account(&customer.id, NOON).await.unwrap();
        }
    }
    customer(&*store, 0).await;
    assert_eq!(
        store.verify().await.unwrap(),
        Verification { accounts: 8, discrepancies: Vec::new(), restarted_budgets: Vec::new() }
    );
}

/// A working store passes its check.
pub async fn a_working_store_passes_its_check(store: Arc<dyn Store>) {
    store.check().await.unwrap();
    customer(&*store, 1).await;
    store.check().await.unwrap();
}
