/// Implements [`HoldStore`](metering_core::store::HoldStore).
#[macro_export]
macro_rules! hold_store {
    ($store:ty) => {
        $crate::scripted! {
            use metering_core::{AccountId, Timestamp, charging::{Hold, HoldId}, store::HoldStore};
            impl HoldStore for $store {}
            read hold(id: &HoldId) -> Option<Hold> = holds::by_id;
            read open_holds(account: &AccountId, limit: u32) -> Vec<Hold> = holds::newest_open;
            read expired_holds(now: Timestamp, limit: u32) -> Vec<Hold> = holds::expired;
        }
    };
}
