/// Implements [`ChildAccountStore`](metering_core::store::ChildAccountStore).
#[macro_export]
macro_rules! child_account_store {
    ($store:ty) => {
        const _: () = {
            use $crate::private::metering_core::store::{
                ChildClosed, ChildCreated, ChildUsage, CreditMove, CreditsMoved, Cursor, NewAccount, Page,
            };
            use $crate::private::metering_core::usage::DayRange;
            use $crate::private::metering_core::{Account, AccountId, StoreError, Timestamp};
            use $crate::{child_accounts, read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::store::ChildAccountStore for $store {
                async fn create_child(&self, parent: &AccountId, new: NewAccount, most: u32) -> Result<ChildCreated> {
                    write(self, (parent.clone(), new, most), |db, (parent, new, most)| {
                        shared(child_accounts::create(db, parent, new, *most))
                    })
                    .await
                }

                async fn child_accounts(
                    &self,
                    parent: &AccountId,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<Account>> {
                    read(self, (parent.clone(), after.cloned(), limit), |db, (parent, after, limit)| {
                        shared(child_accounts::list(db, parent, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn child_account(&self, parent: &AccountId, id: &AccountId) -> Result<Option<Account>> {
                    read(self, (parent.clone(), id.clone()), |db, (parent, id)| {
                        shared(child_accounts::by_id(db, parent, id))
                    })
                    .await
                }

                async fn parent_account(&self, id: &AccountId) -> Result<Option<Account>> {
                    read(self, id.clone(), |db, id| shared(child_accounts::parent(db, id))).await
                }

                async fn move_credits(&self, wanted: CreditMove) -> Result<CreditsMoved> {
                    write(self, wanted, |db, wanted| shared(child_accounts::move_credits(db, wanted))).await
                }

                async fn close_child(&self, parent: &AccountId, id: &AccountId, now: Timestamp) -> Result<ChildClosed> {
                    write(self, (parent.clone(), id.clone(), now), |db, (parent, id, now)| {
                        shared(child_accounts::close(db, parent, id, *now))
                    })
                    .await
                }

                async fn child_usage(&self, parent: &AccountId, days: DayRange) -> Result<Vec<ChildUsage>> {
                    snapshot(self, (parent.clone(), days), |db, (parent, days)| {
                        shared(child_accounts::usage(db, parent, *days))
                    })
                    .await
                }
            }
        };
    };
}
