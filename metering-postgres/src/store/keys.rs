//! The storage contract for keys. Each method runs in a transaction.

use async_trait::async_trait;
use metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyStatus};
use metering_core::store::{Cursor, KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, Page};
use metering_core::usage::KeyLabel;
use metering_core::{AccountId, Day, StoreError, Timestamp};

use crate::access::{key_changes, key_status, keys};
use crate::store::PostgresStore;

type Result<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl KeyStore for PostgresStore {
    async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
        let secret = *secret;
        self.read(move |client| Box::pin(async move { keys::holder(client, &secret).await })).await
    }

    async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
        self.read(|client| {
            let secrets = secrets.to_vec();
            Box::pin(async move { keys::live(client, &secrets, now).await })
        })
        .await
    }

    async fn keys(
        &self,
        account: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
        today: Day,
    ) -> Result<Page<KeyStatus>> {
        self.read_at_once(|transaction| {
            let (account, after) = (account.clone(), after.cloned());
            Box::pin(async move { key_status::list(transaction, &account, after.as_ref(), limit, today).await })
        })
        .await
    }

    async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
        self.read_at_once(|transaction| {
            let (account, id) = (account.clone(), id.clone());
            Box::pin(async move { key_status::one_key(transaction, &account, &id, today).await })
        })
        .await
    }

    async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>> {
        self.read(|client| {
            let account = account.clone();
            Box::pin(async move { keys::labels(client, &account).await })
        })
        .await
    }

    async fn create_key(&self, new: NewKey) -> Result<KeyCreated> {
        self.write(|write| Box::pin(key_changes::create(write, new.clone()))).await
    }

    async fn change_key(
        &self,
        account: &AccountId,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyChanged> {
        self.write(|write| {
            let (account, id, actor, change) = (account.clone(), id.clone(), actor.cloned(), change.clone());
            Box::pin(async move { key_changes::change(write, &account, &id, actor.as_ref(), change, now).await })
        })
        .await
    }

    async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
        let secret = *secret;
        self.write(move |write| Box::pin(async move { key_changes::report_leaked(write, &secret, now).await })).await
    }
}
