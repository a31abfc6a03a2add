//! Contracts for emailed links: each works once, and an address belongs to the first account that verifies it.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{Account, AccountId, EmailStatus};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::random::SystemRandomness;
use metering_core::signups::{EmailLink, LinkHash, LinkPurpose, LinkToken};
use metering_core::store::{Created, EmailVerified, NewAccount, SignupStore};

use super::scene::{BASE, NOON, Verified, account, adjustment, atoms, create, new_account, new_id, new_key, racing};

const ADDRESS: &str = "Jörg@Example.com";
const FREE: Credits = Credits::from_atoms(5 * BASE);
const PENDING: EmailStatus = EmailStatus::Pending { free_credits: FREE };
const TASKS: usize = 32;

fn with_email(email: &str, email_status: EmailStatus) -> NewAccount {
    NewAccount { email: Some(email.parse().unwrap()), email_status, entries: vec![adjustment(1)], ..new_account() }
}

/// A new account that waits for the verification of [`ADDRESS`].
async fn waiting(store: &dyn SignupStore) -> Account {
    create(store, with_email(ADDRESS, PENDING)).await
}

fn link(account: &AccountId, purpose: LinkPurpose) -> EmailLink {
    let token = LinkToken::generate(&SystemRandomness).hash();
    EmailLink { token, purpose, account: account.clone(), expires_at: NOON.saturating_add(purpose.lifetime()) }
}

/// Opens a link and expects success.
async fn open(store: &dyn SignupStore, account: &AccountId, purpose: LinkPurpose) -> LinkHash {
    let link = link(account, purpose);
    assert!(store.open_email_link(link.clone()).await.unwrap(), "{link:?}");
    link.token
}

async fn verify(store: &dyn SignupStore, token: &LinkHash) -> EmailVerified {
    store.verify_email(token, NOON).await.unwrap()
}

/// An account with a verified address.
async fn verified(store: &dyn SignupStore) -> Account {
    let id = waiting(store).await.id;
    let token = open(store, &id, LinkPurpose::VerifyAddress).await;
    match verify(store, &token).await {
        EmailVerified::Account { account, .. } => account,
        refusal => panic!("the address was not verified: {refusal:?}"),
    }
}

/// Accounts that wait for an address block no other account, and are not found by it.
pub async fn a_pending_address_is_held_by_nobody(store: Verified<dyn SignupStore>) {
    let first = waiting(&*store).await;
    assert_eq!((first.email_status, first.totals.balance), (PENDING, atoms(1)));
    assert_eq!(account(&*store, &first.id).await, first);
    waiting(&*store).await;
    let email = ADDRESS.parse().unwrap();
    assert_eq!(store.account_by_email(&email).await.unwrap(), None);
    let holder = create(&*store, with_email("JÖRG@example.com", EmailStatus::Unchecked)).await;
    assert_eq!(store.account_by_email(&email).await.unwrap(), Some(holder.clone()));
    store.revoke_account(&holder.id, NOON).await.unwrap();
    assert_eq!(store.account_by_email(&email).await.unwrap(), None);
}

/// Verifying gives the account its address and its credits, once.
pub async fn an_address_is_verified_once(store: Verified<dyn SignupStore>) {
    let before = waiting(&*store).await;
    let token = open(&*store, &before.id, LinkPurpose::VerifyAddress).await;
    let EmailVerified::Account { account: after, granted } = verify(&*store, &token).await else {
        panic!("a live link was refused");
    };
    assert_eq!((granted, after.email_status), (FREE, EmailStatus::Verified { at: NOON }));
    assert_eq!(after.totals.balance.atoms(), 1 + FREE.atoms());
    assert_eq!(after.totals.granted.atoms(), 1 + FREE.atoms());
    assert_eq!(account(&*store, &before.id).await, after);
    let ledger = store.account_ledger(&before.id, None, 10).await.unwrap().items;
    assert_eq!(ledger.last().map(|entry| (entry.kind.as_str(), entry.amount)), Some(("signup_bonus", FREE)));
    assert_eq!(store.account_by_email(&"jörg@example.com".parse().unwrap()).await.unwrap(), Some(after));
    assert_eq!(verify(&*store, &token).await, EmailVerified::NotLive);
    let taken = store.create_account(with_email(ADDRESS, EmailStatus::Unchecked)).await.unwrap();
    assert_eq!(taken, Created::EmailTaken);
}

/// An account from before verification already has its credits.
pub async fn an_unchecked_address_is_verified_without_credits(store: Arc<dyn SignupStore>) {
    let before = create(&*store, with_email(ADDRESS, EmailStatus::Unchecked)).await;
    let token = open(&*store, &before.id, LinkPurpose::VerifyAddress).await;
    let EmailVerified::Account { account, granted } = verify(&*store, &token).await else {
        panic!("a live link was refused");
    };
    assert_eq!((granted, account.totals), (Credits::ZERO, before.totals));
    assert_eq!(account.email_status, EmailStatus::Verified { at: NOON });
    assert_eq!(store.account_ledger(&before.id, None, 10).await.unwrap().items.len(), 1, "no entry was written");
}

/// The second account of an address gets neither the address nor credits, until the first is revoked.
pub async fn an_address_verified_elsewhere_is_refused(store: Arc<dyn SignupStore>) {
    let late = waiting(&*store).await;
    let token = open(&*store, &late.id, LinkPurpose::VerifyAddress).await;
    let holder = verified(&*store).await;
    assert_eq!(verify(&*store, &token).await, EmailVerified::EmailTaken);
    assert_eq!(account(&*store, &late.id).await, late);
    store.revoke_account(&holder.id, NOON).await.unwrap();
    let granted = verify(&*store, &token).await;
    assert!(matches!(granted, EmailVerified::Account { .. }), "{granted:?}");
}

/// Links for verification go to unverified addresses, links for recovery to verified ones, and none to others.
pub async fn a_link_is_opened_only_for_an_account_that_can_use_it(store: Arc<dyn SignupStore>) {
    use LinkPurpose::{RecoverKey, VerifyAddress};
    let (pending, without) = (waiting(&*store).await.id, create(&*store, new_account()).await.id);
    let unchecked = create(&*store, with_email("b@example.com", EmailStatus::Unchecked)).await.id;
    let verified = verified(&*store).await.id;
    // account, links for verification, links for recovery
    let table = [
        (&pending, true, false),
        (&unchecked, true, false),
        (&verified, false, true),
        (&without, false, false),
        (&new_id(), false, false),
    ];
    for (id, verification, recovery) in table {
        for (purpose, expected) in [(VerifyAddress, verification), (RecoverKey, recovery)] {
            assert_eq!(store.open_email_link(link(id, purpose)).await.unwrap(), expected, "{id} {purpose:?}");
        }
    }
    let token = open(&*store, &pending, VerifyAddress).await;
    assert!(store.open_email_link(EmailLink { token, ..link(&unchecked, VerifyAddress) }).await.is_err());
}

/// Only the newest link of each purpose works.
pub async fn a_newer_link_replaces_the_older_of_its_purpose(store: Arc<dyn SignupStore>) {
    let owner = waiting(&*store).await.id;
    let other = waiting(&*store).await.id;
    let others = open(&*store, &other, LinkPurpose::VerifyAddress).await;
    let older = open(&*store, &owner, LinkPurpose::VerifyAddress).await;
    let newer = open(&*store, &owner, LinkPurpose::VerifyAddress).await;
    assert_eq!(verify(&*store, &older).await, EmailVerified::NotLive);
    assert!(matches!(verify(&*store, &newer).await, EmailVerified::Account { .. }));
    assert_eq!(verify(&*store, &others).await, EmailVerified::EmailTaken, "links of other accounts are kept");
    let [older, newer] =
        [open(&*store, &owner, LinkPurpose::RecoverKey).await, open(&*store, &owner, LinkPurpose::RecoverKey).await];
    assert_eq!(store.recover_key(&older, new_key(), NOON).await.unwrap(), None);
    assert!(store.recover_key(&newer, new_key(), NOON).await.unwrap().is_some());
}

/// A recovery link replaces the key and is used up. It does not verify, and a key in use changes nothing.
pub async fn a_recovery_link_replaces_the_key_once(store: Verified<dyn SignupStore>) {
    let new = with_email(ADDRESS, PENDING);
    let (id, old) = (new.id.clone(), new.key);
    create(&*store, new).await;
    let verification = open(&*store, &id, LinkPurpose::VerifyAddress).await;
    assert_eq!(store.recover_key(&verification, new_key(), NOON).await.unwrap(), None);
    assert!(matches!(verify(&*store, &verification).await, EmailVerified::Account { .. }));
    let token = open(&*store, &id, LinkPurpose::RecoverKey).await;
    assert_eq!(verify(&*store, &token).await, EmailVerified::NotLive);
    assert!(store.recover_key(&token, old, NOON).await.is_err(), "the old key is in use");
    let key = new_key();
    let recovered = store.recover_key(&token, key, NOON).await.unwrap();
    assert_eq!(recovered, Some(account(&*store, &id).await));
    assert_eq!(store.live_keys(&[old, key], NOON).await.unwrap(), [false, true]);
    assert_eq!(store.recover_key(&token, new_key(), NOON).await.unwrap(), None);
    assert_eq!(store.live_keys(&[key], NOON).await.unwrap(), [true]);
}

/// A link works until the moment it expires.
pub async fn expired_links_do_nothing(store: Arc<dyn SignupStore>) {
    let moment = Duration::from_millis(1);
    let id = waiting(&*store).await.id;
    let token = open(&*store, &id, LinkPurpose::VerifyAddress).await;
    let end = NOON.saturating_add(LinkPurpose::VerifyAddress.lifetime());
    assert_eq!(store.verify_email(&token, end).await.unwrap(), EmailVerified::NotLive);
    let last = store.verify_email(&token, end.saturating_sub(moment)).await.unwrap();
    assert!(matches!(last, EmailVerified::Account { .. }), "{last:?}");
    let token = open(&*store, &id, LinkPurpose::RecoverKey).await;
    let end = NOON.saturating_add(LinkPurpose::RecoverKey.lifetime());
    assert_eq!(store.recover_key(&token, new_key(), end).await.unwrap(), None);
    assert!(store.recover_key(&token, new_key(), end.saturating_sub(moment)).await.unwrap().is_some());
}

/// Links of an account that was revoked since.
pub async fn links_of_revoked_accounts_do_nothing(store: Arc<dyn SignupStore>) {
    let pending = waiting(&*store).await.id;
    let verification = open(&*store, &pending, LinkPurpose::VerifyAddress).await;
    let owner = verified(&*store).await.id;
    let recovery = open(&*store, &owner, LinkPurpose::RecoverKey).await;
    for id in [&pending, &owner] {
        store.revoke_account(id, NOON).await.unwrap();
    }
    assert_eq!(verify(&*store, &verification).await, EmailVerified::NotLive);
    assert_eq!(store.recover_key(&recovery, new_key(), NOON).await.unwrap(), None);
    for (id, purpose) in [(&pending, LinkPurpose::VerifyAddress), (&owner, LinkPurpose::RecoverKey)] {
        assert!(!store.open_email_link(link(id, purpose)).await.unwrap(), "{purpose:?}");
    }
}

/// Many people click one link at once: the credits are granted once.
pub async fn concurrent_clicks_grant_the_credits_once(store: Verified<dyn SignupStore>) {
    let id = waiting(&*store).await.id;
    let token = open(&*store, &id, LinkPurpose::VerifyAddress).await;
    assert_eq!(clicks(&store, vec![token; TASKS]).await, (1, TASKS - 1, 0));
    assert_eq!(account(&*store, &id).await.totals.balance.atoms(), 1 + FREE.atoms());
}

/// Many accounts wait for one address, and all their links are followed at once: one gets the address and the credits.
pub async fn of_accounts_with_one_address_one_gets_it(store: Verified<dyn SignupStore>) {
    let mut tokens = Vec::new();
    for _ in 0..TASKS {
        let id = waiting(&*store).await.id;
        tokens.push(open(&*store, &id, LinkPurpose::VerifyAddress).await);
    }
    assert_eq!(clicks(&store, tokens).await, (1, 0, TASKS - 1));
    let accounts = store.accounts(None, 100).await.unwrap().items;
    let balances: i64 = accounts.iter().map(|account| account.totals.balance.atoms()).sum();
    assert_eq!(balances, i64::try_from(TASKS).unwrap() + FREE.atoms());
    assert_eq!(accounts.iter().filter(|account| account.email_status.is_verified()).count(), 1);
}

/// Follows links at once. How many verified, were not live, and came too late for their address.
async fn clicks(store: &Arc<dyn SignupStore>, tokens: Vec<LinkHash>) -> (usize, usize, usize) {
    let outcomes = racing(store, tokens, |store, token| async move { verify(&*store, &token).await }).await;
    let count = |wanted: fn(&EmailVerified) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    (
        count(|outcome| matches!(outcome, EmailVerified::Account { .. })),
        count(|outcome| *outcome == EmailVerified::NotLive),
        count(|outcome| *outcome == EmailVerified::EmailTaken),
    )
}

/// Many recoveries with one link: one key is given out.
pub async fn concurrent_recoveries_give_one_key(store: Arc<dyn SignupStore>) {
    let id = verified(&*store).await.id;
    let token = open(&*store, &id, LinkPurpose::RecoverKey).await;
    let keys: Vec<_> = (0..TASKS).map(|_| new_key()).collect();
    let results =
        racing(&store, keys.clone(), |store, key| async move { store.recover_key(&token, key, NOON).await.unwrap() })
            .await;
    let recovered = results.into_iter().flatten().count();
    let live = store.live_keys(&keys, NOON).await.unwrap().into_iter().filter(|live| *live).count();
    assert_eq!((recovered, live), (1, 1));
}

/// Links are deleted once they have expired, and not before.
pub async fn expired_links_are_deleted(store: Arc<dyn SignupStore>) {
    let owner = verified(&*store).await.id;
    let pending = waiting(&*store).await.id;
    open(&*store, &owner, LinkPurpose::RecoverKey).await;
    open(&*store, &pending, LinkPurpose::VerifyAddress).await;
    let over = |purpose: LinkPurpose| -> Timestamp { NOON.saturating_add(purpose.lifetime()) };
    let early = over(LinkPurpose::RecoverKey).saturating_sub(Duration::from_millis(1));
    assert_eq!(store.forget_expired(early).await.unwrap(), 0);
    assert_eq!(store.forget_expired(over(LinkPurpose::RecoverKey)).await.unwrap(), 1);
    assert_eq!(store.forget_expired(over(LinkPurpose::VerifyAddress)).await.unwrap(), 1);
    assert_eq!(store.forget_expired(over(LinkPurpose::VerifyAddress)).await.unwrap(), 0);
}
