//! The part of the storage contract for holds. They are opened and settled by [`Store::commit`](crate::Store::commit).

use std::fmt;

use async_trait::async_trait;

use crate::access::account::AccountId;
use crate::charging::hold::{Hold, HoldId};
use crate::clock::Timestamp;
use crate::store::StoreError;

/// Reads holds: credits of requests whose cost is not known yet.
///
/// A settled hold can be read for [`Hold::RETENTION`]; [`Store::forget_expired`](crate::Store::forget_expired) deletes
/// it after that.
#[async_trait]
pub trait HoldStore: Send + Sync + fmt::Debug {
    /// The hold with this id, open or settled.
    async fn hold(&self, id: &HoldId) -> Result<Option<Hold>, StoreError>;

    /// The open holds of an account, newest first, at most `limit`. Empty when there is no such account.
    async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>, StoreError>;

    /// The open holds whose lease has ended at `now`, in the order in which the leases ended, at most `limit`. To
    /// settle them, commit a [`HoldAction::Expire`](crate::charging::HoldAction::Expire) for each.
    async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>, StoreError>;
}
