//! The part of the storage contract for child accounts: accounts of a customer's customers, which their parent fills.

use async_trait::async_trait;

use crate::access::account::{Account, AccountId};
use crate::clock::{Day, Timestamp};
use crate::money::credits::Credits;
use crate::store::{Cursor, NewAccount, Page, Store, StoreError};
use crate::usage::DayRange;

/// Stores child accounts. A child is an account like any other; only this trait stores its parent. A child has no
/// children.
#[async_trait]
pub trait ChildAccountStore: Store {
    /// Creates an account without credits as a child of another one, whose limit on tokens it inherits, unless the
    /// parent has `most` children that are not closed. [`create_child`](crate::backend::decision::create_child) has the
    /// refusals in order.
    async fn create_child(&self, parent: &AccountId, new: NewAccount, most: u32) -> Result<ChildCreated, StoreError>;

    /// The children of an account, closed ones too, in the order of creation, at most `limit` after `after`. Empty when
    /// there is no such account.
    async fn child_accounts(
        &self,
        parent: &AccountId,
        after: Option<&Cursor>,
        limit: u32,
    ) -> Result<Page<Account>, StoreError>;

    /// A child of an account, closed or not.
    async fn child_account(&self, parent: &AccountId, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// The parent of an account, revoked or not; `None` if the account is not a child.
    async fn parent_account(&self, id: &AccountId) -> Result<Option<Account>, StoreError>;

    /// Moves credits between an account and its child. Both entries are written in one transaction, at most once for each
    /// request of the parent. [`move_credits`](crate::backend::decision::move_credits) has the refusals in order.
    async fn move_credits(&self, wanted: CreditMove) -> Result<CreditsMoved, StoreError>;

    /// Moves a child's whole balance to its parent, and revokes the child.
    /// [`close_child`](crate::backend::decision::close_child) has the refusals in order.
    async fn close_child(&self, parent: &AccountId, id: &AccountId, now: Timestamp) -> Result<ChildClosed, StoreError>;

    /// The usage of each child of an account on each day of a range, by account and day; days without usage are left
    /// out.
    async fn child_usage(&self, parent: &AccountId, days: DayRange) -> Result<Vec<ChildUsage>, StoreError>;
}

/// The parent of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildAccount {
    /// The child.
    pub account: AccountId,
    /// Its parent.
    pub parent: AccountId,
}

/// Credits to move between an account and its child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreditMove {
    /// The parent.
    pub parent: AccountId,
    /// The hash of the request's idempotency key.
    pub request: [u8; 32],
    /// The child.
    pub child: AccountId,
    /// The credits for the child; below zero to take credits back.
    pub amount: Credits,
    /// When.
    pub at: Timestamp,
}

/// A child's usage on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildUsage {
    /// The child.
    pub account: AccountId,
    /// The UTC day.
    pub day: Day,
    /// Accepted requests, including refunded ones.
    pub usage_events: u64,
    /// Their charges, minus refunds.
    pub credits_used: Credits,
}

/// The outcome of [`ChildAccountStore::create_child`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildCreated {
    /// It was created.
    Account(Account),
    /// There is no such parent, or it is revoked; nothing was created.
    NoSuchParent,
    /// The parent is a child itself; nothing was created.
    IsChild,
    /// An account has or had the key, such as the one that the same request created before; nothing was created.
    KeyUsed,
    /// The parent has reached its limit of children; nothing was created.
    TooMany,
}

/// The outcome of [`ChildAccountStore::move_credits`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreditsMoved {
    /// They were moved, now or by the same request before. Both accounts as they are now.
    Moved {
        /// The parent.
        parent: Box<Account>,
        /// The child.
        child: Box<Account>,
    },
    /// There is no such child, or it or its parent is revoked; nothing was moved.
    NoSuchChild,
    /// The parent's request moved something else before; nothing was moved.
    OtherRequest,
    /// The balance of the giving account does not cover them; nothing was moved.
    NotEnough(Credits),
    /// The parent would take back more than it gave; it can take back at most this. Nothing was moved.
    NotGiven(Credits),
    /// A balance or a total could not hold them; nothing was moved.
    OutOfRange,
}

/// The outcome of [`ChildAccountStore::close_child`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildClosed {
    /// It is closed, and its credits are the parent's.
    Closed(Credits),
    /// There is no such child, or it or its parent is revoked; nothing changed.
    NoSuchChild,
    /// Requests of the child hold credits; nothing changed.
    InProgress(Credits),
    /// A signed payment of the child, or a charge of its card, is in progress; nothing changed.
    Paying,
    /// The child's balance is below zero; nothing changed.
    Owes(Credits),
    /// This many of the child's credits did not come from its parent, which would get them; nothing changed.
    HasOwn(Credits),
    /// The parent's balance or totals could not hold its credits; nothing changed.
    OutOfRange,
}
