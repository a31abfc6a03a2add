/// Implements [`KeyStore`](metering_core::store::KeyStore).
#[macro_export]
macro_rules! key_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                AccountId, Day, Timestamp,
                access::{Key, KeyHash, KeyHolder, KeyId, KeyNumber, KeyStatus},
                charging::HoldId,
                store::{Cursor, KeyChange, KeyChanged, KeyCreated, KeyStore, NewKey, Page},
                usage::KeyLabel,
            };
            impl KeyStore for $store {}
            snapshot keys(account: &AccountId, after: ?Cursor, limit: u32, today: Day)
                -> Page<KeyStatus> = key_status::list;
            snapshot key(account: &AccountId, id: &KeyId, today: Day) -> Option<KeyStatus> = key_status::one;
            read key_labels(account: &AccountId) -> Vec<KeyLabel> = key_status::labels;
            read keys_of_request(id: &HoldId) -> Vec<(AccountId, KeyNumber)> = key_holders::of_request;
            write create_key(new: NewKey) -> KeyCreated = key_changes::create;
            write change_key(account: &AccountId, id: &KeyId, actor: ?KeyId, change: KeyChange, now: Timestamp)
                -> KeyChanged = key_changes::change;
            write report_leaked(secret: &KeyHash, now: Timestamp) -> Option<Key> = key_changes::report_leaked;
            read key_holder(secret: &KeyHash) -> Option<KeyHolder> = key_holders::holder;
            read live_keys(secrets: &[KeyHash], now: Timestamp) -> Vec<bool> = key_holders::live;
        }
    };
}
