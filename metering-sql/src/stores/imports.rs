/// Implements [`ImportStore`](metering_core::store::ImportStore).
#[macro_export]
macro_rules! import_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::access::SecretRecord;
            use $crate::private::metering_core::imports::{AccountImported, ImportMode, ImportedAccount};
            use $crate::private::metering_core::{AccountId, StoreError, Timestamp};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::ImportStore for $store {
                async fn import_accounts(
                    &self,
                    accounts: Vec<ImportedAccount>,
                    mode: ImportMode,
                    now: Timestamp,
                ) -> Result<Vec<AccountImported>> {
                    $crate::imports::run(self, accounts, mode, now).await
                }

                async fn key_secrets(&self, account: &AccountId) -> Result<Vec<SecretRecord>> {
                    $crate::read(self, account.clone(), |db, account| {
                        $crate::shared($crate::keys::secrets(db, account))
                    })
                    .await
                }
            }
        };
    };
}
