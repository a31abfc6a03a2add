//! Contracts for links that sign a browser in: one opens one session, and the key does not change.

use std::sync::Arc;
use std::time::Duration;

use metering_core::FullStore;
use metering_core::access::{EmailStatus, KeyHash};
use metering_core::random::SystemRandomness;
use metering_core::signups::{EmailLink, LinkHash, LinkPurpose, LinkToken};
use metering_core::store::NewAccount;

use super::browser_sessions::new;
use super::scene::{NOON, create, new_account, new_key, racing};

const TASKS: usize = 32;

/// An account with a verified address and its key.
async fn verified(store: &dyn FullStore) -> NewAccount {
    let email = Some("jo@example.com".parse().unwrap());
    let account = NewAccount { email, email_status: EmailStatus::Verified { at: NOON }, ..new_account() };
    create(store, account.clone()).await;
    account
}

/// Opens a link for signing in.
async fn link(store: &dyn FullStore, owner: &NewAccount) -> LinkHash {
    let (token, purpose) = (LinkToken::generate(&SystemRandomness).hash(), LinkPurpose::SignIn);
    let expires_at = NOON.saturating_add(purpose.lifetime());
    let link = EmailLink { token, purpose, account: owner.id.clone(), expires_at };
    assert!(store.open_email_link(link).await.unwrap());
    token
}

async fn is_live(store: &dyn FullStore, key: KeyHash) -> bool {
    store.live_keys(&[key], NOON).await.unwrap() == [true]
}

/// The session has the secret that the first key has then.
pub async fn a_link_signs_in_once(store: Arc<dyn FullStore>) {
    let owner = verified(&*store).await;
    let token = link(&*store, &owner).await;
    assert!(store.recover_key(&token, new_key(), NOON).await.unwrap().is_none(), "it is for signing in only");
    let found = store.email_link(&token).await.unwrap().expect("reading it does not use it up");
    assert_eq!((found.account, found.purpose), (owner.id.clone(), LinkPurpose::SignIn));
    let session = store.sign_in_by_link(&token, new(NOON)).await.unwrap().expect("the link is live");
    assert_eq!((&session.account, session.secret), (&owner.id, owner.key));
    assert_eq!(store.browser_session(&session.token).await.unwrap(), Some(session));
    assert!(is_live(&*store, owner.key).await);
    assert_eq!(store.sign_in_by_link(&token, new(NOON)).await.unwrap(), None);
    assert_eq!(store.email_link(&token).await.unwrap(), None);
    let key = new_key();
    store.replace_live_key(&owner.key, key, NOON).await.unwrap();
    let token = link(&*store, &owner).await;
    let session = store.sign_in_by_link(&token, new(NOON)).await.unwrap().expect("the link is live");
    assert_eq!(session.secret, key);
}

/// An expired link signs no one in. Neither does a link of a revoked account, a link whose account's key leaked, or a
/// link for another purpose.
pub async fn an_expired_link_does_not_sign_in(store: Arc<dyn FullStore>) {
    let owner = verified(&*store).await;
    let token = link(&*store, &owner).await;
    let end = NOON.saturating_add(LinkPurpose::SignIn.lifetime());
    assert_eq!(store.sign_in_by_link(&token, new(end)).await.unwrap(), None);
    let unknown = LinkToken::generate(&SystemRandomness).hash();
    assert_eq!(store.sign_in_by_link(&unknown, new(NOON)).await.unwrap(), None);
    let recovery = EmailLink {
        token: LinkToken::generate(&SystemRandomness).hash(),
        purpose: LinkPurpose::RecoverKey,
        account: owner.id.clone(),
        expires_at: end,
    };
    assert!(store.open_email_link(recovery.clone()).await.unwrap());
    assert_eq!(store.sign_in_by_link(&recovery.token, new(NOON)).await.unwrap(), None);
    assert!(store.report_leaked(&owner.key, NOON).await.unwrap().is_some());
    assert_eq!(store.sign_in_by_link(&token, new(NOON)).await.unwrap(), None);
    store.replace_key(&owner.id, new_key(), NOON).await.unwrap();
    let last = end.saturating_sub(Duration::from_millis(1));
    assert!(store.sign_in_by_link(&token, new(last)).await.unwrap().is_some(), "refusals did not use it up");
    let token = link(&*store, &owner).await;
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert_eq!(store.sign_in_by_link(&token, new(NOON)).await.unwrap(), None);
}

/// Many people click one link at once.
pub async fn concurrent_clicks_open_one_session(store: Arc<dyn FullStore>) {
    let owner = verified(&*store).await;
    let token = link(&*store, &owner).await;
    let results =
        racing(&store, 0..TASKS, |store, _| async move { store.sign_in_by_link(&token, new(NOON)).await.unwrap() })
            .await;
    assert_eq!(results.into_iter().flatten().count(), 1);
    assert_eq!(store.browser_sessions(&owner.id).await.unwrap().len(), 1);
}
