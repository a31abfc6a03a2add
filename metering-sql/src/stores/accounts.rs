/// Implements [`Store`](metering_core::Store).
#[macro_export]
macro_rules! store {
    ($store:ty { $($own:tt)* }) => {
        const _: () = {
            use $crate::private::metering_core::access::KeyHash;
            use $crate::private::metering_core::charging::{CountedRoute, Outcome, Posting, Volume};
            use $crate::private::metering_core::money::{LedgerEntry, NewLedgerEntry};
            use $crate::private::metering_core::store::{Created, Cursor, Page, Posted, Verification};
            use $crate::private::metering_core::usage::{Activity, DailyTotal, DayRange, UsageReport};
            use $crate::private::metering_core::{Account, AccountId, NewAccount, RateLimits, StoreError, Timestamp};
            use $crate::{read, shared, snapshot, write};

            type Result<T, E = StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $crate::private::metering_core::Store for $store {
                async fn create_account(&self, account: NewAccount) -> Result<Created> {
                    write(self, account, |db, account| shared($crate::accounts::create(db, account))).await
                }

                async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
                    let found = read(self, id.clone(), |db, id| shared($crate::accounts::by_id(db, id))).await?;
                    Ok(found.map(|(_, account)| account))
                }

                async fn accounts(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<Account>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| shared($crate::accounts::list(db, after.as_ref(), *limit)))
                        .await
                }

                async fn post_entry(&self, id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Result<Posted> {
                    let args = (id.clone(), entry, now);
                    write(self, args, |db, (id, entry, now)| shared($crate::accounts::post_entry(db, id, entry, *now))).await
                }

                async fn set_limits(&self, id: &AccountId, limits: RateLimits) -> Result<Option<Account>> {
                    let args = (id.clone(), limits);
                    write(self, args, |db, (id, limits)| shared($crate::accounts::set_limits(db, id, *limits))).await
                }

                async fn set_token_limit(&self, id: &AccountId, tokens_per_minute: u32) -> Result<Option<Account>> {
                    let args = (id.clone(), tokens_per_minute);
                    write(self, args, |db, (id, limit)| shared($crate::accounts::set_token_limit(db, id, *limit))).await
                }

                async fn revoke_account(&self, id: &AccountId, now: Timestamp) -> Result<Option<Account>> {
                    write(self, (id.clone(), now), |db, (id, now)| shared($crate::accounts::revoke(db, id, *now))).await
                }

                async fn replace_live_key(&self, old: &KeyHash, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (*old, key, now);
                    write(self, args, |db, (old, key, now)| shared($crate::key_changes::replace_live(db, old, key, *now)))
                        .await
                }

                async fn replace_key(&self, id: &AccountId, key: KeyHash, now: Timestamp) -> Result<Option<Account>> {
                    let args = (id.clone(), key, now);
                    write(self, args, |db, (id, key, now)| shared($crate::key_replacement::replace(db, id, key, *now))).await
                }

                async fn volumes(&self, id: &AccountId) -> Result<Vec<(CountedRoute, Volume)>> {
                    read(self, id.clone(), |db, id| shared($crate::volumes::of_account(db, id))).await
                }

                async fn ledger(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<LedgerEntry>> {
                    let args = (after.cloned(), limit);
                    read(self, args, |db, (after, limit)| shared($crate::ledger::list(db, after.as_ref(), *limit)))
                        .await
                }

                async fn account_ledger(
                    &self,
                    id: &AccountId,
                    after: Option<&Cursor>,
                    limit: u32,
                ) -> Result<Page<LedgerEntry>> {
                    let args = (id.clone(), after.cloned(), limit);
                    read(self, args, |db, (id, after, limit)| {
                        shared($crate::ledger::of_account(db, id, after.as_ref(), *limit))
                    })
                    .await
                }

                async fn usage_report(&self, id: &AccountId, days: DayRange) -> Result<Option<UsageReport>> {
                    let args = (id.clone(), days);
                    snapshot(self, args, |db, (id, days)| shared($crate::reports::of_account(db, id, *days))).await
                }

                async fn account_daily_totals(&self, id: &AccountId, days: DayRange) -> Result<Vec<DailyTotal>> {
                    let args = (id.clone(), days);
                    snapshot(self, args, |db, (id, days)| shared($crate::reports::days_of_account(db, id, *days)))
                        .await
                }

                async fn route_calls(&self, days: DayRange) -> Result<Vec<(CountedRoute, u64)>> {
                    snapshot(self, days, |db, days| shared($crate::reports::calls_by_route(db, *days))).await
                }

                async fn daily_totals(&self, after: Option<&Cursor>, limit: u32) -> Result<Page<DailyTotal>> {
                    let args = (after.cloned(), limit);
                    snapshot(self, args, |db, (after, limit)| {
                        shared($crate::daily_totals::list(db, after.as_ref(), *limit))
                    })
                    .await
                }

                $($own)*
            }
        };
    };
}
