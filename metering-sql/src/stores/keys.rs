/// Implements [`KeyStore`](metering_core::store::KeyStore).
#[macro_export]
macro_rules! key_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::{Key, KeyHash, KeyHolder, KeyId, KeyNumber, KeyStatus};
            use $crate::private::metering_core::charging::HoldId;
            use $crate::private::metering_core::store::{Cursor, KeyChange, KeyChanged, KeyCreated, NewKey, Page};
            use $crate::private::metering_core::usage::KeyLabel;
            use $crate::private::metering_core::{AccountId, Day, StoreError, Timestamp};
            use $crate::{read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::KeyStore for $store {
                async fn keys(
                    &self,
                    account: &AccountId,
                    after: Option<&Cursor>,
                    limit: u32,
                    today: Day,
                ) -> Result<Page<KeyStatus>> {
                    let args = (account.clone(), after.cloned(), limit, today);
                    snapshot(self, args, |db, (account, after, limit, today)| {
                        shared($crate::key_status::list(db, account, after.as_ref(), *limit, *today))
                    })
                    .await
                }

                async fn key(&self, account: &AccountId, id: &KeyId, today: Day) -> Result<Option<KeyStatus>> {
                    let args = (account.clone(), id.clone(), today);
                    snapshot(self, args, |db, (account, id, today)| {
                        shared($crate::key_status::one(db, account, id, *today))
                    })
                    .await
                }

                async fn key_labels(&self, account: &AccountId) -> Result<Vec<KeyLabel>> {
                    read(self, account.clone(), |db, account| shared($crate::key_status::labels(db, account))).await
                }

                async fn keys_of_request(&self, id: &HoldId) -> Result<Vec<(AccountId, KeyNumber)>> {
                    read(self, *id, |db, id| shared($crate::key_holders::of_request(db, id))).await
                }

                async fn create_key(&self, new: NewKey) -> Result<KeyCreated> {
                    write(self, new, |db, new| shared($crate::key_changes::create(db, new))).await
                }

                async fn change_key(
                    &self,
                    account: &AccountId,
                    id: &KeyId,
                    actor: Option<&KeyId>,
                    change: KeyChange,
                    now: Timestamp,
                ) -> Result<KeyChanged> {
                    let args = (account.clone(), id.clone(), actor.cloned(), change, now);
                    write(self, args, |db, (account, id, actor, change, now)| {
                        shared($crate::key_changes::change(db, account, id, actor.as_ref(), change, *now))
                    })
                    .await
                }

                async fn report_leaked(&self, secret: &KeyHash, now: Timestamp) -> Result<Option<Key>> {
                    let args = (*secret, now);
                    write(self, args, |db, (secret, now)| shared($crate::key_changes::report_leaked(db, secret, *now)))
                        .await
                }

                async fn key_holder(&self, secret: &KeyHash) -> Result<Option<KeyHolder>> {
                    read(self, *secret, |db, secret| shared($crate::key_holders::holder(db, secret))).await
                }

                async fn live_keys(&self, secrets: &[KeyHash], now: Timestamp) -> Result<Vec<bool>> {
                    let args = (secrets.to_vec(), now);
                    read(self, args, |db, (secrets, now)| shared($crate::key_holders::live(db, secrets, *now))).await
                }
            }
        };
    };
}
