/// Implements [`Store`](metering_core::Store).
#[macro_export]
macro_rules! store {
    ($store:ty { $($own:tt)* }) => {
        $crate::scripted! {
            use metering_core::{
                Account, AccountId, NewAccount, RateLimits, Store, Timestamp,
                access::KeyHash,
                charging::{CountedRoute, Outcome, Posting, Volume},
                money::{LedgerEntry, NewLedgerEntry},
                store::{Created, Cursor, Page, Posted, Verification},
                usage::{Activity, DailyTotal, DayRange, UsageReport},
            };
            impl Store for $store {
                async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
                    let found = $crate::read(self, id.clone(), |db, id| {
                        $crate::shared($crate::accounts::by_id(db, id))
                    });
                    Ok(found.await?.map(|(_, account)| account))
                }

                $($own)*
            }
            write create_account(account: NewAccount) -> Created = accounts::create;
            read accounts(after: ?Cursor, limit: u32) -> Page<Account> = accounts::list;
            write post_entry(id: &AccountId, entry: NewLedgerEntry, now: Timestamp) -> Posted = accounts::post_entry;
            write set_limits(id: &AccountId, limits: RateLimits) -> Option<Account> = accounts::set_limits;
            write set_token_limit(id: &AccountId, tokens_per_minute: u32)
                -> Option<Account> = accounts::set_token_limit;
            write revoke_account(id: &AccountId, now: Timestamp) -> Option<Account> = accounts::revoke;
            write replace_live_key(old: &KeyHash, key: KeyHash, now: Timestamp)
                -> Option<Account> = key_changes::replace_live;
            write replace_key(id: &AccountId, key: KeyHash, now: Timestamp)
                -> Option<Account> = key_replacement::replace;
            read volumes(id: &AccountId) -> Vec<(CountedRoute, Volume)> = volumes::of_account;
            read ledger(after: ?Cursor, limit: u32) -> Page<LedgerEntry> = ledger::list;
            read account_ledger(id: &AccountId, after: ?Cursor, limit: u32) -> Page<LedgerEntry> = ledger::of_account;
            snapshot usage_report(id: &AccountId, days: DayRange) -> Option<UsageReport> = reports::of_account;
            snapshot account_daily_totals(id: &AccountId, days: DayRange)
                -> Vec<DailyTotal> = reports::days_of_account;
            snapshot route_calls(days: DayRange) -> Vec<(CountedRoute, u64)> = reports::calls_by_route;
            snapshot daily_totals(after: ?Cursor, limit: u32) -> Page<DailyTotal> = daily_totals::list;
        }
    };
}
