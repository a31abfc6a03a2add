//! Access by OAuth.

use metering_core::access::KeyHash;
use metering_core::oauth::{Grant, GrantId, GrantTokenHash, OAuthClient, RedirectUri};
use metering_core::store::{KeyStore, OAuthStore};
use metering_sqlite::SqliteStore;

use super::filling::{VERIFIED, later};
use super::{NOON, account_id};

/// A program that registered, and what an owner consented to.
pub(crate) async fn fill(store: &SqliteStore) {
    let redirect_uri: RedirectUri = "https://app.example/callback".parse().unwrap();
    let client = OAuthClient {
        id: "cli_moved".to_owned(),
        name: "Größe".parse().unwrap(),
        redirect_uris: vec![redirect_uri.clone()],
        expires_at: later(60),
    };
    assert!(store.register_oauth_client(client, 1).await.unwrap());
    let parent = store.keys(&account_id(VERIFIED), None, 1, NOON.day()).await.unwrap().items.remove(0).key.id;
    let grant = Grant {
        id: GrantId::from_bytes([VERIFIED; 16]),
        account: account_id(VERIFIED),
        parent: parent.clone(),
        client: "cli_moved".to_owned(),
        redirect_uri,
        resource: "https://api.example/mcp".to_owned(),
        challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".parse().unwrap(),
        terms: r#"{"name":"Größe"}"#.to_owned(),
        token: GrantTokenHash::from_bytes([VERIFIED; 32]),
        key: Some(parent),
        secret: Some(KeyHash::from_bytes([VERIFIED; 32])),
        expires_at: later(60),
    };
    store.put_oauth_grant(grant).await.unwrap();
}
