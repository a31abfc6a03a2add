//! Contracts for signup sessions: approved once, redeemed once.

use std::sync::Arc;
use std::time::Duration;

use metering_core::clock::Timestamp;
use metering_core::money::LedgerKind;
use metering_core::random::SystemRandomness;
use metering_core::signups::{SessionToken, SignupSession, UserCode};
use metering_core::store::{NewAccount, SignupApproved, SignupOpened, SignupRedeemed, SignupStore};

use super::scene::{BASE, NOON, Verified, adjustment, atoms, create, entry, new_account, racing};

const LIFETIME: Duration = Duration::from_secs(15 * 60);

fn session(email: &str) -> SignupSession {
    SignupSession {
        token: SessionToken::generate(&SystemRandomness).hash(),
        user_code: UserCode::generate(&SystemRandomness),
        email: email.parse().unwrap(),
        agent_name: "agent".parse().unwrap(),
        created_at: NOON,
        expires_at: NOON.saturating_add(LIFETIME),
        approved_at: None,
    }
}

async fn open(store: &dyn SignupStore, email: &str) -> SignupSession {
    let session = session(email);
    assert_eq!(store.open_signup(session.clone()).await.unwrap(), SignupOpened::Opened);
    session
}

async fn approved(store: &dyn SignupStore, email: &str) -> SignupSession {
    let session = open(store, email).await;
    assert_eq!(store.approve_signup(&session.user_code, NOON).await.unwrap(), SignupApproved::Approved);
    session
}

/// The account that redeeming a session creates.
fn account_of(session: &SignupSession) -> NewAccount {
    let entries = vec![entry(LedgerKind::SignupBonus, 5 * BASE)];
    NewAccount { email: Some(session.email.clone()), entries, ..new_account() }
}

const fn at_the_end(session: &SignupSession) -> Timestamp {
    session.expires_at
}

/// A session is found by its token and by its code, with every field as given.
pub async fn a_session_is_found_as_it_was_opened(store: Arc<dyn SignupStore>) {
    let (one, other) = (open(&*store, "Name@Example.com").await, open(&*store, "name@example.com").await);
    for session in [one, other] {
        assert_eq!(store.signup(&session.token).await.unwrap().as_ref(), Some(&session));
        let found = store.signup_of_code(&session.user_code).await.unwrap().unwrap();
        assert_eq!((found.email.as_str(), &found), (session.email.as_str(), &session));
    }
    let unknown = session("other@example.com");
    assert_eq!(store.signup(&unknown.token).await.unwrap(), None);
    assert_eq!(store.signup_of_code(&unknown.user_code).await.unwrap(), None);
}

/// A taken email is refused in upper or lower case, and before a code in use. A token in use is an error.
pub async fn a_session_needs_a_free_email_and_code(store: Arc<dyn SignupStore>) {
    create(&*store, NewAccount { email: Some("name@example.com".parse().unwrap()), ..new_account() }).await;
    let known = open(&*store, "other@example.com").await;
    let taken = SignupSession { user_code: known.user_code, ..session("NAME@example.com") };
    assert_eq!(store.open_signup(taken).await.unwrap(), SignupOpened::EmailTaken);
    let same_code = SignupSession { user_code: known.user_code, ..session("third@example.com") };
    assert_eq!(store.open_signup(same_code.clone()).await.unwrap(), SignupOpened::CodeTaken);
    assert_eq!(store.signup(&same_code.token).await.unwrap(), None);
    let same_token = SignupSession { token: known.token, ..session("third@example.com") };
    store.open_signup(same_token).await.unwrap_err();
    assert_eq!(store.signup(&known.token).await.unwrap(), Some(known));
}

/// A session is approved once, before it expires.
pub async fn a_session_is_approved_once_in_time(store: Arc<dyn SignupStore>) {
    let session = approved(&*store, "name@example.com").await;
    assert_eq!(store.signup(&session.token).await.unwrap().unwrap().approved_at, Some(NOON));
    assert_eq!(store.approve_signup(&session.user_code, NOON).await.unwrap(), SignupApproved::NotPending);
    let late = open(&*store, "late@example.com").await;
    let approve = store.approve_signup(&late.user_code, at_the_end(&late)).await.unwrap();
    assert_eq!(approve, SignupApproved::NotPending);
    let unknown_code = UserCode::generate(&SystemRandomness);
    assert_eq!(store.approve_signup(&unknown_code, NOON).await.unwrap(), SignupApproved::NotPending);
}

/// An email address that was taken since is refused at the approval and at the redemption.
pub async fn email_taken_since_opening_is_refused(store: Arc<dyn SignupStore>) {
    let (pending, ready) = (open(&*store, "name@example.com").await, approved(&*store, "name@example.com").await);
    create(&*store, NewAccount { email: Some("NAME@example.com".parse().unwrap()), ..new_account() }).await;
    assert_eq!(store.approve_signup(&pending.user_code, NOON).await.unwrap(), SignupApproved::EmailTaken);
    let redeemed = store.redeem_signup(&ready.token, account_of(&ready), NOON).await.unwrap();
    assert_eq!(redeemed, SignupRedeemed::EmailTaken);
    assert_eq!(store.accounts(None, 10).await.unwrap().items.len(), 1);
}

/// Redeeming creates the account with its entries and deletes the session.
pub async fn a_session_is_redeemed_once(store: Verified<dyn SignupStore>) {
    let session = approved(&*store, "name@example.com").await;
    let new = account_of(&session);
    let SignupRedeemed::Account(account) = store.redeem_signup(&session.token, new.clone(), NOON).await.unwrap() else {
        panic!("an approved session was not redeemed");
    };
    assert_eq!((account.id, account.totals.balance), (new.id, atoms(5 * BASE)));
    assert_eq!(store.live_keys(&[new.key], NOON).await.unwrap(), [true]);
    assert_eq!(store.signup(&session.token).await.unwrap(), None);
    assert_eq!(store.signup_of_code(&session.user_code).await.unwrap(), None);
    let again = store.redeem_signup(&session.token, account_of(&session), NOON).await.unwrap();
    assert_eq!(again, SignupRedeemed::NotApproved);
}

/// Only an approved session can be redeemed, as long as it is stored.
pub async fn unapproved_session_is_not_redeemed(store: Arc<dyn SignupStore>) {
    let pending = open(&*store, "name@example.com").await;
    let redeemed = store.redeem_signup(&pending.token, account_of(&pending), NOON).await.unwrap();
    assert_eq!(redeemed, SignupRedeemed::NotApproved);
    assert!(store.accounts(None, 10).await.unwrap().items.is_empty());
    let ready = approved(&*store, "other@example.com").await;
    let end = at_the_end(&ready).saturating_add(SignupSession::RETENTION);
    let late = store.redeem_signup(&ready.token, account_of(&ready), end).await.unwrap();
    assert_eq!(late, SignupRedeemed::NotApproved);
    let last = end.saturating_sub(Duration::from_millis(1));
    let redeemed = store.redeem_signup(&ready.token, account_of(&ready), last).await.unwrap();
    assert!(matches!(redeemed, SignupRedeemed::Account(_)), "{redeemed:?}");
}

/// Entries out of range create nothing, and the session can still be redeemed.
pub async fn a_redemption_beyond_range_changes_nothing(store: Arc<dyn SignupStore>) {
    let session = approved(&*store, "name@example.com").await;
    let new = NewAccount { entries: vec![adjustment(i64::MAX), adjustment(1)], ..account_of(&session) };
    assert_eq!(store.redeem_signup(&session.token, new, NOON).await.unwrap(), SignupRedeemed::OutOfRange);
    let redeemed = store.redeem_signup(&session.token, account_of(&session), NOON).await.unwrap();
    assert!(matches!(redeemed, SignupRedeemed::Account(_)), "{redeemed:?}");
}

/// Many redemptions race: one gets the account.
pub async fn concurrent_redemptions_create_one_account(store: Arc<dyn SignupStore>) {
    let session = approved(&*store, "name@example.com").await;
    let results = racing(&store, 0..32, |store, _| {
        let session = session.clone();
        async move { store.redeem_signup(&session.token, account_of(&session), NOON).await.unwrap() }
    })
    .await;
    let made = results.iter().filter(|result| matches!(result, SignupRedeemed::Account(_))).count();
    assert_eq!((made, store.accounts(None, 100).await.unwrap().items.len()), (1, 1));
}

/// A solution can be used once until it is deleted. Many uses race, and one of them succeeds.
pub async fn a_solution_is_used_once(store: Arc<dyn SignupStore>) {
    let results = racing(&store, 0..32, |store, _| async move {
        store.use_solution([7; 32], NOON.saturating_add(LIFETIME)).await.unwrap()
    })
    .await;
    assert_eq!(results.into_iter().filter(|first| *first).count(), 1);
    assert!(store.use_solution([8; 32], NOON.saturating_add(2 * LIFETIME)).await.unwrap());
    assert_eq!(store.forget_expired(NOON.saturating_add(LIFETIME)).await.unwrap(), 1);
    assert!(!store.use_solution([8; 32], NOON).await.unwrap());
}

/// Sessions, including approved ones, are deleted when their storage time is over.
pub async fn expired_sessions_are_deleted(store: Arc<dyn SignupStore>) {
    let (pending, ready) = (open(&*store, "one@example.com").await, approved(&*store, "two@example.com").await);
    let over = at_the_end(&pending).saturating_add(SignupSession::RETENTION);
    assert_eq!(store.forget_expired(over.saturating_sub(Duration::from_millis(1))).await.unwrap(), 0);
    assert_eq!(store.forget_expired(over).await.unwrap(), 2);
    assert_eq!(store.signup(&pending.token).await.unwrap(), None);
    assert_eq!(store.signup(&ready.token).await.unwrap(), None);
}
