/// Implements [`ImportStore`](metering_core::store::ImportStore).
#[macro_export]
macro_rules! import_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                AccountId, Timestamp,
                access::SecretRecord,
                imports::{AccountImported, ImportMode, ImportedAccount},
                store::ImportStore,
            };
            impl ImportStore for $store {
                async fn import_accounts(
                    &self,
                    accounts: Vec<ImportedAccount>,
                    mode: ImportMode,
                    now: Timestamp,
                ) -> Result<Vec<AccountImported>> {
                    $crate::imports::run(self, accounts, mode, now).await
                }
            }
            read key_secrets(account: &AccountId) -> Vec<SecretRecord> = keys::secrets;
        }
    };
}
