/// Implements [`FullStore`](metering_core::FullStore).
#[macro_export]
macro_rules! full_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::store::{Erased, Steps};
            use $crate::private::metering_core::{Account, AccountId, StoreError};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::FullStore for $store {
                async fn transact(&self, steps: Steps) -> Result<Erased> {
                    $crate::transact(self, steps).await
                }

                async fn lock_account(&self, id: &AccountId) -> Result<Option<Account>> {
                    let locked =
                        $crate::write(self, id.clone(), |db, id| $crate::shared($crate::accounts::locked(db, id)));
                    Ok(locked.await?.map(|(_, account)| account))
                }
            }
        };
    };
}
