//! Contracts for limits on tokens per minute: a hold's maximum counts first, and its request's actual tokens replace
//! it.

use std::sync::Arc;

use metering_core::access::{AccountId, KeyHash, KeyTerms};
use metering_core::charging::{HoldAction, HoldId, HoldUpdate, LimitWindow, Posting, RateStatus};
use metering_core::clock::Timestamp;
use metering_core::store::{Store, TermsChange};
use metering_core::{Charge, Receipt, Refusal, RequestId};

use super::hold_scene::{LEASE, capture, held, hold, later, try_update};
use super::key_scene::{caller, change, issue, manager};
use super::races::{accepted_count, all_at_once};
use super::scene::{Customer, MINUTE, NOON, Verified, accepted, account, charge, commit, customer, refused};

const PLENTY: i64 = 1_000_000;

/// A hold of a request that may use so many tokens.
pub(crate) fn request(key: KeyHash, tokens: u32) -> Charge {
    hold(key, 9).with_tokens(tokens)
}

/// A customer whose requests may use so many tokens per minute.
pub(crate) async fn limited(store: &dyn Store, limit: u32) -> Customer {
    let customer = customer(store, PLENTY).await;
    let account = store.set_token_limit(&customer.id, limit).await.unwrap().expect("the account exists");
    assert_eq!(account.tokens_per_minute, limit);
    customer
}

async fn open(store: &dyn Store, key: KeyHash, tokens: u32, now: Timestamp) -> Receipt {
    accepted(store, request(key, tokens), now).await
}

async fn open_id(store: &dyn Store, key: KeyHash, tokens: u32) -> HoldId {
    held(&open(store, key, tokens, NOON).await).id
}

pub(crate) async fn settle(
    store: &dyn Store,
    account: &AccountId,
    id: HoldId,
    action: HoldAction,
    tokens: Option<u32>,
    now: Timestamp,
) {
    let update = HoldUpdate { tokens, ..HoldUpdate::new(account.clone(), id, action) };
    assert!(try_update(store, Posting::Hold(update), now).await.expect("the hold exists").changed);
}

/// The limit that refuses a request that may use so many tokens.
async fn refusal(store: &dyn Store, key: KeyHash, tokens: u32, now: Timestamp) -> RateStatus {
    match refused(store, request(key, tokens), now).await {
        Refusal::RateLimited { window: LimitWindow::Tokens, rate } => rate,
        other => panic!("it is refused for another reason: {other:?}"),
    }
}

/// The remaining tokens, as reported to a request that would use more than any limit.
pub(crate) async fn left(store: &dyn Store, key: KeyHash, now: Timestamp) -> u32 {
    refusal(store, key, u32::MAX, now).await.remaining(LimitWindow::Tokens).expect("there is a limit")
}

/// 64 requests race for a limit that 20 of them fill: exactly 20 are accepted.
pub async fn a_token_limit_is_filled_once(store: Verified<dyn Store>) {
    let customer = limited(&*store, 20 * 30 + 29).await;
    let requests = (0..64).map(|_| request(customer.key, 30)).collect();
    assert_eq!(accepted_count(&all_at_once(&store, requests).await), 20);
    assert_eq!(left(&*store, customer.key, NOON).await, 29);
    let batch = (0..40).map(|_| request(customer.key, 1)).collect();
    assert_eq!(accepted_count(&commit(&*store, batch, NOON).await), 29, "in one batch");
}

/// A request's actual tokens replace the expected ones; without a report, the expected ones stay.
pub async fn used_tokens_replace_expected_ones(store: Verified<dyn Store>) {
    // what settles it, the tokens used, the tokens left of 100 after a hold that may use 60
    let table = [
        (capture(3), Some(10), 90),
        (capture(3), Some(0), 100),
        (capture(3), Some(60), 40),
        (capture(3), Some(85), 15),
        (capture(3), Some(250), 0),
        (capture(3), None, 40),
        (HoldAction::CaptureFallback, Some(10), 40),
        (HoldAction::Release, None, 100),
    ];
    for (action, used, expected) in table {
        let customer = limited(&*store, 100).await;
        let receipt = open(&*store, customer.key, 60, NOON).await;
        let status = receipt.rate.tokens;
        assert_eq!((status.limit, status.remaining(), status.minute.index), (100, Some(40), NOON.minute()));
        let full = refusal(&*store, customer.key, 41, later(20)).await;
        assert_eq!((full.remaining(LimitWindow::Tokens), full.reset_seconds(LimitWindow::Tokens)), (Some(40), 40));
        settle(&*store, &customer.id, held(&receipt).id, action, used, later(2)).await;
        assert_eq!(left(&*store, customer.key, later(3)).await, expected, "{action:?} {used:?}");
    }
}

/// An expired lease does not report tokens, so the expected ones stay counted.
pub async fn tokens_of_an_expired_hold_stay_counted(store: Arc<dyn Store>) {
    let customer = limited(&*store, 100).await;
    let id = open_id(&*store, customer.key, 60).await;
    settle(&*store, &customer.id, id, HoldAction::Expire, None, NOON.saturating_add(LEASE)).await;
    assert_eq!(left(&*store, customer.key, later(59)).await, 40);
    let late = open(&*store, customer.key, 30, later(59)).await;
    let end = later(59).saturating_add(LEASE);
    settle(&*store, &customer.id, held(&late).id, HoldAction::Expire, None, end).await;
    assert_eq!(left(&*store, customer.key, end).await, 100, "in its minute only");
}

/// Tokens count in the minute in which the hold was opened, whenever it is settled. A lagging clock starts no new minute.
pub async fn tokens_count_in_the_minute_of_their_hold(store: Arc<dyn Store>) {
    let customer = limited(&*store, 100).await;
    let id = open_id(&*store, customer.key, 60).await;
    let next = NOON.saturating_add(MINUTE);
    assert_eq!(left(&*store, customer.key, next).await, 100);
    open(&*store, customer.key, 30, next).await;
    settle(&*store, &customer.id, id, capture(3), Some(45), next).await;
    assert_eq!(left(&*store, customer.key, next).await, 70, "the hold's minute is over");
    let late = held(&open(&*store, customer.key, 50, later(59)).await).id;
    assert_eq!(left(&*store, customer.key, next).await, 20, "it counts in the newest minute");
    settle(&*store, &customer.id, late, capture(3), Some(5), next).await;
    assert_eq!(left(&*store, customer.key, next).await, 65);
}

/// If a request lasts into another minute, what it used beyond its hold counts there, for the account and each key with a
/// limit.
pub async fn tokens_beyond_the_hold_count_when_it_is_settled(store: Verified<dyn Store>) {
    let customer = limited(&*store, 1_000).await;
    let terms = KeyTerms { tokens_per_minute: 100, ..manager() };
    let parent = issue(&*store, &customer.id, None, terms).await;
    let child = issue(&*store, &customer.id, Some(&parent), caller()).await;
    let [first, second] = [1, 10].map(|tokens| open(&*store, child.secret, tokens, NOON));
    let (first, second) = (held(&first.await).id, held(&second.await).id);
    let next = NOON.saturating_add(MINUTE);
    settle(&*store, &customer.id, first, capture(3), Some(81), next).await;
    let lefts = async |now| {
        let of_parent = refusal(&*store, parent.secret, 101, now).await.remaining(LimitWindow::Tokens);
        (left(&*store, customer.key, now).await, of_parent.expect("there is a limit"))
    };
    assert_eq!(lefts(next).await, (920, 20), "nothing else was accepted in this minute");
    settle(&*store, &customer.id, second, capture(3), Some(500), next).await;
    assert_eq!(lefts(next).await, (430, 0));
    assert_eq!(refusal(&*store, child.secret, 1, next).await.tokens.limit, 100);
    assert_eq!(lefts(next.saturating_add(MINUTE)).await, (1_000, 100));
}

/// A limit that is lowered, or removed for a while, finds what open holds count, and what replaces it.
pub async fn a_lowered_token_limit_keeps_what_is_counted(store: Arc<dyn Store>) {
    let customer = limited(&*store, 100).await;
    let terms = KeyTerms { tokens_per_minute: 95, ..caller() };
    let key = issue(&*store, &customer.id, None, terms).await;
    let limit_key = async |limit| {
        let terms = TermsChange { tokens_per_minute: Some(limit), ..TermsChange::default() };
        drop(change(&*store, &customer.id, &key.id, terms).await);
    };
    let (first, second) = (open_id(&*store, key.secret, 40).await, open_id(&*store, key.secret, 50).await);
    store.set_token_limit(&customer.id, 60).await.unwrap();
    limit_key(0).await;
    assert_eq!(left(&*store, key.secret, NOON).await, 0);
    settle(&*store, &customer.id, first, capture(3), Some(10), NOON).await;
    assert_eq!(left(&*store, key.secret, NOON).await, 0, "60 of 60");
    settle(&*store, &customer.id, second, capture(3), Some(5), NOON).await;
    assert_eq!(left(&*store, key.secret, NOON).await, 45);
    limit_key(20).await;
    assert_eq!(refusal(&*store, key.secret, 6, NOON).await.remaining(LimitWindow::Tokens), Some(5));
}

/// Charges, and holds of requests that use no tokens, are not counted; neither is a request again that is repeated.
pub async fn only_accepted_holds_with_tokens_count(store: Arc<dyn Store>) {
    let customer = limited(&*store, 10).await;
    accepted(&*store, charge(customer.key, 1).with_tokens(11_u32), NOON).await;
    let receipt = accepted(&*store, hold(customer.key, 1), NOON).await;
    assert_eq!(receipt.rate.tokens.limit, 0, "it has nothing to do with tokens");
    assert_eq!(left(&*store, customer.key, NOON).await, 10);
    let named = || request(customer.key, 4).with_request_id(RequestId::parse("r1").unwrap());
    accepted(&*store, named(), NOON).await;
    assert!(accepted(&*store, named(), NOON).await.repeated);
    let costly = hold(customer.key, PLENTY + 1).with_tokens(2_u32);
    assert!(matches!(refused(&*store, costly, NOON).await, Refusal::InsufficientCredits { .. }));
    assert_eq!(left(&*store, customer.key, NOON).await, 6);
    accepted(&*store, request(customer.key, 5), NOON).await;
    accepted(&*store, request(customer.key, 0), NOON).await;
    refusal(&*store, customer.key, 0, NOON).await;
}

/// A change applies to the next request. Holds that no limit counted change none when they are settled.
pub async fn a_token_limit_changes_at_once(store: Arc<dyn Store>) {
    let customer = customer(&*store, PLENTY).await;
    let before = open_id(&*store, customer.key, 60).await;
    let set = async |limit| drop(store.set_token_limit(&customer.id, limit).await.unwrap().expect("it exists"));
    set(100).await;
    assert_eq!(account(&*store, &customer.id).await.tokens_per_minute, 100);
    let counted = open_id(&*store, customer.key, 70).await;
    settle(&*store, &customer.id, before, HoldAction::Release, None, NOON).await;
    assert_eq!(left(&*store, customer.key, NOON).await, 30, "the first hold was never counted");
    set(50).await;
    assert_eq!(left(&*store, customer.key, NOON).await, 0);
    set(0).await;
    let free = open_id(&*store, customer.key, u32::MAX).await;
    set(100).await;
    settle(&*store, &customer.id, free, capture(3), Some(80), NOON).await;
    assert_eq!(left(&*store, customer.key, NOON).await, 30, "only what was counted under a limit counts");
    settle(&*store, &customer.id, counted, capture(3), Some(20), NOON).await;
    assert_eq!(left(&*store, customer.key, NOON).await, 80);
    assert_eq!(store.set_token_limit(&super::scene::new_id(), 1).await.unwrap(), None);
}

/// A key's limit holds within its account's and its parent's, and counts what its child keys use. A request that one of
/// them refuses counts for none.
pub async fn a_keys_token_limit_is_within_the_others(store: Verified<dyn Store>) {
    let customer = limited(&*store, 100).await;
    let terms = |terms: KeyTerms, limit| KeyTerms { tokens_per_minute: limit, ..terms };
    let parent = issue(&*store, &customer.id, None, terms(manager(), 50)).await;
    let child = issue(&*store, &customer.id, Some(&parent), terms(caller(), 20)).await;
    let receipt = open(&*store, child.secret, 15, NOON).await;
    assert_eq!((receipt.rate.tokens.limit, receipt.rate.tokens.remaining()), (20, Some(5)));
    assert_eq!(refusal(&*store, child.secret, 6, NOON).await.tokens.limit, 20);
    let of_parent = open(&*store, parent.secret, 30, NOON).await;
    assert_eq!((of_parent.rate.tokens.limit, of_parent.rate.tokens.remaining()), (50, Some(5)));
    assert_eq!(refusal(&*store, parent.secret, 6, NOON).await.tokens.limit, 50);
    let first = open(&*store, customer.key, 50, NOON).await;
    assert_eq!((first.rate.tokens.limit, first.rate.tokens.remaining()), (100, Some(5)));
    settle(&*store, &customer.id, held(&receipt).id, capture(3), Some(1), NOON).await;
    assert_eq!(left(&*store, customer.key, NOON).await, 19);
    // Now 1 of 20, 31 of 50 and 81 of 100 are used.
    assert_eq!(open(&*store, child.secret, 19, NOON).await.rate.tokens.remaining(), Some(0));
    refusal(&*store, customer.key, 1, NOON).await;
    let wider = TermsChange { tokens_per_minute: Some(40), ..TermsChange::default() };
    assert_eq!(change(&*store, &customer.id, &child.id, wider).await.terms.tokens_per_minute, 40);
    settle(&*store, &customer.id, held(&first).id, HoldAction::Release, None, NOON).await;
    refusal(&*store, parent.secret, 1, NOON).await;
    assert_eq!(refusal(&*store, child.secret, 1, NOON).await.tokens.limit, 50, "the child key is within its own limit");
}
