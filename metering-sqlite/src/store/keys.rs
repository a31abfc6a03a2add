//! Implements the part of the storage contract for keys. Each method goes to the writer or to a reader.

use async_trait::async_trait;
use metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyStatus};
use metering_core::store::{Cursor, KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, Page};
use metering_core::usage::KeyLabel;
use metering_core::{AccountId, Day, Timestamp};

use crate::access::{key_changes, key_holders};
use crate::error::Result;
use crate::journal::Snapshot;
use crate::store::SqliteStore;

#[async_trait]
impl KeyStore for SqliteStore {
    async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
        let secret = *secret;
        self.read(move |snapshot| key_holders::holder(snapshot, &secret)).await
    }

    async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
        let secrets = secrets.to_vec();
        self.read(move |snapshot| key_holders::are_live(snapshot, &secrets, now)).await
    }

    async fn keys(
        &self,
        account: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
        today: Day,
    ) -> Result<Page<KeyStatus>> {
        let (account, after) = (account.clone(), after.cloned());
        self.read(move |snapshot| key_changes::list(snapshot, &account, after.as_ref(), limit, today)).await
    }

    async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
        let (account, id) = (account.clone(), id.clone());
        self.read(move |snapshot| key_changes::by_id(snapshot, &account, &id, today)).await
    }

    async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>> {
        let account = account.clone();
        self.read(move |snapshot| key_changes::labels(snapshot, &account)).await
    }

    async fn create_key(&self, new: NewKey) -> Result<KeyCreated> {
        self.writer.write(move |snapshot| key_changes::create(snapshot, new)).await
    }

    async fn change_key(
        &self,
        account: &AccountId,
        id: &KeyId,
        actor: Option<&KeyId>,
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyChanged> {
        let (account, id, actor) = (account.clone(), id.clone(), actor.cloned());
        let change =
            move |snapshot: &Snapshot<'_>| key_changes::change(snapshot, &account, &id, actor.as_ref(), change, now);
        self.writer.write(change).await
    }

    async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
        let secret = *secret;
        self.writer.write(move |snapshot| key_changes::report_leaked(snapshot, &secret, now)).await
    }
}
