//! Contracts for sessions of browsers: stored as given, ended by id, and limited for each account.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{AccountId, BrowserSession, BrowserSessionId, BrowserToken, KeyHash, NewBrowserSession};
use metering_core::clock::Timestamp;
use metering_core::random::SystemRandomness;
use metering_core::store::BrowserSessionStore;

use super::scene::{MINUTE, NOON, customer, new_id, new_key, racing};

const MOST: usize = BrowserSession::MAX_PER_ACCOUNT;

/// A session to open.
pub(super) fn new(created_at: Timestamp) -> NewBrowserSession {
    NewBrowserSession {
        id: BrowserSessionId::generate(&SystemRandomness),
        token: BrowserToken::generate(&SystemRandomness).hash(),
        device: "Größe on Linux".parse().unwrap(),
        created_at,
    }
}

fn session(account: &AccountId, secret: KeyHash, created_at: Timestamp) -> BrowserSession {
    new(created_at).of_key(account.clone(), secret)
}

/// Opens a session at a minute, and expects success.
async fn open(store: &dyn BrowserSessionStore, account: &AccountId, secret: KeyHash, minute: u32) -> BrowserSession {
    let session = session(account, secret, NOON.saturating_add(MINUTE * minute));
    assert!(store.open_browser_session(session.clone()).await.unwrap(), "{session:?}");
    session
}

async fn of_account(store: &dyn BrowserSessionStore, account: &AccountId) -> Vec<BrowserSession> {
    store.browser_sessions(account).await.unwrap()
}

/// By its token, and among those of its account, the most recently used first.
pub async fn a_browser_session_is_found_as_it_was_opened(store: Arc<dyn BrowserSessionStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let first = open(&*store, &owner.id, owner.key, 0).await;
    let second = open(&*store, &owner.id, owner.key, 1).await;
    let others = open(&*store, &other.id, other.key, 0).await;
    assert_eq!(store.browser_session(&first.token).await.unwrap(), Some(first.clone()));
    assert_eq!(of_account(&*store, &owner.id).await, [second, first.clone()]);
    assert_eq!(of_account(&*store, &other.id).await, [others]);
    assert_eq!(of_account(&*store, &new_id()).await, []);
    let unknown = BrowserToken::generate(&SystemRandomness).hash();
    assert_eq!(store.browser_session(&unknown).await.unwrap(), None);
    assert!(store.open_browser_session(first).await.is_err(), "its token is in use");
}

/// A secret that is unknown, replaced, or of a revoked account opens none.
pub async fn a_browser_session_needs_a_live_secret(store: Arc<dyn BrowserSessionStore>) {
    let owner = customer(&*store, 1).await;
    let opens = async |secret| store.open_browser_session(session(&owner.id, secret, NOON)).await.unwrap();
    assert!(!opens(new_key()).await);
    let key = new_key();
    store.replace_live_key(&owner.key, key, NOON).await.unwrap();
    assert!(!opens(owner.key).await && opens(key).await);
    store.revoke_account(&owner.id, NOON).await.unwrap();
    assert!(!opens(key).await);
}

/// Nothing else changes, and a session that was ended is not made again.
pub async fn the_use_of_a_session_is_stored(store: Arc<dyn BrowserSessionStore>) {
    let owner = customer(&*store, 1).await;
    let (first, second) = (open(&*store, &owner.id, owner.key, 0).await, open(&*store, &owner.id, owner.key, 1).await);
    let used = first.used(NOON.saturating_add(MINUTE * 60)).expect("an hour is long enough");
    store.use_browser_session(&used).await.unwrap();
    assert_eq!(of_account(&*store, &owner.id).await, [used.clone(), second.clone()]);
    assert_eq!(store.end_browser_sessions(&owner.id, &[first.id]).await.unwrap(), 1);
    store.use_browser_session(&used).await.unwrap();
    assert_eq!(of_account(&*store, &owner.id).await, [second]);
}

/// One account does not end the sessions of another.
pub async fn sessions_are_ended_by_account_and_id(store: Arc<dyn BrowserSessionStore>) {
    let (owner, other) = (customer(&*store, 1).await, customer(&*store, 1).await);
    let mut ids = Vec::new();
    for minute in 0..3 {
        ids.push(open(&*store, &owner.id, owner.key, minute).await.id);
    }
    assert_eq!(store.end_browser_sessions(&other.id, &ids).await.unwrap(), 0);
    assert_eq!(store.end_browser_sessions(&owner.id, &[]).await.unwrap(), 0);
    assert_eq!(store.end_browser_sessions(&owner.id, &ids[..1]).await.unwrap(), 1);
    let left: Vec<_> = of_account(&*store, &owner.id).await.into_iter().map(|session| session.id).collect();
    assert_eq!(left, [ids[2], ids[1]]);
    assert_eq!(store.end_browser_sessions(&owner.id, &ids).await.unwrap(), 2);
    assert_eq!(of_account(&*store, &owner.id).await, []);
}

/// Those whose key is gone make room first.
pub async fn one_session_too_many_ends_the_least_recently_used(store: Arc<dyn BrowserSessionStore>) {
    let owner = customer(&*store, 1).await;
    let mut opened = Vec::new();
    for minute in (0..).take(MOST) {
        opened.push(open(&*store, &owner.id, owner.key, minute).await);
    }
    let used = opened[0].used(NOON.saturating_add(MINUTE * 60)).expect("an hour is long enough");
    store.use_browser_session(&used).await.unwrap();
    open(&*store, &owner.id, owner.key, 61).await;
    let left = of_account(&*store, &owner.id).await;
    assert_eq!(left.len(), MOST);
    assert!(left.contains(&used) && !left.contains(&opened[1]), "{left:?}");
    let key = new_key();
    store.replace_live_key(&owner.key, key, NOON).await.unwrap();
    let only = open(&*store, &owner.id, key, 62).await;
    assert_eq!(of_account(&*store, &owner.id).await, [only]);
}

/// Many browsers sign in at once.
pub async fn concurrent_sessions_keep_to_the_limit(store: Arc<dyn BrowserSessionStore>) {
    let owner = customer(&*store, 1).await;
    let results = racing(&store, 0..2 * MOST, |store, _| {
        let new = session(&owner.id, owner.key, NOON);
        async move { store.open_browser_session(new).await.unwrap() }
    })
    .await;
    assert!(results.into_iter().all(|is_open| is_open));
    assert_eq!(of_account(&*store, &owner.id).await.len(), MOST);
}

/// A session is deleted once it has expired, and not before.
pub async fn expired_browser_sessions_are_deleted(store: Arc<dyn BrowserSessionStore>) {
    let owner = customer(&*store, 1).await;
    let session = open(&*store, &owner.id, owner.key, 0).await;
    let early = session.expires_at.saturating_sub(Duration::from_millis(1));
    store.forget_expired(early).await.unwrap();
    assert_eq!(of_account(&*store, &owner.id).await.len(), 1);
    assert!(store.forget_expired(session.expires_at).await.unwrap() >= 1);
    assert_eq!(of_account(&*store, &owner.id).await, []);
}
