/// Implements [`OAuthStore`](metering_core::store::OAuthStore).
#[macro_export]
macro_rules! oauth_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                AccountId, Timestamp,
                access::{KeyHash, KeyNumber},
                oauth::{Grant, GrantId, OAuthClient},
                store::OAuthStore,
            };
            impl OAuthStore for $store {}
            write register_oauth_client(client: OAuthClient, most: u64) -> bool = oauth::register;
            read oauth_client(id: &str) -> Option<OAuthClient> = oauth::client;
            write keep_oauth_client(id: &str, until: Timestamp) -> () = oauth::keep_client;
            write put_oauth_grant(grant: Grant) -> () = oauth::put_grant;
            read oauth_grant(id: &GrantId) -> Option<Grant> = oauth::grant;
            read oauth_grant_of(secret: &KeyHash) -> Option<Grant> = oauth::grant_of;
            read oauth_grants(account: &AccountId) -> Vec<Grant> = oauth::grants;
            write delete_oauth_grant(id: &GrantId) -> bool = oauth::delete_grant;
            read lasting_secret(account: &AccountId, key: KeyNumber) -> Option<KeyHash> = keys::lasting_secret;
            write expire_secret(secret: &KeyHash, at: Timestamp) -> () = oauth::expire_secret;
        }
    };
}
