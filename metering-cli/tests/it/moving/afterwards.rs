//! After a move, the store behaves as it would have before.

use metering_core::access::KeyHash;
use metering_core::charging::{LimitWindow, Outcome};
use metering_core::signups::LinkPurpose;
use metering_core::store::{Claimed, EmailVerified, KeyDelivery, PaymentCredited, Posted, SignupRedeemed, SignupStore};
use metering_core::{Credits, Decision, NewAccount, PaymentStore, Refusal, Store};
use metering_postgres::PostgresStore;
use metering_tests::postgres::is_skipped;

use super::filling::{
    AWAITED, BUSY, BUYER, CAPPED, REVOKED, VERIFIED, WAITING, charge, claim, grant, later, link, session, top_up,
    wallet,
};
use super::{Move, NOON, account, account_id};
use crate::store::block_on;

async fn decide(store: &PostgresStore, key: u8, request: Option<&str>) -> Decision {
    let posting = charge(KeyHash::from_bytes([key; 32]), "/a", request);
    match store.commit(vec![posting], NOON).await.unwrap().remove(0) {
        Outcome::Decided(decision) => decision,
        other => panic!("{other:?}"),
    }
}

#[test]
fn moved_store_continues_where_it_was() {
    metering_tests::skip_if!(is_skipped());
    let moving = Move::full();
    moving.migrate();
    block_on(async {
        let store = moving.postgres().await;
        charges(&store).await;
        money(&store).await;
        visitors(&store).await;
        readers_of_mail(&store).await;
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
        assert!(store.forget_expired(later(200 * 86_400)).await.unwrap() > 40);
    });
}

/// The ids of the busy account's last entries, as many as every store keeps.
async fn ids(store: &PostgresStore) -> Vec<String> {
    let entries = store.activity(&account_id(BUSY), metering_core::usage::ACTIVITY_KEPT).await.unwrap();
    entries.into_iter().map(|entry| entry.id).collect()
}

async fn charges(store: &PostgresStore) {
    let before = account(store, &account_id(BUSY)).await.totals;
    let newest = ids(store).await;
    // The same decision as at first, with the balance of that time.
    let Decision::Accepted(receipt) = decide(store, BUSY, Some("request-50")).await else { panic!() };
    assert!(receipt.repeated && receipt.balance > before.balance, "{receipt:?}");
    assert_eq!(account(store, &account_id(BUSY)).await.totals, before);
    let Decision::Accepted(receipt) = decide(store, BUSY, None).await else { panic!() };
    assert_eq!(receipt.balance, before.balance.checked_sub(Credits::BASE_CALL).unwrap());
    assert_eq!(ids(store).await[1..], newest[..newest.len() - 1], "the ring moved on by one");
    // Two of the minute's three requests were used before the move.
    assert!(matches!(decide(store, CAPPED, None).await, Decision::Accepted(_)));
    let Decision::Refused(Refusal::RateLimited { window, rate }) = decide(store, CAPPED, None).await else { panic!() };
    assert_eq!((window, rate.remaining(LimitWindow::Day)), (LimitWindow::Minute, Some(2)));
    assert_eq!(decide(store, REVOKED, None).await, Decision::Refused(Refusal::UnknownKey));
}

async fn money(store: &PostgresStore) {
    let last = store.ledger(None, u32::MAX).await.unwrap().items.last().unwrap().id;
    assert!(matches!(store.post_entry(&account_id(BUSY), grant(1), NOON).await.unwrap(), Posted::Account(_)));
    let entries = store.ledger(None, u32::MAX).await.unwrap().items;
    assert!(entries.last().unwrap().id > last, "new ids are above those that were moved");
    assert_eq!(store.activity(&account_id(BUSY), 1).await.unwrap()[0].amount, Credits::BASE_CALL);
    // The watcher created the account; its owner now claims the key.
    let mut late = claim(AWAITED, KeyDelivery::Now);
    late.account.key = KeyHash::from_bytes([200; 32]);
    assert!(matches!(store.claim_quote(late).await.unwrap(), Claimed::Account(_)));
    assert!(matches!(decide(store, 200, None).await, Decision::Accepted(_)));
    assert_eq!(decide(store, AWAITED, None).await, Decision::Refused(Refusal::UnknownKey));
    assert_eq!(store.claim_quote(claim(BUYER, KeyDelivery::Now)).await.unwrap(), Claimed::AlreadyClaimed);
    let again = store.credit_payment(top_up(BUYER, 50)).await.unwrap();
    assert!(matches!(again, PaymentCredited::Repeated(..)), "{again:?}");
    assert_eq!(store.credit_payment(top_up(BUSY, 50)).await.unwrap(), PaymentCredited::TxUsed);
    assert!(matches!(store.credit_payment(top_up(BUSY, 51)).await.unwrap(), PaymentCredited::Account(_)));
    assert_eq!(store.linked_accounts(&wallet(50)).await.unwrap(), [account_id(BUYER)]);
    // An open quote can be claimed, an email address is still taken, a used key stays used.
    assert!(matches!(store.claim_quote(claim(41, KeyDelivery::Now)).await.unwrap(), Claimed::Account(_)));
    let rotated = store.rotate_key("nonce", KeyHash::from_bytes([201; 32]), later(60)).await.unwrap();
    assert_eq!(rotated.map(|account| account.id), Some(account_id(BUYER)));
    assert!(matches!(decide(store, 201, None).await, Decision::Accepted(_)));
    let old = KeyHash::from_bytes([BUYER; 32]);
    assert!(
        store.replace_key(&account_id(BUSY), old, NOON).await.is_err(),
        "a key that was used is never issued again"
    );
}

async fn visitors(store: &PostgresStore) {
    let session = session(1);
    let mut new = NewAccount::new(account_id(90), "visitor".parse().unwrap(), KeyHash::from_bytes([90; 32]), NOON);
    new.email = Some(session.email.clone());
    let redeemed = store.redeem_signup(&session.token, new, NOON).await.unwrap();
    assert!(matches!(redeemed, SignupRedeemed::Account(_)), "{redeemed:?}");
    let accounts = store.accounts(None, u32::MAX).await.unwrap().items;
    assert_eq!(accounts.last().unwrap().id, account_id(90), "later accounts are listed later");
    assert!(!store.use_solution([9; 32], later(60)).await.unwrap());
}

async fn readers_of_mail(store: &PostgresStore) {
    let email = format!("reader{VERIFIED}@example.com").parse().unwrap();
    assert_eq!(store.account_by_email(&email).await.unwrap().unwrap().id, account_id(VERIFIED));
    let verification = link(WAITING, LinkPurpose::VerifyAddress);
    let verified = store.verify_email(&verification.token, NOON).await.unwrap();
    assert!(matches!(&verified, EmailVerified::Account { granted, .. } if granted.is_positive()), "{verified:?}");
    let recovery = link(VERIFIED, LinkPurpose::RecoverKey);
    let recovered = store.recover_key(&recovery.token, KeyHash::from_bytes([202; 32]), NOON).await.unwrap();
    assert_eq!(recovered.map(|account| account.id), Some(account_id(VERIFIED)));
}
