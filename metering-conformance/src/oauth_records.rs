//! Contracts for clients and grants of OAuth: stored as given, and deleted after they expire.

use std::sync::Arc;
use std::time::Duration;

use metering_core::access::AccountId;
use metering_core::clock::Timestamp;
use metering_core::oauth::{Grant, GrantToken, OAuthClient, RedirectUri};
use metering_core::random::SystemRandomness;
use metering_core::{FullStore, Refusal};

use super::scene::{MINUTE, NOON, accepted, charge, customer, new_key, refused};

fn client(id: &str, expires_at: Timestamp) -> OAuthClient {
    let redirect_uris =
        ["https://a.example/cb?x=1", "http://127.0.0.1/cb"].map(|uri| uri.parse::<RedirectUri>().unwrap()).to_vec();
    OAuthClient { id: id.to_owned(), name: "Größe".parse().unwrap(), redirect_uris, expires_at }
}

/// A grant of a new account.
async fn grant(store: &dyn FullStore, expires_at: Timestamp) -> Grant {
    grant_of(store, customer(store, 100).await.id, expires_at).await
}

pub(super) async fn grant_of(store: &dyn FullStore, account: AccountId, expires_at: Timestamp) -> Grant {
    let code = GrantToken::generate(&SystemRandomness);
    let parent = store.keys(&account, None, 1, NOON.day()).await.unwrap().items.remove(0).key.id;
    Grant {
        id: code.grant(),
        account,
        parent,
        client: "https://app.example/client.json".to_owned(),
        redirect_uri: "https://a.example/cb".parse().unwrap(),
        resource: "https://api.example/mcp".to_owned(),
        challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".parse().unwrap(),
        terms: r#"{"name":"Größe"}"#.to_owned(),
        token: code.hash(),
        key: None,
        secret: None,
        expires_at,
    }
}

/// No more than the limit are stored: a new one takes the place of the oldest that is unused.
pub async fn a_registered_client_is_found_as_it_was(store: Arc<dyn FullStore>) {
    let (one, two) = (client("cli_1", NOON), client("cli_2", NOON));
    assert!(store.register_oauth_client(one.clone(), 2).await.unwrap());
    assert!(store.register_oauth_client(two, 2).await.unwrap());
    assert_eq!(store.oauth_client("cli_1").await.unwrap(), Some(one.clone()));
    let later = NOON.saturating_add(MINUTE);
    store.keep_oauth_client("cli_1", later).await.unwrap();
    assert!(store.register_oauth_client(client("cli_3", NOON), 2).await.unwrap());
    assert_eq!(store.oauth_client("cli_2").await.unwrap(), None);
    store.keep_oauth_client("cli_2", later).await.unwrap();
    store.keep_oauth_client("cli_3", later).await.unwrap();
    assert!(!store.register_oauth_client(client("cli_4", NOON), 2).await.unwrap(), "both are used");
    assert_eq!(store.oauth_client("cli_4").await.unwrap(), None);
    assert_eq!(store.oauth_client("cli_1").await.unwrap(), Some(OAuthClient { expires_at: later, ..one }));
}

/// A grant is found by its id and its access token. A second grant with the same id replaces it.
pub async fn a_grant_is_found_by_its_id_and_its_access_token(store: Arc<dyn FullStore>) {
    let begun = grant(&*store, NOON).await;
    store.put_oauth_grant(begun.clone()).await.unwrap();
    assert_eq!(store.oauth_grant(&begun.id).await.unwrap(), Some(begun.clone()));
    let (secret, next) = (new_key(), GrantToken::generate(&SystemRandomness).hash());
    assert_eq!(store.oauth_grant_of(&secret).await.unwrap(), None);
    let redeemed = begun.clone().continued(next, begun.parent.clone(), secret, NOON);
    store.put_oauth_grant(redeemed.clone()).await.unwrap();
    assert_eq!(store.oauth_grant(&begun.id).await.unwrap(), Some(redeemed.clone()));
    assert_eq!(store.oauth_grant_of(&secret).await.unwrap(), Some(redeemed.clone()));
    let other = grant(&*store, NOON).await;
    store.put_oauth_grant(other).await.unwrap();
    assert_eq!(store.oauth_grants(&begun.account).await.unwrap(), [redeemed]);
    assert!(store.delete_oauth_grant(&begun.id).await.unwrap());
    assert!(!store.delete_oauth_grant(&begun.id).await.unwrap());
    assert_eq!(store.oauth_grant(&begun.id).await.unwrap(), None);
}

/// The next charge knows it.
pub async fn a_secret_works_until_it_expires(store: Arc<dyn FullStore>) {
    let owner = customer(&*store, 100).await;
    accepted(&*store, charge(owner.key, 1), NOON).await;
    let end = NOON.saturating_add(MINUTE);
    store.expire_secret(&owner.key, end).await.unwrap();
    store.expire_secret(&new_key(), end).await.unwrap();
    accepted(&*store, charge(owner.key, 1), end.saturating_sub(Duration::from_millis(1))).await;
    assert!(matches!(refused(&*store, charge(owner.key, 1), end).await, Refusal::UnknownKey));
    assert_eq!(store.live_keys(&[owner.key], NOON).await.unwrap(), [true]);
    assert_eq!(store.live_keys(&[owner.key], end).await.unwrap(), [false]);
}

/// Not before.
pub async fn expired_clients_and_grants_are_deleted(store: Arc<dyn FullStore>) {
    let grant = grant(&*store, NOON).await;
    store.put_oauth_grant(grant.clone()).await.unwrap();
    assert!(store.register_oauth_client(client("cli_1", NOON), 1).await.unwrap());
    store.forget_expired(NOON.saturating_sub(Duration::from_millis(1))).await.unwrap();
    assert!(store.oauth_client("cli_1").await.unwrap().is_some());
    assert!(store.oauth_grant(&grant.id).await.unwrap().is_some());
    store.forget_expired(NOON).await.unwrap();
    assert_eq!(store.oauth_client("cli_1").await.unwrap(), None);
    assert_eq!(store.oauth_grant(&grant.id).await.unwrap(), None);
}
