/// Implements [`HoldStore`](metering_core::store::HoldStore).
#[macro_export]
macro_rules! hold_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::charging::{Hold, HoldId};
            use $crate::private::metering_core::{AccountId, StoreError, Timestamp};
            use $crate::{holds, read, shared};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::HoldStore for $store {
                async fn hold(&self, id: &HoldId) -> Result<Option<Hold>> {
                    read(self, *id, |db, id| shared(holds::by_id(db, id))).await
                }

                async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>> {
                    let args = (account.clone(), limit);
                    read(self, args, |db, (account, limit)| shared(holds::newest_open(db, account, *limit))).await
                }

                async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>> {
                    read(self, (now, limit), |db, (now, limit)| shared(holds::expired(db, *now, *limit))).await
                }
            }
        };
    };
}
