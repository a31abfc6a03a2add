/// Implements [`OAuthStore`](metering_core::store::OAuthStore).
#[macro_export]
macro_rules! oauth_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::{KeyHash, KeyNumber};
            use $crate::private::metering_core::oauth::{Grant, GrantId, OAuthClient};
            use $crate::private::metering_core::{AccountId, StoreError, Timestamp};
            use $crate::{oauth, read, shared, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::OAuthStore for $store {
                async fn register_oauth_client(&self, client: OAuthClient, most: u64) -> Result<bool> {
                    let args = (client, most);
                    write(self, args, |db, (client, most)| shared(oauth::register(db, client, *most))).await
                }

                async fn oauth_client(&self, id: &str) -> Result<Option<OAuthClient>> {
                    read(self, id.to_owned(), |db, id| shared(oauth::client(db, id))).await
                }

                async fn keep_oauth_client(&self, id: &str, until: Timestamp) -> Result<()> {
                    let args = (id.to_owned(), until);
                    write(self, args, |db, (id, until)| shared(oauth::keep_client(db, id, *until))).await
                }

                async fn put_oauth_grant(&self, grant: Grant) -> Result<()> {
                    write(self, grant, |db, grant| shared(oauth::put_grant(db, grant))).await
                }

                async fn oauth_grant(&self, id: &GrantId) -> Result<Option<Grant>> {
                    read(self, *id, |db, id| shared(oauth::grant(db, id))).await
                }

                async fn oauth_grant_of(&self, secret: &KeyHash) -> Result<Option<Grant>> {
                    read(self, *secret, |db, secret| shared(oauth::grant_of(db, secret))).await
                }

                async fn oauth_grants(&self, account: &AccountId) -> Result<Vec<Grant>> {
                    read(self, account.clone(), |db, account| shared(oauth::grants(db, account))).await
                }

                async fn delete_oauth_grant(&self, id: &GrantId) -> Result<bool> {
                    write(self, *id, |db, id| shared(oauth::delete_grant(db, id))).await
                }

                async fn lasting_secret(&self, account: &AccountId, key: KeyNumber) -> Result<Option<KeyHash>> {
                    let args = (account.clone(), key);
                    read(self, args, |db, (account, key)| shared($crate::keys::lasting_secret(db, account, *key))).await
                }

                async fn expire_secret(&self, secret: &KeyHash, at: Timestamp) -> Result<()> {
                    let args = (*secret, at);
                    write(self, args, |db, (secret, at)| shared(oauth::expire_secret(db, secret, *at))).await
                }
            }
        };
    };
}
