//! Contracts for quotes claimed by the watcher: the account exists, but no one has its key until the owner claims it.

use std::sync::Arc;

use metering_core::Refusal;
use metering_core::access::{Account, KeyHash};
use metering_core::payments::{Quote, QuoteState};
use metering_core::store::{Claim, Claimed, PaymentStore};

use super::sale::{
    BONUS, Books, SOLD, challenge, claim, claimed, credit, credited, late_claim, open, payment_by, quote, state_of, tx,
    wallet,
};
use super::scene::{
    BASE, NOON, Verified, accepted, account, adjustment, atoms, balance, charge, create, customer, new_account,
    new_key, refused,
};

/// A quote that the watcher claimed with transaction `number`, its account, and the key that no one has.
async fn awaited(store: &dyn PaymentStore, number: u8) -> (Quote, Account, KeyHash) {
    let quote = open(store, quote(number)).await;
    let claim = late_claim(&quote, tx(number));
    let key = claim.account.key;
    (quote, claimed(store, claim).await, key)
}

/// Expects that the quote is already claimed and that the claim changes nothing.
async fn assert_too_late(store: &dyn PaymentStore, claim: Claim) {
    let (nonce, key) = (claim.nonce, claim.account.key);
    let before = (Books::read(store).await, store.quote(&nonce).await.unwrap());
    assert_eq!(store.claim_quote(claim).await.unwrap(), Claimed::AlreadyClaimed);
    assert_eq!((Books::read(store).await, store.quote(&nonce).await.unwrap()), before);
    assert_eq!(store.live_keys(&[key], NOON).await.unwrap(), [false]);
}

/// The watcher's claim creates the account like any claim; the quote records that the key has not been given out.
pub async fn watcher_claim_keeps_the_key_for_the_owner(store: Verified<dyn PaymentStore>) {
    let (quote, made, _) = awaited(&*store, 1).await;
    assert_eq!(made.totals.balance, atoms(SOLD + BONUS));
    assert_eq!(account(&*store, &made.id).await, made);
    let state = QuoteState::Paid { account: made.id.clone(), tx: tx(1) };
    assert_eq!(store.quote(&quote.nonce).await.unwrap(), Some(Quote { state, ..quote }));
    assert_eq!(store.payment(&tx(1)).await.unwrap().map(|record| record.account), Some(made.id.clone()));
    assert_eq!(store.account_by_payer(&wallet(1)).await.unwrap(), Some(made));
    assert_eq!(Books::read(&*store).await.counts(), (1, 2, 1));
}

/// The owner claims with the same transaction and gets a key; nothing is created, credited or recorded again.
pub async fn owner_gets_the_key_by_a_later_claim(store: Verified<dyn PaymentStore>) {
    let (quote, made, placeholder) = awaited(&*store, 1).await;
    credited(&*store, credit(&made.id, payment_by(9, tx(9)))).await;
    let before = Books::read(&*store).await;
    let mut late = claim(&quote, tx(1));
    // Everything except the key is ignored, because the account already exists.
    late.account.id = made.id.clone();
    late.account.agent_name = "other".parse().unwrap();
    late.account.email = Some("other@example.com".parse().unwrap());
    late.account.entries.extend([adjustment(i64::MAX), adjustment(i64::MAX)]);
    let key = late.account.key;
    let given = claimed(&*store, late).await;
    assert_eq!(given, before.accounts[0]);
    assert_eq!(Books::read(&*store).await, before);
    assert_eq!(store.live_keys(&[placeholder, key], NOON).await.unwrap(), [false, true]);
    assert_eq!(refused(&*store, charge(placeholder, BASE), NOON).await, Refusal::UnknownKey);
    let receipt = accepted(&*store, charge(key, BASE), NOON).await;
    assert_eq!((receipt.account, receipt.balance), (made.id.clone(), atoms(2 * SOLD + BONUS - BASE)));
    assert_eq!(state_of(&*store, &quote).await, QuoteState::Claimed { account: made.id, tx: tx(1) });
    assert_too_late(&*store, claim(&quote, tx(1))).await;
    assert_eq!(store.live_keys(&[key], NOON).await.unwrap(), [true]);
}

/// Only a claim with the payment that created the account gets its key; other payments and the watcher's claims do not.
pub async fn only_its_own_payment_gets_the_key(store: Arc<dyn PaymentStore>) {
    let (quote, _, placeholder) = awaited(&*store, 1).await;
    let customer = customer(&*store, BASE).await;
    credited(&*store, credit(&customer.id, payment_by(3, tx(3)))).await;
    let others = [claim(&quote, tx(2)), claim(&quote, tx(3)), late_claim(&quote, tx(1)), late_claim(&quote, tx(2))];
    for other in others {
        assert_too_late(&*store, other).await;
        assert!(matches!(state_of(&*store, &quote).await, QuoteState::Paid { .. }));
        assert_eq!(store.live_keys(&[placeholder], NOON).await.unwrap(), [true]);
    }
    claimed(&*store, claim(&quote, tx(1))).await;
}

/// If the key was given out another way, the quote counts as claimed.
pub async fn key_delivered_otherwise_claims_the_quote(store: Arc<dyn PaymentStore>) {
    for (number, rotates) in [(1, false), (2, true)] {
        let (quote, made, placeholder) = awaited(&*store, number).await;
        let key = new_key();
        if rotates {
            store.open_challenge(challenge(&made.id, wallet(number), "asked")).await.unwrap();
            store.rotate_key("asked", key, NOON).await.unwrap().expect("the challenge is open");
        } else {
            store.replace_key(&made.id, key, NOON).await.unwrap().expect("the account is live");
        }
        let state = QuoteState::Claimed { account: made.id, tx: tx(number) };
        assert_eq!(state_of(&*store, &quote).await, state, "rotates: {rotates}");
        assert_too_late(&*store, claim(&quote, tx(number))).await;
        assert_eq!(store.live_keys(&[placeholder, key], NOON).await.unwrap(), [false, true], "rotates: {rotates}");
    }
}

/// Giving out one account's key does not affect other quotes.
pub async fn late_claim_leaves_other_awaited_quotes(store: Arc<dyn PaymentStore>) {
    let (first, second) = (awaited(&*store, 1).await, awaited(&*store, 2).await);
    let other = customer(&*store, BASE).await;
    store.replace_key(&other.id, new_key(), NOON).await.unwrap().expect("the account is live");
    claimed(&*store, claim(&first.0, tx(1))).await;
    let state = QuoteState::Paid { account: second.1.id.clone(), tx: tx(2) };
    assert_eq!(state_of(&*store, &second.0).await, state);
    assert_eq!(claimed(&*store, claim(&second.0, tx(2))).await.id, second.1.id);
}

/// A revoked account gets no key from a late claim.
pub async fn revoked_account_cannot_be_claimed(store: Arc<dyn PaymentStore>) {
    let (quote, made, placeholder) = awaited(&*store, 1).await;
    store.revoke_account(&made.id, NOON).await.unwrap();
    assert_too_late(&*store, claim(&quote, tx(1))).await;
    assert_eq!(store.live_keys(&[placeholder], NOON).await.unwrap(), [false]);
}

/// A late claim with a key that an account has or had is an error; the quote still waits for its owner.
pub async fn a_late_claim_with_a_key_in_use_changes_nothing(store: Arc<dyn PaymentStore>) {
    let (quote, made, placeholder) = awaited(&*store, 1).await;
    let (live, revoked) = (customer(&*store, BASE).await, new_account());
    create(&*store, revoked.clone()).await;
    store.revoke_account(&revoked.id, NOON).await.unwrap();
    let before = Books::read(&*store).await;
    for (what, key) in [("its own", placeholder), ("another's", live.key), ("a revoked one", revoked.key)] {
        let mut late = claim(&quote, tx(1));
        late.account.key = key;
        assert!(store.claim_quote(late).await.is_err(), "{what}");
        assert_eq!(Books::read(&*store).await, before, "{what}");
        assert!(matches!(state_of(&*store, &quote).await, QuoteState::Paid { .. }), "{what}");
        assert_eq!(store.live_keys(&[placeholder, live.key], NOON).await.unwrap(), [true, true], "{what}");
    }
    assert_eq!(claimed(&*store, claim(&quote, tx(1))).await.id, made.id);
    assert_eq!(balance(&*store, &live.id).await, BASE);
}
