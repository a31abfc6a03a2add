/// Implements [`ChildAccountStore`](metering_core::store::ChildAccountStore).
#[macro_export]
macro_rules! child_account_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{
                Account, AccountId, Timestamp,
                store::{
                    ChildAccountStore, ChildClosed, ChildCreated, ChildUsage, CreditMove, CreditsMoved, Cursor,
                    NewAccount, Page,
                },
                usage::DayRange,
            };
            impl ChildAccountStore for $store {}
            write create_child(parent: &AccountId, new: NewAccount, most: u32)
                -> ChildCreated = child_accounts::create;
            read child_accounts(parent: &AccountId, after: ?Cursor, limit: u32)
                -> Page<Account> = child_accounts::list;
            read child_account(parent: &AccountId, id: &AccountId) -> Option<Account> = child_accounts::by_id;
            read parent_account(id: &AccountId) -> Option<Account> = child_accounts::parent;
            write move_credits(wanted: CreditMove) -> CreditsMoved = child_accounts::move_credits;
            write close_child(parent: &AccountId, id: &AccountId, now: Timestamp)
                -> ChildClosed = child_accounts::close;
            snapshot child_usage(parent: &AccountId, days: DayRange) -> Vec<ChildUsage> = child_accounts::usage;
        }
    };
}
