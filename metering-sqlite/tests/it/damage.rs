//! Damage by direct writes to the file: `verify` notices it.

use metering_core::store::KeyDelivery;
use metering_core::{PaymentStore, Store};

use crate::scene::{account, assert_corrupt, claim, created, credit, execute, quote, tx};

#[tokio::test]
async fn payments_that_contradict_the_ledger_are_detected() {
    // damage, expected fragment of the message
    let table = [
        ("DELETE FROM payment WHERE used_as = 'topup'", "not recorded"),
        ("DELETE FROM payment WHERE used_as = 'pay_signup'", "not recorded"),
        ("UPDATE payment SET chain_id = 1 WHERE used_as = 'topup'", "not in the ledger of their account"),
        ("DELETE FROM ledger WHERE kind = 'purchase_topup'", "not in the ledger of their account"),
        ("UPDATE ledger SET tx_chain_id = NULL, tx_hash = NULL", "not in the ledger of their account"),
        (
            "UPDATE payment SET account = (SELECT max(id) FROM account) WHERE used_as = 'topup'",
            "not in the ledger of their account",
        ),
        ("UPDATE payment SET account = 99", "belong to no account"),
        (
            "INSERT INTO ledger (id, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id)
             SELECT 99, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id
             FROM ledger WHERE kind = 'purchase_topup'",
            "more than one purchase",
        ),
        (
            "UPDATE payment SET settlement = 'reversed', reversed_at = 1 WHERE used_as = 'topup'",
            "reversed in their record or in the ledger, but not in both",
        ),
        (
            "INSERT INTO ledger (id, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id)
             SELECT 99, account, 'payment_reversed', -amount, description, created_at, tx_chain_id, tx_hash, plan_id
             FROM ledger WHERE kind = 'purchase_topup'",
            "reversed in their record or in the ledger, but not in both",
        ),
        (
            "INSERT INTO ledger (id, account, kind, amount, description, created_at, tx_chain_id, tx_hash, plan_id)
             SELECT 99, account, 'payment_reversed', -amount, description, created_at, 1, tx_hash, plan_id
             FROM ledger WHERE kind = 'purchase_topup'",
            "reversed or restored in the ledger, but not recorded",
        ),
    ];
    for (damage, expected) in table {
        let (_folder, file, store) = created();
        let (id, _) = account(&store, 1).await;
        store.credit_payment(credit(&id, 1, tx(1))).await.unwrap();
        store.open_quote(quote(2)).await.unwrap();
        store.claim_quote(claim(&quote(2), tx(2), KeyDelivery::Now).0).await.unwrap();
        assert_eq!(store.verify().await.unwrap().discrepancies, [], "before: {damage}");
        execute(&file, &format!("PRAGMA foreign_keys = off; {damage}"));
        assert_corrupt(&store, expected, damage).await;
    }
}
