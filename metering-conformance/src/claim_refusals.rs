//! Contracts for refused claims: no changes, and a quote that can still be claimed.

use std::sync::Arc;

use metering_core::access::Payer;
use metering_core::money::LedgerKind;
use metering_core::payments::{PaymentUse, Quote};
use metering_core::store::{Claim, Claimed, KeyDelivery, NewAccount, PaymentCredit, PaymentStore};

use super::sale::{
    BONUS, Books, SOLD, buyer, claim, claimed, credit, credited, late_claim, open, payment_by, purchase, quote, tx,
    wallet,
};
use super::scene::{BASE, NOON, Verified, atoms, create, customer, entry, new_account, new_key};

/// Claims a quote as owner and as watcher, and expects `refusal` and no changes.
async fn assert_refused(store: &dyn PaymentStore, claim: &Claim, refusal: Claimed) {
    let before = Books::read(store).await;
    let quote = store.quote(&claim.nonce).await.unwrap();
    for delivery in [KeyDelivery::Now, KeyDelivery::Later] {
        let claim = Claim { delivery, ..claim.clone() };
        assert_eq!(store.claim_quote(claim.clone()).await.unwrap(), refusal, "{claim:?}");
        assert_eq!(Books::read(store).await, before, "{claim:?}");
        assert_eq!(store.quote(&claim.nonce).await.unwrap(), quote, "{claim:?}");
        assert_eq!(store.account(&claim.account.id).await.unwrap(), None, "{claim:?}");
        assert_eq!(store.live_keys(&[claim.account.key], NOON).await.unwrap(), [false], "{claim:?}");
    }
}

/// A transaction that was used for any purpose creates no account, and the quote stays open for another one.
pub async fn a_used_transaction_claims_nothing(store: Arc<dyn PaymentStore>) {
    let customer = customer(&*store, BASE).await;
    buyer(&*store, 1).await;
    credited(&*store, credit(&customer.id, payment_by(2, tx(2)))).await;
    let assigned = credit(&customer.id, payment_by(3, tx(3)));
    credited(&*store, PaymentCredit { used_as: PaymentUse::Assigned, ..assigned }).await;
    let awaited = open(&*store, quote(5)).await;
    claimed(&*store, late_claim(&awaited, tx(5))).await;
    let quote = open(&*store, quote(4)).await;
    for used in [1, 2, 3, 5] {
        assert_refused(&*store, &claim(&quote, tx(used)), Claimed::TxUsed).await;
    }
    store.revoke_account(&customer.id, NOON).await.unwrap();
    assert_refused(&*store, &claim(&quote, tx(2)), Claimed::TxUsed).await;
    claimed(&*store, claim(&quote, tx(4))).await;
}

/// A wallet that already has an account does not get a second one until the first is revoked.
pub async fn a_payer_with_an_account_claims_nothing(store: Arc<dyn PaymentStore>) {
    let (first, second) = (quote(1), Quote { payer: wallet(1), ..quote(2) });
    let (first, second) = (open(&*store, first).await, open(&*store, second).await);
    let made = claimed(&*store, claim(&first, tx(1))).await;
    assert_refused(&*store, &claim(&second, tx(2)), Claimed::PayerTaken).await;
    let on_another_chain = |mut claim: Claim| {
        claim.account.payer = Some(Payer { address: wallet(1), chain_id: 1 });
        claim
    };
    assert_refused(&*store, &on_another_chain(claim(&second, tx(2))), Claimed::PayerTaken).await;
    assert_eq!(store.payment(&tx(2)).await.unwrap(), None);
    store.revoke_account(&made.id, NOON).await.unwrap();
    let again = claimed(&*store, claim(&second, tx(2))).await;
    assert_eq!(store.account_by_payer(&wallet(1)).await.unwrap(), Some(again));
}

/// Entries out of range leave the quote and the transaction unused; a claim with other entries can still use them.
pub async fn out_of_range_entries_claim_nothing(store: Verified<dyn PaymentStore>) {
    let purchase_of = |amount| purchase(LedgerKind::PurchasePaySignup, amount, tx(1));
    let table = [
        vec![purchase_of(i64::MAX), entry(LedgerKind::SignupBonus, 1)],
        vec![purchase_of(SOLD), entry(LedgerKind::Adjustment, i64::MAX)],
        vec![purchase_of(i64::MIN), entry(LedgerKind::Adjustment, -1)],
    ];
    let quote = open(&*store, Quote { email: Some("a@example.com".parse().unwrap()), ..quote(1) }).await;
    for entries in table {
        let mut claim = claim(&quote, tx(1));
        claim.account.entries = entries;
        assert_refused(&*store, &claim, Claimed::OutOfRange).await;
        assert_eq!(store.payment(&tx(1)).await.unwrap(), None);
        assert_eq!(store.account_by_payer(&wallet(1)).await.unwrap(), None);
    }
    let made = claimed(&*store, claim(&quote, tx(1))).await;
    assert_eq!((made.email, made.totals.balance), (quote.email, atoms(SOLD + BONUS)));
}

/// An id or key that an account has or had is an error, and the quote stays open.
pub async fn a_claim_with_an_id_or_key_in_use_changes_nothing(store: Arc<dyn PaymentStore>) {
    let first = customer(&*store, BASE).await;
    let key = new_key();
    store.replace_key(&first.id, key, NOON).await.unwrap().expect("the account is live");
    let revoked = create(&*store, new_account()).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let quote = open(&*store, quote(1)).await;
    let fresh = || claim(&quote, tx(1)).account;
    let table = [
        ("id", NewAccount { id: first.id.clone(), ..fresh() }),
        ("id of a revoked account", NewAccount { id: revoked.id, ..fresh() }),
        ("live key", NewAccount { key, ..fresh() }),
        ("replaced key", NewAccount { key: first.key, ..fresh() }),
    ];
    let before = Books::read(&*store).await;
    for (what, account) in table {
        for delivery in [KeyDelivery::Now, KeyDelivery::Later] {
            let claim = Claim { account: account.clone(), delivery, ..claim(&quote, tx(1)) };
            assert!(store.claim_quote(claim).await.is_err(), "{what}");
            assert_eq!(Books::read(&*store).await, before, "{what}");
            assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(quote.clone()), "{what}");
        }
    }
    assert_eq!(store.live_keys(&[key, first.key], NOON).await.unwrap(), [true, false]);
    claimed(&*store, claim(&quote, tx(1))).await;
}
